//! A Tensorial Mixture Model, blind: it never learns what will be missing.
//!
//! ```toml
//! [options]
//! shifts = 1                     # log scores are summed over all shifts by up to so many pixels
//! [options.model]                # as in a plan of `sumout train`
//! preset = "mnist-ht"
//! ```

use crate::columns::{accuracy, with_holes};
use crate::mnist::Mnist;
use crate::plan::Plan;
use crate::results::{Book, Run, machine, seconds};
use anyhow::Result;
use serde::Deserialize;
use serde_json::json;
use std::time::Instant;
use sumout::Model;
use sumout::device::Precision;
use sumout::queries::{Predictor, argmax_rows, shifts};
use sumout::settings::Settings;
use sumout::train::{Data, Proceed, Trainer};
use sumout_cli::datasets::{Layout, Shape, Table};
use sumout_cli::devices::Chosen;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default = "one")]
    shifts: usize,
    model: toml::Table,
}

fn one() -> usize {
    1
}

/// Trains with one seed and asks about all columns.
pub fn run(plan: &Plan, seed: u64, mnist: &Mnist, book: &Book, chosen: &Chosen) -> Result<()> {
    if book.has("", seed) {
        return Ok(());
    }
    let options: Options = plan.options()?;
    let start = Instant::now();
    let mut trainer = start_training(plan, &options, seed, mnist, book)?;
    let (device, precision) = chosen.ready(Precision::Tf32)?;
    trainer.use_device(device, precision)?;
    let data = Data::new(&mnist.train.values, &mnist.train.labels);
    let mut heard = Heard::new(&plan.name, seed);
    trainer.run(&data, None, &mut |_, progress| {
        heard.step(progress.step, progress.steps, progress.objective);
        Proceed::Continue
    })?;
    let model = trainer.into_model();
    let train_seconds = seconds(start.elapsed());
    let start = Instant::now();
    let mut predictor = chosen.predictor(model)?;
    let accuracies = judge(plan, &mut predictor, options.shifts, seed, mnist)?;
    book.add(Run {
        row: String::new(),
        seed,
        mask_seed: seed,
        train: mnist.train.labels.len(),
        test: mnist.test.labels.len(),
        train_seconds,
        test_seconds: seconds(start.elapsed()),
        machine: format!("{}, {device}", machine()),
        accuracies,
    })
}

fn start_training(plan: &Plan, options: &Options, seed: u64, mnist: &Mnist, book: &Book) -> Result<Trainer> {
    let text = toml::to_string(&options.model)?;
    let shape = Shape { height: 28, width: 28, channels: 1 };
    let layout = Layout::unnamed(shape.height * shape.width, Some(shape));
    let table = Table { layout, values: mnist.train.values.clone(), labels: Some(mnist.train.labels.clone()) };
    let chosen = sumout_cli::plan::Plan::parse(&text, &plan.name)?.for_data(&table)?;
    let settings = Settings { seed, ..chosen.settings };
    let (weights, edges) = (chosen.structure.weights(), chosen.structure.multiply_adds());
    let said = Settings { seed: 0, ..settings.clone() }; // each run has its own
    book.set_settings(
        json!({ "weights": weights, "multiply_adds": edges, "shifts": options.shifts, "training": said }),
    );
    let mut model = Model::random(chosen.structure, 1.0, seed);
    model.scaling = chosen.scaling;
    Ok(Trainer::new(model, settings, &Data::new(&mnist.train.values, &mnist.train.labels))?)
}

/// Accuracies by column.
fn judge(plan: &Plan, predictor: &mut Predictor, reach: usize, seed: u64, mnist: &Mnist) -> Result<Vec<f64>> {
    let mut accuracies = Vec::new();
    for missing in plan.missing()? {
        let rows = with_holes(missing, &mnist.test.values, seed)?;
        let scores = predictor.log_joint(&rows, &shifts(reach))?;
        accuracies.push(accuracy(&argmax_rows(&scores, predictor.model().structure.classes), &mnist.test.labels));
    }
    Ok(accuracies)
}

/// A line for every tenth of the training.
struct Heard {
    who: String,
    since: Instant,
}

impl Heard {
    fn new(name: &str, seed: u64) -> Self {
        Self { who: format!("{name}, seed {seed}"), since: Instant::now() }
    }

    fn step(&mut self, step: usize, steps: usize, objective: f64) {
        if step.is_multiple_of(steps.div_ceil(10)) || step == steps {
            let seconds = self.since.elapsed().as_secs();
            eprintln!("{}: step {step} of {steps}, {seconds} s, objective {objective:.3}", self.who);
        }
    }
}
