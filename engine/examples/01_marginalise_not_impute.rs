//! Why what is missing must be summed out and not filled in: the counter-example of the paper's appendix.
//!
//! Three bits, (x₁, x₂, y), with the joint weights below; x₁ is seen and x₂ is always missing. The most likely x₂ is 1,
//! and with x₂ = 1 the likelier class is 1, so filling in always says 1. Summing out says 0. Expect:
//!
//! ```text
//! summed out: right 66.663 % of the time
//! filled in:  right 33.337 % of the time
//! ```
//!
//! Run it with `cargo run --example 01_marginalise_not_impute`.

#![allow(clippy::print_stdout)]

use sumout::leaves::Coordinate;
use sumout::mixing::Mixing;
use sumout::queries::Predictor;
use sumout::structure::{Kind, Structure};
use sumout::{Model, Result};

const EPSILON: f64 = 1e-4;

/// `joint[y][x₂]` for either x₁, up to a factor.
const JOINT: [[f64; 2]; 2] = [[1.0 - EPSILON, 1.0], [0.0, 1.0 + EPSILON]];

/// The joint distribution as a model: two leaves that say their hidden state, and one channel a class.
fn model() -> Result<Model> {
    let structure = Structure::columns(&[Kind::Bernoulli; 2], &[vec![0], vec![1]], 2, 2, &[2], 2)?;
    let mut model = Model::random(structure.with_identity_classes()?, 0.0, 0);
    let never = f32::NEG_INFINITY;
    for family in &mut model.weights.trees[0].families {
        family.coordinates[0] = Coordinate::Discrete { logits: vec![0.0, never, never, 0.0] };
    }
    let either = [0.5, 0.5];
    let rows = [either, either, JOINT[0], JOINT[1]].concat(); // P(x₁|y) and P(x₂|y), normalised by the engine
    model.weights.trees[0].levels[0] = Mixing::from_weights(2, 2, 2, &rows);
    model.set_prior(&JOINT.map(|row| row.iter().sum()))?;
    Ok(model)
}

fn main() -> Result<()> {
    let mut model = Predictor::new(model()?);
    let prior: Vec<f64> = model.model().log_prior.iter().map(|log| log.exp()).collect();
    let (mut summed_out, mut filled_in) = (0.0, 0.0);
    for x1 in [0.0, 1.0] {
        let row = [x1, f32::NAN];
        summed_out += 0.5 * prior[model.predict(&row)?[0]]; // x₁ says nothing about y
        let completed = model.impute_mode(&row, None)?;
        filled_in += 0.5 * prior[model.predict(&completed)?[0]];
    }
    println!("summed out: right {:.3} % of the time", 100.0 * summed_out);
    println!("filled in:  right {:.3} % of the time", 100.0 * filled_in);
    Ok(())
}
