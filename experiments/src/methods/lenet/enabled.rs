//! LeNet as it comes with Caffe (paper, appendix on ConvNets), with or without a channel that marks
//! missing pixels.
//!
//! ```toml
//! [options]
//! fill = "flag"                  # or "zero", "mean"
//! holes = ["iid:0.9"]            # what nets are trained on, one net each
//! recipe = { steps = 20000, batch = 64, rate = 0.01, momentum = 0.9, decay = 5e-4 } # the paper's
//! ```

mod windows;
mod fill;
mod layers;
mod saved_net;
mod training;

use crate::experiment::Experiment;
use crate::inputs::mnist::{Images, Mnist};
use crate::inputs::test_masks::with_holes;
use crate::parallel;
use crate::results::{ResultFile, Run, machine, seconds};
use anyhow::{Result, bail};
use fill::{Fill, means};
use saved_net::{Progress, SavedNet};
use serde::Deserialize;
use std::time::{Duration, Instant};
use training::{LeNet, Recipe, Training};

/// The plan's options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    /// `zero`, `mean` or `flag`.
    fill: String,
    /// What nets are trained on, one net each.
    holes: Vec<String>,
    recipe: Recipe,
}

impl Options {
    fn fill(&self, images: &Images) -> Result<Fill> {
        Ok(match self.fill.as_str() {
            "zero" => Fill::Zero,
            "mean" => Fill::Mean(means(&images.values)),
            "flag" => Fill::Flag,
            other => bail!("fill: expected zero, mean or flag, got {other}"),
        })
    }

    /// The row of a net; it has no name if there is only one net.
    fn row(&self, holes: &str) -> String {
        if self.holes.len() == 1 {
            String::new()
        } else {
            holes.to_owned()
        }
    }
}

/// Trains a net on each kind of holes, `jobs` at the same time, each with one thread; tests each on
/// all columns.
pub fn run(
    experiment: &Experiment,
    seed: u64,
    mnist: &Mnist,
    file: &ResultFile,
    jobs: usize,
) -> Result<()> {
    let options: Options = experiment.options()?;
    let new = |holes: &&String| !file.has(&options.row(holes), seed);
    let left = options.holes.iter().filter(new).collect();
    let net = |holes| Net {
        experiment,
        options: &options,
        holes,
        seed,
        mnist,
    };
    parallel::for_each(jobs, left, |holes: &String| net(holes).run(file))
}

/// One net of an experiment.
struct Net<'a> {
    experiment: &'a Experiment,
    options: &'a Options,
    holes: &'a str,
    seed: u64,
    mnist: &'a Mnist,
}

impl Net<'_> {
    fn run(&self, file: &ResultFile) -> Result<()> {
        let (train, test) = (&self.mnist.train, &self.mnist.test);
        let training = Training {
            recipe: &self.options.recipe,
            images: train,
            holes: self.holes.parse()?,
            fill: self.options.fill(train)?,
            seed: self.seed,
            saved: Some(self.saved(file)),
        };
        let (net, train_seconds) =
            training.run(&mut |progress, loss| self.print(progress, loss))?;
        let start = Instant::now();
        let accuracies = self.accuracies(&net)?;
        file.add(Run {
            row: self.options.row(self.holes),
            seed: self.seed,
            mask_seed: self.seed,
            train: train.labels.len(),
            test: test.labels.len(),
            train_seconds: seconds(Duration::from_secs_f64(train_seconds)),
            test_seconds: seconds(start.elapsed()),
            machine: format!("one of {}", machine()),
            accuracies,
        })?;
        self.saved(file).remove();
        Ok(())
    }

    fn accuracies(&self, net: &LeNet) -> Result<Vec<f64>> {
        let test = &self.mnist.test;
        let mut accuracies = Vec::new();
        for missing in self.experiment.missing()? {
            let rows = with_holes(missing, &test.values, self.seed)?;
            accuracies.push(test.accuracy_of(&net.classify(&rows)));
        }
        Ok(accuracies)
    }

    /// The file of the unfinished net.
    fn saved(&self, file: &ResultFile) -> SavedNet {
        let (holes, seed, options) = (self.holes, self.seed, self.options);
        let what = format!(
            "{:?}, {} on {holes} of {}, seed {seed}",
            options.recipe,
            options.fill,
            self.mnist.train.labels.len()
        );
        let name = format!("{}-{seed}.net", holes.replace(':', "-"));
        SavedNet::new(file.beside(&name), what)
    }

    /// Ten lines per training.
    fn print(&self, progress: Progress, loss: f64) {
        let (Progress { step, seconds }, steps) = (progress, self.options.recipe.steps);
        if step.is_multiple_of(steps.div_ceil(1000) * 100) || step == steps {
            let (name, holes) = (&self.experiment.name, self.holes);
            eprintln!("{name} on {holes}: step {step} of {steps}, {seconds:.0} s, loss {loss:.3}");
        }
    }
}
