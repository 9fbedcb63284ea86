//! The whole circuit on a batch, up to the class scores.
//!
//! Level after level, one task is a window of nodes and a chunk of 64 samples, or several where tiles mix them: it
//! evaluates the leaves (at the first level), mixes each child, multiplies them and rescales. Every row is computed alone and every sum has a fixed order,
//! so the number of threads changes no bit.

use crate::arithmetic::matmul::{Then, arch, padded};
use crate::arithmetic::tasks::for_each_task;
use crate::circuit::activations::{
    Activations, Buffers, Fetched, Keep, children_of, cut, cut_nodes, cut_tasks, fit,
};
use crate::layers::leaf_kernel;
use crate::layers::mixing::Raised;
use crate::layers::product::{self, Child, GROUP, Scales};
use crate::layers::weights::Prepared;
use crate::rows::active_nodes::{Layer, Rows};
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
    lost: &'a mut [f32],
    psi: &'a mut [f32],
    out: &'a mut [f32],
    scales: Scales<'a>,
}

impl Activations {
    /// Goes up to the tops of the trees through the rows that are listed.
    pub(crate) fn forward_trees(
        &mut self,
        s: &Structure,
        prepared: &Prepared,
        batch: &Batch,
        keep: Keep,
    ) {
        self.fetched = Fetched::default();
        self.samples = batch.rows;
        self.recomputed = 0;
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
        let Rows { words, layers } = &self.rows[t];
        let (below, above) = (&layers[l - 1], &layers[l]);
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let (lower, upper) = (&mut lower[l - 1], &mut upper[0]);
        let own_phi = l > 1 || keep == Keep::Everything; // else leaves live in the task's scratch
        let own_psi = keep == Keep::Everything || self.root.by_class && l == tree.levels.len();
        fit(
            &mut lower.phi,
            if own_phi { below.rows() * a_wide } else { 0 },
        );
        fit(
            &mut lower.psi,
            if own_psi { below.rows() * c_wide } else { 0 },
        );
        fit(&mut lower.log_scale, below.rows());
        fit(&mut lower.lost, below.rows());
        fit(&mut upper.phi, above.rows() * c_wide);
        fit(&mut upper.log_scale, above.rows());
        fit(&mut upper.lost, above.rows());
        fit(&mut upper.inverse, above.rows());
        let mut phi =
            cut_tasks(&mut lower.phi, below, if own_phi { a_wide } else { 0 }).into_iter();
        let mut psi =
            cut_tasks(&mut lower.psi, below, if own_psi { c_wide } else { 0 }).into_iter();
        let mut log_scale = cut_tasks(&mut lower.log_scale, below, 1).into_iter();
        let mut lost = cut_tasks(&mut lower.lost, below, 1).into_iter();
        let mut out = cut_nodes(&mut upper.phi, above, c_wide).into_iter();
        let mut out_scale = cut_nodes(&mut upper.log_scale, above, 1).into_iter();
        let mut out_lost = cut_nodes(&mut upper.lost, above, 1).into_iter();
        let mut out_inverse = cut_nodes(&mut upper.inverse, above, 1).into_iter();
        let mut tasks = Vec::with_capacity(tree.nodes(l) * words);
        for (node, word) in
            (0..tree.nodes(l)).flat_map(|node| (0..*words).map(move |word| (node, word)))
        {
            tasks.push(Task {
                node,
                word,
                mask: above.mask[node * words + word],
                phi: phi.next().unwrap_or_default(),
                log_scale: log_scale.next().unwrap_or_default(),
                lost: lost.next().unwrap_or_default(),
                psi: psi.next().unwrap_or_default(),
                out: out.next().unwrap_or_default(),
                scales: Scales {
                    log_scale: out_scale.next().unwrap_or_default(),
                    lost: out_lost.next().unwrap_or_default(),
                    inverse: out_inverse.next().unwrap_or_default(),
                },
            });
        }
        let level = Below {
            t,
            l,
            tree,
            prepared,
            batch,
            layer: below,
            words: *words,
            own_phi,
            own_psi,
        };
        let work = below.rows() * a_wide * c_wide;
        for_each_task(work, level.grouped(tasks), |group| level.group_up(group));
    }
}

/// A level on its way up, as its tasks see it.
struct Below<'a> {
    t: usize,
    l: usize,
    tree: &'a Tree,
    prepared: &'a Prepared,
    batch: &'a Batch,
    layer: &'a Layer,
    words: usize,
    own_phi: bool,
    own_psi: bool,
}

impl Below<'_> {
    /// Tasks by window, where tiles mix them: a matrix is cut once for all samples of a group. As many groups as keep
    /// the threads busy.
    fn grouped<'b>(&self, tasks: Vec<Task<'b>>) -> Vec<Vec<Task<'b>>> {
        const MOST: usize = 4; // of a group, so that its rows stay in the cache
        let mut each = if self.prepared.levels[self.t][self.l - 1].on_tiles() {
            MOST.min(self.words)
        } else {
            1
        };
        while each > 1 && tasks.len() / each < 2 * rayon::current_num_threads() {
            each /= 2;
        }
        let mut groups: Vec<Vec<Task<'_>>> = Vec::new();
        for task in tasks.into_iter().filter(|task| !task.lost.is_empty()) {
            match groups
                .last_mut()
                .filter(|group| group[0].node == task.node && group.len() < each)
            {
                Some(group) => group.push(task),
                None => groups.push(vec![task]),
            }
        }
        groups
    }

    /// Leaves (at the first level), mixing, product. Where nothing is kept and a child has all samples or none, its
    /// mixing multiplies straight into φ of the window, and ψ never exists.
    fn group_up(&self, group: Vec<Task<'_>>) {
        let Self { l, tree, layer, .. } = *self;
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let nodes = &tree.levels[l - 1].children[group[0].node];
        let children =
            |task: &Task<'_>| children_of(tree, l, layer, self.words, task.node, task.word);
        let children: Vec<Vec<Child>> = group.iter().map(children).collect();
        let there: Vec<usize> = (0..nodes.len())
            .filter(|&k| children.iter().any(|of| of[k].mask != 0))
            .collect();
        let whole = |&k: &usize| {
            group
                .iter()
                .zip(&children)
                .all(|(task, of)| of[k].mask == task.mask)
        };
        let straight = !self.own_psi && there.len() <= GROUP && there.iter().all(whole);
        SCRATCH.with_borrow_mut(|(leaf_rows, psi_rows)| {
            let mut group: Vec<Task<'_>> = group;
            if !self.own_phi {
                let rows = lend(leaf_rows, &group, a_wide);
                group
                    .iter_mut()
                    .zip(rows)
                    .for_each(|(task, rows)| task.phi = rows);
            }
            if !self.own_psi && !straight {
                let rows = lend(psi_rows, &group, c_wide);
                group
                    .iter_mut()
                    .zip(rows)
                    .for_each(|(task, rows)| task.psi = rows);
            }
            for (index, &k) in there.iter().enumerate() {
                let then = if index == 0 || !straight {
                    Then::Replace
                } else {
                    Then::Multiply
                };
                let mut parts = Vec::with_capacity(group.len());
                for (task, child) in group.iter_mut().zip(children.iter().map(|of| of[k])) {
                    let count = child.mask.count_ones() as usize;
                    let rows = child.first..child.first + count;
                    let phi = &mut task.phi[rows.start * a_wide..rows.end * a_wide];
                    if l == 1 {
                        let (log_scale, lost) = (
                            &mut task.log_scale[rows.clone()],
                            &mut task.lost[rows.clone()],
                        );
                        self.leaf_rows(
                            nodes[k] as usize,
                            task.word,
                            child.mask,
                            phi,
                            log_scale,
                            lost,
                        );
                    }
                    let psi = if straight {
                        &mut *task.out
                    } else {
                        &mut task.psi[rows.start * c_wide..]
                    };
                    parts.push(Raised { count, phi, psi });
                }
                let matrix = tree.levels[l - 1].weight_of[nodes[k] as usize] as usize;
                self.prepared.levels[self.t][l - 1].upward_into(arch(), matrix, &mut parts, then);
            }
            for (task, children) in group.into_iter().zip(&children) {
                let (log_scale, lost) = (&*task.log_scale, &*task.lost);
                let (width, mask, psi, phi, scales) =
                    (c_wide, task.mask, &*task.psi, task.out, task.scales);
                if straight {
                    let children = &there.iter().map(|&k| children[k]).collect::<Vec<_>>();
                    arch().dispatch(product::Rescale {
                        width,
                        children,
                        log_scale,
                        lost,
                        phi,
                        scales,
                    });
                } else {
                    arch().dispatch(product::Upward {
                        width,
                        children,
                        mask,
                        psi,
                        log_scale,
                        lost,
                        phi,
                        scales,
                    });
                }
            }
        });
    }

    fn leaf_rows(
        &self,
        j: usize,
        word: usize,
        mask: u64,
        phi: &mut [f32],
        log_scale: &mut [f64],
        lost: &mut [f32],
    ) {
        let position = &self.tree.positions[j];
        let table = &self.prepared.tables[self.t][position.family as usize];
        let (batch, first_sample) = (self.batch, word * CHUNK);
        arch().dispatch(leaf_kernel::Upward {
            table,
            position,
            batch,
            first_sample,
            mask,
            phi,
            log_scale,
            lost,
        });
    }
}

// Leaves and ψ of a task that keeps neither. One for each thread: rayon would make new ones for every split of its work.
thread_local! {
    static SCRATCH: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Rows of scratch for each task, as wide as told.
fn lend<'a>(scratch: &'a mut Vec<f32>, group: &[Task<'_>], width: usize) -> Vec<&'a mut [f32]> {
    let lengths: Vec<usize> = group.iter().map(|task| task.lost.len() * width).collect();
    fit(scratch, lengths.iter().sum());
    cut(scratch, lengths.into_iter())
}
