//! How fast this machine trains and scores a preset on random images: JSON lines to compare with other programs.
//!
//!     cargo run --release -p sumout --example speed -- [preset] [batch]
//!
//! Expect one line a job: `train` with everything observed, `train-preset` with the preset's random holes, `score`.

use std::time::Instant;
use sumout::batch::Batch;
use sumout::circuit::{Activations, Keep};
use sumout::presets::preset;
use sumout::random::{Purpose, Stream};
use sumout::train::{Data, Settings, Trainer};
use sumout::weights::Prepared;
use sumout::{Error, Model};

fn best_of(rounds: usize, steps: usize, mut job: impl FnMut()) -> f64 {
    (0..5).for_each(|_| job());
    let time = |_| {
        let start = Instant::now();
        (0..steps).for_each(|_| job());
        start.elapsed().as_secs_f64() / steps as f64
    };
    (0..rounds).map(time).fold(f64::INFINITY, f64::min)
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let name = arguments.get(1).map_or("mnist-ht", String::as_str);
    let batch: usize = arguments.get(2).and_then(|b| b.parse().ok()).unwrap_or(128);
    let preset = preset(name)?;
    let mut random = Stream::new(1, Purpose::Sampling, 0, 0);
    let width = preset.structure.width();
    let classes = preset.structure.classes;
    let rows = 4 * batch.max(256);
    let values: Vec<f32> = (0..rows * width).map(|_| random.below(256) as f32).collect();
    let labels: Vec<i64> = (0..rows).map(|row| (row % classes) as i64).collect();
    let data = Data::new(&values, &labels);
    let mut model = Model::random(preset.structure.clone(), 1.0, 1);
    model.scaling = preset.scaling.clone();
    let edges = preset.structure.multiply_adds();
    let line = |job: &str, seconds: f64| {
        println!(
            r#"{{"peer": "sumout", "job": "{job}", "device": "cpu", "batch": {batch}, "samples_per_s": {:.1}, "edges": {edges}}}"#,
            batch as f64 / seconds
        );
    };
    let open =
        Settings { drop_inputs: 0.0, drop_nodes: vec![], shift: 0, batch, steps: 1_000_000, ..preset.settings.clone() };
    let holes = Settings { batch, steps: 1_000_000, ..preset.settings.clone() };
    for (job, settings) in [("train", open), ("train-preset", holes)] {
        let mut trainer = Trainer::new(model.clone(), settings, &data)?;
        let seconds = best_of(3, 20, || {
            trainer.advance(&data).unwrap_or_else(|error| panic!("{error}"));
        });
        line(job, seconds);
        eprintln!("recomputed {}", trainer.recomputed());
    }
    let prepared = Prepared::new(&model.weights, false);
    let mut activations = Activations::new();
    let mut frame = Batch::default();
    let seconds = best_of(3, 20, || {
        model.fill(&values[..batch * width], (0, 0), &mut frame);
        activations.upward(&model.structure, &prepared, &frame, &[], Keep::Scores);
        activations.guard_scores(&model.structure, &model.weights, &frame);
    });
    line("score", seconds);
    Ok(())
}
