//! The whole circuit on a batch, up to the tops of the trees.
//!
//! Level after level, one task is a window of nodes and a chunk of 64 samples, or several where tiles mix them. It
//! evaluates the leaves (at the first level), mixes each child, multiplies them and rescales. Every row is computed
//! alone and every sum has a fixed order, so the number of threads changes no bit.

use crate::arithmetic::instructions::arch;
use crate::arithmetic::matmul::{Then, padded};
use crate::arithmetic::tasks::for_each_task;
use crate::circuit::activations::{
    Activations, Buffers, Fetched, Keep, children_of, cut, cut_nodes, cut_tasks, fit,
};
use crate::layers::leaf_kernel::LeafForward;
use crate::layers::product::{Child, GROUP, ProductForward, Rescale};
use crate::layers::scaled_rows::{Scales, UnderflowBound};
use crate::layers::simplex::ForwardRows;
use crate::layers::weights::Prepared;
use crate::rows::active_nodes::{ActiveLayer, ActiveNodes};
use crate::rows::batch::{Batch, CHUNK};
use crate::structure::{ClassRows, Structure, Tree};
use std::cell::RefCell;

/// One window and one chunk of samples.
struct Task<'a> {
    node: usize,
    word: usize,
    mask: u64,
    phi: &'a mut [f32],
    log_scale: &'a mut [f64],
    underflow_bound: &'a mut [UnderflowBound],
    psi: &'a mut [f32],
    out: &'a mut [f32],
    scales: Scales<'a>,
}

impl Activations {
    /// Computes the tops of the trees through the rows that are listed.
    pub(crate) fn forward_trees(
        &mut self,
        s: &Structure,
        prepared: &Prepared,
        batch: &Batch,
        keep: Keep,
    ) {
        self.fetched = Fetched::default();
        self.samples = batch.rows;
        self.root.by_class = s.class_rows == ClassRows::Identity;
        self.layers.resize_with(s.trees.len(), Vec::new);
        for (t, tree) in s.trees.iter().enumerate() {
            self.layers[t].resize_with(tree.levels.len() + 1, Buffers::default);
            for l in 1..=tree.levels.len() {
                self.forward_level(t, l, tree, prepared, batch, keep);
            }
        }
    }

    /// φˡ from φˡ⁻¹ (from the data where l = 1).
    fn forward_level(
        &mut self,
        t: usize,
        l: usize,
        tree: &Tree,
        prepared: &Prepared,
        batch: &Batch,
        keep: Keep,
    ) {
        let ActiveNodes { words, layers } = &self.rows[t];
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let level = LevelForward {
            t,
            l,
            tree,
            prepared,
            batch,
            below: &layers[l - 1],
            above: &layers[l],
            words: *words,
            own_phi: l > 1 || keep == Keep::Everything, // else leaves live in the task's scratch
            own_psi: keep == Keep::Everything || self.root.by_class && l == tree.levels.len(),
        };
        let (lower, upper) = (&mut lower[l - 1], &mut upper[0]);
        level.fit_buffers(lower, upper);
        let tasks = level.tasks(lower, upper);
        let work = level.below.rows() * level.a_padded() * level.c_padded();
        for_each_task(work, level.grouped(tasks), |group| level.forward(group));
    }
}

/// A level in a forward pass, as its tasks see it.
struct LevelForward<'a> {
    t: usize,
    l: usize,
    tree: &'a Tree,
    prepared: &'a Prepared,
    batch: &'a Batch,
    below: &'a ActiveLayer,
    above: &'a ActiveLayer,
    words: usize,
    own_phi: bool, // φ of the children is kept in the layer's buffer
    own_psi: bool, // the same for ψ
}

impl LevelForward<'_> {
    /// Padded channels of the children.
    fn a_padded(&self) -> usize {
        padded(self.tree.channels(self.l - 1))
    }

    /// Padded channels of the window.
    fn c_padded(&self) -> usize {
        padded(self.tree.channels(self.l))
    }

    /// Numbers of a child's row of φ in the layer's buffer.
    fn phi_width(&self) -> usize {
        if self.own_phi { self.a_padded() } else { 0 }
    }

    /// Numbers of a child's row of ψ in the layer's buffer.
    fn psi_width(&self) -> usize {
        if self.own_psi { self.c_padded() } else { 0 }
    }

    /// Makes the buffers of both layers long enough.
    fn fit_buffers(&self, lower: &mut Buffers, upper: &mut Buffers) {
        let (below, above) = (self.below.rows(), self.above.rows());
        fit(&mut lower.phi, below * self.phi_width());
        fit(&mut lower.psi, below * self.psi_width());
        fit(&mut lower.log_scale, below);
        fit(&mut lower.underflow_bound, below);
        fit(&mut upper.phi, above * self.c_padded());
        fit(&mut upper.log_scale, above);
        fit(&mut upper.underflow_bound, above);
        fit(&mut upper.inverse, above);
    }

    /// Cuts the buffers into tasks, by window and word.
    fn tasks<'b>(&self, lower: &'b mut Buffers, upper: &'b mut Buffers) -> Vec<Task<'b>> {
        let (below, above) = (self.below, self.above);
        let phi = cut_tasks(&mut lower.phi, below, self.phi_width());
        let psi = cut_tasks(&mut lower.psi, below, self.psi_width());
        let log_scale = cut_tasks(&mut lower.log_scale, below, 1);
        let bound = cut_tasks(&mut lower.underflow_bound, below, 1);
        let out = cut_nodes(&mut upper.phi, above, self.c_padded());
        let out_scale = cut_nodes(&mut upper.log_scale, above, 1);
        let out_bound = cut_nodes(&mut upper.underflow_bound, above, 1);
        let out_inverse = cut_nodes(&mut upper.inverse, above, 1);
        let lower = phi.into_iter().zip(psi).zip(log_scale).zip(bound);
        let upper = out.into_iter().zip(out_scale).zip(out_bound);
        let both = lower.zip(upper.zip(out_inverse)).enumerate();
        let mut tasks = Vec::with_capacity(above.mask.len());
        for (key, (lower, upper)) in both {
            let (((phi, psi), log_scale), underflow_bound) = lower;
            let (((out, out_scale), out_bound), inverse) = upper;
            tasks.push(Task {
                node: key / self.words,
                word: key % self.words,
                mask: above.mask[key],
                phi,
                log_scale,
                underflow_bound,
                psi,
                out,
                scales: Scales {
                    log_scale: out_scale,
                    underflow_bound: out_bound,
                    inverse,
                },
            });
        }
        tasks
    }

    /// Tasks by window, where tiles mix them: a matrix is cut once for all samples of a group. As many groups as keep
    /// the threads busy.
    fn grouped<'b>(&self, tasks: Vec<Task<'b>>) -> Vec<Vec<Task<'b>>> {
        const MAX: usize = 4; // of a group, so that its rows stay in the cache
        let on_tiles = self.prepared.levels[self.t][self.l - 1].on_tiles();
        let mut each = if on_tiles { MAX.min(self.words) } else { 1 };
        while each > 1 && tasks.len() / each < 2 * rayon::current_num_threads() {
            each /= 2;
        }
        let mut groups: Vec<Vec<Task<'_>>> = Vec::new();
        let not_empty = |task: &Task<'_>| !task.underflow_bound.is_empty();
        for task in tasks.into_iter().filter(not_empty) {
            let last = groups.last_mut();
            match last.filter(|group| group[0].node == task.node && group.len() < each) {
                Some(group) => group.push(task),
                None => groups.push(vec![task]),
            }
        }
        groups
    }

    /// Leaves (at the first level), mixing, product.
    fn forward(&self, group: Vec<Task<'_>>) {
        let window = WindowForward::new(self, &group);
        SCRATCH.with_borrow_mut(|scratch| window.forward(group, scratch));
    }

    /// φ of leaf j for the samples of one word.
    fn leaf_rows(&self, j: usize, word: usize, mask: u64, rows: LeafRows<'_>) {
        let position = &self.tree.positions[j];
        arch().dispatch(LeafForward {
            kernel: &self.prepared.leaves[self.t][position.family as usize],
            position,
            batch: self.batch,
            first_sample: word * CHUNK,
            mask,
            phi: rows.phi,
            log_scale: rows.log_scale,
            underflow_bound: rows.underflow_bound,
        });
    }
}

/// The rows of one leaf.
struct LeafRows<'a> {
    phi: &'a mut [f32],
    log_scale: &'a mut [f64],
    underflow_bound: &'a mut [UnderflowBound],
}

/// A window of nodes and some chunks of samples, which are mixed together.
struct WindowForward<'a> {
    level: &'a LevelForward<'a>,
    nodes: &'a [u32],
    children: Vec<Vec<Child>>, // by task, child
    present: Vec<usize>,       // children that some sample has
    /// Nothing is kept, and every child has all samples or none: then mixing multiplies straight into φ of the window,
    /// and ψ never exists.
    straight: bool,
}

impl<'a> WindowForward<'a> {
    fn new(level: &'a LevelForward<'a>, group: &[Task<'_>]) -> Self {
        let &LevelForward {
            l,
            tree,
            below,
            words,
            ..
        } = level;
        let nodes = &tree.levels[l - 1].children[group[0].node];
        let of_task = |task: &Task<'_>| children_of(tree, l, below, words, task.node, task.word);
        let children: Vec<Vec<Child>> = group.iter().map(of_task).collect();
        let is_present = |&k: &usize| children.iter().any(|of| of[k].mask != 0);
        let present: Vec<usize> = (0..nodes.len()).filter(is_present).collect();
        let is_whole = |&k: &usize| {
            let mut both = group.iter().zip(&children);
            both.all(|(task, of)| of[k].mask == task.mask)
        };
        let straight = !level.own_psi && present.len() <= GROUP && present.iter().all(is_whole);
        Self {
            level,
            nodes,
            children,
            present,
            straight,
        }
    }

    /// Mixes every child, and multiplies them.
    fn forward<'b>(&self, mut group: Vec<Task<'b>>, scratch: &'b mut Scratch) {
        self.lend(&mut group, scratch);
        for index in 0..self.present.len() {
            self.mix_child(&mut group, index);
        }
        self.multiply(group);
    }

    /// Gives every task scratch for what it does not keep.
    fn lend<'b>(&self, group: &mut [Task<'b>], scratch: &'b mut Scratch) {
        if !self.level.own_phi {
            let rows = lend(&mut scratch.phi, group, self.level.a_padded());
            let both = group.iter_mut().zip(rows);
            both.for_each(|(task, rows)| task.phi = rows);
        }
        if !self.level.own_psi && !self.straight {
            let rows = lend(&mut scratch.psi, group, self.level.c_padded());
            let both = group.iter_mut().zip(rows);
            both.for_each(|(task, rows)| task.psi = rows);
        }
    }

    /// ψ of one child (or its factor of φ), for all tasks at once.
    fn mix_child(&self, group: &mut [Task<'_>], index: usize) {
        let level = self.level;
        let (a_padded, c_padded) = (level.a_padded(), level.c_padded());
        let k = self.present[index];
        let node = self.nodes[k] as usize;
        let matrix = level.tree.levels[level.l - 1].weight_of[node] as usize;
        let simplex = &level.prepared.levels[level.t][level.l - 1];
        let least = simplex.least(matrix);
        let mut parts = Vec::with_capacity(group.len());
        for (task, child) in group.iter_mut().zip(self.children.iter().map(|of| of[k])) {
            let count = child.mask.count_ones() as usize;
            let rows = child.first..child.first + count;
            let phi = &mut task.phi[rows.start * a_padded..rows.end * a_padded];
            if level.l == 1 {
                let rows = LeafRows {
                    phi: &mut *phi,
                    log_scale: &mut task.log_scale[rows.clone()],
                    underflow_bound: &mut task.underflow_bound[rows.clone()],
                };
                level.leaf_rows(node, task.word, child.mask, rows);
            }
            let bounds = task.underflow_bound[rows.clone()].iter_mut();
            bounds.for_each(|bound| *bound = bound.mixed(least));
            let psi = if self.straight {
                &mut *task.out
            } else {
                &mut task.psi[rows.start * c_padded..]
            };
            parts.push(ForwardRows { count, phi, psi });
        }
        let multiply = self.straight && index > 0;
        let then = if multiply {
            Then::Multiply
        } else {
            Then::Replace
        };
        simplex.forward_into(arch(), matrix, &mut parts, then);
    }

    /// φ of the window.
    fn multiply(&self, group: Vec<Task<'_>>) {
        let width = self.level.c_padded();
        for (task, children) in group.into_iter().zip(&self.children) {
            let (log_scale, underflow_bound) = (&*task.log_scale, &*task.underflow_bound);
            let (phi, scales) = (task.out, task.scales);
            if self.straight {
                let children = &self
                    .present
                    .iter()
                    .map(|&k| children[k])
                    .collect::<Vec<_>>();
                arch().dispatch(Rescale {
                    width,
                    children,
                    log_scale,
                    underflow_bound,
                    phi,
                    scales,
                });
            } else {
                arch().dispatch(ProductForward {
                    width,
                    children,
                    mask: task.mask,
                    psi: task.psi,
                    log_scale,
                    underflow_bound,
                    phi,
                    scales,
                });
            }
        }
    }
}

/// Leaves and ψ of a task that keeps neither.
struct Scratch {
    phi: Vec<f32>,
    psi: Vec<f32>,
}

// One for each thread: rayon would make new ones for every split of its work.
thread_local! {
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch { phi: Vec::new(), psi: Vec::new() }) };
}

/// ActiveNodes of scratch for each task, of this width.
fn lend<'a>(scratch: &'a mut Vec<f32>, group: &[Task<'_>], width: usize) -> Vec<&'a mut [f32]> {
    let length = |task: &Task<'_>| task.underflow_bound.len() * width;
    let lengths: Vec<usize> = group.iter().map(length).collect();
    fit(scratch, lengths.iter().sum());
    cut(scratch, lengths.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::structure::Kind;

    /// Rows that tiles mix, if there are tiles, in groups of chunks and one chunk at a time.
    #[test]
    fn chunks_that_are_mixed_together_do_not_show() {
        const WIDTH: usize = 16;
        let table = Structure::table(&[Kind::Gaussian; WIDTH]).components(64);
        let structure = table.channels([128]).classes(3).build().unwrap();
        let model = Model::random(structure, 1.0, 5);
        let prepared = Prepared::new(&model.weights);
        let value = |i: usize| {
            if i % 7 == 3 {
                f32::NAN
            } else {
                (i as f32).sin()
            }
        };
        let mut rows: Vec<f32> = (0..WIDTH * 300).map(value).collect();
        rows[..WIDTH * 150]
            .iter_mut()
            .for_each(|x| *x = if x.is_nan() { 0.5 } else { *x });
        let scores = |rows: &[f32], keep| {
            let (batch, mut activations) = (Batch::of_rows(WIDTH, rows), Activations::new());
            activations.forward(&model.structure, &prepared, &batch, &[], keep);
            activations.log_likelihood().to_vec()
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(2)
            .build()
            .unwrap();
        for keep in [Keep::Scores, Keep::Everything] {
            let together = pool.install(|| scores(&rows, keep));
            let alone = rows
                .chunks(WIDTH * CHUNK)
                .flat_map(|rows| scores(rows, keep));
            assert_eq!(together, alone.collect::<Vec<_>>());
        }
    }
}
