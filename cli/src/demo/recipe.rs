//! The demo's model and how it is trained: the best of what was tried for 5,000 images and a minute
//! on two cores.

use anyhow::Result;
use sumout::Model;
use sumout::Settings;
use sumout::recipes::preset;

/// The demo trains the paper's MNIST model.
const PRESET: &str = "mnist-ht";

/// An untrained model.
pub fn model(seed: u64) -> Result<Model> {
    let preset = preset(PRESET)?;
    let mut model = Model::random(preset.structure, 1.0, seed);
    model.scaling = preset.scaling;
    Ok(model)
}

/// The preset's settings, for fewer images and less time. As in the preset, half of all pixels and
/// half of the 8×8 map are summed out at every step, and images are shifted. So no image is seen
/// twice in the same form, and the few images cannot be learned by heart.
pub fn settings(seed: u64) -> Result<Settings> {
    Ok(Settings {
        steps: 4000,
        rate: 0.06,
        generative: 0.1,
        seed,
        ..preset(PRESET)?.settings
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page and the README show numbers that were measured with these settings.
    #[test]
    fn the_settings_are_those_that_were_measured() {
        let expected = Settings {
            steps: 4000,
            batch: 128,
            rate: 0.06,
            generative: 0.1,
            drop_inputs: 0.5,
            drop_nodes: vec![0.0, 0.5, 0.1, 0.1],
            shift: 1,
            seed: 7,
            ..Settings::default()
        };
        let json = |settings: &Settings| serde_json::to_value(settings).unwrap();
        assert_eq!(json(&settings(7).unwrap()), json(&expected));
    }
}
