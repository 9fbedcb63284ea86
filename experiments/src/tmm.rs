//! A Tensorial Mixture Model, blind: it never learns what will be missing.
//!
//! ```toml
//! [options]
//! shifts = 1                 # asked about each image moved by up to so many pixels each way
//! votes = ["sum"]            # what the answers make together; more than one give as many rows
//! members = 1                # so many models with seeds of their own vote together
//! mask_seed = 1              # the same holes for all seeds; each seed has its own if left out
//! precision = "f32"          # what a GPU trains in; tf32 if left out
//! [options.model]            # as in a plan of `sumout train`
//! preset = "mnist-ht"
//! ```

use crate::columns::{accuracy, with_holes};
use crate::mnist::{Images, Mnist, PIXELS};
use crate::plan::Plan;
use crate::results::{Book, Run, gpu, machine, seconds};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;
use sumout::Model;
use sumout::arithmetic::math::log_sum_exp;
use sumout::device::{Device, Precision};
use sumout::model::model_file;
use sumout::queries::ensemble::predict_together;
use sumout::queries::predictor::{Predictor, argmax_rows, shifts};
use sumout::training::data::Data;
use sumout::training::settings::Settings;
use sumout::training::trainer::{Proceed, Trainer};
use sumout_data::devices::DeviceChoice;
use sumout_data::layout::{ImageShape, Layout, Table};

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

/// How the scores log P(x_o|y) of all members and shifts become one.
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
            .chunks_exact_mut(CLASSES)
            .zip(scores.chunks_exact(CLASSES));
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

    /// Before anything was added.
    fn nothing(self) -> f64 {
        if self == Self::Mixture {
            f64::NEG_INFINITY
        } else {
            0.0
        }
    }
}

const CLASSES: usize = 10;
const APART: u64 = 1000; // seeds of one member and the next

/// Trains with one seed and asks about all columns.
pub fn run(
    plan: &Plan,
    seed: u64,
    mnist: &Mnist,
    book: &Book,
    chosen: &DeviceChoice,
) -> Result<()> {
    let options: Options = plan.options()?;
    let rows: Vec<String> = options
        .votes
        .iter()
        .map(|&vote| row(&options, vote))
        .collect();
    if rows.iter().all(|row| book.has(row, seed)) {
        return Ok(());
    }
    let ready = ready(&options, chosen)?;
    let start = Instant::now();
    let mut members = Vec::new();
    for member in 0..options.members as u64 {
        let model = learn(
            plan,
            &options.model,
            seed + APART * member,
            &mnist.train,
            book,
            ready,
        )?;
        if plan.seeds.first() == Some(&seed) && member == 0 {
            book.keep(&model_file::to_bytes(&model)?)?; // for pictures
        }
        members.push(chosen.predictor(model)?);
    }
    let train_seconds = seconds(start.elapsed());
    let start = Instant::now();
    let mask_seed = options.mask_seed.unwrap_or(seed);
    let accuracies = judge(plan, &mut members, &options, mask_seed, &mnist.test)?;
    for (row, accuracies) in rows.into_iter().zip(accuracies) {
        book.add(Run {
            row,
            seed,
            mask_seed,
            train: mnist.train.labels.len(),
            test: mnist.test.labels.len(),
            train_seconds,
            test_seconds: seconds(start.elapsed()),
            machine: if ready.0 == Device::Cpu {
                machine()
            } else {
                format!("{} and {}", machine(), gpu())
            },
            accuracies,
        })?;
    }
    Ok(())
}

/// A row for each vote, nameless where there is one.
fn row(options: &Options, vote: Vote) -> String {
    if options.votes.len() == 1 {
        String::new()
    } else {
        format!("{vote:?}").to_lowercase()
    }
}

/// What trains, as the plan and the command line say.
fn ready(options: &Options, chosen: &DeviceChoice) -> Result<(Device, Precision)> {
    let Some(asked) = &options.precision else {
        return Ok(chosen.ready(Precision::Tf32)?);
    };
    let asked: Precision = asked.parse()?;
    let (device, precision) = chosen.ready(asked)?;
    ensure!(
        precision == asked,
        "the plan trains in {asked:?}; leave out --precision"
    );
    ensure!(
        device != Device::Cpu || asked == Precision::F32,
        "a processor has no tf32; --device cuda"
    );
    Ok((device, precision))
}

/// Trains one model.
pub fn learn(
    plan: &Plan,
    model: &toml::Table,
    seed: u64,
    train: &Images,
    book: &Book,
    (device, precision): (Device, Precision),
) -> Result<Model> {
    let data = Data::new(&train.values, &train.labels);
    let mut trainer = start_training(plan, model, seed, train, book)?;
    trainer.use_device(device, precision)?;
    let start = Instant::now();
    trainer.run(&data, None, &mut |_, progress| {
        let (step, steps) = (progress.step, progress.steps);
        if step.is_multiple_of(steps.div_ceil(10)) || step == steps {
            let seconds = start.elapsed().as_secs_f64();
            let loss = progress.objective;
            eprintln!(
                "{}, seed {seed}: step {step} of {steps}, {seconds:.1} s, loss {loss:.3}",
                plan.name
            );
        }
        Proceed::Continue
    })?;
    Ok(trainer.into_model())
}

fn start_training(
    plan: &Plan,
    model: &toml::Table,
    seed: u64,
    train: &Images,
    book: &Book,
) -> Result<Trainer> {
    let text = toml::to_string(model)?;
    let shape = ImageShape {
        height: 28,
        width: 28,
        channels: 1,
    };
    let layout = Layout::unnamed(shape.height * shape.width, Some(shape));
    // Presets need no more of the data than that they are bytes of ten classes.
    let (values, labels) = (vec![255.0; layout.width], vec![CLASSES as i64 - 1]);
    let table = Table {
        layout,
        values,
        labels: Some(labels),
    };
    let chosen = sumout_data::plan::Plan::parse(&text, &plan.name)?.for_data(&table)?;
    let settings = Settings {
        seed,
        ..chosen.settings
    };
    let (weights, edges) = (chosen.structure.weights(), chosen.structure.multiply_adds());
    let said = Settings {
        seed: 0,
        ..settings.clone()
    }; // each run has its own
    book.set_settings(json!({ "weights": weights, "multiply_adds": edges, "training": said }));
    let mut model = Model::random(chosen.structure, 1.0, seed);
    model.scaling = chosen.scaling;
    Ok(Trainer::new(
        model,
        settings,
        &Data::new(&train.values, &train.labels),
    )?)
}

/// Accuracies by vote and column.
fn judge(
    plan: &Plan,
    members: &mut [Predictor],
    options: &Options,
    seed: u64,
    test: &Images,
) -> Result<Vec<Vec<f64>>> {
    let mut accuracies = vec![Vec::new(); options.votes.len()];
    for missing in plan.missing()? {
        let rows = with_holes(missing, &test.values, seed)?;
        let answers = match options.votes[..] {
            [Vote::Sum] => vec![predict_together(members, &rows, &shifts(options.shifts))?],
            _ => voted(members, options, &rows)?,
        };
        for (accuracies, answers) in accuracies.iter_mut().zip(&answers) {
            accuracies.push(accuracy(answers, &test.labels));
        }
    }
    Ok(accuracies)
}

/// The classes that all members and shifts vote for, by vote.
fn voted(members: &mut [Predictor], options: &Options, rows: &[f32]) -> Result<Vec<Vec<usize>>> {
    let empty = |vote: &Vote| vec![vote.nothing(); rows.len() / PIXELS * CLASSES];
    let mut sums: Vec<Vec<f64>> = options.votes.iter().map(empty).collect();
    for member in members {
        for shift in shifts(options.shifts) {
            let scores = member.log_joint(rows, &[shift])?;
            sums.iter_mut()
                .zip(&options.votes)
                .for_each(|(sums, vote)| vote.add(sums, &scores));
        }
    }
    Ok(sums.iter().map(|sums| argmax_rows(sums, CLASSES)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_join_scores() {
        let shifts = [[0.5, 0.1], [0.2, 0.6]].map(|p: [f64; 2]| {
            let mut scores = vec![f64::MIN; CLASSES];
            scores[..2].copy_from_slice(&p.map(f64::ln));
            scores
        });
        let joined = |vote: Vote| {
            let mut sums = vec![vote.nothing(); CLASSES];
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
