//! The circuit on one row in f64 log space, with sums or with maxima.
//!
//! ```text
//! leaf       log φ⁰(d) = Σ_s log p(x_s|d)                                 s observed
//!                        and, for maxima, Σ_s max_x log p(x|d)            s missing
//! sums       log ψ(c)  = log Σ_a exp(log W[c,a] + log φ(a))               for rows that underflow in f32 and in f64
//! maxima     log ψ(c)  = max_a (log W[c,a] + log φ(a))                    for the most likely assignment
//! product    log φ(c)  = Σ_j log ψ_j(c)
//! ```
//!
//! Every node is divided by its largest channel, so that an outlier of log-density −10⁶⁰ does not swallow the weights
//! beside it. log W lies in lines (one for each a, all c side by side), so that the loop over c runs in vectors.
//! The way back is in `log_flows.rs`.
//!
//! ```
//! use sumout::internals::{Join, LogCircuit, LogValues};
//! use sumout::structure::{Sharing, Structure};
//! use sumout::Model;
//! let structure = Structure::sequence(4).components(3).level(2, 5, Sharing::Own).level(2, 6, Sharing::Own).classes(2).build()?;
//! let model = Model::random(structure, 1.0, 7);
//! let circuit = LogCircuit::new(&model.structure, &model.weights);
//! let mut values = LogValues::default();
//! circuit.forward(&model.structure, &[0.5, f32::NAN, 1.0, 2.0], Join::Sum, &mut values);
//! let flows = circuit.leaf_flows(&model.structure, &values, &[0.5, 0.5]); // by tree: (N, M)
//! assert!((flows[0][..3].iter().sum::<f64>() - 1.0).abs() < 1e-12);
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::instructions::arch;
use crate::arithmetic::math::log_sum_exp;
use crate::layers::leaf_table::LeafTable;
use crate::layers::mixing::Mixing;
use crate::layers::weights::{TreeWeights, Weights};
use crate::rows::active_nodes::IsDropped;
use crate::structure::{ClassRows, OUTSIDE, Structure, Tree};

/// A node of a tree, in one of its states.
#[derive(Clone, Copy, Debug)]
pub struct NodeState {
    /// Its layer; leaves are layer 0.
    pub layer: usize,
    /// Its number in the layer.
    pub node: usize,
    /// The channel.
    pub state: usize,
}

/// A child of a node whose state is known.
#[derive(Clone, Copy, Debug)]
pub struct ChildOfState {
    /// The layer of the parent.
    pub layer: usize,
    /// The number of the child, in the layer below.
    pub child: usize,
    /// The state of the parent.
    pub state: usize,
}

/// The state of a node that was not reached.
pub const NOWHERE: u32 = u32::MAX;

/// How the states of a child are joined.
#[derive(Clone, Copy, Debug)]
pub enum Join<'a> {
    /// Summed, and what is missing is summed out.
    Sum,
    /// The best is taken, and the best value of what is missing. A place of the frame where `columns` says [`OUTSIDE`]
    /// belongs to no column: it is summed out.
    Max {
        /// For every place of the frame, its column in a row of data.
        columns: &'a [u32],
    },
}

/// log W of one level.
#[derive(Clone, Debug)]
pub(super) struct LogMixing {
    rows: usize,     // C
    columns: usize,  // A
    log_w: Vec<f64>, // (matrices, A, C)
}

impl LogMixing {
    fn new(mixing: &Mixing) -> Self {
        let (rows, columns) = (mixing.rows, mixing.columns);
        let mut log_w = vec![0.0; mixing.matrices * rows * columns];
        for (matrix, lines) in log_w.chunks_exact_mut(rows * columns).enumerate() {
            for c in 0..rows {
                let to = lines[c..].iter_mut().step_by(rows);
                to.zip(mixing.log_row(matrix, c))
                    .for_each(|(to, log)| *to = log);
            }
        }
        Self {
            rows,
            columns,
            log_w,
        }
    }

    /// (A, C).
    pub(super) fn matrix(&self, matrix: usize) -> &[f64] {
        &self.log_w[matrix * self.rows * self.columns..][..self.rows * self.columns]
    }
}

/// The leaves in f64 and the logarithm of every weight.
#[derive(Clone, Debug)]
pub struct LogCircuit {
    leaves: Vec<Vec<LeafTable>>,            // by tree, family
    pub(super) levels: Vec<Vec<LogMixing>>, // by tree, level
    classes: Vec<f64>,                      // (K, tops of all trees)
}

/// All log-values of one row; a node's largest channel is 0.
#[derive(Clone, Debug, Default)]
pub struct LogValues {
    pub(super) trees: Vec<TreeValues>,
}

/// The log-values of one tree.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeValues {
    pub phi: Vec<Vec<f64>>, // by layer: (nodes, C)
    pub psi: Vec<Vec<f64>>, // by level: (children, C)
    pub scale: f64,         // the sum of all that was subtracted
    silent: Vec<Vec<bool>>, // by layer: (nodes): summed out, or below such a node; empty where no node is
}

impl TreeValues {
    /// Whether a node is summed out, or is below one that is: then its φ is 1 and counts nowhere.
    pub fn is_silent(&self, layer: usize, node: usize) -> bool {
        self.silent.get(layer).is_some_and(|layer| layer[node])
    }
}

impl LogValues {
    /// The constant that [`LogCircuit::root`] leaves out.
    pub fn scale(&self) -> f64 {
        let scales = self.trees.iter().map(|tree| tree.scale);
        scales.fold(f64::NEG_INFINITY, f64::max)
    }
}

impl LogCircuit {
    /// Normalises all logits.
    pub fn new(structure: &Structure, weights: &Weights) -> Self {
        let k = structure.classes;
        let identity = |i: usize| f64::from(i / k == i % k).ln();
        let classes = match structure.class_rows {
            ClassRows::Mixing => (0..k).flat_map(|y| weights.classes.log_row(0, y)).collect(),
            ClassRows::Identity => (0..k * k).map(identity).collect(),
        };
        let leaves = |tree: &TreeWeights| tree.families.iter().map(LeafTable::new).collect();
        let levels = |tree: &TreeWeights| tree.levels.iter().map(LogMixing::new).collect();
        Self {
            leaves: weights.trees.iter().map(leaves).collect(),
            levels: weights.trees.iter().map(levels).collect(),
            classes,
        }
    }

    /// Computes all values of one row of the frame.
    pub fn forward(&self, s: &Structure, frame: &[f32], join: Join, values: &mut LogValues) {
        values.trees.resize_with(s.trees.len(), TreeValues::default);
        for (t, (tree, values)) in s.trees.iter().zip(&mut values.trees).enumerate() {
            values.silent.clear();
            self.forward_tree(t, tree, frame, join, values);
        }
    }

    /// The same with sums, where training sums nodes out.
    pub fn forward_dropping(
        &self,
        s: &Structure,
        frame: &[f32],
        is_dropped: IsDropped<'_>,
        values: &mut LogValues,
    ) {
        values.trees.resize_with(s.trees.len(), TreeValues::default);
        for (t, (tree, values)) in s.trees.iter().zip(&mut values.trees).enumerate() {
            values.silent = silent_nodes(tree, |l, node| is_dropped(t, l, node));
            self.forward_tree(t, tree, frame, Join::Sum, values);
        }
    }

    fn forward_tree(
        &self,
        t: usize,
        tree: &Tree,
        frame: &[f32],
        join: Join,
        values: &mut TreeValues,
    ) {
        values.scale = 0.0;
        values.phi.resize_with(tree.levels.len() + 1, Vec::new);
        values.psi.resize_with(tree.levels.len(), Vec::new);
        self.leaves(t, tree, frame, join, values);
        for l in 1..=tree.levels.len() {
            self.level(t, l, tree, join, values);
        }
    }

    /// log φ of all leaves of a tree.
    fn leaves(&self, t: usize, tree: &Tree, frame: &[f32], join: Join, values: &mut TreeValues) {
        let m = tree.components;
        zeros(&mut values.phi[0], tree.positions.len() * m);
        for (i, position) in tree.positions.iter().enumerate() {
            if values.is_silent(0, i) {
                continue;
            }
            let table = &self.leaves[t][position.family as usize];
            let to = &mut values.phi[0][i * m..][..m];
            leaf(table, &position.inputs, frame, join, to);
            values.scale += subtract_largest(to);
        }
    }

    /// log ψ of all children of a level, and log φ of its nodes.
    fn level(&self, t: usize, l: usize, tree: &Tree, join: Join, values: &mut TreeValues) {
        let (level, mixing) = (&tree.levels[l - 1], &self.levels[t][l - 1]);
        let c = level.channels;
        let psi = &mut values.psi[l - 1];
        zeros(psi, tree.nodes(l - 1) * c);
        let children = values.phi[l - 1].chunks_exact(mixing.columns);
        let children = children.zip(&level.weight_of).zip(psi.chunks_exact_mut(c));
        for ((phi, &matrix), psi) in children {
            mix(mixing.matrix(matrix as usize), phi, psi, join);
        }
        zeros(&mut values.phi[l], level.children.len() * c);
        for (p, children) in level.children.iter().enumerate() {
            if values.is_silent(l, p) {
                continue;
            }
            let to = &mut values.phi[l][p * c..][..c];
            for &j in children {
                let psi = &values.psi[l - 1][j as usize * c..][..c];
                to.iter_mut().zip(psi).for_each(|(to, psi)| *to += psi);
            }
            values.scale += subtract_largest(to);
        }
    }

    /// log P(x|y), (K).
    pub fn scores(&self, s: &Structure, values: &LogValues) -> Vec<f64> {
        let (scale, mut tops) = (values.scale(), Vec::new());
        let score = |y| {
            self.root(s, values, y, &mut tops);
            log_sum_exp(&tops) + scale
        };
        (0..s.classes).map(score).collect()
    }

    /// `log W_top[y,(t,a)] + log φ_t(a)` for all trees side by side, into `to`; less a constant.
    pub fn root(&self, s: &Structure, values: &LogValues, y: usize, to: &mut Vec<f64>) {
        let largest = values.scale();
        let tops = s
            .trees
            .iter()
            .zip(&values.trees)
            .flat_map(|(tree, values)| {
                let top = values.phi[tree.levels.len()].iter();
                top.map(move |log| log + (values.scale - largest))
            });
        let row = &self.classes[y * s.root_channels()..];
        to.clear();
        to.extend(tops.zip(row).map(|(log_phi, log_w)| log_phi + log_w));
    }

    /// `log W[c,a] + log φ_j(a)` for all a, into `to`: child j of a node of tree t that is in state c.
    pub fn states(
        &self,
        s: &Structure,
        values: &LogValues,
        t: usize,
        of: ChildOfState,
        to: &mut Vec<f64>,
    ) {
        let (l, j, c) = (of.layer, of.child, of.state);
        let mixing = &self.levels[t][l - 1];
        let matrix = mixing.matrix(s.trees[t].levels[l - 1].weight_of[j] as usize);
        let phi = &values.trees[t].phi[l - 1][j * mixing.columns..][..mixing.columns];
        let log_w = matrix[c..].iter().step_by(mixing.rows);
        to.clear();
        to.extend(log_w.zip(phi).map(|(log_w, log_phi)| log_w + log_phi));
    }
}

/// Walks down from a node; `choose` gives the state of a child. Returns the component of every position, [`NOWHERE`]
/// for those that are not below.
pub fn trace_states(
    tree: &Tree,
    from: NodeState,
    mut choose: impl FnMut(ChildOfState) -> usize,
) -> Vec<u32> {
    let mut states = vec![NOWHERE; tree.nodes(from.layer)];
    states[from.node] = from.state as u32;
    for layer in (1..=from.layer).rev() {
        let mut below = vec![NOWHERE; tree.nodes(layer - 1)];
        for (children, &state) in tree.levels[layer - 1]
            .children
            .iter()
            .zip(&states)
            .filter(|(_, s)| **s != NOWHERE)
        {
            for &j in children {
                let (child, state) = (j as usize, state as usize);
                below[child] = choose(ChildOfState {
                    layer,
                    child,
                    state,
                }) as u32;
            }
        }
        states = below;
    }
    states
}

/// By layer: whether a node is summed out, or is below a node that is.
fn silent_nodes(tree: &Tree, is_dropped: impl Fn(usize, usize) -> bool) -> Vec<Vec<bool>> {
    let layer = |l| (0..tree.nodes(l)).map(|node| is_dropped(l, node)).collect();
    let mut silent: Vec<Vec<bool>> = (0..=tree.levels.len()).map(layer).collect();
    for (l, level) in tree.levels.iter().enumerate().rev() {
        for (p, children) in level.children.iter().enumerate() {
            if silent[l + 1][p] {
                children.iter().for_each(|&j| silent[l][j as usize] = true);
            }
        }
    }
    silent
}

fn zeros(buffer: &mut Vec<f64>, length: usize) {
    buffer.clear();
    buffer.resize(length, 0.0);
}

/// Subtracts the largest number, and returns it; 0 where all are −∞.
fn subtract_largest(logs: &mut [f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return 0.0;
    }
    logs.iter_mut().for_each(|log| *log -= top);
    top
}

/// Adds the log-densities of one local structure to `to`, (M).
fn leaf(table: &LeafTable, inputs: &[u32], frame: &[f32], join: Join, to: &mut [f64]) {
    let is_maximised = |input: usize| match join {
        Join::Sum => false,
        Join::Max { columns } => columns[input] != OUTSIDE,
    };
    table.log_densities(inputs, frame, is_maximised, to);
}

/// Raises every log ψ to the largest of log W + log φ.
#[inline(always)]
fn largest_terms(lines: &[f64], phi: &[f64], psi: &mut [f64]) {
    for (line, &log_phi) in lines.chunks_exact(psi.len()).zip(phi) {
        for (best, log_w) in psi.iter_mut().zip(line) {
            let log = log_w + log_phi;
            *best = if log > *best { log } else { *best };
        }
    }
}

/// log ψ (C) from log φ (A) and lines of log W (A, C).
fn mix(lines: &[f64], phi: &[f64], psi: &mut [f64], join: Join) {
    let c = psi.len();
    psi.fill(f64::NEG_INFINITY);
    arch().dispatch(|| largest_terms(lines, phi, psi));
    if let Join::Sum = join {
        for (state, psi) in psi
            .iter_mut()
            .enumerate()
            .filter(|(_, top)| top.is_finite())
        {
            let top = *psi;
            let terms = lines[state..]
                .iter()
                .step_by(c)
                .zip(phi)
                .map(|(log_w, log_phi)| log_w + log_phi);
            *psi += terms.map(|log| (log - top).exp()).sum::<f64>().ln();
        }
    }
}
