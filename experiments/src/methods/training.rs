//! The training of one model of an experiment.

use crate::experiment::Experiment;
use crate::inputs::examples::Examples;
use crate::results::ResultFile;
use anyhow::Result;
use serde_json::json;
use std::time::Instant;
use sumout::training::Data;
use sumout::training::{Prior, Progress, labels};
use sumout::{Device, Model, Precision, Rows, Settings, Trainer};
use sumout_data::layout::{Layout, Table};
use sumout_data::plan::Plan;

/// A model to train.
pub struct Training<'a> {
    pub experiment: &'a Experiment,
    /// As in a plan of `sumout train`.
    pub model: &'a toml::Table,
    pub seed: u64,
    pub examples: &'a Examples,
    pub classes: usize,
    pub file: &'a ResultFile,
}

impl Training<'_> {
    /// Trains the model.
    pub fn run(&self, (device, precision): (Device, Precision)) -> Result<Model> {
        let mut trainer = self.start()?;
        trainer.use_device(device, precision)?;
        let start = Instant::now();
        trainer.on_progress(move |progress| self.print(progress, start));
        Ok(trainer.train()?)
    }

    fn data(&self) -> Result<Data<'_>> {
        let rows = Rows::new(&self.examples.values, self.examples.width())?;
        Ok(Data::new(rows, &labels(&self.examples.labels)))
    }

    /// Ten lines per training.
    fn print(&self, progress: &Progress, start: Instant) {
        let (step, steps) = (progress.step, progress.steps);
        if step.is_multiple_of(steps.div_ceil(10)) || step == steps {
            let (name, seed) = (&self.experiment.name, self.seed);
            let (seconds, loss) = (start.elapsed().as_secs_f64(), progress.objective);
            eprintln!(
                "{name}, seed {seed}: step {step} of {steps}, {seconds:.1} s, loss {loss:.3}"
            );
        }
    }

    fn start(&self) -> Result<Trainer<'_>> {
        let text = toml::to_string(self.model)?;
        let plan = Plan::parse(&text, &self.experiment.name)?;
        let chosen = plan.for_data(&self.sample())?;
        let seed = self.seed;
        let planned = self.model.get("settings");
        let prior = match planned.and_then(|settings| settings.get("prior")) {
            Some(_) => chosen.settings.prior.clone(),
            None => Prior::Uniform, // as all results on MNIST were measured
        };
        let settings = Settings {
            seed,
            prior,
            ..chosen.settings
        };
        let reported = Settings {
            seed: 0, // each run has its own
            ..settings.clone()
        };
        self.file.set_settings(json!({
            "weights": chosen.structure.weights(),
            "multiply_adds": chosen.structure.multiply_adds(),
            "training": reported,
        }));
        let (structure, scaling) = (chosen.structure, chosen.scaling);
        Ok(Trainer::start(structure, scaling, settings, self.data()?)?)
    }

    /// The examples as a table: what a plan leaves open follows from their number, shape, range and classes. Sequences are
    /// scaled by the first ones.
    fn sample(&self) -> Table {
        const SEQUENCES: usize = 2000;
        let (shape, width) = (self.examples.shape, self.examples.width());
        let rows = self.examples.labels.len();
        let is_sequence = self.model.contains_key("sequence");
        let rows = if is_sequence {
            rows.min(SEQUENCES)
        } else {
            rows
        };
        Table {
            layout: Layout::unnamed(width, Some(shape)),
            labels: Some(vec![self.classes as i64 - 1; rows]),
            values: self.examples.range(0, rows).values,
        }
    }
}
