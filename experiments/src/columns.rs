//! The paper's 16 kinds of holes, the columns of its tables on MNIST; and other kinds where a plan asks for them.

use anyhow::Result;
use sumout::missing::{Grid, Missing};

/// Probabilities that a pixel is missing.
pub const IID: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// Widths of the squares that are missing; one, two and three of each.
pub const WIDTHS: [usize; 3] = [7, 11, 15];

/// All 16, first i.i.d., then squares.
pub fn all() -> Vec<Missing> {
    let iid = IID.iter().map(|&p| if p == 0.0 { Missing::None } else { Missing::Iid(p) });
    let squares = WIDTHS.iter().flat_map(|&width| (1..=3).map(move |count| Missing::Squares { count, width }));
    iid.chain(squares).collect()
}

/// Images (n, 784) with holes. The same seed gives the same holes to every method.
pub fn with_holes(missing: Missing, images: &[f32], seed: u64) -> Result<Vec<f32>> {
    let mut images = images.to_vec();
    missing.apply(&Grid::image(28, 28, 1), &mut images, 0, seed)?;
    Ok(images)
}

/// Share of the answers that are right, in percent.
pub fn accuracy(answers: &[usize], labels: &[i64]) -> f64 {
    let right = answers.iter().zip(labels).filter(|(answer, label)| **answer as i64 == **label).count();
    100.0 * right as f64 / labels.len() as f64
}
