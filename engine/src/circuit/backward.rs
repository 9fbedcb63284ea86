//! Down the circuit: derivatives by ψ, by W and by the leaves, after an upward pass that kept everything.
//!
//! The scale of a row is a constant here (its derivative cancels), so this is products of matrices and of numbers again:
//!
//! ```text
//! classes   dψ(y)    = seed(y) / ψ(y)                      seeds are ∂/∂ log P(X|y)
//! mixing    dφ(a)    = Σ_c W[c,a] dψ(c),    dW[c,a] = Σ_b dψ_b(c) φ_b(a)
//! product   dψ_j(c)  = dφ(c) Π_{k≠j} ψ_k(c)
//! leaf      flow(d)  = φ⁰(d) dφ⁰(d)                        P(d_i = d | x) when the seeds are a posterior
//! ```

use crate::arithmetic::matmul::{arch, padded};
use crate::arithmetic::tasks::for_each_task;
use crate::circuit::activations::{Activations, children_of, cut_tasks, fit};
use crate::layers::leaf_statistics::Statistics;
use crate::layers::mixing::Simplex;
use crate::layers::product;
use crate::layers::weights::Prepared;
use crate::rows::active_nodes::Rows;
use crate::rows::batch::{Batch, CHUNK, bits};
use crate::structure::{Structure, Tree};
use rayon::prelude::*;

impl Activations {
    /// Goes down from `seeds` (B, K). Needs an upward pass that kept everything. `to_leaves` also computes dφ⁰.
    pub fn backward(&mut self, s: &Structure, prepared: &Prepared, seeds: &[f32], to_leaves: bool) {
        self.root_backward(s, prepared, seeds);
        for (t, tree) in s.trees.iter().enumerate() {
            for l in (1..=tree.levels.len()).rev() {
                self.backward_level(t, l, tree, &prepared.levels[t][l - 1], to_leaves);
            }
        }
    }

    /// dψ of level l in place of ψ, and dφˡ⁻¹.
    pub fn backward_level(
        &mut self,
        t: usize,
        l: usize,
        tree: &Tree,
        simplex: &Simplex,
        to_leaves: bool,
    ) {
        let Rows { words, layers } = &self.rows[t];
        let (below, above) = (&layers[l - 1], &layers[l]);
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let (lower, upper) = (&mut lower[l - 1], &upper[0]);
        let wanted = l > 1 || to_leaves;
        let divide = self.root.by_class && l == tree.levels.len();
        fit(
            &mut lower.dphi,
            if wanted { below.rows() * a_wide } else { 0 },
        );
        let dphi = cut_tasks(&mut lower.dphi, below, if wanted { a_wide } else { 0 });
        let psi = cut_tasks(&mut lower.psi, below, c_wide);
        let arch = arch();
        let tasks: Vec<_> = psi.into_iter().zip(dphi).enumerate().collect();
        for_each_task(
            below.rows() * a_wide * c_wide,
            tasks,
            |(task, (psi, dphi))| {
                let (node, word) = (task / words, task % words);
                if psi.is_empty() {
                    return;
                }
                let children = children_of(tree, l, below, *words, node, word);
                let first = above.first[task];
                arch.dispatch(product::Downward {
                    width: c_wide,
                    children: &children,
                    mask: above.mask[task],
                    phi: &upper.phi[first * c_wide..],
                    dphi: &upper.dphi[first * c_wide..],
                    inverse: &upper.inverse[first..],
                    psi,
                    divide,
                });
                if wanted {
                    for (child, &j) in children.iter().zip(&tree.levels[l - 1].children[node]) {
                        let matrix = tree.levels[l - 1].weight_of[j as usize] as usize;
                        let (dpsi, dphi) = (
                            &psi[child.first * c_wide..],
                            &mut dphi[child.first * a_wide..],
                        );
                        let count = child.mask.count_ones() as usize;
                        simplex.downward(arch, matrix, count, dpsi, dphi);
                    }
                }
            },
        );
    }

    /// Leaf statistics of every tree and family after a downward pass to the leaves.
    pub fn leaf_statistics(
        &self,
        s: &Structure,
        prepared: &Prepared,
        batch: &Batch,
    ) -> Vec<Vec<Statistics>> {
        const BLOCK: usize = 16; // positions summed together, whatever the number of threads
        let mut all = Vec::new();
        for (t, tree) in s.trees.iter().enumerate() {
            let (layer, words, buffers) = (
                &self.rows[t].layers[0],
                self.rows[t].words,
                &self.layers[t][0],
            );
            let wide = padded(tree.components);
            let tables = &prepared.tables[t];
            let block = |(index, positions): (usize, &[crate::structure::Position])| {
                let mut found: Vec<(usize, Statistics)> = Vec::new();
                for (i, position) in positions.iter().enumerate() {
                    let family = position.family as usize;
                    if found.last().is_none_or(|(last, _)| *last != family) {
                        found.push((family, Statistics::new(tables[family].family())));
                    }
                    let Some((_, sums)) = found.last_mut() else {
                        continue;
                    };
                    for word in 0..words {
                        let key = (index * BLOCK + i) * words + word;
                        for (row, bit) in bits(layer.mask[key]).enumerate() {
                            let start = (layer.first[key] + row) * wide;
                            let (phi, dphi) = (
                                &buffers.phi[start..start + wide],
                                &buffers.dphi[start..start + wide],
                            );
                            let frame = batch.row(word * CHUNK + bit);
                            sums.add(&tables[family], &position.inputs, frame, |d| {
                                phi[d] * dphi[d]
                            });
                        }
                    }
                }
                found
            };
            let blocks: Vec<_> = tree
                .positions
                .par_chunks(BLOCK)
                .enumerate()
                .map(block)
                .collect();
            let mut sums: Vec<Statistics> = tables
                .iter()
                .map(|table| Statistics::new(table.family()))
                .collect();
            blocks
                .iter()
                .flatten()
                .for_each(|(family, part)| sums[*family].merge(part));
            all.push(sums);
        }
        all
    }
}
