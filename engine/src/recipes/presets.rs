//! Models by name: structure and settings that are known to work.

use crate::error::{Error, Result};
use crate::model::Scaling;
use crate::structure::{ImageSpec, Kind, LevelSpec, Sharing, Structure};
use crate::training::optimizer::{Rule, Schedule};
use crate::training::settings::Settings;
use serde::{Deserialize, Serialize};

/// A structure with the settings to train it and the scaling of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Preset {
    /// The blueprint.
    pub structure: Structure,
    /// How to train it.
    pub settings: Settings,
    /// From bytes to the unit interval.
    pub scaling: Scaling,
}

/// The names there are, with a line about each.
pub const PRESETS: [(&str, &str); 6] = [
    (
        "mnist-ht",
        "the paper's MNIST model: 2×2 patches, 32 components, 64-128-256-512 channels",
    ),
    ("mnist-ht-wide", "64 components, 128-256-512-1024 channels"),
    (
        "mnist-ht-pixel",
        "patches of one pixel, 16 components, 64-128-256-512-1024 channels",
    ),
    (
        "mnist-cp",
        "the paper's shallow model: 4×4 patches, 800 components, one product",
    ),
    (
        "mnist-density",
        "the density of 28×28 images of bytes: every pixel one of 256 values, 64 components, 128-256-512-512-512 channels",
    ),
    (
        "norb-ht",
        "small NORB at 32×32, two cameras: 128 components, 256-256-256-512 channels",
    ),
];

/// The preset of that name.
pub fn preset(name: &str) -> Result<Preset> {
    match name {
        "mnist-ht" => mnist_deep(2, 32, &[64, 128, 256, 512], deep_settings()),
        "mnist-ht-wide" => mnist_deep(2, 64, &[128, 256, 512, 1024], deep_settings()),
        "mnist-ht-pixel" => {
            let drop_nodes = vec![0.0, 0.0, 0.5, 0.1, 0.1];
            let settings = Settings {
                drop_nodes,
                steps: 20_000,
                ..deep_settings()
            };
            mnist_deep(1, 16, &[64, 128, 256, 512, 1024], settings)
        }
        "mnist-cp" => mnist_shallow(),
        "mnist-density" => image_density(),
        "norb-ht" => norb_deep(),
        _ => {
            let known = PRESETS.map(|(name, _)| name).join(", ");
            Err(Error::Preset {
                name: name.into(),
                known,
            })
        }
    }
}

/// The paper's MNIST training, with Adam and a cosine instead of Nadam and a straight line.
fn paper_settings() -> Settings {
    Settings {
        steps: 25_000,
        batch: 128,
        rule: Rule::adam(),
        rate: 0.03,
        schedule: Schedule::Cosine,
        generative: 0.01,
        drop_inputs: 0.5,
        drop_nodes: vec![0.0, 0.5],
        ..Settings::default()
    }
}

/// The same with moved images, more weight on P(X) and holes in the upper maps too: the best of what was tried on held-out
/// training images, one seed each (`experiments/README.md`).
fn deep_settings() -> Settings {
    Settings {
        generative: 0.03,
        drop_nodes: vec![0.0, 0.5, 0.1, 0.1],
        shift: 1,
        ..paper_settings()
    }
}

/// Levels of 2×2 windows; the first repeats a 2×2 pattern of matrices, the others have their own.
fn deep_levels(channels: &[usize]) -> Vec<LevelSpec> {
    let first = |l: usize| match l {
        0 => Sharing::Pattern(2, 2),
        _ => Sharing::Own,
    };
    let level = |(l, &c): (usize, &usize)| LevelSpec::square(2, c, first(l));
    channels.iter().enumerate().map(level).collect()
}

/// 28×28 in a frame of 32×32; the first level repeats a 2×2 pattern of matrices, the others have their own.
fn mnist_deep(
    patch: usize,
    components: usize,
    channels: &[usize],
    settings: Settings,
) -> Result<Preset> {
    let spec = ImageSpec {
        frame: (32, 32),
        levels: deep_levels(channels),
        patch: (patch, patch),
        components,
        ..ImageSpec::new(28, 28)
    };
    Ok(Preset {
        structure: spec.structure(10)?,
        settings,
        scaling: Scaling::uniform(0.0, 1.0 / 255.0),
    })
}

/// The paper's settings with moved images and half of the patches summed out, the best of two dozen that were tried on
/// held-out training images, one seed each (`experiments/README.md`).
fn mnist_shallow() -> Result<Preset> {
    let spec = ImageSpec {
        frame: (32, 32),
        levels: vec![LevelSpec::all(10, Sharing::Own)],
        patch: (4, 4),
        components: 800,
        ..ImageSpec::new(28, 28)
    };
    let settings = Settings {
        generative: 0.1,
        drop_nodes: vec![0.5],
        shift: 1,
        ..paper_settings()
    };
    Ok(Preset {
        structure: spec.structure(10)?.with_identity_classes()?,
        settings,
        scaling: Scaling::uniform(0.0, 1.0 / 255.0),
    })
}

/// P(X) of images of bytes, without classes. That images are moved by a pixel is worth most: without it the model learns
/// the training images by heart (`docs/densities.md`).
fn image_density() -> Result<Preset> {
    let channels = [128, 256, 512, 512, 512];
    let level = |&channels: &usize| LevelSpec::square(2, channels, Sharing::Own);
    let spec = ImageSpec {
        frame: (32, 32),
        levels: channels.iter().map(level).collect(),
        patch: (1, 1),
        components: 64,
        leaf_sharing: Sharing::Own,
        kind: Kind::Categorical(256),
        ..ImageSpec::new(28, 28)
    };
    let settings = Settings {
        steps: 24_000,
        batch: 256,
        rate: 0.02,
        generative: 1.0,
        leaf_rate: 0.5,
        shift: 1,
        ..Settings::default()
    };
    Ok(Preset {
        structure: spec.structure(1)?,
        settings,
        scaling: Scaling::default(),
    })
}

fn norb_deep() -> Result<Preset> {
    let spec = ImageSpec {
        levels: deep_levels(&[256, 256, 256, 512]),
        channels: 2,
        components: 128,
        ..ImageSpec::new(32, 32)
    };
    Ok(Preset {
        structure: spec.structure(5)?,
        settings: paper_settings(),
        scaling: Scaling::uniform(0.0, 1.0 / 255.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights and multiply-adds as published (mnist-ht) or counted by hand.
    #[test]
    fn sizes() {
        let size = |name: &str| {
            let structure = preset(name).unwrap().structure;
            (structure.weights(), structure.multiply_adds())
        };
        assert_eq!(size("mnist-ht"), (1_586_176, 2_102_272));
        assert_eq!(
            size("mnist-ht-wide").0,
            4 * 64 * 128 + 3 * 2_097_152 + 10_240
        );
        assert_eq!(size("mnist-ht-pixel").1, 1_048_576 + 4 * 2_097_152 + 10_240);
        assert_eq!(size("mnist-cp"), (64 * 8000, 64 * 8000));
        let lower = 1024 * 64 * 128 + 256 * 128 * 256 + 64 * 256 * 512;
        let pairs = lower + 16 * 512 * 512 + 4 * 512 * 512;
        assert_eq!(size("mnist-density"), (pairs + 512, pairs + 512));
        assert!(
            preset("mnist")
                .unwrap_err()
                .to_string()
                .contains("mnist-ht, ")
        );
    }
}
