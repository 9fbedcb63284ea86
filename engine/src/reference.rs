//! The model straight from its equations, slowly, in f64 log space. Read this first: every fast path must agree with it.
//!
//! ```text
//! leaf      log φ⁰_i(d) = Σ_{s observed} log p(x_is | d)
//! mixing    log ψˡ_j(c) = log Σ_a exp(log Wˡ_j[c,a] + log φˡ⁻¹_j(a))
//! product   log φˡ_p(c) = Σ_{j child of p} log ψˡ_j(c)
//! classes   log P(X|y)  = log Σ_{t,a} exp(log W_top[y,(t,a)] + log φ_t(a))
//! ```
//!
//! It is also what the guard falls back to (see `product.rs`): [`upward`] and [`flows`] of one sample never underflow.

use crate::arithmetic::math::log_sum_exp;
use crate::layers::leaf::log_leaf;
use crate::layers::weights::Weights;
use crate::structure::{ClassRows, Structure};

/// The logarithm of every weight, in rows.
pub struct LogWeights {
    /// By tree, level, matrix, c: (A).
    pub trees: Vec<Vec<Vec<Vec<Vec<f64>>>>>,
    /// By class: (tops of all trees).
    pub classes: Vec<Vec<f64>>,
}

impl LogWeights {
    /// Normalises all logits.
    pub fn new(structure: &Structure, weights: &Weights) -> Self {
        let matrices = |mixing: &crate::layers::mixing::Mixing| -> Vec<Vec<Vec<f64>>> {
            (0..mixing.matrices)
                .map(|m| (0..mixing.rows).map(|c| mixing.log_row(m, c)).collect())
                .collect()
        };
        let classes = match structure.class_rows {
            ClassRows::Mixing => matrices(&weights.classes).swap_remove(0),
            ClassRows::Identity => {
                let row = |y| {
                    (0..structure.classes)
                        .map(|a| if a == y { 0.0 } else { f64::NEG_INFINITY })
                        .collect()
                };
                (0..structure.classes).map(row).collect()
            }
        };
        Self {
            trees: weights
                .trees
                .iter()
                .map(|t| t.levels.iter().map(matrices).collect())
                .collect(),
            classes,
        }
    }
}

/// All log-values of one sample, going up. Each node's φ is divided by its largest channel, so that a log-density of
/// −10¹⁸ does not swallow the weights beside it; what was divided by is summed up for each tree and returns at the root.
pub struct Upward {
    /// By tree, layer, node: log φ less its largest, (C).
    pub log_phi: Vec<Vec<Vec<Vec<f64>>>>,
    /// By tree, level, child: log ψ, (C).
    pub log_psi: Vec<Vec<Vec<Vec<f64>>>>,
    /// The tops of all trees side by side, relative to the largest scale of a tree.
    log_tops: Vec<f64>,
    /// log P(X|y) less that scale, (K).
    log_root: Vec<f64>,
    /// log P(X|y), (K).
    pub log_likelihood: Vec<f64>,
}

/// Divides by the largest channel; returns its logarithm.
fn centre(log_phi: &mut [f64]) -> f64 {
    let top = log_phi.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_finite() {
        log_phi.iter_mut().for_each(|log| *log -= top);
    }
    if top.is_finite() { top } else { 0.0 }
}

/// Computes everything for one row of the frame (NaN is missing). `is_dropped(tree, layer, node)` sums nodes out.
pub fn upward(
    structure: &Structure,
    weights: &Weights,
    logs: &LogWeights,
    frame: &[f32],
    is_dropped: &dyn Fn(usize, usize, usize) -> bool,
) -> Upward {
    let mut all_phi = Vec::new();
    let mut all_psi = Vec::new();
    let mut scales = Vec::new();
    for (t, tree) in structure.trees.iter().enumerate() {
        let leaf = |i: usize| -> Vec<f64> {
            let position = &tree.positions[i];
            let family = &weights.trees[t].families[position.family as usize];
            let value = |d| {
                if is_dropped(t, 0, i) {
                    0.0
                } else {
                    log_leaf(family, &position.inputs, frame, d)
                }
            };
            (0..tree.components).map(value).collect()
        };
        let mut phi: Vec<Vec<Vec<f64>>> = vec![(0..tree.positions.len()).map(leaf).collect()];
        let mut scale: Vec<f64> = phi[0].iter_mut().map(|node| centre(node)).collect(); // by node
        let mut psi = Vec::new();
        for (l, level) in tree.levels.iter().enumerate() {
            let mix = |j: usize| -> Vec<f64> {
                let rows = &logs.trees[t][l][level.weight_of[j] as usize];
                rows.iter().map(|row| log_mix(row, &phi[l][j])).collect()
            };
            let mixed: Vec<Vec<f64>> = (0..phi[l].len()).map(mix).collect();
            let join = |p: usize| -> Vec<f64> {
                let value = |c| match is_dropped(t, l + 1, p) {
                    true => 0.0,
                    false => level.children[p]
                        .iter()
                        .map(|&j| mixed[j as usize][c])
                        .sum(),
                };
                (0..level.channels).map(value).collect()
            };
            let mut joined: Vec<Vec<f64>> = (0..level.children.len()).map(join).collect();
            let below = |p: usize| match is_dropped(t, l + 1, p) {
                true => 0.0,
                false => level.children[p].iter().map(|&j| scale[j as usize]).sum(),
            };
            scale = joined
                .iter_mut()
                .enumerate()
                .map(|(p, node)| centre(node) + below(p))
                .collect();
            phi.push(joined);
            psi.push(mixed);
        }
        scales.push(scale[0]);
        all_phi.push(phi);
        all_psi.push(psi);
    }
    let most = scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let top = |(phi, scale): (&Vec<Vec<Vec<f64>>>, &f64)| -> Vec<f64> {
        phi[phi.len() - 1][0]
            .iter()
            .map(|log| log + (scale - most))
            .collect()
    };
    let log_tops: Vec<f64> = all_phi.iter().zip(&scales).flat_map(top).collect();
    let log_root: Vec<f64> = logs
        .classes
        .iter()
        .map(|row| log_mix(row, &log_tops))
        .collect();
    let log_likelihood = log_root.iter().map(|log| log + most).collect();
    Upward {
        log_phi: all_phi,
        log_psi: all_psi,
        log_tops,
        log_root,
        log_likelihood,
    }
}

fn log_mix(log_weights: &[f64], log_phi: &[f64]) -> f64 {
    log_sum_exp(
        &log_weights
            .iter()
            .zip(log_phi)
            .map(|(w, phi)| w + phi)
            .collect::<Vec<_>>(),
    )
}

/// `Σ_y seed_y · ∂ log P(X|y)`, as flows: the share of each (parent's channel, child's channel) pair.
pub struct Flows {
    /// By tree, level, child: (C, A): `W ∂/∂W`, the expected count of the pair.
    pub pairs: Vec<Vec<Vec<Vec<f64>>>>,
    /// By tree, position: (M): `P(d_i = d | x)` when the seeds are a posterior.
    pub leaves: Vec<Vec<Vec<f64>>>,
    /// (K, tops of all trees).
    pub classes: Vec<f64>,
}

/// Sends seeds down. Every share is a ratio of values that are at most one another, so nothing overflows.
pub fn flows(
    structure: &Structure,
    logs: &LogWeights,
    up: &Upward,
    seeds: &[f64],
    is_dropped: &dyn Fn(usize, usize, usize) -> bool,
) -> Flows {
    let tops = &up.log_tops;
    let share = |y: usize, a: usize| seeds[y] * ratio(logs.classes[y][a] + tops[a], up.log_root[y]);
    let classes: Vec<f64> = (0..seeds.len())
        .flat_map(|y| (0..tops.len()).map(move |a| (y, a)))
        .map(|(y, a)| share(y, a))
        .collect();
    let (mut pairs, mut leaves, mut first) = (Vec::new(), Vec::new(), 0);
    for (t, tree) in structure.trees.iter().enumerate() {
        let width = tree.top_channels();
        let into_top = |a| {
            (0..seeds.len())
                .map(|y| classes[y * tops.len() + first + a])
                .sum()
        };
        let mut flow: Vec<Vec<f64>> = vec![(0..width).map(into_top).collect()];
        let mut tree_pairs = vec![Vec::new(); tree.levels.len()];
        for (l, level) in tree.levels.iter().enumerate().rev() {
            let mut below = vec![Vec::new(); tree.nodes(l)];
            let mut level_pairs = vec![Vec::new(); tree.nodes(l)];
            for (p, &j) in level
                .children
                .iter()
                .enumerate()
                .flat_map(|(p, c)| c.iter().map(move |j| (p, j)))
            {
                let j = j as usize;
                let (rows, phi) = (
                    &logs.trees[t][l][level.weight_of[j] as usize],
                    &up.log_phi[t][l][j],
                );
                let dropped = is_dropped(t, l + 1, p);
                let pair = |c: usize, a: usize| match dropped {
                    true => 0.0,
                    false => flow[p][c] * ratio(rows[c][a] + phi[a], up.log_psi[t][l][j][c]),
                };
                let a_count = phi.len();
                let shares: Vec<f64> = (0..level.channels * a_count)
                    .map(|i| pair(i / a_count, i % a_count))
                    .collect();
                below[j] = (0..a_count)
                    .map(|a| shares.iter().skip(a).step_by(a_count).sum())
                    .collect();
                level_pairs[j] = shares;
            }
            tree_pairs[l] = level_pairs;
            flow = below;
        }
        pairs.push(tree_pairs);
        leaves.push(flow);
        first += width;
    }
    Flows {
        pairs,
        leaves,
        classes,
    }
}

fn ratio(log_part: f64, log_whole: f64) -> f64 {
    if log_part == f64::NEG_INFINITY {
        0.0
    } else {
        (log_part - log_whole).exp()
    }
}
