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
//! The way back is in `reference/flows.rs`. Only tests use the two files: they are the oracle that every fast path must
//! agree with.

pub mod flows;

use crate::arithmetic::math::log_sum_exp;
use crate::layers::leaf::{Family, log_leaf};
use crate::layers::mixing::Mixing;
use crate::layers::weights::{TreeWeights, Weights};
use crate::rows::active_nodes::IsDropped;
use crate::structure::Structure;

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

/// Node n of layer l of tree t; leaves are layer 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeAt {
    /// The tree.
    pub t: usize,
    /// The layer.
    pub l: usize,
    /// The node.
    pub n: usize,
}

/// What one sample makes of one node and of all nodes below it. φ is divided by its largest
/// channel, so that a log-density of −10¹⁸ does not swallow the weights beside it.
struct Node {
    log_phi: Vec<f64>,           // less `log_scale`, (C)
    log_scale: f64,              // what φ of this node and of those below was divided by
    log_psi: Vec<f64>,           // for the channels of the parent, less `log_scale`
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
        let tops = self.tops().map(|top| self.node(top, frame, is_dropped));
        root(&self.log_w_top, tops.collect())
    }

    /// A node, after all nodes below it.
    fn node(&self, at: NodeAt, frame: &[f32], is_dropped: IsDropped<'_>) -> Node {
        let tree = &self.structure.trees[at.t];
        if is_dropped(at.t, at.l, at.n) {
            return summed_out(tree.channels(at.l));
        }
        if at.l == 0 {
            let position = &tree.positions[at.n];
            let family = &self.weights.trees[at.t].families[position.family as usize];
            return leaf(family, &position.inputs, frame);
        }
        let mut children = Vec::new();
        for below in self.children(at) {
            let mut child = self.node(below, frame, is_dropped);
            child.log_psi = mix(self.log_w_of(below), &child.log_phi);
            children.push(child);
        }
        join(children, tree.channels(at.l))
    }

    /// The top of every tree.
    fn tops(&self) -> impl Iterator<Item = NodeAt> {
        let trees = self.structure.trees.iter().map(|tree| tree.levels.len());
        trees.enumerate().map(|(t, l)| NodeAt { t, l, n: 0 })
    }

    /// The children of a node.
    fn children(&self, at: NodeAt) -> impl Iterator<Item = NodeAt> {
        let (t, l) = (at.t, at.l - 1);
        let children = self.structure.trees[t].levels[l].children[at.n].iter();
        children.map(move |&j| NodeAt {
            t,
            l,
            n: j as usize,
        })
    }

    /// log W of a child.
    fn log_w_of(&self, child: NodeAt) -> &LogMatrix {
        let matrices = &self.structure.trees[child.t].levels[child.l].weight_of;
        &self.log_w[child.t][child.l][matrices[child.n] as usize]
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

fn log_matrices(mixing: &Mixing) -> Vec<LogMatrix> {
    let matrix = |m| (0..mixing.rows).map(|c| mixing.log_row(m, c)).collect();
    (0..mixing.matrices).map(matrix).collect()
}
