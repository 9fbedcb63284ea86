//! Down one level and a step of its weights, in one.
//!
//! Where every node has a matrix of its own, one task is a window with all its samples: dψ of the children, then for
//! each child dφ, dW and the step. What it reads and writes passes through the cache once. Where nodes share a matrix,
//! dW is a sum over all of them, and the step waits for the whole level.

use crate::batch::{Layer, Rows, for_each_task};
use crate::circuit::{Activations, Buffers, children_of, cut, fit};
use crate::kernel::{arch, padded};
use crate::mixing::{Lowered, Scratch, Segment, Simplex, downward, gradient_panel};
use crate::optim::{Moments, PanelStep, Step, panel_steps, update_mixing};
use crate::product;
use crate::structure::Tree;

/// The weights of one level and what moves them.
pub(crate) struct Learned<'a> {
    pub simplex: &'a mut Simplex,
    pub moments: &'a mut Moments,
    /// Flows to be added, or empty.
    pub counts: &'a [f32],
    /// By matrix: the nodes that it mixes.
    pub nodes: &'a [Vec<usize>],
}

/// One window on its way down.
struct Window<'a> {
    node: usize,
    psi: &'a mut [f32],
    dphi: &'a mut [f32],
    matrices: Vec<Vec<PanelStep<'a>>>, // by child
}

/// A level as its windows see it.
struct Level<'a> {
    tree: &'a Tree,
    l: usize,
    below: &'a Layer,
    above: &'a Layer,
    words: usize,
    phi: &'a [f32], // of the children
    upper: &'a Buffers,
    wanted: bool, // whether dφ is
    divide: bool,
}

impl Activations {
    /// dψ of level l in place of ψ, dφˡ⁻¹ (of leaves only if wanted), and a step of the level's weights.
    pub(crate) fn learn_level(
        &mut self,
        (t, l, tree): (usize, usize, &Tree),
        learned: Learned<'_>,
        step: &Step,
        to_leaves: bool,
    ) {
        let Rows { words, layers } = &self.rows[t];
        let (words, below, above) = (*words, &layers[l - 1], &layers[l]);
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let work = below.rows() * a_wide * c_wide;
        let Learned { simplex, moments, counts, nodes } = learned;
        if nodes.iter().any(|nodes| nodes.len() != 1) {
            self.level_down(t, l, tree, simplex, to_leaves);
            return update_mixing(step, (simplex, moments, counts), work, |scratch, PanelStep { panel, .. }| {
                let rows = (panel.first, panel.wide);
                self.panel_gradient(scratch, (t, tree, l), &nodes[panel.matrix], rows);
            });
        }
        let wanted = l > 1 || to_leaves;
        let divide = self.root.by_class && l == tree.levels.len();
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let Buffers { phi, psi, dphi, .. } = &mut lower[l - 1];
        fit(dphi, if wanted { below.rows() * a_wide } else { 0 });
        let ends = |node: usize| below.tasks[(node + 1) * words] - below.tasks[node * words];
        let mut psi = cut(psi, (0..tree.nodes(l)).map(|node| ends(node) * c_wide)).into_iter();
        let mut dphi =
            cut(dphi, (0..tree.nodes(l)).map(|node| if wanted { ends(node) * a_wide } else { 0 })).into_iter();
        let mut matrices: Vec<Vec<PanelStep<'_>>> = nodes.iter().map(|_| Vec::new()).collect();
        panel_steps(simplex, moments, counts).for_each(|panel| matrices[panel.panel.matrix].push(panel));
        let Tree { levels, .. } = tree;
        let mut take = |&j: &u32| std::mem::take(&mut matrices[levels[l - 1].weight_of[j as usize] as usize]);
        let windows = levels[l - 1].children.iter().enumerate().map(|(node, children)| Window {
            node,
            psi: psi.next().unwrap_or_default(),
            dphi: dphi.next().unwrap_or_default(),
            matrices: children.iter().map(&mut take).collect(),
        });
        let windows: Vec<_> = windows.collect();
        let level = Level { tree, l, below, above, words, phi, upper: &upper[0], wanted, divide };
        let few = windows.len() < 2 * rayon::current_num_threads(); // then a window's children are tasks too
        let inner = if few { work / windows.len() } else { 0 };
        for_each_task(work, windows, |window| level.learn(window, step, inner));
    }
}

impl Level<'_> {
    fn learn(&self, window: Window<'_>, step: &Step, work: usize) {
        let Self { tree, l, below, words, .. } = *self;
        let Window { node, psi, dphi, matrices } = window;
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let start = below.tasks[node * words];
        for word in 0..words {
            self.lower_product(node, word, &mut psi[(below.tasks[node * words + word] - start) * c_wide..]);
        }
        let children = &tree.levels[l - 1].children[node];
        let keys = |j: u32| (0..words).map(move |word| j as usize * words + word);
        let by_word = (0..words).flat_map(|word| children.iter().map(move |&j| j as usize * words + word));
        let mut pieces = cut(dphi, by_word.map(|key| if self.wanted { below.count(key) * a_wide } else { 0 }));
        let mut parts: Vec<Vec<Lowered<'_>>> = children.iter().map(|_| Vec::new()).collect();
        let psi = &*psi;
        for (index, dphi) in pieces.drain(..).enumerate() {
            let (word, child) = (index / children.len(), index % children.len());
            let key = children[child] as usize * words + word;
            let dpsi = &psi[(below.first[key] - start) * c_wide..];
            parts[child].push(Lowered { count: below.count(key), dpsi, dphi });
        }
        let tasks: Vec<_> = children.iter().zip(parts).zip(matrices).collect();
        for_each_task(work, tasks, |((&j, mut parts), panels)| {
            if self.wanted {
                let weights: Vec<&[f32]> = panels.iter().map(|panel| &*panel.panel.weights).collect();
                downward(arch(), (tree.channels(l), tree.channels(l - 1)), &weights, &mut parts);
            }
            let gradient = |scratch: &mut Scratch, PanelStep { panel, first, second, .. }: &PanelStep<'_>| {
                let segments = keys(j).map(|key| Segment {
                    count: below.count(key),
                    phi: &self.phi[below.first[key] * a_wide..],
                    dpsi: &psi[(below.first[key] - start) * c_wide..],
                });
                let shape = (tree.channels(l - 1), c_wide, panel.first, panel.wide);
                gradient_panel(arch(), shape, segments, scratch, [first, second]);
            };
            for_each_task(work / children.len(), panels, |panel| panel.run(step, gradient));
        });
    }

    /// dψ in place of ψ for the samples of one word.
    fn lower_product(&self, node: usize, word: usize, psi: &mut [f32]) {
        let width = padded(self.tree.channels(self.l));
        let task = node * self.words + word;
        let first = self.above.first[task];
        arch().dispatch(product::Downward {
            width,
            children: &children_of(self.tree, self.l, self.below, self.words, node, word),
            mask: self.above.mask[task],
            phi: &self.upper.phi[first * width..],
            dphi: &self.upper.dphi[first * width..],
            inverse: &self.upper.inverse[first..],
            psi,
            divide: self.divide,
        });
    }
}
