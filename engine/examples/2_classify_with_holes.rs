//! Learns to tell three kinds of waves apart, and is then shown fewer and fewer of their points. Nothing is filled in, and
//! the model is never told how much will be missing.
//!
//! ```text
//! cargo run --release -p sumout --example 2_classify_with_holes
//!
//! missing   0 %: 100.0 % right
//! missing  25 %:  99.9 % right
//! missing  50 %:  97.7 % right
//! missing  75 %:  79.2 % right
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use sumout::masks::{Grid, Missing};
use sumout::random::{Purpose, Stream};
use sumout::structure::Sharing;
use sumout::{Predictor, Rows, Settings, Structure, Trainer};

/// Waves of one, two or three turns from a random start, with noise: (n, 16), and how many turns each has, less one.
fn waves(count: usize, seed: u64) -> (Vec<f32>, Vec<usize>) {
    let mut random = Stream::new(seed, Purpose::Sampling, 0, 0);
    let (mut values, mut turns) = (Vec::new(), Vec::new());
    for row in 0..count {
        let (turn, start) = ((row % 3 + 1) as f64, random.uniform());
        let point = |t: usize| (std::f64::consts::TAU * (turn * t as f64 / 16.0 + start)).sin();
        values.extend((0..16).map(|t| (point(t) + 0.2 * random.normal()) as f32));
        turns.push(row % 3);
    }
    (values, turns)
}

fn main() -> sumout::Result<()> {
    let (values, labels) = waves(3000, 1);
    let labels: Vec<Option<usize>> = labels.into_iter().map(Some).collect();
    let structure = Structure::sequence(16)
        .components(12)
        .level(2, 16, Sharing::Own)
        .level(2, 32, Sharing::Own)
        .level(2, 48, Sharing::Own)
        .level(2, 48, Sharing::Own)
        .classes(3)
        .build()?;
    let settings = Settings {
        steps: 1000,
        drop_inputs: 0.5,
        drop_varied: true,
        ..Settings::default()
    };
    let trainer = Trainer::new(structure, settings, Rows::new(&values, 16)?, &labels)?;
    let mut predictor = Predictor::new(trainer.train()?)?;

    let (rows, truth) = waves(999, 2);
    for (share, least) in [(0.0, 99.0), (0.25, 98.0), (0.5, 95.0), (0.75, 74.0)] {
        let mut holes = rows.clone();
        Missing::Iid(share).apply(&Grid::columns(16), &mut holes, 0, 3)?;
        let found = predictor.predict(Rows::new(&holes, 16)?)?;
        let right = found.iter().zip(&truth).filter(|(a, b)| a == b).count();
        let right = right as f64 / 9.99;
        println!("missing {:3.0} %: {right:5.1} % right", 100.0 * share);
        assert!(right > least);
    }
    Ok(())
}
