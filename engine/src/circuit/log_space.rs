//! The circuit on one row in f64 log space, with sums or with maxima.
//!
//! ```text
//! leaf       log φ⁰(d) = Σ_s log p(x_s|d)                                 s observed
//!                        and, for maxima, Σ_s max_x log p(x|d)            s missing
//! sums       log ψ(c)  = log Σ_a exp(log W[c,a] + log φ(a))               what rows that underflow spoilt need
//! maxima     log ψ(c)  = max_a (log W[c,a] + log φ(a))                    what the most likely assignment needs
//! product    log φ(c)  = Σ_j log ψ_j(c)
//! ```
//!
//! As `reference.rs` does, it divides every node by its largest channel, so that an outlier of log-density −10⁶⁰ does not
//! swallow the weights beside it; unlike it, it keeps log W in lines (one for each a, all c side by side), so that the loop
//! over c runs in vectors.
//!
//! ```
//! use sumout::internals::{Join, LeafTable, LogCircuit, LogValues};
//! use sumout::structure::{Sharing, Structure};
//! use sumout::Model;
//! let structure = Structure::sequence(4).components(3).level(2, 5, Sharing::Own).level(2, 6, Sharing::Own).classes(2).build()?;
//! let model = Model::random(structure, 1.0, 7);
//! let leaves: Vec<Vec<LeafTable>> =
//!     model.weights.trees.iter().map(|tree| tree.families.iter().map(LeafTable::new).collect()).collect();
//! let circuit = LogCircuit::new(&model.structure, &model.weights);
//! let mut values = LogValues::default();
//! circuit.climb(&model.structure, &leaves, &[0.5, f32::NAN, 1.0, 2.0], Join::Sum, &mut values);
//! let flows = circuit.flows(&model.structure, &values, &[0.5, 0.5]); // by tree: (N, M)
//! assert!((flows[0][..3].iter().sum::<f64>() - 1.0).abs() < 1e-12);
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::math::log_sum_exp;
use crate::arithmetic::matmul::arch;
use crate::layers::leaf::{Coordinate, Family, HALF_LOG_TAU};
use crate::layers::mixing::Mixing;
use crate::layers::weights::Weights;
use crate::random::Stream;
use crate::structure::{ClassRows, OUTSIDE, Structure, Tree};

/// A leaf family in f64, for the questions that look at one component at a time.
#[derive(Clone, Debug)]
pub struct LeafTable {
    /// M.
    pub components: usize,
    /// S of them.
    pub densities: Vec<Density>,
}

/// One coordinate of a family, for all M components.
#[derive(Clone, Debug)]
pub enum Density {
    /// Normal densities.
    Gaussian {
        /// μ, (M).
        mean: Vec<f64>,
        /// σ, (M).
        sigma: Vec<f64>,
        /// max_x log p(x|d), (M).
        peak: Vec<f64>,
    },
    /// Probabilities of the values 0 … V − 1.
    Discrete {
        /// (V, M).
        log_prob: Vec<f64>,
        /// (V, M).
        prob: Vec<f64>,
        /// max_x log p(x|d), (M).
        peak: Vec<f64>,
    },
}

impl LeafTable {
    /// Prepares a family.
    pub fn new(family: &Family) -> Self {
        let m = family.components;
        let density = |coordinate: &Coordinate| match coordinate {
            Coordinate::Gaussian { mean, log_sigma } => Density::Gaussian {
                mean: mean.iter().map(|&mean| mean.into()).collect(),
                sigma: log_sigma.iter().map(|&log| f64::from(log).exp()).collect(),
                peak: log_sigma
                    .iter()
                    .map(|&log| -f64::from(log) - HALF_LOG_TAU)
                    .collect(),
            },
            Coordinate::Discrete { logits } => {
                let mut log_prob: Vec<f64> = logits.iter().map(|&logit| logit.into()).collect();
                for d in 0..m {
                    let norm = log_sum_exp(
                        &log_prob
                            .iter()
                            .skip(d)
                            .step_by(m)
                            .copied()
                            .collect::<Vec<_>>(),
                    );
                    log_prob
                        .iter_mut()
                        .skip(d)
                        .step_by(m)
                        .for_each(|log| *log -= norm);
                }
                let most = |d| {
                    log_prob
                        .iter()
                        .skip(d)
                        .step_by(m)
                        .copied()
                        .fold(f64::NEG_INFINITY, f64::max)
                };
                let prob = log_prob.iter().map(|log| log.exp()).collect();
                Density::Discrete {
                    peak: (0..m).map(most).collect(),
                    prob,
                    log_prob,
                }
            }
        };
        Self {
            components: m,
            densities: family.coordinates.iter().map(density).collect(),
        }
    }

    /// Adds `log p(x_s|d)` of every component.
    fn add_observed(&self, s: usize, x: f32, to: &mut [f64]) {
        match &self.densities[s] {
            Density::Gaussian { mean, sigma, peak } => {
                for d in 0..self.components {
                    let z = (f64::from(x) - mean[d]) / sigma[d];
                    to[d] += peak[d] - 0.5 * z * z;
                }
            }
            Density::Discrete { log_prob, .. } => {
                let row = &log_prob[x as usize * self.components..];
                to.iter_mut().zip(row).for_each(|(to, log)| *to += log);
            }
        }
    }

    /// Adds `max_x log p(x_s|d)` of every component.
    fn add_peak(&self, s: usize, to: &mut [f64]) {
        let (Density::Gaussian { peak, .. } | Density::Discrete { peak, .. }) = &self.densities[s];
        to.iter_mut().zip(peak).for_each(|(to, peak)| *to += peak);
    }

    /// The value where `p(x_s|d)` is largest; the first where several are.
    pub fn mode(&self, s: usize, d: usize) -> f64 {
        match &self.densities[s] {
            Density::Gaussian { mean, .. } => mean[d],
            Density::Discrete { log_prob, peak, .. } => {
                let mut values = log_prob.iter().skip(d).step_by(self.components);
                values.position(|&log| log == peak[d]).unwrap_or(0) as f64
            }
        }
    }

    /// A draw from `p(x_s|d)`.
    pub fn draw(&self, s: usize, d: usize, stream: &mut Stream) -> f64 {
        match &self.densities[s] {
            Density::Gaussian { mean, sigma, .. } => mean[d] + sigma[d] * stream.normal(),
            Density::Discrete { prob, .. } => {
                stream.pick(prob.iter().skip(d).step_by(self.components).copied()) as f64
            }
        }
    }
}

/// The state of a node that was not reached.
pub const NOWHERE: u32 = u32::MAX;

/// How the states of a child are joined.
#[derive(Clone, Copy, Debug)]
pub enum Join<'a> {
    /// Summed, and what is missing is summed out.
    Sum,
    /// The best is taken, and the best value of what is missing. A place of the frame where `columns` says [`OUTSIDE`]
    /// is nobody's question: it is summed out.
    Max {
        /// For every place of the frame, its column in a row of data.
        columns: &'a [u32],
    },
}

/// log W of one level.
#[derive(Clone, Debug)]
struct Lines {
    rows: usize,     // C
    columns: usize,  // A
    log_w: Vec<f64>, // (matrices, A, C)
}

impl Lines {
    fn new(mixing: &Mixing) -> Self {
        let (rows, columns) = (mixing.rows, mixing.columns);
        let mut log_w = vec![0.0; mixing.matrices * rows * columns];
        for (matrix, lines) in log_w.chunks_exact_mut(rows * columns).enumerate() {
            for c in 0..rows {
                let row = mixing.log_row(matrix, c);
                lines[c..]
                    .iter_mut()
                    .step_by(rows)
                    .zip(row)
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
    fn matrix(&self, matrix: usize) -> &[f64] {
        &self.log_w[matrix * self.rows * self.columns..][..self.rows * self.columns]
    }
}

/// The logarithm of every weight.
#[derive(Clone, Debug)]
pub struct LogCircuit {
    trees: Vec<Vec<Lines>>,
    classes: Vec<f64>, // (K, tops of all trees)
}

/// All log-values of one row, going up; a node's largest channel is 0.
#[derive(Clone, Debug, Default)]
pub struct LogValues {
    phi: Vec<Vec<Vec<f64>>>, // by tree, layer: (nodes, C)
    psi: Vec<Vec<Vec<f64>>>, // by tree, level: (children, C)
    scale: Vec<f64>,         // by tree: the sum of all that was subtracted
}

impl LogValues {
    /// The constant that [`LogCircuit::root`] leaves out.
    pub fn scale(&self) -> f64 {
        self.scale.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl LogCircuit {
    /// Normalises all logits.
    pub fn new(structure: &Structure, weights: &Weights) -> Self {
        let k = structure.classes;
        let classes = match structure.class_rows {
            ClassRows::Mixing => (0..k).flat_map(|y| weights.classes.log_row(0, y)).collect(),
            ClassRows::Identity => (0..k * k)
                .map(|i| {
                    if i / k == i % k {
                        0.0
                    } else {
                        f64::NEG_INFINITY
                    }
                })
                .collect(),
        };
        Self {
            trees: weights
                .trees
                .iter()
                .map(|t| t.levels.iter().map(Lines::new).collect())
                .collect(),
            classes,
        }
    }

    /// Goes up with one row of the frame. `leaves` are by tree and family.
    pub fn climb(
        &self,
        s: &Structure,
        leaves: &[Vec<LeafTable>],
        frame: &[f32],
        join: Join,
        values: &mut LogValues,
    ) {
        values.phi.resize_with(s.trees.len(), Vec::new);
        values.psi.resize_with(s.trees.len(), Vec::new);
        values.scale.clear();
        values.scale.resize(s.trees.len(), 0.0);
        for (t, tree) in s.trees.iter().enumerate() {
            let (phi, psi, scale) = (&mut values.phi[t], &mut values.psi[t], &mut values.scale[t]);
            phi.resize_with(tree.levels.len() + 1, Vec::new);
            psi.resize_with(tree.levels.len(), Vec::new);
            zeros(&mut phi[0], tree.positions.len() * tree.components);
            for (position, to) in tree
                .positions
                .iter()
                .zip(phi[0].chunks_exact_mut(tree.components))
            {
                leaf(
                    &leaves[t][position.family as usize],
                    &position.inputs,
                    frame,
                    join,
                    to,
                );
                *scale += lower(to);
            }
            for (l, level) in tree.levels.iter().enumerate() {
                let (below, above) = phi.split_at_mut(l + 1);
                let (lines, c) = (&self.trees[t][l], level.channels);
                zeros(&mut psi[l], tree.nodes(l) * c);
                let children = below[l].chunks_exact(lines.columns).zip(&level.weight_of);
                for ((phi, &matrix), psi) in children.zip(psi[l].chunks_exact_mut(c)) {
                    mix(lines.matrix(matrix as usize), phi, psi, join);
                }
                zeros(&mut above[0], level.children.len() * c);
                for (children, to) in level.children.iter().zip(above[0].chunks_exact_mut(c)) {
                    for &j in children {
                        let psi = &psi[l][j as usize * c..][..c];
                        to.iter_mut().zip(psi).for_each(|(to, psi)| *to += psi);
                    }
                    *scale += lower(to);
                }
            }
        }
    }

    /// `log W_top[y,(t,a)] + log φ_t(a)` for all trees side by side, into `to`; less a constant.
    pub fn root(&self, s: &Structure, values: &LogValues, y: usize, to: &mut Vec<f64>) {
        let top = values.scale();
        let tops = s.trees.iter().zip(&values.phi).zip(&values.scale);
        let tops = tops.flat_map(|((tree, phi), scale)| {
            phi[tree.levels.len()]
                .iter()
                .map(move |log| log + (scale - top))
        });
        let row = &self.classes[y * s.root_channels()..];
        to.clear();
        to.extend(tops.zip(row).map(|(log_phi, log_w)| log_phi + log_w));
    }

    /// `log W[c,a] + log φ_j(a)` for all a, into `to`: child j of a node of layer l that is in state c.
    pub fn states(
        &self,
        s: &Structure,
        values: &LogValues,
        (t, l, j, c): (usize, usize, usize, usize),
        to: &mut Vec<f64>,
    ) {
        let lines = &self.trees[t][l - 1];
        let matrix = lines.matrix(s.trees[t].levels[l - 1].weight_of[j] as usize);
        let phi = &values.phi[t][l - 1][j * lines.columns..][..lines.columns];
        to.clear();
        to.extend(
            matrix[c..]
                .iter()
                .step_by(lines.rows)
                .zip(phi)
                .map(|(log_w, log_phi)| log_w + log_phi),
        );
    }

    /// `P(d_i = d | x_o)` by tree, (N, M), after a climb with sums; `seeds` (K) are P(y|x_o), or one class.
    pub fn flows(&self, s: &Structure, values: &LogValues, seeds: &[f64]) -> Vec<Vec<f64>> {
        let mut tops = vec![0.0; s.root_channels()];
        let mut logs = Vec::new();
        for (y, &seed) in seeds.iter().enumerate().filter(|(_, seed)| **seed > 0.0) {
            self.root(s, values, y, &mut logs);
            let whole = log_sum_exp(&logs);
            tops.iter_mut()
                .zip(&logs)
                .for_each(|(top, log)| *top += seed * share(log - whole));
        }
        let mut rest = &tops[..];
        let mut all = Vec::with_capacity(s.trees.len());
        for (t, tree) in s.trees.iter().enumerate() {
            let (top, after) = rest.split_at(tree.top_channels());
            let mut flow = top.to_vec();
            for (l, level) in tree.levels.iter().enumerate().rev() {
                let (lines, c, a) = (&self.trees[t][l], level.channels, tree.channels(l));
                let mut below = vec![0.0; tree.nodes(l) * a];
                for (p, &j) in level
                    .children
                    .iter()
                    .enumerate()
                    .flat_map(|(p, all)| all.iter().map(move |j| (p, j)))
                {
                    let j = j as usize;
                    let matrix = lines.matrix(level.weight_of[j] as usize);
                    let (phi, psi) = (
                        &values.phi[t][l][j * a..][..a],
                        &values.psi[t][l][j * c..][..c],
                    );
                    let flow = &flow[p * c..][..c];
                    for ((to, log_phi), line) in below[j * a..]
                        .iter_mut()
                        .zip(phi)
                        .zip(matrix.chunks_exact(c))
                    {
                        let terms = (0..c).filter(|&c| flow[c] > 0.0);
                        *to = terms
                            .map(|c| flow[c] * share(line[c] + log_phi - psi[c]))
                            .sum();
                    }
                }
                flow = below;
            }
            all.push(flow);
            rest = after;
        }
        all
    }
}

/// Walks down from (layer, node, state); `choose(layer of the parent, child, state of the parent)` gives the state of
/// the child. Returns the component of every position, [`NOWHERE`] for those that are not below.
pub fn descend(
    tree: &Tree,
    from: (usize, usize, usize),
    mut choose: impl FnMut(usize, usize, usize) -> usize,
) -> Vec<u32> {
    let (layer, node, state) = from;
    let mut states = vec![NOWHERE; tree.nodes(layer)];
    states[node] = state as u32;
    for l in (1..=layer).rev() {
        let mut below = vec![NOWHERE; tree.nodes(l - 1)];
        for (children, &state) in tree.levels[l - 1]
            .children
            .iter()
            .zip(&states)
            .filter(|(_, s)| **s != NOWHERE)
        {
            for &j in children {
                below[j as usize] = choose(l, j as usize, state as usize) as u32;
            }
        }
        states = below;
    }
    states
}

fn zeros(buffer: &mut Vec<f64>, length: usize) {
    buffer.clear();
    buffer.resize(length, 0.0);
}

/// exp, and 0 for the difference of two numbers that are both −∞.
fn share(log: f64) -> f64 {
    if log.is_nan() { 0.0 } else { log.exp() }
}

/// Subtracts the largest number, and returns it; 0 where all are −∞.
fn lower(logs: &mut [f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return 0.0;
    }
    logs.iter_mut().for_each(|log| *log -= top);
    top
}

/// Adds the log-densities of one local structure to `to`, (M).
fn leaf(table: &LeafTable, inputs: &[u32], frame: &[f32], join: Join, to: &mut [f64]) {
    for (s, &input) in inputs
        .iter()
        .enumerate()
        .filter(|(_, input)| **input != OUTSIDE)
    {
        let x = frame[input as usize];
        match join {
            _ if !x.is_nan() => table.add_observed(s, x, to),
            Join::Max { columns } if columns[input as usize] != OUTSIDE => table.add_peak(s, to),
            _ => {}
        }
    }
}

/// log ψ (C) from log φ (A) and lines of log W (A, C).
fn mix(lines: &[f64], phi: &[f64], psi: &mut [f64], join: Join) {
    let c = psi.len();
    psi.fill(f64::NEG_INFINITY);
    arch().dispatch(|| {
        for (line, &log_phi) in lines.chunks_exact(c).zip(phi) {
            for (best, log_w) in psi.iter_mut().zip(line) {
                let log = log_w + log_phi;
                *best = if log > *best { log } else { *best };
            }
        }
    });
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
