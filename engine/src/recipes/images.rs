//! What suits images of any size: a deep tree of 2 × 2 windows, settings and scaling.
//!
//! ```
//! use sumout::recipes::images::{scaling, spec};
//! assert_eq!(spec(28, 28, 1).structure(10)?.width(), 784);
//! assert_eq!(scaling(&[0.0, 255.0]).scale, [1.0 / 255.0]); // bytes become numbers from 0 to 1
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::model::Scaling;
use crate::structure::{ImageSpec, LevelSpec, Sharing};
use crate::training::settings::Settings;
use serde::{Deserialize, Serialize};

/// The size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageShape {
    /// Rows of pixels.
    pub height: usize,
    /// Columns of pixels.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
}

/// Images get numbers from 0 to 1: bytes are divided by 255.
pub fn scaling(values: &[f32]) -> Scaling {
    let largest = values
        .iter()
        .fold(0.0, |largest: f32, x| largest.max(x.abs()));
    Scaling::uniform(
        0.0,
        1.0 / if largest <= 1.0 {
            1.0
        } else {
            largest.max(255.0)
        },
    )
}

/// A deep tree over images of any size: patches of 2 × 2, windows of 2 × 2 until one node is left.
pub fn spec(height: usize, width: usize, channels: usize) -> ImageSpec {
    const BORDER: usize = 4; // room for shifts
    let frame = (height + BORDER, width + BORDER);
    let levels = levels(frame.0.max(frame.1).div_ceil(2));
    let components = if channels == 1 { 32 } else { 64 };
    ImageSpec {
        frame,
        levels,
        channels,
        components,
        ..ImageSpec::new(height, width)
    }
}

/// Windows of 2 × 2 until one node is left of `side` × `side` patches.
pub fn levels(mut side: usize) -> Vec<LevelSpec> {
    let mut levels = Vec::new();
    while side > 1 || levels.is_empty() {
        let sharing = if levels.is_empty() {
            Sharing::Pattern(2, 2)
        } else {
            Sharing::Own
        };
        levels.push(LevelSpec::square(2, (64 << levels.len()).min(512), sharing));
        side = side.div_ceil(2);
    }
    levels
}

/// The settings of the presets, with steps for this many images.
pub fn settings(rows: usize) -> Settings {
    let batch = 128;
    let steps = (40 * rows / batch).clamp(1000, 25_000);
    Settings {
        steps,
        batch,
        generative: 0.01,
        drop_inputs: 0.5,
        drop_nodes: vec![0.0, 0.5],
        validate_every: steps / 10,
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_any_size_become_one_node() {
        for (height, width, channels) in [(28, 28, 1), (1, 1, 1), (32, 32, 3), (5, 90, 1)] {
            let structure = spec(height, width, channels).structure(10).unwrap();
            assert_eq!(structure.width(), height * width * channels);
        }
        assert_eq!(scaling(&[0.0, 0.5, 1.0]).scale, [1.0]);
        assert_eq!(scaling(&[0.0, f32::NAN, 100.0]).scale, [1.0 / 255.0]);
    }

    #[test]
    fn settings_are_valid_for_any_number_of_rows() {
        for rows in [1, 100, 5_000, 50_000, 1_000_000] {
            settings(rows).check().unwrap();
        }
    }
}
