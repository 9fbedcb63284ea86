//! What suits images of any size: a deep tree of 2 × 2 windows, settings and scaling.
//!
//! ```
//! use sumout::recipes::images::{ImageShape, scaling, spec};
//! let shape = ImageShape { height: 28, width: 28, channels: 1 };
//! assert_eq!(spec(shape, 1_000).structure(10)?.width(), 784);
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

/// Images get numbers from 0 to 1, or from −1 to 1: bytes are divided by 255, others by the largest.
pub fn scaling(values: &[f32]) -> Scaling {
    let largest = values.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    let unit = match largest {
        0.0 | 0.5..=1.0 => 1.0,
        128.0..=255.0 => 255.0,
        other => other,
    };
    Scaling::uniform(0.0, 1.0 / unit)
}

/// With fewer images, those held out are too few to choose by.
const FEW: usize = 500;

/// From this many images on there is no need to fear that they are learned by heart.
const MANY: usize = 5_000;

/// From this many on, a larger tree learns more.
const VERY_MANY: usize = 20_000;

/// Sides from here on have larger patches.
const LARGE_SIDE: usize = 40;

/// Sides below this have so few pixels and nodes that each counts: none is moved out of the image, no node is dropped.
const SMALL_SIDE: usize = 16;

/// Steps of a trial.
pub(crate) const TRIAL_STEPS: usize = 1_000;

/// Added to variances where images are few and alike.
const WIDE_FLOOR: f32 = 0.05;

/// A deep tree for this many images of any size: patches, and windows of 2 × 2 until one node is left.
pub fn spec(shape: ImageShape, images: usize) -> ImageSpec {
    const BORDER: usize = 4; // room for shifts
    let frame = (shape.height + BORDER, shape.width + BORDER);
    let side = frame.0.max(frame.1);
    let patch = if images < MANY { 2 } else { 1 };
    let patch = if side > LARGE_SIDE { 2 * patch } else { patch };
    ImageSpec {
        frame,
        patch: (patch, patch),
        levels: levels(side.div_ceil(patch), images),
        channels: shape.channels,
        components: if shape.channels == 1 { 16 } else { 64 },
        ..ImageSpec::new(shape.height, shape.width)
    }
}

/// Windows of 2 × 2 until one node is left of `side` × `side` patches, for this many images.
pub fn levels(mut side: usize, images: usize) -> Vec<LevelSpec> {
    let (first, most) = if images < VERY_MANY {
        (32, 256)
    } else {
        (64, 512)
    };
    let mut levels = Vec::new();
    while side > 1 || levels.is_empty() {
        let sharing = if levels.is_empty() {
            Sharing::Pattern(2, 2)
        } else {
            Sharing::Own
        };
        let channels = (first << levels.len()).min(most);
        levels.push(LevelSpec::square(2, channels, sharing));
        side = side.div_ceil(2);
    }
    levels
}

/// How to train on this many images of this size.
pub fn settings(shape: ImageShape, images: usize) -> Settings {
    let batch = 128;
    let steps = (3 * images).min(3_000).max(100 * images / batch);
    let steps = steps.clamp(1_000, 25_000);
    let few = images < MANY;
    let small = shape.height.max(shape.width) < SMALL_SIDE;
    Settings {
        steps,
        batch,
        generative: 0.003,
        penalty: if few { 3e-4 } else { 0.0 },
        drop_inputs: if few { 0.3 } else { 0.5 },
        drop_nodes: match (small, few) {
            (true, _) => Vec::new(),
            (_, true) => vec![0.0, 0.5, 0.3, 0.3, 0.3],
            (_, false) => vec![0.0, 0.5, 0.1, 0.1],
        },
        shift: usize::from(!small),
        validate_every: steps / 10,
        ..Settings::default()
    }
}

/// A way to learn images.
#[derive(Clone)]
pub(crate) struct ImageWay {
    pub spec: ImageSpec,
    pub settings: Settings,
}

/// The ways that may suit this many images with classes, made from the first: as it is; with wide leaves, where few images
/// are alike; with one matrix for all places of a level, where what is seen may be anywhere, as in a texture. The fewest
/// images have wide leaves without a choice.
pub(crate) fn ways(spec: ImageSpec, settings: Settings, images: usize) -> Vec<ImageWay> {
    let plain = ImageWay { spec, settings };
    let mut wide = plain.clone();
    wide.settings.leaves.floor = WIDE_FLOOR;
    let mut alike = plain.clone();
    for level in &mut alike.spec.levels {
        level.sharing = Sharing::Shared;
    }
    match images {
        0..FEW => vec![wide],
        FEW..MANY => vec![plain, wide, alike],
        _ => vec![plain, alike],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_any_size_become_one_node() {
        for (height, width, channels) in [(28, 28, 1), (1, 1, 1), (32, 32, 3), (5, 90, 1)] {
            let shape = ImageShape {
                height,
                width,
                channels,
            };
            for images in [10, 10_000, 100_000] {
                let structure = spec(shape, images).structure(10).unwrap();
                assert_eq!(structure.width(), height * width * channels);
            }
        }
        assert_eq!(scaling(&[0.0, 0.5, 1.0]).scale, [1.0]);
        assert_eq!(scaling(&[0.0, f32::NAN, 200.0]).scale, [1.0 / 255.0]);
        assert_eq!(scaling(&[0.0, f32::NAN, -16.0]).scale, [1.0 / 16.0]);
        assert_eq!(scaling(&[f32::NAN]).scale, [1.0]);
    }

    #[test]
    fn settings_are_valid_for_any_number_of_rows() {
        for (side, shift) in [(8, 0), (16, 1), (64, 1)] {
            let shape = ImageShape {
                height: side,
                width: 8,
                channels: 1,
            };
            for rows in [1, 100, 5_000, 50_000, 1_000_000] {
                settings(shape, rows).check().unwrap();
                assert_eq!(settings(shape, rows).shift, shift);
            }
        }
    }
}
