//! Flows in log space: from output gradients at the classes down to the leaves.
//!
//! ```text
//! classes   flow(y,(t,a)) = g(y) · W_top[y,(t,a)] φ_t(a) / P(X|y)       g(y) = ∂ objective / ∂ log P(X|y)
//! pairs     flow_j(c,a)   = flow_p(c) · W_j[c,a] φ_j(a) / ψ_j(c)        p is the parent of j
//! states    flow_j(a)     = Σ_c flow_j(c,a)                             P(d_i = d | x) where g is a posterior
//! ```
//!
//! Every quotient is a part divided by its whole, so nothing overflows.

use crate::arithmetic::math::log_sum_exp;
use crate::circuit::log_space::{LogCircuit, LogValues};
use crate::structure::{Structure, Tree};

/// All flows of one row. A node that is summed out, and all below it, has none.
#[derive(Clone, Debug)]
pub struct LogFlows {
    /// By tree, level: `W ∂/∂W`, the expected count of each pair, (children, A, C).
    pub pairs: Vec<Vec<Vec<f64>>>,
    /// By tree: (N, M).
    pub leaves: Vec<Vec<f64>>,
    /// (K, tops of all trees).
    pub classes: Vec<f64>,
}

/// A child of a level on the way down: tree, layer of the parent, and the child.
#[derive(Clone, Copy)]
struct Edge {
    t: usize,
    l: usize,
    j: usize,
}

impl LogCircuit {
    /// All flows after a forward pass with sums; output gradients are (K).
    pub fn flows(&self, s: &Structure, values: &LogValues, gradients: &[f64]) -> LogFlows {
        let classes = self.class_flows(s, values, gradients);
        let size = |tree: &Tree, l: usize| tree.nodes(l) * tree.channels(l) * tree.channels(l + 1);
        let zeros = |tree: &Tree| {
            let levels = 0..tree.levels.len();
            levels.map(|l| vec![0.0; size(tree, l)]).collect()
        };
        let mut pairs: Vec<Vec<Vec<f64>>> = s.trees.iter().map(zeros).collect();
        let leaves = self.send_down(s, values, &classes, |edge, own| {
            pairs[edge.t][edge.l - 1][edge.j * own.len()..][..own.len()].copy_from_slice(own);
        });
        LogFlows {
            pairs,
            leaves,
            classes,
        }
    }

    /// `P(d_i = d | x_o)` by tree, (N, M), after a forward pass with sums; output gradients (K) are P(y|x_o), or one
    /// class.
    pub fn leaf_flows(
        &self,
        s: &Structure,
        values: &LogValues,
        gradients: &[f64],
    ) -> Vec<Vec<f64>> {
        let classes = self.class_flows(s, values, gradients);
        self.send_down(s, values, &classes, |_, _| {})
    }

    /// (K, tops of all trees).
    fn class_flows(&self, s: &Structure, values: &LogValues, gradients: &[f64]) -> Vec<f64> {
        let (mut flows, mut logs) = (
            Vec::with_capacity(s.classes * s.root_channels()),
            Vec::new(),
        );
        for (y, &gradient) in gradients.iter().enumerate() {
            self.root(s, values, y, &mut logs);
            let whole = log_sum_exp(&logs);
            let share = |log: &f64| gradient * quotient(log - whole);
            flows.extend(logs.iter().map(share));
        }
        flows
    }

    /// Flows of the leaves by tree, (N, M), from those of the classes; `on_pairs` gets the pairs (A, C) of every child.
    fn send_down(
        &self,
        s: &Structure,
        values: &LogValues,
        classes: &[f64],
        mut on_pairs: impl FnMut(Edge, &[f64]),
    ) -> Vec<Vec<f64>> {
        let mut tops = vec![0.0; s.root_channels()];
        for row in classes.chunks_exact(tops.len()) {
            tops.iter_mut()
                .zip(row)
                .for_each(|(top, flow)| *top += flow);
        }
        let (mut rest, mut all) = (&tops[..], Vec::with_capacity(s.trees.len()));
        for (t, tree) in s.trees.iter().enumerate() {
            let (top, after) = rest.split_at(tree.top_channels());
            let mut flow = top.to_vec();
            for l in (1..=tree.levels.len()).rev() {
                flow = self.level_flow(tree, values, (t, l), &flow, &mut on_pairs);
            }
            all.push(flow);
            rest = after;
        }
        all
    }

    /// The flow of layer l − 1 from that of layer l.
    fn level_flow(
        &self,
        tree: &Tree,
        values: &LogValues,
        (t, l): (usize, usize),
        flow: &[f64],
        on_pairs: &mut impl FnMut(Edge, &[f64]),
    ) -> Vec<f64> {
        let (level, values) = (&tree.levels[l - 1], &values.trees[t]);
        let (a, c) = (tree.channels(l - 1), level.channels);
        let mut pairs = vec![0.0; a * c];
        let mut below = vec![0.0; tree.nodes(l - 1) * a];
        for (p, children) in level.children.iter().enumerate() {
            if values.is_silent(l, p) {
                continue;
            }
            for j in children.iter().map(|&j| j as usize) {
                let log_w = self.levels[t][l - 1].matrix(level.weight_of[j] as usize);
                let phi = &values.phi[l - 1][j * a..][..a];
                let psi = &values.psi[l - 1][j * c..][..c];
                pair_flows(log_w, phi, psi, &flow[p * c..][..c], &mut pairs);
                on_pairs(Edge { t, l, j }, &pairs);
                if !values.is_silent(l - 1, j) {
                    let sums = pairs.chunks_exact(c).map(|pairs| pairs.iter().sum());
                    below[j * a..]
                        .iter_mut()
                        .zip(sums)
                        .for_each(|(to, sum)| *to = sum);
                }
            }
        }
        below
    }
}

/// `flow(c) · W[c,a] φ(a) / ψ(c)`, (A, C).
fn pair_flows(log_w: &[f64], phi: &[f64], psi: &[f64], flow: &[f64], pairs: &mut [f64]) {
    let c = flow.len();
    let lines = log_w.chunks_exact(c).zip(phi);
    for (pairs, (line, log_phi)) in pairs.chunks_exact_mut(c).zip(lines) {
        for c in 0..c {
            pairs[c] = if flow[c] == 0.0 {
                0.0 // most states, where the data are certain
            } else {
                flow[c] * quotient(line[c] + log_phi - psi[c])
            };
        }
    }
}

/// exp, and 0 for the difference of two numbers that are both −∞.
fn quotient(log: f64) -> f64 {
    if log.is_nan() { 0.0 } else { log.exp() }
}
