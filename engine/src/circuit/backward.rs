//! Back through the circuit: derivatives by ψ, by φ and by the leaves, after a forward pass that kept everything.
//!
//! The scale of a row is a constant here (its derivative cancels), so this is products of matrices and of numbers again:
//!
//! ```text
//! classes   dψ(y)    = g(y) / ψ(y)                         g(y) = ∂ objective / ∂ log P(X|y), the output gradients
//! mixing    dφ(a)    = Σ_c W[c,a] dψ(c),    dW[c,a] = Σ_b dψ_b(c) φ_b(a)
//! product   dψ_j(c)  = dφ(c) Π_{k≠j} ψ_k(c)
//! leaf      flow(d)  = φ⁰(d) dφ⁰(d)                        P(d_i = d | x) when the output gradients are a posterior
//! ```

use crate::arithmetic::instructions::arch;
use crate::arithmetic::matmul::padded;
use crate::arithmetic::tasks::for_each_task;
use crate::circuit::activations::{Activations, Buffers, children_of, cut_tasks, fit};
use crate::layers::leaf_statistics::Statistics;
use crate::layers::product::{Child, ProductBackward};
use crate::layers::simplex::Simplex;
use crate::layers::weights::Prepared;
use crate::rows::active_nodes::{ActiveLayer, ActiveNodes};
use crate::rows::batch::{Batch, CHUNK, bits};
use crate::structure::{Position, Structure, Tree};
use rayon::prelude::*;

/// A level in a backward pass, as its windows see it.
pub(crate) struct LevelBackward<'a> {
    pub tree: &'a Tree,
    pub l: usize,
    pub below: &'a ActiveLayer,
    pub above: &'a ActiveLayer,
    pub words: usize,
    pub upper: &'a Buffers,
    pub wanted: bool, // whether dφ is
    pub divide: bool, // see `ProductBackward`
}

impl LevelBackward<'_> {
    /// Padded channels of the children.
    pub fn a_padded(&self) -> usize {
        padded(self.tree.channels(self.l - 1))
    }

    /// Padded channels of the windows.
    pub fn c_padded(&self) -> usize {
        padded(self.tree.channels(self.l))
    }

    /// Numbers of a child's row of dφ; none where it is not wanted.
    pub fn dphi_width(&self) -> usize {
        if self.wanted { self.a_padded() } else { 0 }
    }

    /// What the level costs, in multiply-adds.
    pub fn work(&self) -> usize {
        self.below.rows() * self.a_padded() * self.c_padded()
    }

    /// The children of a window.
    pub fn children(&self, node: usize) -> &[u32] {
        &self.tree.levels[self.l - 1].children[node]
    }

    /// The matrix of child j.
    pub fn matrix_of(&self, j: u32) -> usize {
        self.tree.levels[self.l - 1].weight_of[j as usize] as usize
    }

    /// dψ of a window in place of ψ, for the samples of one word; returns the children's rows.
    pub fn product(&self, node: usize, word: usize, psi: &mut [f32]) -> Vec<Child> {
        let width = self.c_padded();
        let task = node * self.words + word;
        let children = children_of(self.tree, self.l, self.below, self.words, node, word);
        let first = self.above.first[task];
        arch().dispatch(ProductBackward {
            width,
            children: &children,
            mask: self.above.mask[task],
            phi: &self.upper.phi[first * width..],
            dphi: &self.upper.dphi[first * width..],
            inverse: &self.upper.inverse[first..],
            psi,
            divide: self.divide,
        });
        children
    }

    /// dψ of the children of one task, in place of ψ, and dφ of each.
    fn backward_task(&self, task: usize, simplex: &Simplex, psi: &mut [f32], dphi: &mut [f32]) {
        if psi.is_empty() {
            return;
        }
        let (node, word) = (task / self.words, task % self.words);
        let rows = self.product(node, word, psi);
        let children = rows.iter().zip(self.children(node));
        for (child, &j) in children.filter(|_| self.wanted) {
            let count = child.mask.count_ones() as usize;
            let dpsi = &psi[child.first * self.c_padded()..];
            let dphi = &mut dphi[child.first * self.a_padded()..];
            simplex.backward(arch(), self.matrix_of(j), count, dpsi, dphi);
        }
    }
}

impl Activations {
    /// Sends output gradients (B, K) back. Needs a forward pass that kept everything. `to_leaves` also computes dφ⁰.
    pub fn backward(
        &mut self,
        s: &Structure,
        prepared: &Prepared,
        output_gradients: &[f32],
        to_leaves: bool,
    ) {
        self.root_backward(s, prepared, output_gradients);
        for (t, tree) in s.trees.iter().enumerate() {
            for l in (1..=tree.levels.len()).rev() {
                self.backward_level(t, l, tree, &prepared.levels[t][l - 1], to_leaves);
            }
        }
    }

    /// Level l of tree t, and the buffers of the layer below it. dφ of leaves is computed only where it is wanted.
    pub(crate) fn level_backward<'a>(
        &'a mut self,
        t: usize,
        l: usize,
        tree: &'a Tree,
        to_leaves: bool,
    ) -> (LevelBackward<'a>, &'a mut Buffers) {
        let ActiveNodes { words, layers } = &self.rows[t];
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let level = LevelBackward {
            tree,
            l,
            below: &layers[l - 1],
            above: &layers[l],
            words: *words,
            upper: &upper[0],
            wanted: l > 1 || to_leaves,
            divide: self.root.by_class && l == tree.levels.len(),
        };
        let lower = &mut lower[l - 1];
        fit(&mut lower.dphi, level.below.rows() * level.dphi_width());
        (level, lower)
    }

    /// dψ of level l in place of ψ, and dφˡ⁻¹.
    fn backward_level(
        &mut self,
        t: usize,
        l: usize,
        tree: &Tree,
        simplex: &Simplex,
        to_leaves: bool,
    ) {
        let (level, lower) = self.level_backward(t, l, tree, to_leaves);
        let dphi = cut_tasks(&mut lower.dphi, level.below, level.dphi_width());
        let psi = cut_tasks(&mut lower.psi, level.below, level.c_padded());
        let tasks: Vec<_> = psi.into_iter().zip(dphi).enumerate().collect();
        for_each_task(level.work(), tasks, |(task, (psi, dphi))| {
            level.backward_task(task, simplex, psi, dphi);
        });
    }

    /// Leaf statistics of every tree and family after a backward pass to the leaves.
    pub fn leaf_statistics(
        &self,
        s: &Structure,
        prepared: &Prepared,
        batch: &Batch,
    ) -> Vec<Vec<Statistics>> {
        let trees = s.trees.iter().enumerate();
        let tree = |(t, tree)| self.tree_statistics(t, tree, prepared, batch);
        trees.map(tree).collect()
    }

    fn tree_statistics(
        &self,
        t: usize,
        tree: &Tree,
        prepared: &Prepared,
        batch: &Batch,
    ) -> Vec<Statistics> {
        const BLOCK: usize = 16; // positions summed together, whatever the number of threads
        let block = |(index, positions): (usize, &[Position])| {
            arch().dispatch(|| self.block_statistics(t, index * BLOCK, positions, prepared, batch))
        };
        let blocks = tree.positions.par_chunks(BLOCK).enumerate();
        let blocks: Vec<Vec<(usize, Statistics)>> = blocks.map(block).collect();
        let kernels = prepared.leaves[t].iter();
        let mut sums: Vec<Statistics> = kernels.map(|k| Statistics::new(k.family())).collect();
        for (family, part) in blocks.iter().flatten() {
            sums[*family].merge(part);
        }
        sums
    }

    /// Statistics of some positions, by family, in the order in which families come.
    #[inline(always)]
    fn block_statistics(
        &self,
        t: usize,
        first: usize,
        positions: &[Position],
        prepared: &Prepared,
        batch: &Batch,
    ) -> Vec<(usize, Statistics)> {
        let (layer, words, buffers) = (
            &self.rows[t].layers[0],
            self.rows[t].words,
            &self.layers[t][0],
        );
        let mut found: Vec<(usize, Statistics)> = Vec::new();
        let mut flow = Vec::new();
        for (i, position) in positions.iter().enumerate() {
            let family = position.family as usize;
            let kernel = &prepared.leaves[t][family];
            let components = kernel.family().components;
            let width = padded(components);
            if found.last().is_none_or(|(last, _)| *last != family) {
                found.push((family, Statistics::new(kernel.family())));
            }
            let Some((_, sums)) = found.last_mut() else {
                continue;
            };
            for word in 0..words {
                let key = (first + i) * words + word;
                for (row, bit) in bits(layer.mask[key]).enumerate() {
                    let start = (layer.first[key] + row) * width;
                    let phi = &buffers.phi[start..start + components];
                    let dphi = &buffers.dphi[start..start + components];
                    let frame = batch.row(word * CHUNK + bit);
                    flow.clear();
                    flow.extend(phi.iter().zip(dphi).map(|(phi, dphi)| phi * dphi));
                    sums.add(kernel, &position.inputs, frame, &flow);
                }
            }
        }
        found
    }
}
