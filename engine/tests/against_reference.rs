//! The fast circuit against the slow one, on random structures, weights down to e⁻¹⁰⁰, outliers and holes.

mod random_models;

use proptest::prelude::*;
use random_models::Draw;
use sumout::internals::{
    Activations, CHUNK, Dropped, Keep, Learned, Mixing, Moments, Prepared, ScoreGuard, Scratch,
    Step, words,
};
use sumout::reference::{self, LogWeights};
use sumout::structure::Structure;
use sumout::training::Rule;

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
        activations.guard_scores(&structure, &weights, &ScoreGuard::default(), &batch);
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
        let mut prepared = Prepared::new(&weights);
        let mut activations = Activations::new();
        activations.upward(&structure, &prepared, &batch, &drops, Keep::Everything);
        let k = structure.classes;
        let mut seeds: Vec<f32> = (0..rows * k).map(|_| draw.0.normal() as f32).collect();
        for b in activations.doubtful_gradients(k, &seeds) {
            seeds[b * k..(b + 1) * k].fill(0.0); // the trainer takes such a sample's derivative from the reference
        }
        activations.root_down(&structure, &prepared, &seeds);
        // Descent without momentum, at rate zero: it remembers the derivative by the logits and moves nothing.
        let step = Step::new(Rule::Sgd { momentum: 0.0 }, 0.0, 0.0, 0);
        let mut gradient: Vec<Vec<Vec<f32>>> = vec![Vec::new(); structure.trees.len()];
        for (t, tree) in structure.trees.iter().enumerate() {
            for l in (1..=tree.levels.len()).rev() {
                let simplex = &mut prepared.levels[t][l - 1];
                let moments = &mut Moments::new(weights.trees[t].levels[l - 1].logits.len());
                let learned = Learned { simplex, moments, counts: &[] };
                activations.learn_level((t, l, tree), learned, &step, true);
                gradient[t].insert(0, std::mem::take(&mut moments.first));
            }
        }
        let class_slopes = class_slopes(&activations, &structure, &weights.classes, &prepared);

        let logs = LogWeights::new(&structure, &weights);
        let mut exact: Vec<Vec<Vec<f64>>> =
            gradient.iter().map(|t| t.iter().map(|l| vec![0.0; l.len()]).collect()).collect();
        let mut exact_classes = vec![0.0; class_slopes.len()];
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
        let levels = structure.trees.iter().enumerate().flat_map(|(t, tree)| (0..tree.levels.len()).map(move |l| (t, l)));
        for (t, l) in levels {
            compare(&weights.trees[t].levels[l], |place| f64::from(gradient[t][l][place]), &exact[t][l])?;
        }
        compare(&weights.classes, |place| class_slopes[place], &exact_classes)?;
    }
}

/// Compares the derivative by the logits, N − W ΣN, which no constant channel changes, with that from exact counts.
fn compare(
    mixing: &Mixing,
    ours: impl Fn(usize) -> f64,
    counts: &[f64],
) -> Result<(), TestCaseError> {
    for (matrix, c) in
        (0..mixing.matrices).flat_map(|matrix| (0..mixing.rows).map(move |c| (matrix, c)))
    {
        let w: Vec<f64> = mixing
            .log_row(matrix, c)
            .iter()
            .map(|log| log.exp())
            .collect();
        let sum: f64 = (0..w.len())
            .map(|a| counts[mixing.place(matrix, c, a)])
            .sum();
        for a in 0..w.len() {
            let place = mixing.place(matrix, c, a);
            let (ours, exact) = (ours(place), counts[place] - w[a] * sum);
            prop_assert!(
                (ours - exact).abs() < 2e-4 * (1.0 + sum.abs()),
                "{} {}: {} {}",
                c,
                a,
                ours,
                exact
            );
        }
    }
    Ok(())
}

/// The same for the class rows: W ∘ (dW − Σ W dW).
fn class_slopes(
    activations: &Activations,
    s: &Structure,
    classes: &Mixing,
    prepared: &Prepared,
) -> Vec<f64> {
    let mut gradient = Vec::new();
    for (_, wide, c) in prepared.classes.panels() {
        let scratch = &mut Scratch::default();
        activations.class_gradient(scratch, s, (c, wide));
        gradient.append(&mut scratch.gradient);
    }
    let mut slopes = vec![0.0; classes.logits.len()];
    for c in 0..classes.rows {
        let w: Vec<f64> = classes.log_row(0, c).iter().map(|log| log.exp()).collect();
        let at = |a: usize| f64::from(gradient[classes.place(0, c, a)]);
        let mean: f64 = (0..w.len()).map(|a| w[a] * at(a)).sum();
        (0..w.len()).for_each(|a| slopes[classes.place(0, c, a)] = w[a] * (at(a) - mean));
    }
    slopes
}
