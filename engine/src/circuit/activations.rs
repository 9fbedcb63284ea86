//! The buffers of a pass, and how they are cut into the rows of tasks.

use crate::arithmetic::matmul::padded;
use crate::circuit::outputs::GpuScores;
use crate::layers::product::Child;
use crate::layers::scaled_rows::UnderflowBound;
use crate::rows::active_nodes::{ActiveLayer, ActiveNodes};
use crate::rows::batch::CHUNK;
use crate::structure::{Structure, Tree};

/// The numbers of one layer; rows as in [`ActiveLayer`].
#[derive(Default)]
pub(crate) struct Buffers {
    pub phi: Vec<f32>,                        // (rows, padded C)
    pub dphi: Vec<f32>,                       // (rows, padded C)
    pub psi: Vec<f32>, // (rows, padded C of the level above); dψ after the backward pass
    pub log_scale: Vec<f64>, // (rows)
    pub underflow_bound: Vec<UnderflowBound>, // (rows); of ψ, once it is mixed
    pub inverse: Vec<f32>, // (rows)
}

/// What the root keeps of a pass.
#[derive(Default)]
pub(crate) struct Root {
    pub by_class: bool,            // class rows are the identity
    pub phi: Vec<f32>,             // (B, padded tops)
    pub factor: Vec<f32>,          // (B, trees): scale of a tree's top within the root's row
    pub psi: Vec<f32>,             // (B, padded K): P(x|y) but for a constant
    pub underflow_bound: Vec<f32>, // (B): what underflow may have taken from each, at most
    pub relative_bound: Vec<f32>,  // (B, K): the same for each class, relative
    pub dpsi: Vec<f32>,            // (B, padded K)
    pub dphi: Vec<f32>,            // (B, padded tops)
    pub log_likelihood: Vec<f64>,  // (B, K)
}

/// What a pass must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Class scores only.
    Scores,
    /// All that a backward pass or a sampler reads.
    Everything,
}

/// The buffers of passes over batches; they grow to the largest batch seen and are used again.
#[derive(Default)]
pub struct Activations {
    pub(crate) rows: Vec<ActiveNodes>,    // by tree
    pub(crate) layers: Vec<Vec<Buffers>>, // by tree, layer
    pub(crate) root: Root,
    pub(crate) samples: usize,
    pub(crate) fetched: Fetched,
}

/// What a GPU has computed instead; empty where it was asked for less.
#[derive(Default)]
pub(crate) struct Fetched {
    pub phi: Vec<Vec<Vec<f32>>>, // by tree, layer: (nodes, B, C)
    pub flows: Vec<Vec<f32>>,    // by tree: (N, B, M)
}

/// Makes a buffer at least this long; what it held is lost where it has to grow. It grows by an eighth more, since the
/// number of rows differs from step to step, and not to twice what it was: these buffers are most of a wide model's memory.
pub(crate) fn fit<T: Clone + Default>(buffer: &mut Vec<T>, length: usize) {
    if buffer.len() < length {
        *buffer = Vec::new(); // gives the old one back first
        *buffer = vec![T::default(); length + length / 8];
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
pub(crate) fn cut_tasks<'a, T>(
    buffer: &'a mut [T],
    layer: &ActiveLayer,
    width: usize,
) -> Vec<&'a mut [T]> {
    cut(
        buffer,
        layer
            .tasks
            .windows(2)
            .map(|ends| (ends[1] - ends[0]) * width),
    )
}

/// Cuts a buffer into the rows of each node and word, indexed by `node · words + word`.
pub(crate) fn cut_nodes<'a, T>(
    buffer: &'a mut [T],
    layer: &ActiveLayer,
    width: usize,
) -> Vec<&'a mut [T]> {
    let pieces = cut(
        buffer,
        layer.order.iter().map(|&key| layer.count(key) * width),
    );
    let mut by_key: Vec<&mut [T]> = Vec::new();
    by_key.resize_with(pieces.len(), Default::default);
    for (piece, &key) in pieces.into_iter().zip(&layer.order) {
        by_key[key] = piece;
    }
    by_key
}

/// The children of a window for one word, with rows counted from the window's first.
pub(crate) fn children_of(
    tree: &Tree,
    l: usize,
    layer: &ActiveLayer,
    words: usize,
    node: usize,
    word: usize,
) -> Vec<Child> {
    let start = layer.tasks[node * words + word];
    let keys = tree.levels[l - 1].children[node]
        .iter()
        .map(|&j| j as usize * words + word);
    let child = |key: usize| Child {
        mask: layer.mask[key],
        first: layer.first[key] - start,
    };
    keys.map(child).collect()
}

impl Activations {
    /// Empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the scores of a pass that a GPU has made, and φ of every layer if it was asked for.
    pub(crate) fn adopt(&mut self, s: &Structure, scores: GpuScores, phi: Vec<Vec<Vec<f32>>>) {
        let (k, k_padded) = (s.classes, padded(s.classes));
        self.samples = scores.underflow_bound.len();
        self.root.psi.clear();
        self.root.psi.resize(self.samples * k_padded, 0.0);
        for (to, from) in self
            .root
            .psi
            .chunks_exact_mut(k_padded)
            .zip(scores.psi.chunks_exact(k))
        {
            to[..k].copy_from_slice(from);
        }
        self.root.relative_bound = scores.relative_bound;
        self.root.underflow_bound = scores.underflow_bound;
        self.root.factor = scores.factor;
        self.root.log_likelihood = scores.score;
        self.fetched = Fetched {
            phi,
            flows: Vec::new(),
        };
    }

    /// Takes the leaf flows of a pass that a GPU has made, by tree (N, B, M).
    pub(crate) fn adopt_flows(&mut self, flows: Vec<Vec<f32>>) {
        self.fetched.flows = flows;
    }

    /// φ of a node for sample b (mantissas, the largest near one), if the pass computed it.
    pub fn phi(
        &self,
        t: usize,
        tree: &Tree,
        layer: usize,
        node: usize,
        b: usize,
    ) -> Option<&[f32]> {
        if let Some(layers) = self.fetched.phi.get(t) {
            let channels = tree.channels(layer);
            return Some(&layers[layer][(node * self.samples + b) * channels..][..channels]);
        }
        let row = self.row_of(t, layer, node, b)?;
        let wide = padded(tree.channels(layer));
        Some(&self.layers[t][layer].phi[row * wide..][..tree.channels(layer)])
    }

    /// The flow `φ·dφ` of a position for sample b after a backward pass to the leaves.
    pub fn leaf_flow(&self, t: usize, tree: &Tree, node: usize, b: usize) -> Option<Vec<f32>> {
        if let Some(flows) = self.fetched.flows.get(t) {
            return Some(
                flows[(node * self.samples + b) * tree.components..][..tree.components].to_vec(),
            );
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
