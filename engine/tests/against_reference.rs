//! The fast circuit against the slow one, on random structures, weights down to e⁻¹⁰⁰, outliers and holes.

mod random_models;

use proptest::prelude::*;
use random_models::Draw;
use sumout::internals::{
    Activations, CHUNK, Dropped, Join, Keep, Learned, LogCircuit, LogFlows, LogValues, Mixing,
    Moments, Prepared, Scratch, Step, UnderflowFallback, words,
};
use sumout::reference::flows::ReferenceFlows;
use sumout::reference::{NodeAt, Reference};
use sumout::structure::{ClassRows, Structure};
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
        activations.forward(&structure, &prepared, &batch, &[], Keep::Scores);
        activations.recheck_scores(&structure, &weights, &UnderflowFallback::default(), &batch);
        let reference = Reference::new(&structure, &weights);
        for b in 0..rows {
            let exact = reference.scores(batch.row(b));
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
        activations.forward(&structure, &prepared, &batch, &drops, Keep::Everything);
        let k = structure.classes;
        let mut seeds: Vec<f32> = (0..rows * k).map(|_| draw.0.normal() as f32).collect();
        for b in activations.gradients_to_recheck(k, &seeds) {
            seeds[b * k..(b + 1) * k].fill(0.0); // the trainer takes such a sample's derivative from the reference
        }
        activations.root_backward(&structure, &prepared, &seeds);
        // Descent without momentum, at rate zero: it remembers the derivative by the logits and moves nothing.
        let step = Step::new(Rule::Sgd { momentum: 0.0 }, 0.0, 0.0, 0);
        let mut gradient: Vec<Vec<Vec<f32>>> = vec![Vec::new(); structure.trees.len()];
        for (t, tree) in structure.trees.iter().enumerate() {
            for l in (1..=tree.levels.len()).rev() {
                let simplex = &mut prepared.levels[t][l - 1];
                let moments = &mut Moments::new(weights.trees[t].levels[l - 1].logits.len());
                let learned = Learned { simplex, moments, counts: &[] };
                activations.learn_level(t, l, tree, learned, &step, true);
                gradient[t].insert(0, std::mem::take(&mut moments.first));
            }
        }
        let class_slopes = class_slopes(&activations, &structure, &weights.classes, &prepared);

        let reference = Reference::new(&structure, &weights);
        let mut exact: Vec<Vec<Vec<f64>>> =
            gradient.iter().map(|t| t.iter().map(|l| vec![0.0; l.len()]).collect()).collect();
        let mut exact_classes = vec![0.0; class_slopes.len()];
        for b in 0..rows {
            let is_dropped = |t: usize, l: usize, n: usize| {
                drops[t][l][n * words(rows) + b / CHUNK] >> (b % CHUNK) & 1 == 1
            };
            let up = reference.forward(batch.row(b), &is_dropped);
            let seeds: Vec<f64> = seeds[b * k..(b + 1) * k].iter().map(|&s| s.into()).collect();
            let flows = reference.flows(&up, &seeds);
            for (t, tree) in structure.trees.iter().enumerate() {
                for i in 0..tree.positions.len() {
                    if let (Some(ours), Some(flow)) = (activations.leaf_flow(t, tree, i, b), flows.leaves.get(&(t, i))) {
                        for d in 0..tree.components {
                            prop_assert!((f64::from(ours[d]) - flow[d]).abs() < 1e-4, "leaf {} {}", ours[d], flow[d]);
                        }
                    }
                }
            }
            for (&NodeAt { t, l, n }, pairs) in &flows.pairs {
                let mixing = &weights.trees[t].levels[l];
                let matrix = structure.trees[t].levels[l].weight_of[n] as usize;
                for (i, pair) in pairs.iter().enumerate() {
                    exact[t][l][mixing.place(matrix, i / mixing.columns, i % mixing.columns)] += pair;
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
    for panel in prepared.classes.panels() {
        let scratch = &mut Scratch::default();
        activations.class_gradient(scratch, s, panel.rows);
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

/// The circuit in log space, which computes samples again that underflow: scores, flows, and nodes summed out.
#[test]
fn log_space_agrees() {
    for seed in 0..120 {
        let draw = &mut Draw::new(seed);
        let mut structure = random_models::structure(draw);
        let mut weights = random_models::weights(&structure, [1.0, 30.0][draw.from(0, 1)], draw);
        let single = structure.trees.len() == 1;
        if single && structure.trees[0].top_channels() == structure.classes {
            structure.class_rows = ClassRows::Identity;
            weights.classes = Mixing::identity(structure.classes);
        }
        let (missing, reach) = (draw.0.uniform(), [3.0, 1e3, 1e6][draw.from(0, 2)]);
        let batch = random_models::batch(&structure, 3, missing, reach, draw);
        let dropped = [0.0, 0.1, 0.5][draw.from(0, 2)];
        let (log_circuit, reference) = (
            LogCircuit::new(&structure, &weights),
            Reference::new(&structure, &weights),
        );
        let mut values = LogValues::default();
        for b in 0..batch.rows {
            let drops = random_drops(&structure, dropped, draw);
            let is_dropped = |t: usize, l: usize, node: usize| drops[t][l][node];
            let exact = reference.forward(batch.row(b), &is_dropped);
            log_circuit.forward_dropping(&structure, batch.row(b), &is_dropped, &mut values);
            let scores = log_circuit.scores(&structure, &values);
            same(&scores, &exact.log_likelihood, 1e-9, "scores");
            let gradients: Vec<f64> = (0..structure.classes).map(|_| draw.0.normal()).collect();
            let ours = log_circuit.flows(&structure, &values, &gradients);
            let exact = reference.flows(&exact, &gradients);
            same_flows(&structure, &ours, &exact);
            let leaves = log_circuit.leaf_flows(&structure, &values, &gradients);
            assert_eq!(leaves, ours.leaves);
            if dropped == 0.0 {
                log_circuit.forward(&structure, batch.row(b), Join::Sum, &mut values);
                assert_eq!(scores, log_circuit.scores(&structure, &values));
            }
        }
    }
}

/// By tree, layer, node: whether it is summed out.
fn random_drops(structure: &Structure, probability: f64, draw: &mut Draw) -> Vec<Vec<Vec<bool>>> {
    let mut all = Vec::new();
    for tree in &structure.trees {
        let mut layers = Vec::new();
        for l in 0..=tree.levels.len() {
            let nodes = (0..tree.nodes(l)).map(|_| draw.0.chance(probability));
            layers.push(nodes.collect());
        }
        all.push(layers);
    }
    all
}

/// Equal but for rounding; a score of −10¹² has fewer digits behind the point than one of −1.
fn same(ours: &[f64], exact: &[f64], tolerance: f64, what: &str) {
    assert_eq!(ours.len(), exact.len());
    for (ours, exact) in ours.iter().zip(exact) {
        let close = (ours - exact).abs() <= tolerance * exact.abs().max(1.0);
        assert!(close || ours == exact, "{what}: {ours} against {exact}");
    }
}

/// Pairs, leaves and classes. What the reference does not list is zero.
fn same_flows(structure: &Structure, ours: &LogFlows, exact: &ReferenceFlows) {
    const TOLERANCE: f64 = 1e-3; // outliers of 10⁶ leave few digits for what tells components apart
    same(&ours.classes, &exact.classes, TOLERANCE, "classes");
    for (t, tree) in structure.trees.iter().enumerate() {
        let m = tree.components;
        for (i, ours) in ours.leaves[t].chunks(m).enumerate() {
            let exact = exact.leaves.get(&(t, i));
            same(ours, exact.unwrap_or(&vec![0.0; m]), TOLERANCE, "leaf");
        }
        for l in 0..tree.levels.len() {
            let (a, c) = (tree.channels(l), tree.channels(l + 1));
            for (j, ours) in ours.pairs[t][l].chunks(a * c).enumerate() {
                let exact = exact.pairs.get(&NodeAt { t, l, n: j });
                let turned = exact.map(|pairs| (0..a * c).map(|i| pairs[i % c * a + i / c]));
                let turned = turned.map_or(vec![0.0; a * c], Iterator::collect);
                same(ours, &turned, TOLERANCE, "pairs");
            }
        }
    }
}
