//! The whole circuit on a batch, up to the class scores.
//!
//! Level after level, one task is a window of nodes and a chunk of 64 samples: it evaluates the leaves (at the first
//! level), mixes each child, multiplies them and rescales. Every row is computed alone and every sum has a fixed order,
//! so the number of threads changes no bit.

use crate::batch::{Batch, CHUNK, Dropped, Layer, Rows, for_each_task};
use crate::device::Scores;
use crate::kernel::{Then, arch, padded};
use crate::leaves;
use crate::product::{self, Child, GROUP, Scales, TINY};
use crate::reference::{self, LogWeights};
use crate::structure::{Structure, Tree};
use crate::weights::{Prepared, Weights};
use rayon::prelude::*;
use std::cell::RefCell;
use std::sync::OnceLock;

/// Underflow may cost a reported log-likelihood this much, relative, before the sample is computed again in f64.
const SCORE_TOLERANCE: f32 = 1e-6;

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
    pub(crate) root_phi: Vec<f32>,        // (B, padded tops)
    pub(crate) root_factor: Vec<f32>,     // (B, trees): scale of a tree's top within the root's row
    root_scale: Vec<f64>,                 // (B)
    pub(crate) root_lost: Vec<f32>,       // (B)
    pub(crate) root_psi: Vec<f32>,        // (B, padded K)
    pub(crate) root_dpsi: Vec<f32>,       // (B, padded K)
    pub(crate) root_dphi: Vec<f32>,       // (B, padded tops)
    log_likelihood: Vec<f64>,             // (B, K)
    pub(crate) samples: usize,
    recomputed: usize,
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
fn cut<T>(mut buffer: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
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

    /// log P(x_o | y) of the last upward pass, (B, K).
    pub fn log_likelihood(&self) -> &[f64] {
        &self.log_likelihood
    }

    /// Samples of the last pass that the guard computed again.
    pub fn recomputed(&self) -> usize {
        self.recomputed
    }

    /// Goes up, leaving out what is missing or dropped (`dropped[tree][layer]`).
    pub fn upward(&mut self, s: &Structure, prepared: &Prepared, batch: &Batch, dropped: &[Vec<Dropped>], keep: Keep) {
        self.rows.resize_with(s.trees.len(), Rows::default);
        for (t, tree) in s.trees.iter().enumerate() {
            self.rows[t].needed(tree, batch, dropped.get(t).map_or(&[][..], Vec::as_slice));
        }
        self.climb(s, prepared, batch, keep);
    }

    /// Goes up through every node, also where all is missing, and keeps everything.
    pub fn upward_dense(&mut self, s: &Structure, prepared: &Prepared, batch: &Batch) {
        self.rows.resize_with(s.trees.len(), Rows::default);
        self.rows.iter_mut().zip(&s.trees).for_each(|(rows, tree)| rows.dense(tree, batch.rows));
        self.climb(s, prepared, batch, Keep::Everything);
    }

    fn climb(&mut self, s: &Structure, prepared: &Prepared, batch: &Batch, keep: Keep) {
        self.samples = batch.rows;
        self.recomputed = 0;
        self.fetched = Fetched::default();
        self.layers.resize_with(s.trees.len(), Vec::new);
        for (t, tree) in s.trees.iter().enumerate() {
            self.layers[t].resize_with(tree.levels.len() + 1, Buffers::default);
            for l in 1..=tree.levels.len() {
                self.level_up(t, l, tree, prepared, batch, keep);
            }
        }
        self.root_up(s, prepared);
    }

    /// φˡ from φˡ⁻¹ (from the data where l = 1).
    fn level_up(&mut self, t: usize, l: usize, tree: &Tree, prepared: &Prepared, batch: &Batch, keep: Keep) {
        let Rows { words, layers } = &self.rows[t];
        let (below, above) = (&layers[l - 1], &layers[l]);
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let (lower, upper) = self.layers[t].split_at_mut(l);
        let (lower, upper) = (&mut lower[l - 1], &mut upper[0]);
        let own_phi = l > 1 || keep == Keep::Everything; // else leaves live in the task's scratch
        let own_psi = keep == Keep::Everything;
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
        let level = Below { t, l, tree, prepared, batch, layer: below, words: *words, keep };
        let work = below.rows() * a_wide * c_wide;
        for_each_task(work, tasks, |task| {
            let mask = above.mask[task.node * words + task.word];
            level.task_up(task, mask);
        });
    }

    /// Class scores from the tops of the trees.
    fn root_up(&mut self, s: &Structure, prepared: &Prepared) {
        let (b_count, k) = (self.samples, s.classes);
        let (wide, k_wide, trees) = (padded(s.root_channels()), padded(k), s.trees.len());
        fit(&mut self.root_phi, b_count * wide);
        fit(&mut self.root_factor, b_count * trees);
        fit(&mut self.root_psi, b_count * k_wide);
        self.root_scale.resize(b_count, 0.0);
        self.root_lost.resize(b_count, 0.0);
        self.log_likelihood.resize(b_count * k, 0.0);
        let (rows, layers) = (&self.rows, &self.layers);
        let phi = self.root_phi[..b_count * wide].par_chunks_mut(CHUNK * wide);
        let psi = self.root_psi[..b_count * k_wide].par_chunks_mut(CHUNK * k_wide);
        let factor = self.root_factor[..b_count * trees].par_chunks_mut(CHUNK * trees);
        let scale = self.root_scale.par_chunks_mut(CHUNK);
        let lost = self.root_lost.par_chunks_mut(CHUNK);
        let scores = self.log_likelihood.par_chunks_mut(CHUNK * k);
        let chunks = phi.zip(psi).zip(factor).zip(scale).zip(lost).zip(scores).enumerate();
        chunks.for_each(|(word, (((((phi, psi), factor), scale), lost), scores))| {
            let count = scale.len();
            for b in 0..count {
                let tops = tops_of(s, rows, layers, word, b);
                let top_scale = tops.iter().map(|top| top.log_scale).fold(f64::NEG_INFINITY, f64::max);
                scale[b] = top_scale;
                lost[b] = if trees > 1 { TINY } else { 0.0 };
                let mut rest = &mut phi[b * wide..(b + 1) * wide];
                for (t, top) in tops.iter().enumerate() {
                    let (part, after) = rest.split_at_mut(s.trees[t].top_channels());
                    let by = (top.log_scale - top_scale).exp() as f32;
                    factor[b * trees + t] = by;
                    lost[b] += top.lost * by;
                    match top.phi {
                        Some(values) => part.iter_mut().zip(values).for_each(|(to, value)| *to = value * by),
                        None => part.fill(by),
                    }
                    rest = after;
                }
                rest.fill(0.0);
            }
            prepared.classes.upward(arch(), 0, count, phi, psi);
            for b in 0..count {
                let seen = (0..trees).any(|t| rows[t].layers.last().is_some_and(|l| l.mask[word] >> b & 1 == 1));
                for y in 0..k {
                    let value = f64::from(psi[b * k_wide + y]).ln() + scale[b];
                    scores[b * k + y] = if seen { value } else { 0.0 };
                }
            }
        });
    }

    /// Whether underflow may have spoilt sample b for scores of all classes.
    fn doubtful_scores(&self, b: usize, classes: usize) -> bool {
        let psi = &self.root_psi[b * padded(classes)..][..classes];
        let trusted = |&value: &f32| value > TINY && self.root_lost[b] <= SCORE_TOLERANCE * value; // not if NaN
        !psi.iter().all(trusted)
    }

    /// Samples of which some class score may have been spoilt by underflow.
    pub fn doubtful(&self, classes: usize) -> Vec<usize> {
        (0..self.samples).filter(|&b| self.doubtful_scores(b, classes)).collect()
    }

    /// Computes doubtful samples again in f64 log space. Call after [`Activations::upward`] where scores are reported.
    /// `logs` are the logarithms of these weights, made when first needed: for a large model that takes longer than a
    /// sample does.
    pub fn guard_scores(&mut self, s: &Structure, weights: &Weights, logs: &OnceLock<LogWeights>, batch: &Batch) {
        let doubtful = self.doubtful(s.classes);
        if doubtful.is_empty() {
            return;
        }
        let logs = logs.get_or_init(|| LogWeights::new(s, weights));
        let exact = |&b: &usize| reference::upward(s, weights, logs, batch.row(b), &|_, _, _| false).log_likelihood;
        let scores: Vec<Vec<f64>> = doubtful.par_iter().map(exact).collect();
        for (b, scores) in doubtful.iter().zip(scores) {
            self.log_likelihood[b * s.classes..(b + 1) * s.classes].copy_from_slice(&scores);
        }
        self.recomputed = doubtful.len();
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

    /// Takes the scores of a pass that a GPU has made, and φ of every layer if it was asked for.
    pub(crate) fn adopt(&mut self, s: &Structure, scores: Scores, phi: Vec<Vec<Vec<f32>>>) {
        let (k, k_wide) = (s.classes, padded(s.classes));
        self.samples = scores.lost.len();
        self.recomputed = 0;
        self.root_psi.clear();
        self.root_psi.resize(self.samples * k_wide, 0.0);
        for (to, from) in self.root_psi.chunks_exact_mut(k_wide).zip(scores.psi.chunks_exact(k)) {
            to[..k].copy_from_slice(from);
        }
        self.root_lost = scores.lost;
        self.root_factor = scores.factor;
        self.log_likelihood = scores.score;
        self.fetched = Fetched { phi, flows: Vec::new() };
    }

    /// Takes the leaf flows of a pass that a GPU has made, by tree (N, B, M).
    pub(crate) fn adopt_flows(&mut self, flows: Vec<Vec<f32>>) {
        self.fetched.flows = flows;
    }

    /// How far apart the log-scales of the trees are for sample b: factors of their tops under the root.
    pub fn root_factors(&self, trees: usize, b: usize) -> &[f32] {
        &self.root_factor[b * trees..(b + 1) * trees]
    }

    /// P(x_o|y) of sample b but for a constant, (K), and a bound on what underflow may have taken from each.
    pub fn class_mantissas(&self, classes: usize, b: usize) -> (&[f32], f32) {
        (&self.root_psi[b * padded(classes)..][..classes], self.root_lost[b])
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
    keep: Keep,
}

impl Below<'_> {
    /// Leaves (at the first level), mixing, product. Where nothing is kept and no child lacks a sample, a child's mixing
    /// multiplies straight into φ of the window, and ψ never exists.
    fn task_up(&self, task: Task<'_>, mask: u64) {
        let Self { l, tree, layer, .. } = *self;
        let rows = task.lost.len();
        if rows == 0 {
            return;
        }
        let (a_wide, c_wide) = (padded(tree.channels(l - 1)), padded(tree.channels(l)));
        let children = children_of(tree, l, layer, self.words, task.node, task.word);
        let whole = children.len() <= GROUP && children.iter().all(|child| child.mask == mask);
        let straight = self.keep == Keep::Scores && whole;
        SCRATCH.with_borrow_mut(|(leaf_rows, psi_rows)| {
            let own_phi = l > 1 || self.keep == Keep::Everything;
            let phi = if own_phi { task.phi } else { scratch_rows(leaf_rows, rows * a_wide) };
            let psi = match self.keep {
                Keep::Everything => task.psi,
                Keep::Scores => scratch_rows(psi_rows, if straight { 0 } else { rows * c_wide }),
            };
            for (index, (child, &j)) in children.iter().zip(&tree.levels[l - 1].children[task.node]).enumerate() {
                let (first, count) = (child.first, child.mask.count_ones() as usize);
                let x = &mut phi[first * a_wide..(first + count) * a_wide];
                if l == 1 {
                    let scales = first..first + count;
                    let (log_scale, lost) = (&mut task.log_scale[scales.clone()], &mut task.lost[scales]);
                    self.leaf_rows(j as usize, task.word, child.mask, x, log_scale, lost);
                }
                let matrix = tree.levels[l - 1].weight_of[j as usize] as usize;
                let then = if index == 0 || !straight { Then::Replace } else { Then::Multiply };
                let y = if straight { &mut *task.out } else { &mut psi[first * c_wide..] };
                self.prepared.levels[self.t][l - 1].upward_into(arch(), matrix, count, x, y, then);
            }
            let (children, log_scale, lost) = (&children[..], &*task.log_scale, &*task.lost);
            let (width, phi, scales) = (c_wide, task.out, task.scales);
            if straight {
                arch().dispatch(product::Rescale { width, children, log_scale, lost, phi, scales });
            } else {
                arch().dispatch(product::Upward { width, children, mask, psi, log_scale, lost, phi, scales });
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

fn scratch_rows(scratch: &mut Vec<f32>, length: usize) -> &mut [f32] {
    fit(scratch, length);
    &mut scratch[..length]
}

/// The top of one tree for one sample; no φ where all of it is summed out: then it is one in every channel.
struct Top<'a> {
    phi: Option<&'a [f32]>,
    log_scale: f64,
    lost: f32,
}

fn tops_of<'a>(s: &Structure, rows: &[Rows], layers: &'a [Vec<Buffers>], word: usize, bit: usize) -> Vec<Top<'a>> {
    let top = |(t, tree): (usize, &Tree)| {
        let (layer, buffers) = (&rows[t].layers[tree.levels.len()], &layers[t][tree.levels.len()]);
        if layer.mask[word] >> bit & 1 == 0 {
            return Top { phi: None, log_scale: 0.0, lost: 0.0 };
        }
        let row = layer.first[word] + (layer.mask[word] & ((1 << bit) - 1)).count_ones() as usize;
        let (channels, wide) = (tree.top_channels(), padded(tree.top_channels()));
        let phi = Some(&buffers.phi[row * wide..][..channels]);
        Top { phi, log_scale: buffers.log_scale[row], lost: buffers.lost[row] }
    };
    s.trees.iter().enumerate().map(top).collect()
}
