//! What suits sequences of a fixed length: a tree that joins neighbours in time two by two, settings and scaling.
//!
//! A row is one step after another, each of the same numbers: `x[t][channel]`. The leaves of all steps are shared, and
//! so is the scaling of a channel: one number means the same at any time.
//!
//! ```
//! use sumout::recipes::sequences::{SequenceShape, preset, spec};
//! let shape = SequenceShape { length: 100, channels: 2 };
//! assert_eq!(spec(shape).structure(3)?.width(), 200);
//! let values = [1.0, 10.0, 3.0, 30.0]; // one row of two steps
//! let scaling = preset(spec(SequenceShape { length: 2, ..shape }), &values, 1)?.scaling;
//! assert_eq!((scaling.offset, scaling.scale), (vec![2.0, 20.0, 2.0, 20.0], vec![1.0, 0.1, 1.0, 0.1]));
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::Result;
use crate::model::Scaling;
use crate::recipes::presets::Preset;
use crate::recipes::tables::{settings, standardise};
use crate::structure::{ImageSpec, Kind, LevelSpec, Sharing};
use crate::training::leaf_init::LeafStart;
use crate::training::settings::Settings;

/// The size of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceShape {
    /// Steps.
    pub length: usize,
    /// Numbers in a step.
    pub channels: usize,
}

/// More leaves than this are not worth their matrices.
const MAX_LEAVES: usize = 256;

/// A deep tree over sequences: windows of two neighbours until one node is left. It is the tree of an image of one row.
/// Each step is a leaf; of a long sequence, such as a sound, so many steps that there are at most 256 leaves.
pub fn spec(shape: SequenceShape) -> ImageSpec {
    let patch = shape.length.div_ceil(MAX_LEAVES).next_power_of_two();
    ImageSpec {
        patch: (1, patch),
        channels: shape.channels,
        levels: levels(shape.length.div_ceil(patch)),
        components: 24,
        ..ImageSpec::new(1, shape.length)
    }
}

/// Windows of two neighbours until one node is left of this many.
pub fn levels(mut nodes: usize) -> Vec<LevelSpec> {
    let mut levels = Vec::new();
    while nodes > 1 || levels.is_empty() {
        let sharing = if levels.is_empty() {
            Sharing::Shared
        } else {
            Sharing::Own
        };
        levels.push(LevelSpec {
            window: (1, 2),
            channels: (32 << levels.len()).min(128),
            sharing,
        });
        nodes = nodes.div_ceil(2);
    }
    levels
}

/// Structure, settings and scaling for rows (n, length · channels).
pub fn preset(spec: ImageSpec, values: &[f32], classes: usize) -> Result<Preset> {
    let structure = spec.structure(classes)?;
    let kinds = vec![Kind::Gaussian; structure.width()];
    let deep = deep_tree(settings(&kinds, values));
    let settings = if classes == 1 { density(deep) } else { deep };
    Ok(Preset {
        structure,
        settings,
        scaling: scaling(values, spec.channels, spec.width),
    })
}

/// The settings of tables, but with logits that are apart at the start and a small penalty: in a tree of many levels
/// nothing of the leaves would reach the classes otherwise. Of 600 rows, random walks or noise of 10 to 40 steps,
/// three lengths of five stayed at the prior without this; with it, accuracy on other rows is 0.93 to 0.97.
fn deep_tree(usual: Settings) -> Settings {
    Settings {
        spread: 2.0,
        penalty: usual.penalty.min(1e-4),
        ..usual
    }
}

/// Without labels all is for the density: narrower leaves, fewer holes, no penalty, as for tables.
fn density(usual: Settings) -> Settings {
    Settings {
        generative: 1.0,
        penalty: 0.0,
        drop_inputs: 0.2,
        leaves: LeafStart {
            floor: 0.04,
            ..usual.leaves
        },
        ..usual
    }
}

/// The numbers of each channel get mean 0 and variance 1 over all steps.
fn scaling(values: &[f32], channels: usize, length: usize) -> Scaling {
    let one_step = standardise(&vec![Kind::Gaussian; channels], values);
    Scaling {
        offset: one_step.offset.repeat(length),
        scale: one_step.scale.repeat(length),
        ..one_step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_of_any_length_become_one_node() {
        for (length, channels) in [(1, 1), (2, 3), (7, 1), (100, 2), (4096, 1), (5000, 2)] {
            let spec = spec(SequenceShape { length, channels });
            assert!(length.div_ceil(spec.patch.1) <= MAX_LEAVES);
            let values = vec![1.5; 3 * length * channels];
            let preset = preset(spec, &values, 2).unwrap();
            assert_eq!(preset.structure.width(), length * channels);
            assert!(preset.structure.trees[0].families.len() == 1);
            preset.settings.check().unwrap();
        }
    }
}
