//! The way back through the equations, slowly. Read it after `reference.rs`.
//!
//! A flow is a share of the output gradients `g(y) = ∂ objective / ∂ log P(X|y)`. Where
//! these are a posterior, the flow of a node is the probability of its hidden states:
//!
//! ```text
//! pairs     flow_j(c,a) = flow_p(c) · W_j[c,a] φ_j(a) / ψ_j(c)     p: the parent of j; g at the root
//! states    flow_j(a)   = Σ_c flow_j(c,a)
//! ```

use crate::reference::{Forward, LogMatrix, Node, NodeAt, Reference};
use std::collections::BTreeMap;

/// `Σ_y g(y) · ∂ log P(X|y)`, as flows. What is summed out, and all below it, is not listed.
#[derive(Default)]
pub struct ReferenceFlows {
    /// By child: `W ∂/∂W`, the expected count of each pair, (C, A).
    pub pairs: BTreeMap<NodeAt, Vec<f64>>,
    /// By (tree, position): `P(d_i = d | x)` where the output gradients are a posterior, (M).
    pub leaves: BTreeMap<(usize, usize), Vec<f64>>,
    /// (K, tops of all trees).
    pub classes: Vec<f64>,
}

impl Reference<'_> {
    /// Sends output gradients (K) down.
    pub fn flows(&self, values: &Forward, output_gradients: &[f64]) -> ReferenceFlows {
        let (log_tops, log_root) = (&values.log_tops, &values.log_root);
        let classes = pairs(output_gradients, &self.log_w_top, log_tops, log_root);
        let mut flows = states(&classes, log_tops.len()).into_iter();
        let mut all = ReferenceFlows {
            classes,
            ..ReferenceFlows::default()
        };
        for (at, top) in self.tops().zip(&values.tops) {
            let flow = flows.by_ref().take(top.log_phi.len()).collect();
            self.send(at, top, flow, &mut all);
        }
        all
    }

    /// Sends the flow of a node to all nodes below it.
    fn send(&self, at: NodeAt, node: &Node, flow: Vec<f64>, all: &mut ReferenceFlows) {
        let Some(children) = &node.children else {
            return;
        };
        if at.l == 0 {
            all.leaves.insert((at.t, at.n), flow);
            return;
        }
        for (below, child) in self.children(at).zip(children) {
            let log_w = self.log_w_of(below);
            let pairs = pairs(&flow, log_w, &child.log_phi, &child.log_psi);
            let states = states(&pairs, child.log_phi.len());
            all.pairs.insert(below, pairs);
            self.send(below, child, states, all);
        }
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
