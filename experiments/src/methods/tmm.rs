//! A Tensorial Mixture Model, blind: it is not told what will be missing.
//!
//! ```toml
//! [options]
//! shifts = 1                 # test on each image moved by up to this many pixels each way
//! votes = ["sum"]            # how the answers are combined; each vote gives a row
//! members = 1                # this many models, with different seeds, vote together
//! betas = [0.01, 0.1]        # instead: a member for each weight of P(X)
//! mask_seed = 1              # the same holes for all seeds; default: each seed has its own
//! precision = "f32"          # what a GPU trains in; default: tf32
//! front_end = "log-mel"      # what the model sees of sounds; default: their samples
//! labels = [100, 1000]       # so many training examples have a label: a row for each; default: all have one
//! labelled_share = 0.5       # of the rows of a step, where some have none
//! train_holes = "iid:0.5"    # in the training examples; default: none
//! show_completions = true    # keep what the last member makes of some images, for a figure
//! [options.model]            # as in a plan of `sumout train`
//! preset = "mnist-ht"
//! ```

use crate::experiment::Experiment;
use crate::inputs::examples::{DataSet, Examples};
use crate::inputs::front_end::FrontEnd;
use crate::methods::completed_images;
use crate::methods::few_labels::{self, FewLabels};
use crate::methods::training::Training;
use crate::methods::votes::{Vote, largest};
use crate::results::{ResultFile, Run, gpu, machine, seconds};
use anyhow::{Result, ensure};
use serde::Deserialize;
use std::time::Instant;
use sumout::queries::predict_together;
use sumout::queries::shifts;
use sumout::{Device, Precision};
use sumout::{Predictor, Rows};
use sumout_data::devices::DeviceChoice;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default = "one")]
    shifts: usize,
    #[serde(default = "sum")]
    votes: Vec<Vote>,
    #[serde(default = "one")]
    members: usize,
    betas: Option<Vec<f64>>,
    mask_seed: Option<u64>,
    precision: Option<String>,
    #[serde(default)]
    front_end: FrontEnd,
    #[serde(default)]
    labels: Vec<usize>,
    #[serde(default = "half")]
    labelled_share: f64,
    train_holes: Option<String>,
    #[serde(default)]
    show_completions: bool,
    model: toml::Table,
}

fn one() -> usize {
    1
}

fn half() -> f64 {
    0.5
}

fn sum() -> Vec<Vote> {
    vec![Vote::Sum]
}

impl Options {
    /// The rows of one training, one for each vote. It is named by the vote if there are several, or by the labels.
    fn rows(&self, labels: Option<usize>) -> Vec<String> {
        let name = |vote: &Vote| match labels {
            Some(labels) => labels.to_string(),
            None if self.votes.len() == 1 => String::new(),
            None => format!("{vote:?}").to_lowercase(),
        };
        self.votes.iter().map(name).collect()
    }

    /// How many training examples have a label, for each training; none where all have one.
    fn label_counts(&self) -> Vec<Option<usize>> {
        match self.labels[..] {
            [] => vec![None],
            _ => self.labels.iter().copied().map(Some).collect(),
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

    /// The models of all members: they differ in the seed, or in the weight of P(X).
    fn models(&self) -> Vec<toml::Table> {
        let Some(betas) = &self.betas else {
            return vec![self.model.clone(); self.members];
        };
        let with_beta = |&beta: &f64| with_generative(self.model.clone(), beta);
        betas.iter().map(with_beta).collect()
    }

    /// What the model trains on.
    fn training_examples(
        &self,
        data: &DataSet,
        labels: Option<usize>,
        seed: u64,
    ) -> Result<Examples> {
        let mut train = data.train.clone();
        if let Some(holes) = &self.train_holes {
            train.values = train.with_holes(holes.parse()?, few_labels::training_seed(seed))?;
        }
        if let Some(labels) = labels {
            let few = FewLabels {
                labels,
                classes: data.classes,
                share: self.labelled_share,
            };
            train = few.of(&train, seed);
        }
        Ok(self.front_end.examples(&train))
    }
}

/// The model with this weight of P(X).
fn with_generative(mut model: toml::Table, beta: f64) -> toml::Table {
    let settings = model.entry("settings").or_insert(toml::Table::new().into());
    if let Some(settings) = settings.as_table_mut() {
        settings.insert("generative".into(), beta.into());
    }
    model
}

/// The difference between the seeds of one member and the next.
const SEED_STEP: u64 = 1000;

/// One training of an experiment: a seed, and how many labels there are.
struct Job<'a> {
    experiment: &'a Experiment,
    options: &'a Options,
    seed: u64,
    data: &'a DataSet,
    file: &'a ResultFile,
}

/// Trains with one seed and tests on all columns.
pub fn run(
    experiment: &Experiment,
    seed: u64,
    data: &DataSet,
    file: &ResultFile,
    choice: &DeviceChoice,
) -> Result<()> {
    let options: Options = experiment.options()?;
    let job = Job {
        experiment,
        options: &options,
        seed,
        data,
        file,
    };
    for labels in options.label_counts() {
        job.run(labels, choice)?;
    }
    Ok(())
}

impl Job<'_> {
    fn run(&self, labels: Option<usize>, choice: &DeviceChoice) -> Result<()> {
        let (options, data, seed) = (self.options, self.data, self.seed);
        let rows = options.rows(labels);
        if rows.iter().all(|row| self.file.has(row, seed)) {
            return Ok(());
        }
        let device = options.device(choice)?;
        let start = Instant::now();
        let mut members = self.members(labels, device, choice)?;
        let train_seconds = seconds(start.elapsed());
        if let (true, Some(last)) = (self.is_shown(labels), members.last_mut()) {
            completed_images::keep(self.experiment, last, data, seed)?;
        }
        let start = Instant::now();
        let mask_seed = options.mask_seed.unwrap_or(seed);
        let accuracies = test(self.experiment, &mut members, options, mask_seed, data)?;
        for (row, accuracies) in rows.into_iter().zip(accuracies) {
            self.file.add(Run {
                row,
                seed,
                mask_seed,
                train: data.train.len(),
                test: data.test.len(),
                train_seconds,
                test_seconds: seconds(start.elapsed()),
                machine: machine_with(device.0),
                accuracies,
            })?;
        }
        Ok(())
    }

    /// Whether its completions are drawn: those of the first seed, if the plan says so.
    fn is_shown(&self, labels: Option<usize>) -> bool {
        let is_first = self.experiment.seeds.first() == Some(&self.seed);
        is_first && labels.is_none() && self.options.show_completions
    }

    /// Trains all members.
    fn members(
        &self,
        labels: Option<usize>,
        device: (Device, Precision),
        choice: &DeviceChoice,
    ) -> Result<Vec<Predictor>> {
        let examples = self
            .options
            .training_examples(self.data, labels, self.seed)?;
        let mut members = Vec::new();
        for (member, model) in self.options.models().iter().enumerate() {
            let training = Training {
                experiment: self.experiment,
                model,
                seed: self.seed + SEED_STEP * member as u64,
                examples: &examples,
                classes: self.data.classes,
                file: self.file,
            };
            let model = training.run(device)?;
            if self.experiment.seeds.first() == Some(&self.seed) && member == 0 {
                self.file.save_model(&model.to_bytes()?)?; // for pictures
            }
            members.push(choice.predictor(model)?);
        }
        Ok(members)
    }
}

/// This machine in words, with its GPU if that computed.
fn machine_with(device: Device) -> String {
    if device == Device::Cpu {
        machine()
    } else {
        format!("{} and {}", machine(), gpu())
    }
}

/// Accuracies by vote and column.
fn test(
    experiment: &Experiment,
    members: &mut [Predictor],
    options: &Options,
    mask_seed: u64,
    data: &DataSet,
) -> Result<Vec<Vec<f64>>> {
    let (test, front_end) = (&data.test, options.front_end);
    let width = front_end.shape(test.shape).numbers();
    let mut accuracies = vec![Vec::new(); options.votes.len()];
    for missing in experiment.missing()? {
        let rows = test.with_holes(missing, mask_seed)?;
        let rows = front_end.rows(rows, test.width());
        let rows = Rows::new(&rows, width)?;
        let answers = match options.votes[..] {
            [Vote::Sum] => vec![predict_together(members, rows, &shifts(options.shifts))?],
            _ => voted(members, options, rows, data.classes)?,
        };
        for (accuracies, answers) in accuracies.iter_mut().zip(&answers) {
            accuracies.push(test.accuracy_of(answers));
        }
        let (name, last) = (&experiment.name, accuracies[0].last());
        eprintln!("{name}: {missing} {:.2} %", last.unwrap_or(&0.0));
    }
    Ok(accuracies)
}

/// The classes that all members and shifts vote for, by vote.
fn voted(
    members: &mut [Predictor],
    options: &Options,
    rows: Rows<'_>,
    classes: usize,
) -> Result<Vec<Vec<usize>>> {
    let empty = |vote: &Vote| vec![vote.empty(); rows.len() * classes];
    let mut sums: Vec<Vec<f64>> = options.votes.iter().map(empty).collect();
    for member in members {
        for shift in shifts(options.shifts) {
            let scores = member.log_joint(rows, &[shift])?;
            for (sums, vote) in sums.iter_mut().zip(&options.votes) {
                vote.add(sums, scores.as_slice(), classes);
            }
        }
    }
    Ok(sums.iter().map(|sums| largest(sums, classes)).collect())
}
