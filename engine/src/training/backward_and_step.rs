//! Down one level and a step of its weights, in one.
//!
//! One task is a window with all its samples: dψ of the children, then for each child dφ and dW. What it reads and
//! writes passes through the cache once. Where every node has a matrix of its own, the matrix takes its step at once;
//! where nodes share matrices, dW is summed first: by group of windows, then over the groups, in a fixed order.

use crate::arithmetic::amx::Parts;
use crate::arithmetic::matmul::{arch, padded};
use crate::arithmetic::tasks::for_each_task;
use crate::circuit::activations::{Activations, Buffers, children_of, cut, fit};
use crate::layers::mixing::Simplex;
use crate::layers::mixing_backward::{Lowered, downward};
use crate::layers::mixing_gradient::{Scratch, Segment, add_gradient, with_mixed};
use crate::layers::product;
use crate::rows::active_nodes::{Layer, Rows};
use crate::structure::Tree;
use crate::training::optimizer::{Moments, PanelStep, Step, panel_steps, update_mixing};

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

/// One window on its way down.
struct Window<'a> {
    node: usize,
    psi: &'a mut [f32],
    dphi: &'a mut [f32],
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
    divide: bool, // see `product::Downward`
}

impl Activations {
    /// dψ of level l in place of ψ, dφˡ⁻¹ (of leaves only if wanted), and a step of the level's weights.
    pub fn learn_level(
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
        let wanted = l > 1 || to_leaves;
        let divide = self.root.by_class && l == tree.levels.len();
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let Buffers { phi, psi, dphi, .. } = &mut lower[l - 1];
        fit(dphi, if wanted { below.rows() * a_wide } else { 0 });
        let rows = |node: usize| below.tasks[(node + 1) * words] - below.tasks[node * words];
        let psi = cut(psi, (0..tree.nodes(l)).map(|node| rows(node) * c_wide));
        let dphi = cut(
            dphi,
            (0..tree.nodes(l)).map(|node| if wanted { rows(node) * a_wide } else { 0 }),
        );
        let windows = psi.into_iter().zip(dphi).enumerate();
        let windows: Vec<_> = windows
            .map(|(node, (psi, dphi))| Window { node, psi, dphi })
            .collect();
        let level = Level {
            tree,
            l,
            below,
            above,
            words,
            phi,
            upper: &upper[0],
            wanted,
            divide,
        };
        match tree.levels[l - 1].is_own() {
            true => level.learn_own(windows, learned, step, work),
            false => level.learn_shared(windows, learned, step, work),
        }
    }
}

impl Level<'_> {
    fn matrix_of(&self, j: u32) -> usize {
        self.tree.levels[self.l - 1].weight_of[j as usize] as usize
    }

    fn children(&self, node: usize) -> &[u32] {
        &self.tree.levels[self.l - 1].children[node]
    }

    /// (C, A).
    fn shape(&self) -> (usize, usize) {
        (self.tree.channels(self.l), self.tree.channels(self.l - 1))
    }

    /// Every matrix steps as soon as its one node has gone down.
    fn learn_own(&self, windows: Vec<Window<'_>>, learned: Learned<'_>, step: &Step, work: usize) {
        let mut matrices: Vec<Vec<PanelStep<'_>>> = (0..self.tree.levels[self.l - 1].matrices())
            .map(|_| Vec::new())
            .collect();
        let panels = panel_steps(learned.simplex, learned.moments, learned.counts);
        panels.for_each(|panel| matrices[panel.panel.matrix].push(panel));
        let mut take = |&j: &u32| std::mem::take(&mut matrices[self.matrix_of(j)]);
        let tasks = windows.into_iter().map(|window| {
            let matrices: Vec<_> = self.children(window.node).iter().map(&mut take).collect();
            (window, matrices)
        });
        let tasks: Vec<_> = tasks.collect();
        let few = tasks.len() < 2 * rayon::current_num_threads(); // then a window's children are tasks too
        let inner = if few { work / tasks.len() } else { 0 };
        for_each_task(work, tasks, |(window, matrices)| {
            let node = window.node;
            let (psi, parts) = self.lower(window);
            let children: Vec<_> = self
                .children(node)
                .iter()
                .zip(parts)
                .zip(matrices)
                .collect();
            for_each_task(inner, children, |((&j, mut parts), panels)| {
                if self.wanted {
                    let weights: Vec<&[f32]> =
                        panels.iter().map(|panel| &*panel.panel.weights).collect();
                    downward(arch(), self.shape(), &weights, &mut parts, Parts::Two);
                }
                let (c_wide, columns) = (padded(self.shape().0), self.shape().1);
                with_mixed((columns, c_wide), self.segments(node, j, psi), |mixed| {
                    for_each_task(inner, panels, |panel| {
                        panel.run(
                            step,
                            |scratch,
                             PanelStep {
                                 panel,
                                 first,
                                 second,
                                 ..
                             }| {
                                mixed.gradient(
                                    arch(),
                                    (panel.first, panel.wide),
                                    scratch,
                                    [first, second],
                                );
                            },
                        );
                    });
                });
            });
        });
    }

    /// Groups of windows go down and sum their dW; then all panels step.
    fn learn_shared(
        &self,
        windows: Vec<Window<'_>>,
        learned: Learned<'_>,
        step: &Step,
        work: usize,
    ) {
        let Learned {
            simplex,
            moments,
            counts,
        } = learned;
        let (c_wide, columns) = (padded(self.shape().0), self.shape().1);
        let length = columns * c_wide;
        let matrices = self.tree.levels[self.l - 1].matrices();
        let size = windows.len().div_ceil(GROUPS);
        let mut windows = windows.into_iter();
        let groups = std::iter::repeat_with(|| windows.by_ref().take(size).collect::<Vec<_>>());
        let groups: Vec<_> = groups.take_while(|group| !group.is_empty()).collect();
        let mut sums = vec![0.0; groups.len() * matrices * length];
        let tasks = groups
            .into_iter()
            .zip(sums.chunks_exact_mut(matrices * length))
            .collect();
        for_each_task(
            work,
            tasks,
            |(group, sums): (Vec<Window<'_>>, &mut [f32])| {
                let mut scratch = Scratch::default();
                for window in group {
                    let node = window.node;
                    let (psi, parts) = self.lower(window);
                    for (&j, mut parts) in self.children(node).iter().zip(parts) {
                        let matrix = self.matrix_of(j);
                        if self.wanted {
                            downward(
                                arch(),
                                self.shape(),
                                &simplex.matrix_panels(matrix),
                                &mut parts,
                                Parts::Two,
                            );
                        }
                        for segment in self.segments(node, j, psi) {
                            let to = &mut sums[matrix * length..(matrix + 1) * length];
                            add_gradient(arch(), (columns, c_wide), segment, to, &mut scratch);
                        }
                    }
                }
            },
        );
        update_mixing(
            step,
            (simplex, moments, counts),
            matrices * length,
            |scratch, PanelStep { panel, .. }| {
                scratch.gradient.clear();
                scratch.gradient.resize(columns * panel.wide, 0.0);
                for sums in sums.chunks_exact(matrices * length) {
                    let sums = &sums[panel.matrix * length + panel.first * columns..];
                    scratch
                        .gradient
                        .iter_mut()
                        .zip(sums)
                        .for_each(|(to, sum)| *to += sum);
                }
            },
        );
    }

    /// dψ of a window in place of ψ; returns it, and by child the rows that are to be mixed down.
    fn lower<'a>(&self, window: Window<'a>) -> (&'a [f32], Vec<Vec<Lowered<'a>>>) {
        let Self { below, words, .. } = *self;
        let Window { node, psi, dphi } = window;
        let (c_wide, a_wide) = (padded(self.shape().0), padded(self.shape().1));
        let start = below.tasks[node * words];
        for word in 0..words {
            self.lower_product(
                node,
                word,
                &mut psi[(below.tasks[node * words + word] - start) * c_wide..],
            );
        }
        let (psi, children) = (&*psi, self.children(node));
        let keys: Vec<_> = (0..words)
            .flat_map(|word| children.iter().map(move |&j| j as usize * words + word))
            .collect();
        let pieces = cut(
            dphi,
            keys.iter().map(|&key| {
                if self.wanted {
                    below.count(key) * a_wide
                } else {
                    0
                }
            }),
        );
        let mut parts: Vec<Vec<Lowered<'_>>> =
            children.iter().map(|_| Vec::with_capacity(words)).collect();
        for (index, (key, dphi)) in keys.into_iter().zip(pieces).enumerate() {
            let dpsi = &psi[(below.first[key] - start) * c_wide..];
            parts[index % children.len()].push(Lowered {
                count: below.count(key),
                dpsi,
                dphi,
            });
        }
        (psi, parts)
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

    /// The rows of child j of a window, given the window's dψ.
    fn segments<'a>(
        &'a self,
        node: usize,
        j: u32,
        psi: &'a [f32],
    ) -> impl Iterator<Item = Segment<'a>> {
        let Self {
            below, words, phi, ..
        } = *self;
        let (c_wide, a_wide) = (padded(self.shape().0), padded(self.shape().1));
        let start = below.tasks[node * words];
        (0..words)
            .map(move |word| j as usize * words + word)
            .map(move |key| Segment {
                count: below.count(key),
                phi: &phi[below.first[key] * a_wide..],
                dpsi: &psi[(below.first[key] - start) * c_wide..],
            })
    }
}
