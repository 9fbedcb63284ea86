//! A Tensorial Mixture Model, blind: it is not told what will be missing.
//!
//! ```toml
//! [options]
//! shifts = 1                 # test on each image moved by up to this many pixels each way
//! votes = ["sum"]            # how the answers are combined; each vote gives a row
//! members = 1                # this many models, with different seeds, vote together
//! mask_seed = 1              # the same holes for all seeds; default: each seed has its own
//! precision = "f32"          # what a GPU trains in; default: tf32
//! [options.model]            # as in a plan of `sumout train`
//! preset = "mnist-ht"
//! ```

use crate::experiment::Experiment;
use crate::inputs::mnist::{DIGITS, Images, Mnist, PIXELS, SIDE};
use crate::inputs::test_masks::with_holes;
use crate::results::{ResultFile, Run, gpu, machine, seconds};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;
use sumout::Model;
use sumout::Settings;
use sumout::Trainer;
use sumout::internals::log_sum_exp;
use sumout::queries::predict_together;
use sumout::queries::shifts;
use sumout::training::Data;
use sumout::training::{Prior, Progress, labels};
use sumout::{Device, Precision};
use sumout::{Predictor, Rows};
use sumout_data::devices::DeviceChoice;
use sumout_data::layout::{ImageShape, Layout, Table};
use sumout_data::plan::Plan;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default = "one")]
    shifts: usize,
    #[serde(default = "sum")]
    votes: Vec<Vote>,
    #[serde(default = "one")]
    members: usize,
    mask_seed: Option<u64>,
    precision: Option<String>,
    model: toml::Table,
}

fn one() -> usize {
    1
}

fn sum() -> Vec<Vote> {
    vec![Vote::Sum]
}

impl Options {
    /// The row of a vote; it has no name if there is only one vote.
    fn row(&self, vote: Vote) -> String {
        if self.votes.len() == 1 {
            String::new()
        } else {
            format!("{vote:?}").to_lowercase()
        }
    }

    /// What trains, as the plan and the command line say.
    fn device(&self, choice: &DeviceChoice) -> Result<(Device, Precision)> {
        let Some(planned) = &self.precision else {
            return Ok(choice.ready(Precision::Tf32)?);
        };
        let planned: Precision = planned.parse()?;
        let (device, precision) = choice.ready(planned)?;
        ensure!(
            precision == planned,
            "the plan trains in {planned:?}; leave out --precision"
        );
        ensure!(
            device != Device::Cpu || planned == Precision::F32,
            "a CPU has no tf32; use --device cuda"
        );
        Ok((device, precision))
    }
}

/// How the scores log P(x_o|y) of all members and shifts are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Vote {
    /// Their sum, as in the paper.
    Sum,
    /// log Σ P(x_o|y): the shift is a hidden variable.
    Mixture,
    /// Σ P(y|x_o).
    Posterior,
}

impl Vote {
    /// Adds the scores of one shift, (n, K).
    fn add(self, sums: &mut [f64], scores: &[f64]) {
        let rows = sums
            .chunks_exact_mut(DIGITS)
            .zip(scores.chunks_exact(DIGITS));
        for (sums, scores) in rows {
            let pairs = sums.iter_mut().zip(scores);
            match self {
                Self::Sum => pairs.for_each(|(sum, score)| *sum += score),
                Self::Mixture => pairs.for_each(|(sum, &score)| *sum = log_sum_exp(&[*sum, score])),
                Self::Posterior => {
                    let whole = log_sum_exp(scores);
                    pairs.for_each(|(sum, score)| *sum += (score - whole).exp());
                }
            }
        }
    }

    /// The value before anything was added.
    fn empty(self) -> f64 {
        if self == Self::Mixture {
            f64::NEG_INFINITY
        } else {
            0.0
        }
    }
}

/// The difference between the seeds of one member and the next.
const SEED_STEP: u64 = 1000;

/// Trains with one seed and tests on all columns.
pub fn run(
    experiment: &Experiment,
    seed: u64,
    mnist: &Mnist,
    file: &ResultFile,
    choice: &DeviceChoice,
) -> Result<()> {
    let options: Options = experiment.options()?;
    let rows: Vec<String> = options.votes.iter().map(|&v| options.row(v)).collect();
    if rows.iter().all(|row| file.has(row, seed)) {
        return Ok(());
    }
    let device = options.device(choice)?;
    let start = Instant::now();
    let mut members = Vec::new();
    for member in 0..options.members as u64 {
        let training = Training {
            experiment,
            model: &options.model,
            seed: seed + SEED_STEP * member,
            images: &mnist.train,
            file,
        };
        let model = training.run(device)?;
        if experiment.seeds.first() == Some(&seed) && member == 0 {
            file.save_model(&model.to_bytes()?)?; // for pictures
        }
        members.push(choice.predictor(model)?);
    }
    let train_seconds = seconds(start.elapsed());
    let start = Instant::now();
    let mask_seed = options.mask_seed.unwrap_or(seed);
    let accuracies = test(experiment, &mut members, &options, mask_seed, &mnist.test)?;
    for (row, accuracies) in rows.into_iter().zip(accuracies) {
        file.add(Run {
            row,
            seed,
            mask_seed,
            train: mnist.train.labels.len(),
            test: mnist.test.labels.len(),
            train_seconds,
            test_seconds: seconds(start.elapsed()),
            machine: machine_with(device.0),
            accuracies,
        })?;
    }
    Ok(())
}

/// This machine in words, with its GPU if that computed.
fn machine_with(device: Device) -> String {
    if device == Device::Cpu {
        machine()
    } else {
        format!("{} and {}", machine(), gpu())
    }
}

/// A model to train.
pub struct Training<'a> {
    pub experiment: &'a Experiment,
    /// As in a plan of `sumout train`.
    pub model: &'a toml::Table,
    pub seed: u64,
    pub images: &'a Images,
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
        let rows = Rows::new(&self.images.values, PIXELS)?;
        Ok(Data::new(rows, &labels(&self.images.labels)))
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
        let chosen = plan.for_data(&one_image())?;
        let seed = self.seed;
        let settings = Settings {
            seed,
            prior: Prior::Uniform, // as all results were measured
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
}

/// A white image of the last class. Presets only look at the shape, the range and the number of
/// classes of the data.
fn one_image() -> Table {
    let shape = ImageShape {
        height: SIDE,
        width: SIDE,
        channels: 1,
    };
    Table {
        layout: Layout::unnamed(PIXELS, Some(shape)),
        values: vec![255.0; PIXELS],
        labels: Some(vec![DIGITS as i64 - 1]),
    }
}

/// Accuracies by vote and column.
fn test(
    experiment: &Experiment,
    members: &mut [Predictor],
    options: &Options,
    mask_seed: u64,
    images: &Images,
) -> Result<Vec<Vec<f64>>> {
    let mut accuracies = vec![Vec::new(); options.votes.len()];
    for missing in experiment.missing()? {
        let rows = with_holes(missing, &images.values, mask_seed)?;
        let answers = match options.votes[..] {
            [Vote::Sum] => {
                let rows = Rows::new(&rows, PIXELS)?;
                vec![predict_together(members, rows, &shifts(options.shifts))?]
            }
            _ => voted(members, options, &rows)?,
        };
        for (accuracies, answers) in accuracies.iter_mut().zip(&answers) {
            accuracies.push(images.accuracy_of(answers));
        }
    }
    Ok(accuracies)
}

/// The class with the largest sum in each row of (n, K), the first where several are.
fn largest(sums: &[f64]) -> Vec<usize> {
    let best =
        |row: &[f64]| (1..DIGITS).fold(0, |best, y| if row[y] > row[best] { y } else { best });
    sums.chunks_exact(DIGITS).map(best).collect()
}

/// The classes that all members and shifts vote for, by vote.
fn voted(members: &mut [Predictor], options: &Options, rows: &[f32]) -> Result<Vec<Vec<usize>>> {
    let empty = |vote: &Vote| vec![vote.empty(); rows.len() / PIXELS * DIGITS];
    let mut sums: Vec<Vec<f64>> = options.votes.iter().map(empty).collect();
    for member in members {
        for shift in shifts(options.shifts) {
            let scores = member.log_joint(Rows::new(rows, PIXELS)?, &[shift])?;
            for (sums, vote) in sums.iter_mut().zip(&options.votes) {
                vote.add(sums, scores.as_slice());
            }
        }
    }
    Ok(sums.iter().map(|sums| largest(sums)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_join_scores() {
        let shifts = [[0.5, 0.1], [0.2, 0.6]].map(|p: [f64; 2]| {
            let mut scores = vec![f64::MIN; DIGITS];
            scores[..2].copy_from_slice(&p.map(f64::ln));
            scores
        });
        let joined = |vote: Vote| {
            let mut sums = vec![vote.empty(); DIGITS];
            shifts.iter().for_each(|scores| vote.add(&mut sums, scores));
            [sums[0], sums[1]]
        };
        let near = |a: [f64; 2], b: [f64; 2]| {
            assert!(
                a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12),
                "{a:?} {b:?}"
            )
        };
        near(joined(Vote::Sum), [0.1_f64.ln(), 0.06_f64.ln()]);
        near(joined(Vote::Mixture), [0.7_f64.ln(), 0.7_f64.ln()]);
        near(
            joined(Vote::Posterior),
            [0.5 / 0.6 + 0.2 / 0.8, 0.1 / 0.6 + 0.6 / 0.8],
        );
    }
}
