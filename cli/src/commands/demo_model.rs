//! The demo's model and how it is trained: the best of what was tried for 5,000 images and a minute on two cores.

use anyhow::Result;
use sumout::model::Scaling;
use sumout::structure::{ImageSpec, LevelSpec, Sharing};
use sumout::{Model, Settings};

/// Rows and columns of a digit.
pub const SIDE: usize = 28;

/// Classes.
pub const DIGITS: usize = 10;

/// The paper's tree (2×2 patches, five levels) in a frame with room for shifts.
pub fn model(seed: u64) -> Result<Model> {
    let sharing = |l: usize| {
        if l == 0 {
            Sharing::Pattern(2, 2)
        } else {
            Sharing::Own
        }
    };
    let channels = [64, 128, 256, 512];
    let spec = ImageSpec {
        frame: (32, 32),
        levels: channels
            .iter()
            .enumerate()
            .map(|(l, &c)| LevelSpec::square(2, c, sharing(l)))
            .collect(),
        ..ImageSpec::new(SIDE, SIDE)
    };
    let mut model = Model::random(spec.structure(DIGITS)?, 1.0, seed);
    model.scaling = Scaling::uniform(0.0, 1.0 / 255.0);
    Ok(model)
}

/// Half of all pixels and half of the 8×8 map are summed out at every step, and images are shifted: with so few of
/// them, what is never the same twice cannot be learned by heart.
pub fn settings(seed: u64) -> Settings {
    Settings {
        steps: 4000,
        batch: 128,
        rate: 0.06,
        generative: 0.1,
        drop_inputs: 0.5,
        drop_nodes: vec![0.0, 0.5, 0.1, 0.1],
        shift: 1,
        seed,
        ..Settings::default()
    }
}
