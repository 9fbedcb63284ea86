//! The paper's 16 kinds of holes, the columns of its tables on MNIST; and other kinds where a plan asks for them.

use anyhow::Result;
use sumout::masks::{Grid, Missing};
use sumout_report::accuracy;

pub use sumout_report::accuracy::IID;

/// All 16, first i.i.d., then squares.
pub fn all() -> Vec<Missing> {
    let clean = |missing| {
        if missing == Missing::Iid(0.0) {
            Missing::None
        } else {
            missing
        }
    };
    accuracy::kinds().into_iter().map(clean).collect()
}

/// What a column is called.
pub fn name(missing: &Missing) -> String {
    match missing {
        Missing::None => "0".into(),
        other => accuracy::name(other),
    }
}

/// Images (n, 784) with holes. The same seed gives the same holes to every method.
pub fn with_holes(missing: Missing, images: &[f32], seed: u64) -> Result<Vec<f32>> {
    let mut images = images.to_vec();
    missing.apply(&Grid::image(28, 28, 1), &mut images, 0, seed)?;
    Ok(images)
}

/// Share of the answers that are right, in percent.
pub fn accuracy(answers: &[usize], labels: &[i64]) -> f64 {
    let right = answers
        .iter()
        .zip(labels)
        .filter(|(answer, label)| **answer as i64 == **label)
        .count();
    100.0 * right as f64 / labels.len() as f64
}
