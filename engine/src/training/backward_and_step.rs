//! Back through one level and a step of its weights, in one.
//!
//! One task is a window with all its samples: dψ of the children, then for each child dφ and dW. What it reads and
//! writes passes through the cache once. Where every node has a matrix of its own, the matrix takes its step at once.
//! Where nodes share matrices, dW is summed first: by group of windows, then over the groups, in a fixed order.

use crate::arithmetic::amx::Parts;
use crate::arithmetic::instructions::arch;
use crate::arithmetic::tasks::for_each_task;
use crate::circuit::activations::{Activations, cut};
use crate::circuit::backward::LevelBackward;
use crate::layers::mixing_backward::{BackwardRows, MixingShape, backward};
use crate::layers::mixing_gradient::{
    MatrixShape, Mixed, Scratch, Segment, add_gradient, with_mixed,
};
use crate::layers::simplex::Simplex;
use crate::structure::Tree;
use crate::training::memory::Moments;
use crate::training::optimizer::{PanelStep, Step, panel_steps, update_mixing};

/// Groups of windows whose shared dW are summed apart, whatever the number of threads.
const GROUPS: usize = 16;

/// The weights of one level and what moves them.
pub struct Learned<'a> {
    /// W.
    pub simplex: &'a mut Simplex,
    /// The rule's memory.
    pub moments: &'a mut Moments,
    /// Flows to be added, or empty.
    pub counts: &'a [f32],
}

/// One window on its way back.
struct WindowBackward<'a> {
    node: usize,
    psi: &'a mut [f32],
    dphi: &'a mut [f32],
}

/// A level that learns, as its windows see it.
struct LearningLevel<'a> {
    level: LevelBackward<'a>,
    phi: &'a [f32], // of the children
}

/// One child of a window after the product: its rows of dψ and dφ, by word.
type ChildRows<'a> = Vec<BackwardRows<'a>>;

impl Activations {
    /// dψ of level l in place of ψ, dφˡ⁻¹ (of leaves only if wanted), and a step of the level's weights.
    pub fn learn_level(
        &mut self,
        t: usize,
        l: usize,
        tree: &Tree,
        learned: Learned<'_>,
        step: &Step,
        to_leaves: bool,
    ) {
        let (level, lower) = self.level_backward(t, l, tree, to_leaves);
        let (words, below) = (level.words, level.below);
        let rows = |node: usize| below.tasks[(node + 1) * words] - below.tasks[node * words];
        let nodes = 0..tree.nodes(l);
        let psi_lengths = nodes.clone().map(|node| rows(node) * level.c_padded());
        let psi = cut(&mut lower.psi, psi_lengths);
        let dphi_lengths = nodes.map(|node| rows(node) * level.dphi_width());
        let dphi = cut(&mut lower.dphi, dphi_lengths);
        let window = |(node, (psi, dphi))| WindowBackward { node, psi, dphi };
        let windows = psi.into_iter().zip(dphi).enumerate().map(window).collect();
        let level = LearningLevel {
            level,
            phi: &lower.phi,
        };
        if tree.levels[l - 1].is_own() {
            level.learn_own(windows, learned, step);
        } else {
            level.learn_shared(windows, learned, step);
        }
    }
}

impl LearningLevel<'_> {
    fn shape(&self) -> MixingShape {
        MixingShape {
            rows: self.level.tree.channels(self.level.l),
            columns: self.level.tree.channels(self.level.l - 1),
        }
    }

    fn gradient_shape(&self) -> MatrixShape {
        MatrixShape {
            columns: self.shape().columns,
            padded_rows: self.level.c_padded(),
        }
    }

    /// Matrices of the level.
    fn matrices(&self) -> usize {
        self.level.tree.levels[self.level.l - 1].matrices()
    }

    /// Every matrix steps as soon as its one node has gone back.
    fn learn_own(&self, windows: Vec<WindowBackward<'_>>, learned: Learned<'_>, step: &Step) {
        let mut matrices: Vec<Vec<PanelStep<'_>>> = Vec::new();
        matrices.resize_with(self.matrices(), Vec::new);
        let panels = panel_steps(learned.simplex, learned.moments, learned.counts);
        panels.for_each(|panel| matrices[panel.panel.matrix].push(panel));
        let mut tasks = Vec::with_capacity(windows.len());
        for window in windows {
            let mut own = Vec::new();
            for &j in self.level.children(window.node) {
                own.push(std::mem::take(&mut matrices[self.level.matrix_of(j)]));
            }
            tasks.push((window, own));
        }
        let work = self.level.work();
        let few = tasks.len() < 2 * rayon::current_num_threads(); // then a window's children are tasks too
        let inner = if few { work / tasks.len() } else { 0 };
        for_each_task(work, tasks, |(window, matrices)| {
            self.learn_window(window, matrices, step, inner);
        });
    }

    /// A window goes back, and the matrices of its children step.
    fn learn_window(
        &self,
        window: WindowBackward<'_>,
        matrices: Vec<Vec<PanelStep<'_>>>,
        step: &Step,
        work: usize,
    ) {
        let node = window.node;
        let (dpsi, rows) = self.window_backward(window);
        let children = self.level.children(node).iter().zip(rows).zip(matrices);
        for_each_task(work, children.collect(), |((&j, rows), panels)| {
            self.learn_child(rows, self.segments(node, j, dpsi), panels, step, work);
        });
    }

    /// dφ of one child, and a step of its matrix.
    fn learn_child<'a>(
        &self,
        mut rows: ChildRows<'_>,
        segments: impl Iterator<Item = Segment<'a>>,
        panels: Vec<PanelStep<'_>>,
        step: &Step,
        work: usize,
    ) {
        if self.level.wanted {
            let weights: Vec<&[f32]> = panels.iter().map(|panel| &*panel.panel.weights).collect();
            backward(arch(), self.shape(), &weights, &mut rows, Parts::Two);
        }
        let gradient = |mixed: &Mixed<'_>, scratch: &mut Scratch, panel: &PanelStep<'_>| {
            let next: [&[f32]; 2] = [panel.first, panel.second];
            mixed.gradient(arch(), panel.panel.rows, scratch, next);
        };
        with_mixed(self.gradient_shape(), segments, |mixed| {
            for_each_task(work, panels, |panel| {
                panel.run(step, |scratch, panel| gradient(mixed, scratch, panel));
            });
        });
    }

    /// Groups of windows go back and sum their dW; then all panels step.
    fn learn_shared(&self, windows: Vec<WindowBackward<'_>>, learned: Learned<'_>, step: &Step) {
        let Learned {
            simplex,
            moments,
            counts,
        } = learned;
        let columns = self.shape().columns;
        let length = columns * self.level.c_padded();
        let all = self.matrices() * length;
        let groups = grouped(windows);
        let mut sums = vec![0.0; groups.len() * all];
        let tasks: Vec<_> = groups.into_iter().zip(sums.chunks_exact_mut(all)).collect();
        for_each_task(self.level.work(), tasks, |(group, sums)| {
            self.sum_group(group, simplex, sums);
        });
        let gradient = |scratch: &mut Scratch, PanelStep { panel, .. }: &PanelStep<'_>| {
            let first = panel.matrix * length + panel.rows.first * columns;
            let groups = sums.chunks_exact(all).map(|sums| &sums[first..]);
            scratch.sum(columns * panel.rows.width, groups);
        };
        update_mixing(step, (simplex, moments, counts), all, gradient);
    }

    /// dφ of all children of some windows, and their dW into `sums`.
    fn sum_group(&self, group: Vec<WindowBackward<'_>>, simplex: &Simplex, sums: &mut [f32]) {
        let shape = self.gradient_shape();
        let length = shape.columns * shape.padded_rows;
        let mut scratch = Scratch::default();
        for window in group {
            let node = window.node;
            let (dpsi, rows) = self.window_backward(window);
            for (&j, mut rows) in self.level.children(node).iter().zip(rows) {
                let matrix = self.level.matrix_of(j);
                if self.level.wanted {
                    let panels = simplex.matrix_panels(matrix);
                    backward(arch(), self.shape(), &panels, &mut rows, Parts::Two);
                }
                let to = &mut sums[matrix * length..(matrix + 1) * length];
                for segment in self.segments(node, j, dpsi) {
                    add_gradient(arch(), shape, segment, to, &mut scratch);
                }
            }
        }
    }

    /// dψ of a window in place of ψ; returns it, and by child the rows that are to be mixed back.
    fn window_backward<'a>(&self, window: WindowBackward<'a>) -> (&'a [f32], Vec<ChildRows<'a>>) {
        let (below, words) = (self.level.below, self.level.words);
        let WindowBackward { node, psi, dphi } = window;
        let c_padded = self.level.c_padded();
        let start = below.tasks[node * words];
        for word in 0..words {
            let first = (below.tasks[node * words + word] - start) * c_padded;
            self.level.product(node, word, &mut psi[first..]);
        }
        let (dpsi, children) = (&*psi, self.level.children(node));
        let of_word = |word| children.iter().map(move |&j| j as usize * words + word);
        let keys: Vec<usize> = (0..words).flat_map(of_word).collect();
        let length = |&key: &usize| below.count(key) * self.level.dphi_width();
        let pieces = cut(dphi, keys.iter().map(length));
        let mut rows: Vec<ChildRows<'_>> = Vec::new();
        rows.resize_with(children.len(), || Vec::with_capacity(words));
        for (index, (key, dphi)) in keys.into_iter().zip(pieces).enumerate() {
            rows[index % children.len()].push(BackwardRows {
                count: below.count(key),
                dpsi: &dpsi[(below.first[key] - start) * c_padded..],
                dphi,
            });
        }
        (dpsi, rows)
    }

    /// The rows of child j of a window, given the window's dψ.
    fn segments<'a>(
        &'a self,
        node: usize,
        j: u32,
        dpsi: &'a [f32],
    ) -> impl Iterator<Item = Segment<'a>> {
        let (below, words) = (self.level.below, self.level.words);
        let (a_padded, c_padded) = (self.level.a_padded(), self.level.c_padded());
        let start = below.tasks[node * words];
        let segment = move |key: usize| Segment {
            count: below.count(key),
            phi: &self.phi[below.first[key] * a_padded..],
            dpsi: &dpsi[(below.first[key] - start) * c_padded..],
        };
        (0..words).map(move |word| segment(j as usize * words + word))
    }
}

/// At most [`GROUPS`] groups of neighbouring windows.
fn grouped(windows: Vec<WindowBackward<'_>>) -> Vec<Vec<WindowBackward<'_>>> {
    let size = windows.len().div_ceil(GROUPS);
    let mut windows = windows.into_iter();
    let groups = std::iter::repeat_with(|| windows.by_ref().take(size).collect::<Vec<_>>());
    groups.take_while(|group| !group.is_empty()).collect()
}
