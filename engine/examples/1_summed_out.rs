//! What is missing is summed out, exactly: the probability of a row with holes is the sum over all ways to fill them.
//!
//! ```text
//! cargo run --release -p sumout --example 1_summed_out
//!
//! all 256 worlds sum to 1.000000
//! P(1 0 ? ? 1 ? 0 ?) = 0.004339, by its 16 worlds 0.004339
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it finds")]

use sumout::random::{Purpose, Stream};
use sumout::{Kind, Predictor, Rows, Settings, Structure, Trainer};

fn main() -> sumout::Result<()> {
    let structure = Structure::table(&[Kind::Bernoulli; 8])
        .window(2)
        .components(3)
        .channels([4, 5, 6])
        .build()?;
    // Rows in which a bit is mostly what the one before it is.
    let mut random = Stream::new(1, Purpose::Sampling, 0, 0);
    let mut rows = Vec::new();
    for bit in 0..8 * 500 {
        let same = bit % 8 > 0 && random.chance(0.8);
        rows.push(if same {
            rows[bit - 1]
        } else {
            f32::from(u8::from(random.chance(0.5)))
        });
    }
    let settings = Settings {
        steps: 300,
        generative: 1.0,
        leaf_rate: 0.3,
        ..Settings::default()
    };
    let trainer = Trainer::new(structure, settings, Rows::new(&rows, 8)?, &[])?; // no labels
    let mut predictor = Predictor::new(trainer.train()?)?;

    let worlds: Vec<[f32; 8]> = (0..256u32)
        .map(|bits| std::array::from_fn(|i| (bits >> i & 1) as f32))
        .collect();
    let probability: Vec<f64> = predictor
        .log_marginal(Rows::new(&worlds.concat(), 8)?)?
        .iter()
        .map(|log| log.exp())
        .collect();
    let total: f64 = probability.iter().sum();
    println!("all 256 worlds sum to {total:.6}");
    assert!((total - 1.0).abs() < 1e-5);

    let hole = f32::NAN;
    let row = [1.0, 0.0, hole, hole, 1.0, hole, 0.0, hole];
    let marginal = predictor.log_marginal(Rows::new(&row, 8)?)?[0].exp(); // one pass
    let fits = |world: &[f32; 8]| {
        row.iter()
            .zip(world)
            .all(|(seen, value)| seen.is_nan() || seen == value)
    };
    let by_worlds: f64 = worlds
        .iter()
        .zip(&probability)
        .filter(|(world, _)| fits(world))
        .map(|(_, p)| p)
        .sum();
    println!("P(1 0 ? ? 1 ? 0 ?) = {marginal:.6}, by its 16 worlds {by_worlds:.6}");
    assert!((marginal - by_worlds).abs() < 1e-6);
    Ok(())
}
