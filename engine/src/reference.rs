//! The model straight from its equations, slowly, in f64 log space. Read this first.
//!
//! The equations are those of `docs/model.md`, one function each:
//!
//! ```text
//! leaf      log φ⁰_i(d) = Σ_{s observed} log p(x_is | d)
//! mix       log ψˡ_j(c) = log Σ_a exp(log Wˡ_j[c,a] + log φˡ⁻¹_j(a))
//! join      log φˡ_p(c) = Σ_{j child of p} log ψˡ_j(c)
//! root      log P(X|y)  = log Σ_{t,a} exp(log W_top[y,(t,a)] + log φ_t(a))
//! ```
//!
//! Then back. A flow is a share of the output gradients `g(y) = ∂ objective / ∂ log P(X|y)`. Where
//! these are a posterior, the flow of a node is the probability of its hidden states:
//!
//! ```text
//! pairs     flow_j(c,a) = flow_p(c) · W_j[c,a] φ_j(a) / ψ_j(c)     p: the parent of j; g at the root
//! states    flow_j(a)   = Σ_c flow_j(c,a)
//! ```
//!
//! Only tests use this file. It is the oracle that every fast path must agree with.

use crate::arithmetic::math::log_sum_exp;
use crate::layers::leaf::{Family, log_leaf};
use crate::layers::mixing::Mixing;
use crate::layers::weights::{TreeWeights, Weights};
use crate::rows::active_nodes::IsDropped;
use crate::structure::{Structure, Tree};
use std::collections::BTreeMap;

/// log W of one matrix, (C, A).
pub type LogMatrix = Vec<Vec<f64>>;

/// A model with the logarithm of every weight.
pub struct Reference<'a> {
    structure: &'a Structure,
    weights: &'a Weights,
    /// By tree, level, matrix.
    pub log_w: Vec<Vec<Vec<LogMatrix>>>,
    /// (K, tops of all trees).
    pub log_w_top: LogMatrix,
}

/// What one sample makes of one node and of all nodes below it. φ is divided by its largest
/// channel, so that a log-density of −10¹⁸ does not swallow the weights beside it.
struct Node {
    log_phi: Vec<f64>,           // less `log_scale`, (C)
    log_scale: f64,              // what φ of this node and of those below was divided by
    log_psi: Vec<f64>, // for each channel of the parent, less `log_scale`; empty at the top
    children: Option<Vec<Node>>, // `None` where the node is summed out
}

/// All values of one sample.
pub struct Forward {
    /// log P(X|y), (K).
    pub log_likelihood: Vec<f64>,
    tops: Vec<Node>,    // by tree
    log_tops: Vec<f64>, // log φ of all tops side by side, less the largest scale of a tree
    log_root: Vec<f64>, // log P(X|y) less that scale, (K)
}

/// `Σ_y g(y) · ∂ log P(X|y)`, as flows. What is summed out, and all below it, is not listed.
#[derive(Default)]
pub struct ReferenceFlows {
    /// By (tree, level, child): `W ∂/∂W`, the expected count of each pair, (C, A).
    pub pairs: BTreeMap<(usize, usize, usize), Vec<f64>>,
    /// By (tree, position): `P(d_i = d | x)` where the output gradients are a posterior, (M).
    pub leaves: BTreeMap<(usize, usize), Vec<f64>>,
    /// (K, tops of all trees).
    pub classes: Vec<f64>,
}

impl<'a> Reference<'a> {
    /// Normalises all logits.
    pub fn new(structure: &'a Structure, weights: &'a Weights) -> Self {
        let levels = |tree: &TreeWeights| tree.levels.iter().map(log_matrices).collect();
        Self {
            structure,
            weights,
            log_w: weights.trees.iter().map(levels).collect(),
            log_w_top: log_matrices(&weights.classes).swap_remove(0),
        }
    }

    /// log P(X|y), (K), of one row of the frame (NaN is missing).
    pub fn scores(&self, frame: &[f32]) -> Vec<f64> {
        self.forward(frame, &|_, _, _| false).log_likelihood
    }

    /// All values of one row of the frame.
    pub fn forward(&self, frame: &[f32], is_dropped: IsDropped<'_>) -> Forward {
        let trees = self.structure.trees.iter().enumerate();
        let top = |(t, tree): (usize, &Tree)| self.node(t, tree.levels.len(), 0, frame, is_dropped);
        root(&self.log_w_top, trees.map(top).collect())
    }

    /// Node n of layer l, after all nodes below it.
    fn node(&self, t: usize, l: usize, n: usize, frame: &[f32], is_dropped: IsDropped<'_>) -> Node {
        let tree = &self.structure.trees[t];
        if is_dropped(t, l, n) {
            return summed_out(tree.channels(l));
        }
        if l == 0 {
            let position = &tree.positions[n];
            let family = &self.weights.trees[t].families[position.family as usize];
            return leaf(family, &position.inputs, frame);
        }
        let mut children = Vec::new();
        for &j in &tree.levels[l - 1].children[n] {
            let mut child = self.node(t, l - 1, j as usize, frame, is_dropped);
            child.log_psi = mix(self.log_w_of(t, l, j), &child.log_phi);
            children.push(child);
        }
        join(children, tree.channels(l))
    }

    /// log W of child j of a node of layer l.
    fn log_w_of(&self, t: usize, l: usize, j: u32) -> &LogMatrix {
        let matrix = self.structure.trees[t].levels[l - 1].weight_of[j as usize];
        &self.log_w[t][l - 1][matrix as usize]
    }

    /// Sends output gradients (K) down.
    pub fn flows(&self, values: &Forward, output_gradients: &[f64]) -> ReferenceFlows {
        let (log_tops, log_root) = (&values.log_tops, &values.log_root);
        let mut flows = ReferenceFlows::default();
        flows.classes = pairs(output_gradients, &self.log_w_top, log_tops, log_root);
        let mut tops = states(&flows.classes, log_tops.len()).into_iter();
        for (t, tree) in self.structure.trees.iter().enumerate() {
            let top = tops.by_ref().take(tree.top_channels()).collect();
            self.send(top, t, tree.levels.len(), 0, &values.tops[t], &mut flows);
        }
        flows
    }

    /// Sends the flow of node n of layer l to all nodes below it.
    fn send(
        &self,
        flow: Vec<f64>,
        t: usize,
        l: usize,
        n: usize,
        node: &Node,
        flows: &mut ReferenceFlows,
    ) {
        let Some(children) = &node.children else {
            return;
        };
        if l == 0 {
            flows.leaves.insert((t, n), flow);
            return;
        }
        for (child, &j) in children
            .iter()
            .zip(&self.structure.trees[t].levels[l - 1].children[n])
        {
            let pairs = pairs(
                &flow,
                self.log_w_of(t, l, j),
                &child.log_phi,
                &child.log_psi,
            );
            let states = states(&pairs, child.log_phi.len());
            flows.pairs.insert((t, l - 1, j as usize), pairs);
            self.send(states, t, l - 1, j as usize, child, flows);
        }
    }
}

impl Node {
    fn new(mut log_phi: Vec<f64>, children: Option<Vec<Node>>) -> Self {
        let largest = log_phi.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let by = if largest.is_finite() { largest } else { 0.0 };
        log_phi.iter_mut().for_each(|log| *log -= by);
        let below = children.iter().flatten().map(|child| child.log_scale);
        Self {
            log_phi,
            log_scale: by + below.sum::<f64>(),
            log_psi: Vec::new(),
            children,
        }
    }
}

/// `log φ⁰_i(d) = Σ_{s observed} log p(x_is | d)`.
fn leaf(family: &Family, inputs: &[u32], frame: &[f32]) -> Node {
    let log_phi = |d| log_leaf(family, inputs, frame, d);
    let log_phi = (0..family.components).map(log_phi).collect();
    Node::new(log_phi, Some(Vec::new()))
}

/// `log ψ(c) = log Σ_a exp(log W[c,a] + log φ(a))`.
fn mix(log_w: &LogMatrix, log_phi: &[f64]) -> Vec<f64> {
    let terms = |row: &Vec<f64>| Vec::from_iter(row.iter().zip(log_phi).map(|(w, phi)| w + phi));
    log_w.iter().map(|row| log_sum_exp(&terms(row))).collect()
}

/// `log φ_p(c) = Σ_{j child of p} log ψ_j(c)`.
fn join(children: Vec<Node>, channels: usize) -> Node {
    let log_phi = |c: usize| children.iter().map(|child| child.log_psi[c]).sum();
    Node::new((0..channels).map(log_phi).collect(), Some(children))
}

/// `φ_p(c) = 1`, whatever is below p.
fn summed_out(channels: usize) -> Node {
    Node::new(vec![0.0; channels], None)
}

/// `log P(X|y) = log Σ_{t,a} exp(log W_top[y,(t,a)] + log φ_t(a))`.
fn root(log_w_top: &LogMatrix, tops: Vec<Node>) -> Forward {
    let scales = tops.iter().map(|top| top.log_scale);
    let scale = scales.fold(f64::NEG_INFINITY, f64::max);
    let mut log_tops = Vec::new();
    for top in &tops {
        log_tops.extend(top.log_phi.iter().map(|log| log + (top.log_scale - scale)));
    }
    let log_root = mix(log_w_top, &log_tops);
    Forward {
        log_likelihood: log_root.iter().map(|log| log + scale).collect(),
        tops,
        log_tops,
        log_root,
    }
}

/// `flow_j(c,a) = flow_p(c) · W_j[c,a] φ_j(a) / ψ_j(c)`, (C, A). Every quotient is at most one.
fn pairs(parent: &[f64], log_w: &LogMatrix, log_phi: &[f64], log_psi: &[f64]) -> Vec<f64> {
    let quotient = |c: usize, a: usize| (log_w[c][a] + log_phi[a] - log_psi[c]).exp();
    let share = |c: usize, a: usize| quotient(c, a).max(0.0); // 0/0 is no share
    let row = |c: usize| (0..log_phi.len()).map(move |a| parent[c] * share(c, a));
    (0..parent.len()).flat_map(row).collect()
}

/// `flow_j(a) = Σ_c flow_j(c,a)`.
fn states(pairs: &[f64], count: usize) -> Vec<f64> {
    let sum = |a: usize| pairs.iter().skip(a).step_by(count).sum();
    (0..count).map(sum).collect()
}

fn log_matrices(mixing: &Mixing) -> Vec<LogMatrix> {
    let matrix = |m| (0..mixing.rows).map(|c| mixing.log_row(m, c)).collect();
    (0..mixing.matrices).map(matrix).collect()
}
