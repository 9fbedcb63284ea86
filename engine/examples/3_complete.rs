//! Completes what is missing: its mean with an uncertainty, a likely whole, and draws, all given what was seen.
//!
//! ```text
//! cargo run --release -p sumout --example 3_complete
//!
//! 155 cm: 55 ± 7 kg, most likely 52; draws 52, 68, 59
//! 170 cm: 70 ± 7 kg, most likely 66; draws 66, 79, 62
//! 185 cm: 84 ± 8 kg, most likely 88; draws 88, 79, 95
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use sumout::model::Scaling;
use sumout::random::{Purpose, Stream};
use sumout::training::Data;
use sumout::{Kind, Predictor, Rows, Settings, Structure, Trainer};

fn main() -> sumout::Result<()> {
    // Height in cm and weight in kg of made-up people; some did not tell one or the other.
    let mut random = Stream::new(1, Purpose::Sampling, 0, 0);
    let mut rows = Vec::new();
    for _ in 0..2000 {
        let height = 170.0 + 9.0 * random.normal();
        let weight = 70.0 + 0.9 * (height - 170.0) + 7.0 * random.normal();
        let told = |number: f64, share: f64| if share < 0.1 { f32::NAN } else { number as f32 };
        rows.extend([
            told(height, random.uniform()),
            told(weight, random.uniform()),
        ]);
    }
    let structure = Structure::table(&[Kind::Gaussian; 2])
        .components(8)
        .channels([8])
        .build()?;
    let scaling = Scaling {
        offset: vec![170.0, 70.0],
        scale: vec![0.1, 0.1],
        ..Scaling::default()
    };
    let settings = Settings {
        generative: 1.0,
        leaf_rate: 0.3,
        ..Settings::default()
    };
    let data = Data::new(Rows::new(&rows, 2)?, &[]); // no labels
    let trainer = Trainer::start(structure, scaling, settings, data)?;

    let mut predictor = Predictor::new(trainer.train()?)?;
    for height in [155.0, 170.0, 185.0] {
        let row = [height, f32::NAN];
        let row = Rows::new(&row, 2)?;
        let (mean, mode) = (
            predictor.impute_mean(row, None)?,
            predictor.impute_mode(row, None)?,
        );
        let mut drawn = Vec::new();
        for seed in 0..3 {
            let sample = predictor.sample_given(row, None, seed)?;
            drawn.push(format!("{:.0}", sample[(0, 1)]));
        }
        let (weight, deviation) = (mean.mean[(0, 1)], mean.variance[(0, 1)].sqrt());
        println!(
            "{height} cm: {weight:.0} ± {deviation:.0} kg, most likely {:.0}; draws {}",
            mode[(0, 1)],
            drawn.join(", ")
        );
        assert!(
            (weight - (70.0 + 0.9 * (height - 170.0))).abs() < 3.0 && (deviation - 7.0).abs() < 2.0
        );
    }
    Ok(())
}
