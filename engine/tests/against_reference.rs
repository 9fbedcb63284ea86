//! The fast circuit against the slow one, on random structures, weights down to e⁻¹⁰⁰, outliers and holes.

mod random_models;

use proptest::prelude::*;
use random_models::Draw;
use std::sync::OnceLock;
use sumout::batch::{CHUNK, Dropped, words};
use sumout::circuit::{Activations, Keep};
use sumout::mixing::Scratch;
use sumout::reference::{self, LogWeights};
use sumout::weights::Prepared;

/// 1e-4 nats, or 1e-6 relative for large values.
fn close(ours: f64, exact: f64) -> bool {
    (ours - exact).abs() <= 1e-4_f64.max(1e-6 * exact.abs())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scores_agree(seed: u64, spread in prop::sample::select(vec![0.5, 3.0, 30.0]), missing in 0.0..1.0f64,
                    reach in prop::sample::select(vec![3.0f32, 1e3, 1e6])) {
        let draw = &mut Draw::new(seed);
        let structure = random_models::structure(draw);
        let weights = random_models::weights(&structure, spread, draw);
        let rows = draw.from(1, 70);
        let batch = random_models::batch(&structure, rows, missing, reach, draw);
        let prepared = Prepared::new(&weights);
        let mut activations = Activations::new();
        activations.upward(&structure, &prepared, &batch, &[], Keep::Scores);
        activations.guard_scores(&structure, &weights, &OnceLock::new(), &batch);
        let logs = LogWeights::new(&structure, &weights);
        for b in 0..rows {
            let exact = reference::upward(&structure, &weights, &logs, batch.row(b), &|_, _, _| false).log_likelihood;
            for y in 0..structure.classes {
                let ours = activations.log_likelihood()[b * structure.classes + y];
                prop_assert!(close(ours, exact[y]), "row {} class {}: {} against {}", b, y, ours, exact[y]);
                if batch.row(b).iter().all(|x| x.is_nan()) {
                    prop_assert_eq!(ours, 0.0);
                }
            }
        }
    }

    /// Expected counts W·dW and leaf flows, with nodes summed out at random.
    #[test]
    fn gradients_agree(seed: u64, missing in 0.0..0.9f64, dropped in 0.0..0.6f64) {
        let draw = &mut Draw::new(seed);
        let structure = random_models::structure(draw);
        let weights = random_models::weights(&structure, 1.5, draw);
        let rows = draw.from(1, 70);
        let batch = random_models::batch(&structure, rows, missing, 3.0, draw);
        let drops: Vec<Vec<Dropped>> = structure.trees.iter().map(|tree| {
            (0..=tree.levels.len()).map(|l| {
                let mut mask = vec![0u64; tree.nodes(l) * words(rows)];
                mask.iter_mut().for_each(|w| (0..64).for_each(|bit| *w |= u64::from(draw.0.chance(dropped)) << bit));
                mask
            }).collect()
        }).collect();
        let prepared = Prepared::new(&weights);
        let mut activations = Activations::new();
        activations.upward(&structure, &prepared, &batch, &drops, Keep::Everything);
        let k = structure.classes;
        let mut seeds: Vec<f32> = (0..rows * k).map(|_| draw.0.normal() as f32).collect();
        for b in activations.doubtful_gradients(k, &seeds) {
            seeds[b * k..(b + 1) * k].fill(0.0); // the trainer takes such a sample's derivative from the reference
        }
        activations.downward(&structure, &prepared, &seeds, true);
        let gradient: Vec<Vec<Vec<f32>>> = structure.trees.iter().enumerate().map(|(t, tree)| {
            (0..tree.levels.len()).map(|l| {
                let (nodes, scratch) = (tree.levels[l].nodes_of(), &mut Scratch::default());
                prepared.levels[t][l].panels().flat_map(|(matrix, wide, c)| {
                    activations.panel_gradient(scratch, (t, tree, l + 1), &nodes[matrix], (c, wide));
                    std::mem::take(&mut scratch.gradient)
                }).collect()
            }).collect()
        }).collect();
        let class_gradient: Vec<f32> = prepared.classes.panels().flat_map(|(_, wide, c)| {
            let scratch = &mut Scratch::default();
            activations.class_gradient(scratch, &structure, (c, wide));
            std::mem::take(&mut scratch.gradient)
        }).collect();

        let logs = LogWeights::new(&structure, &weights);
        let mut exact: Vec<Vec<Vec<f64>>> =
            gradient.iter().map(|t| t.iter().map(|l| vec![0.0; l.len()]).collect()).collect();
        let mut exact_classes = vec![0.0; class_gradient.len()];
        for b in 0..rows {
            let is_dropped = |t: usize, l: usize, n: usize| {
                drops[t][l][n * words(rows) + b / CHUNK] >> (b % CHUNK) & 1 == 1
            };
            let up = reference::upward(&structure, &weights, &logs, batch.row(b), &is_dropped);
            let seeds: Vec<f64> = seeds[b * k..(b + 1) * k].iter().map(|&s| s.into()).collect();
            let flows = reference::flows(&structure, &logs, &up, &seeds, &is_dropped);
            for (t, tree) in structure.trees.iter().enumerate() {
                for (l, level) in tree.levels.iter().enumerate() {
                    let mixing = &weights.trees[t].levels[l];
                    for (j, pairs) in flows.pairs[t][l].iter().enumerate() {
                        for (i, pair) in pairs.iter().enumerate() {
                            let (c, a) = (i / mixing.columns, i % mixing.columns);
                            exact[t][l][mixing.place(level.weight_of[j] as usize, c, a)] += pair;
                        }
                    }
                }
                for (i, flow) in flows.leaves[t].iter().enumerate() {
                    if let Some(ours) = activations.leaf_flow(t, tree, i, b) {
                        for d in 0..tree.components {
                            prop_assert!((f64::from(ours[d]) - flow[d]).abs() < 1e-4, "leaf {} {}", ours[d], flow[d]);
                        }
                    }
                }
            }
            for (i, flow) in flows.classes.iter().enumerate() {
                let place = weights.classes.place(0, i / weights.classes.columns, i % weights.classes.columns);
                exact_classes[place] += flow;
            }
        }
        // dlogits = N − W ΣN, which no constant channel changes
        let ours_and_exact = structure.trees.iter().enumerate().flat_map(|(t, tree)| (0..tree.levels.len()).map(move |l| (t, l)));
        for (t, l) in ours_and_exact {
            compare(&weights.trees[t].levels[l], &gradient[t][l], &exact[t][l])?;
        }
        compare(&weights.classes, &class_gradient, &exact_classes)?;
    }
}

/// Compares the derivative by the logits that follows from dW and from exact counts.
fn compare(mixing: &sumout::mixing::Mixing, gradient: &[f32], counts: &[f64]) -> Result<(), TestCaseError> {
    for matrix in 0..mixing.matrices {
        for c in 0..mixing.rows {
            let w: Vec<f64> = mixing.log_row(matrix, c).iter().map(|log| log.exp()).collect();
            let at = |a: usize| mixing.place(matrix, c, a);
            let ours: Vec<f64> = (0..w.len()).map(|a| w[a] * f64::from(gradient[at(a)])).collect();
            let (ours_sum, exact_sum): (f64, f64) = (ours.iter().sum(), (0..w.len()).map(|a| counts[at(a)]).sum());
            for a in 0..w.len() {
                let (ours, exact) = (ours[a] - w[a] * ours_sum, counts[at(a)] - w[a] * exact_sum);
                prop_assert!((ours - exact).abs() < 2e-4 * (1.0 + exact_sum.abs()), "{} {}: {} {}", c, a, ours, exact);
            }
        }
    }
    Ok(())
}
