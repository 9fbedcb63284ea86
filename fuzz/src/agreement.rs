//! The engine against its reference: a structure, weights and rows are drawn from the bytes, and the two must agree.

#[path = "../../engine/tests/random_models/mod.rs"]
mod random_models;

use random_models::Draw;
use sumout::internals::{Activations, Keep, Prepared, UnderflowFallback};
use sumout::reference::Reference;
use sumout::{Model, Predictor};

/// 1e-4 nats, or 1e-6 relative for large values.
fn close(ours: f64, exact: f64) -> bool {
    (ours - exact).abs() <= 1e-4_f64.max(1e-6 * exact.abs())
}

/// Eight bytes are a seed; the next choose how far weights spread, how much is missing and how far values reach.
pub fn agreement(bytes: &[u8]) {
    let at = |place: usize| bytes.get(place).copied().unwrap_or_default();
    let seed = u64::from_le_bytes(std::array::from_fn(at));
    let draw = &mut Draw::new(seed);
    let spread = [0.5, 3.0, 30.0][usize::from(at(8)) % 3];
    let missing = f64::from(at(9)) / 255.0;
    let reach = [3.0, 1e3, 1e6][usize::from(at(10)) % 3];
    let rows = 1 + usize::from(at(11)) % 70;
    let model = model(spread, draw);
    check_scores(&model, rows, (missing, reach), draw);
    check_answers(model, rows, missing, draw);
}

/// A model of a random structure. All but one in 128 are small: a wide one takes as long as a hundred of them.
fn model(spread: f64, draw: &mut Draw) -> Model {
    let multiply_adds = match draw.from(0, 127) {
        0 => usize::MAX,
        _ => 1 << draw.from(9, 12),
    };
    let structure = loop {
        let structure = random_models::structure(draw);
        if structure.multiply_adds() <= multiply_adds {
            break structure;
        }
    };
    random_models::model_of(structure, spread, draw)
}

/// log P(X|y) of rows of the frame, as the circuit has it and as the equations say.
fn check_scores(model: &Model, rows: usize, (missing, reach): (f64, f32), draw: &mut Draw) {
    let (structure, weights) = (&model.structure, &model.weights);
    let batch = random_models::batch(structure, rows, missing, reach, draw);
    let prepared = Prepared::new(weights);
    let mut activations = Activations::new();
    activations.forward(structure, &prepared, &batch, &[], Keep::Scores);
    activations.recheck_scores(structure, weights, &UnderflowFallback::default(), &batch);
    let reference = Reference::new(structure, weights);
    for row in compared(rows, structure.multiply_adds()) {
        let exact = reference.scores(batch.row(row));
        let ours = &activations.log_likelihood()[row * structure.classes..][..structure.classes];
        for (&ours, &exact) in ours.iter().zip(&exact) {
            assert!(close(ours, exact), "row {row}: {ours} against {exact}");
        }
    }
}

/// How many terms the reference may have, which takes nearly all of the time: a wide model is compared at fewer rows.
const TERMS: usize = 1 << 14;

/// The rows that are compared, of which each has so many terms: the last one, and others at equal distances before it.
fn compared(rows: usize, terms: usize) -> impl Iterator<Item = usize> {
    let count = (TERMS / terms.max(1)).clamp(1, rows);
    (0..rows).rev().step_by(rows.div_ceil(count))
}

/// Answers about rows of data: known values stay, probabilities are such, and all orders of asking agree.
fn check_answers(model: Model, rows: usize, missing: f64, draw: &mut Draw) {
    let kinds = model.structure.row_kinds();
    let value = |kind: &sumout::Kind, draw: &mut Draw| match kind {
        _ if draw.0.chance(missing) => f32::NAN,
        sumout::Kind::Gaussian => draw.0.normal() as f32,
        sumout::Kind::Bernoulli => draw.0.below(2) as f32,
        sumout::Kind::Categorical(count) => draw.0.below(*count as usize) as f32,
    };
    let mut values = Vec::new();
    for _ in 0..rows {
        values.extend(kinds.iter().map(|kind| value(kind, draw)));
    }
    let mut predictor = Predictor::new(model).expect("a sound model");
    let asked = sumout::Rows::new(&values, kinds.len()).expect("rows");
    let posterior = predictor.posterior(asked).expect("a posterior");
    let joint = predictor.log_joint(asked, &[(0, 0)]).expect("scores");
    for row in 0..rows {
        let log: f64 = sumout::internals::log_sum_exp(joint.row(row));
        for (&p, &log_joint) in posterior.row(row).iter().zip(joint.row(row)) {
            let tolerance = 1e-3 + 2e-6 * log_joint.abs();
            assert!(
                (p - (log_joint - log).exp()).abs() <= tolerance,
                "row {row}"
            );
        }
    }
    let mode = predictor.impute_mode(asked, None).expect("a mode");
    for (filled, &given) in mode.as_slice().iter().zip(&values) {
        assert!(filled.is_finite() && (given.is_nan() || *filled == given));
    }
}

/// Some seeds.
pub fn seeds() -> Vec<Vec<u8>> {
    (0..8u8)
        .map(|i| [i, 1, 2, 3, 4, 5, 6, 7, i, 36 * i, i / 2, 9].to_vec())
        .collect()
}
