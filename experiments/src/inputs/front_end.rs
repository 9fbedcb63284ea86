//! What a model sees of a row: its numbers, or something that is computed from those of them that are there.

use crate::inputs::examples::Examples;
use crate::inputs::log_mel;
use serde::Deserialize;
use sumout_data::layout::ImageShape;

/// What is computed from a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrontEnd {
    /// Nothing.
    #[default]
    None,
    /// Samples of sound, of which those that are there have a mean square of 1.
    Loudness,
    /// Logarithms of mel bands.
    LogMel,
}

impl FrontEnd {
    /// What a model sees of rows.
    pub fn rows(self, mut rows: Vec<f32>, width: usize) -> Vec<f32> {
        match self {
            Self::None => rows,
            Self::Loudness => {
                rows.chunks_mut(width).for_each(make_equally_loud);
                rows
            }
            Self::LogMel => log_mel::rows(&rows),
        }
    }

    /// The shape of what a model sees of rows of this shape.
    pub fn shape(self, shape: ImageShape) -> ImageShape {
        match self {
            Self::None | Self::Loudness => shape,
            Self::LogMel => log_mel::SHAPE,
        }
    }

    /// What a model sees of examples.
    pub fn examples(self, examples: &Examples) -> Examples {
        Examples {
            shape: self.shape(examples.shape),
            values: self.rows(examples.values.clone(), examples.width()),
            labels: examples.labels.clone(),
        }
    }
}

/// Divides a row by the root of the mean square of what is there.
fn make_equally_loud(row: &mut [f32]) {
    const SILENCE: f64 = 1e-5; // a third of the smallest step of 16 bits
    let there = row.iter().filter(|x| !x.is_nan());
    let squares = there.clone().map(|x| f64::from(*x).powi(2));
    let mean = squares.sum::<f64>() / there.count().max(1) as f64;
    let scale = (1.0 / mean.sqrt().max(SILENCE)) as f32;
    row.iter_mut().for_each(|x| *x *= scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_counts() {
        let rows = vec![3.0, f32::NAN, -4.0, f32::NAN, 1.0, 1.0, 1.0, 1.0];
        let loud = FrontEnd::Loudness.rows(rows, 4);
        let level = 12.5f32.sqrt();
        assert!((loud[0] - 3.0 / level).abs() < 1e-6 && loud[1].is_nan());
        assert_eq!(loud[4..], [1.0; 4]);
    }
}
