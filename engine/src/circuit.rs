//! The whole circuit on a batch, up to the class scores.
//!
//! Level after level, one task is a window of nodes and a chunk of 64 samples, or several where tiles mix them: it
//! evaluates the leaves (at the first level), mixes each child, multiplies them and rescales. Every row is computed alone and every sum has a fixed order,
//! so the number of threads changes no bit.

use crate::batch::{Batch, CHUNK, Layer, Rows, for_each_task};
use crate::device::Scores;
use crate::kernel::{Then, arch, padded};
use crate::leaves;
use crate::mixing::Raised;
use crate::product::{self, Child, GROUP, Scales, TINY};
use crate::structure::{ClassRows, Structure, Tree};
use crate::weights::Prepared;
use std::cell::RefCell;

/// The numbers of one layer; rows as in [`Layer`].
#[derive(Default)]
pub(crate) struct Buffers {
    pub phi: Vec<f32>,       // (rows, padded C)
    pub dphi: Vec<f32>,      // (rows, padded C)
    pub psi: Vec<f32>,       // (rows, padded C of the level above); dψ after the downward pass
    pub log_scale: Vec<f64>, // (rows)
    pub lost: Vec<f32>,      // (rows)
    pub inverse: Vec<f32>,   // (rows)
}

/// What the root keeps of a pass.
#[derive(Default)]
pub(crate) struct Root {
    pub by_class: bool,           // class rows are the identity
    pub phi: Vec<f32>,            // (B, padded tops)
    pub factor: Vec<f32>,         // (B, trees): scale of a tree's top within the root's row
    pub psi: Vec<f32>,            // (B, padded K): P(x|y) but for a constant
    pub lost: Vec<f32>,           // (B): a bound on what underflow may have taken from each
    pub doubt: Vec<f32>,          // (B, K): the same for each class, relative
    pub dpsi: Vec<f32>,           // (B, padded K)
    pub dphi: Vec<f32>,           // (B, padded tops)
    pub log_likelihood: Vec<f64>, // (B, K)
}

/// What a pass must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Class scores only.
    Scores,
    /// All that a downward pass or a sampler reads.
    Everything,
}

/// The buffers of passes over batches; they grow to the largest batch seen and are used again.
#[derive(Default)]
pub struct Activations {
    pub(crate) rows: Vec<Rows>,           // by tree
    pub(crate) layers: Vec<Vec<Buffers>>, // by tree, layer
    pub(crate) root: Root,
    pub(crate) samples: usize,
    pub(crate) recomputed: usize,
    fetched: Fetched,
}

/// What a GPU has computed instead; empty where it was asked for less.
#[derive(Default)]
struct Fetched {
    phi: Vec<Vec<Vec<f32>>>, // by tree, layer: (nodes, B, C)
    flows: Vec<Vec<f32>>,    // by tree: (N, B, M)
}

/// Makes a buffer at least this long; what it held does not matter.
pub(crate) fn fit<T: Clone + Default>(buffer: &mut Vec<T>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length, T::default());
    }
}

/// Cuts a buffer at the given lengths.
pub(crate) fn cut<T>(mut buffer: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut pieces = Vec::new();
    for length in lengths {
        let (piece, rest) = buffer.split_at_mut(length);
        pieces.push(piece);
        buffer = rest;
    }
    pieces
}

/// Cuts a buffer into the stretches that the tasks of the level above read.
pub(crate) fn cut_tasks<'a, T>(buffer: &'a mut [T], layer: &Layer, width: usize) -> Vec<&'a mut [T]> {
    cut(buffer, layer.tasks.windows(2).map(|ends| (ends[1] - ends[0]) * width))
}

/// Cuts a buffer into the rows of each node and word, indexed by `node · words + word`.
fn cut_nodes<'a, T>(buffer: &'a mut [T], layer: &Layer, width: usize) -> Vec<&'a mut [T]> {
    let pieces = cut(buffer, layer.order.iter().map(|&key| layer.count(key) * width));
    let mut by_key: Vec<&mut [T]> = Vec::new();
    by_key.resize_with(pieces.len(), Default::default);
    for (piece, &key) in pieces.into_iter().zip(&layer.order) {
        by_key[key] = piece;
    }
    by_key
}

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

/// The children of a window for one word, with rows counted from the window's first.
pub(crate) fn children_of(tree: &Tree, l: usize, layer: &Layer, words: usize, node: usize, word: usize) -> Vec<Child> {
    let start = layer.tasks[node * words + word];
    let child = |&j: &u32| {
        let key = j as usize * words + word;
        Child { mask: layer.mask[key], first: layer.first[key] - start }
    };
    tree.levels[l - 1].children[node].iter().map(child).collect()
}

impl Activations {
    /// Empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Samples of the last pass that the guard computed again.
    pub fn recomputed(&self) -> usize {
        self.recomputed
    }

    /// Goes up to the tops of the trees through the rows that are listed.
    pub(crate) fn climb(&mut self, s: &Structure, prepared: &Prepared, batch: &Batch, keep: Keep) {
        self.fetched = Fetched::default();
        self.samples = batch.rows;
        self.recomputed = 0;
        self.root.by_class = s.class_rows == ClassRows::Identity;
        self.layers.resize_with(s.trees.len(), Vec::new);
        for (t, tree) in s.trees.iter().enumerate() {
            self.layers[t].resize_with(tree.levels.len() + 1, Buffers::default);
            for l in 1..=tree.levels.len() {
                self.level_up(t, l, tree, prepared, batch, keep);
            }
        }
    }

    /// φˡ from φˡ⁻¹ (from the data where l = 1).
    fn level_up(&mut self, t: usize, l: usize, tree: &Tree, prepared: &Prepared, batch: &Batch, keep: Keep) {
        let Rows { words, layers } = &self.rows[t];
        let (below, above) = (&layers[l - 1], &layers[l]);
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let (lower, upper) = (&mut lower[l - 1], &mut upper[0]);
        let own_phi = l > 1 || keep == Keep::Everything; // else leaves live in the task's scratch
        let own_psi = keep == Keep::Everything || self.root.by_class && l == tree.levels.len();
        fit(&mut lower.phi, if own_phi { below.rows() * a_wide } else { 0 });
        fit(&mut lower.psi, if own_psi { below.rows() * c_wide } else { 0 });
        fit(&mut lower.log_scale, below.rows());
        fit(&mut lower.lost, below.rows());
        fit(&mut upper.phi, above.rows() * c_wide);
        fit(&mut upper.log_scale, above.rows());
        fit(&mut upper.lost, above.rows());
        fit(&mut upper.inverse, above.rows());
        let mut phi = cut_tasks(&mut lower.phi, below, if own_phi { a_wide } else { 0 }).into_iter();
        let mut psi = cut_tasks(&mut lower.psi, below, if own_psi { c_wide } else { 0 }).into_iter();
        let mut log_scale = cut_tasks(&mut lower.log_scale, below, 1).into_iter();
        let mut lost = cut_tasks(&mut lower.lost, below, 1).into_iter();
        let mut out = cut_nodes(&mut upper.phi, above, c_wide).into_iter();
        let mut out_scale = cut_nodes(&mut upper.log_scale, above, 1).into_iter();
        let mut out_lost = cut_nodes(&mut upper.lost, above, 1).into_iter();
        let mut out_inverse = cut_nodes(&mut upper.inverse, above, 1).into_iter();
        let mut tasks = Vec::with_capacity(tree.nodes(l) * words);
        for (node, word) in (0..tree.nodes(l)).flat_map(|node| (0..*words).map(move |word| (node, word))) {
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
        let level = Below { t, l, tree, prepared, batch, layer: below, words: *words, own_phi, own_psi };
        let work = below.rows() * a_wide * c_wide;
        for_each_task(work, level.grouped(tasks), |group| level.group_up(group));
    }

    /// Takes the scores of a pass that a GPU has made, and φ of every layer if it was asked for.
    pub(crate) fn adopt(&mut self, s: &Structure, scores: Scores, phi: Vec<Vec<Vec<f32>>>) {
        let (k, k_wide) = (s.classes, padded(s.classes));
        self.samples = scores.lost.len();
        self.recomputed = 0;
        self.root.psi.clear();
        self.root.psi.resize(self.samples * k_wide, 0.0);
        for (to, from) in self.root.psi.chunks_exact_mut(k_wide).zip(scores.psi.chunks_exact(k)) {
            to[..k].copy_from_slice(from);
        }
        let doubt = |(i, &psi): (usize, &f32)| if psi > TINY { scores.lost[i / k] / psi } else { f32::INFINITY };
        self.root.doubt = match scores.doubt.is_empty() {
            true => scores.psi.iter().enumerate().map(doubt).collect(),
            false => scores.doubt,
        };
        self.root.lost = scores.lost;
        self.root.factor = scores.factor;
        self.root.log_likelihood = scores.score;
        self.fetched = Fetched { phi, flows: Vec::new() };
    }

    /// Takes the leaf flows of a pass that a GPU has made, by tree (N, B, M).
    pub(crate) fn adopt_flows(&mut self, flows: Vec<Vec<f32>>) {
        self.fetched.flows = flows;
    }

    /// φ of a node for sample b (mantissas, the largest near one), if the pass computed it.
    pub fn phi(&self, t: usize, tree: &Tree, layer: usize, node: usize, b: usize) -> Option<&[f32]> {
        if let Some(layers) = self.fetched.phi.get(t) {
            let channels = tree.channels(layer);
            return Some(&layers[layer][(node * self.samples + b) * channels..][..channels]);
        }
        let row = self.row_of(t, layer, node, b)?;
        let wide = padded(tree.channels(layer));
        Some(&self.layers[t][layer].phi[row * wide..][..tree.channels(layer)])
    }

    /// The flow `φ·dφ` of a position for sample b after a downward pass to the leaves.
    pub fn leaf_flow(&self, t: usize, tree: &Tree, node: usize, b: usize) -> Option<Vec<f32>> {
        if let Some(flows) = self.fetched.flows.get(t) {
            return Some(flows[(node * self.samples + b) * tree.components..][..tree.components].to_vec());
        }
        let row = self.row_of(t, 0, node, b)?;
        let (buffers, start) = (&self.layers[t][0], row * padded(tree.components));
        let (phi, dphi) = (&buffers.phi[start..], &buffers.dphi[start..]);
        Some((0..tree.components).map(|d| phi[d] * dphi[d]).collect())
    }

    fn row_of(&self, t: usize, layer: usize, node: usize, b: usize) -> Option<usize> {
        let key = node * self.rows[t].words + b / CHUNK;
        let rows = &self.rows[t].layers[layer];
        let bit = b % CHUNK;
        let before = (rows.mask[key] & ((1 << bit) - 1)).count_ones() as usize;
        (rows.mask[key] >> bit & 1 == 1).then(|| rows.first[key] + before)
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
        let mut each = if self.prepared.levels[self.t][self.l - 1].on_tiles() { MOST.min(self.words) } else { 1 };
        while each > 1 && tasks.len() / each < 2 * rayon::current_num_threads() {
            each /= 2;
        }
        let mut groups: Vec<Vec<Task<'_>>> = Vec::new();
        for task in tasks.into_iter().filter(|task| !task.lost.is_empty()) {
            match groups.last_mut().filter(|group| group[0].node == task.node && group.len() < each) {
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
        let children = |task: &Task<'_>| children_of(tree, l, layer, self.words, task.node, task.word);
        let children: Vec<Vec<Child>> = group.iter().map(children).collect();
        let there: Vec<usize> = (0..nodes.len()).filter(|&k| children.iter().any(|of| of[k].mask != 0)).collect();
        let whole = |&k: &usize| group.iter().zip(&children).all(|(task, of)| of[k].mask == task.mask);
        let straight = !self.own_psi && there.len() <= GROUP && there.iter().all(whole);
        SCRATCH.with_borrow_mut(|(leaf_rows, psi_rows)| {
            let mut group: Vec<Task<'_>> = group;
            if !self.own_phi {
                let rows = lend(leaf_rows, &group, a_wide);
                group.iter_mut().zip(rows).for_each(|(task, rows)| task.phi = rows);
            }
            if !self.own_psi && !straight {
                let rows = lend(psi_rows, &group, c_wide);
                group.iter_mut().zip(rows).for_each(|(task, rows)| task.psi = rows);
            }
            for (index, &k) in there.iter().enumerate() {
                let then = if index == 0 || !straight { Then::Replace } else { Then::Multiply };
                let mut parts = Vec::with_capacity(group.len());
                for (task, child) in group.iter_mut().zip(children.iter().map(|of| of[k])) {
                    let count = child.mask.count_ones() as usize;
                    let rows = child.first..child.first + count;
                    let phi = &mut task.phi[rows.start * a_wide..rows.end * a_wide];
                    if l == 1 {
                        let (log_scale, lost) = (&mut task.log_scale[rows.clone()], &mut task.lost[rows.clone()]);
                        self.leaf_rows(nodes[k] as usize, task.word, child.mask, phi, log_scale, lost);
                    }
                    let psi = if straight { &mut *task.out } else { &mut task.psi[rows.start * c_wide..] };
                    parts.push(Raised { count, phi, psi });
                }
                let matrix = tree.levels[l - 1].weight_of[nodes[k] as usize] as usize;
                self.prepared.levels[self.t][l - 1].upward_into(arch(), matrix, &mut parts, then);
            }
            for (task, children) in group.into_iter().zip(&children) {
                let (log_scale, lost) = (&*task.log_scale, &*task.lost);
                let (width, mask, psi, phi, scales) = (c_wide, task.mask, &*task.psi, task.out, task.scales);
                if straight {
                    let children = &there.iter().map(|&k| children[k]).collect::<Vec<_>>();
                    arch().dispatch(product::Rescale { width, children, log_scale, lost, phi, scales });
                } else {
                    arch().dispatch(product::Upward { width, children, mask, psi, log_scale, lost, phi, scales });
                }
            }
        });
    }

    fn leaf_rows(&self, j: usize, word: usize, mask: u64, phi: &mut [f32], log_scale: &mut [f64], lost: &mut [f32]) {
        let position = &self.tree.positions[j];
        let table = &self.prepared.tables[self.t][position.family as usize];
        let (batch, first_sample) = (self.batch, word * CHUNK);
        arch().dispatch(leaves::Upward { table, position, batch, first_sample, mask, phi, log_scale, lost });
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
