//! `sumout train`: trains a model on data with holes.

pub mod args;
mod training_data;
mod class_numbers;
mod number_target;
mod ranges;
mod resume_command;
mod card;
mod start;
mod resume;
mod steps;
mod rounds;

pub use args::Args;

use crate::terminal::user_error::user_error;
use anyhow::{Context, Result};
use resume_command::checkpoint_path;
use serde::Deserialize;
use start::{SAMPLED, VALIDATION_FROM, print_start, with_class_names};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use sumout::recipes::{Fit, Fitting, Rounds};
use sumout::training::Checkpoint;
use sumout::{Device, Model, Precision};
use sumout_data::atomic_file::{Staged, check_apart};
use sumout_data::model_files;
use training_data::{TrainingData, describe};

/// Trains, and writes the model.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    check_out(args)?;
    let (device, precision) = args.device.choice().ready(Precision::Tf32)?;
    let (beginning, data) = begin(args)?;
    let mut model = match (beginning.rounds()?, &data.spool) {
        (Some(mut rounds), Some(spool)) => rounds::run(args, &mut rounds, spool, out)?,
        _ => {
            let model = fitted(args, beginning, &data, (device, precision), out)?;
            taught(args, model, &data, out)?
        }
    };
    card::finish(&mut model, data.validation.as_ref())?;
    model.about.training.remove(VALIDATION_FROM);
    model.about.training.remove(SAMPLED);
    model_files::save(&args.out, &model.to_bytes()?)?;
    let _ = fs::remove_file(checkpoint_path(&args.out)); // there may be none
    if let Some(clusters) = describe_clusters(&model) {
        writeln!(out, "clusters   {clusters}")?;
    }
    writeln!(out, "wrote {}", args.out.display())?;
    Ok(())
}

/// What stands beside the trees in the end.
fn describe_clusters(model: &Model) -> Option<String> {
    #[derive(Deserialize)]
    struct Correlated {
        most: usize,
        share: Option<f64>,
    }
    let notes = &model.about.training;
    let Some(Correlated { most, share }) = notes.get("clusters_with_factors") else {
        let independent = "beside the trees; their columns are independent";
        return notes.has("clusters").then(|| independent.into());
    };
    let each = match model.structure.classes {
        1 => "",
        _ => " for each class",
    };
    let share = share.map(|share| format!(", with {} % of all probability", 100.0 * share));
    let share = share.unwrap_or_default();
    Some(format!(
        "beside the trees; at most {most}{each} have columns that depend on each other{share}"
    ))
}

/// The model of the rows in memory.
fn fitted(
    args: &Args,
    beginning: Beginning,
    data: &TrainingData,
    (device, precision): (Device, Precision),
    out: &mut impl Write,
) -> Result<Model> {
    let mut fitting = beginning.on(device, precision).fitting(data, out)?;
    fitting.use_device(device, precision)?;
    steps::run(args, &mut fitting, out)?;
    Ok(fitting.into_model()?)
}

/// The same after all rows have taught it, where those in memory are a sample.
fn taught(args: &Args, model: Model, data: &TrainingData, out: &mut impl Write) -> Result<Model> {
    let Some(spool) = &data.spool else {
        return Ok(model);
    };
    let mut rounds = rounds::start(args, model, spool)?;
    rounds::run(args, &mut rounds, spool, out)
}

/// How a run begins.
enum Beginning {
    Fresh(Box<Fit>),
    Resumed(Box<Checkpoint>, PathBuf),
}

/// Reads the data, and the checkpoint if there is one.
fn begin(args: &Args) -> Result<(Beginning, TrainingData)> {
    match &args.resume {
        Some(path) => {
            let (checkpoint, data) = resume::resume(args, path)?;
            Ok((Beginning::Resumed(Box::new(checkpoint), path.clone()), data))
        }
        None => {
            let (fit, data) = start::start(args)?;
            if let Some(words) = resume::unfinished(args, &data) {
                let _ = writeln!(io::stderr(), "{words}");
            }
            Ok((Beginning::Fresh(Box::new(fit)), data))
        }
    }
}

impl Beginning {
    /// The fit over all rows that a checkpoint is of, if it is of one.
    fn rounds(&self) -> Result<Option<Rounds>> {
        match self {
            Self::Resumed(checkpoint, path) if checkpoint.is_of_rounds() => {
                let rounds = Rounds::resume((**checkpoint).clone());
                Ok(Some(rounds.with_context(|| path.display().to_string())?))
            }
            _ => Ok(None),
        }
    }

    /// What begins afresh knows what will compute: a GPU computes no factors, and then none are tried.
    fn on(self, device: Device, precision: Precision) -> Self {
        match self {
            Self::Fresh(fit) => Self::Fresh(Box::new(fit.device(device, precision))),
            resumed => resumed,
        }
    }

    /// The fit, before its first step or after its last one.
    fn fitting<'a>(self, data: &'a TrainingData, out: &mut impl Write) -> Result<Fitting<'a>> {
        let (train, validation) = (data.train()?, data.validate()?);
        match self {
            Self::Fresh(fit) => {
                let fitting = fit.start(train);
                let mut fitting = fitting.map_err(|error| with_class_names(error, &data.table))?;
                if let Some(validation) = validation {
                    fitting.validate_on(validation)?;
                }
                print_start(out, &fitting, data)?;
                Ok(fitting)
            }
            Self::Resumed(checkpoint, path) => {
                let fitting = Fitting::resume(*checkpoint, train, validation);
                let fitting = fitting.with_context(|| path.display().to_string())?;
                let (step, steps) = (fitting.steps_done(), fitting.steps());
                writeln!(out, "data       {}", describe(&data.table))?;
                writeln!(out, "resuming   after step {step} of {steps}")?;
                Ok(fitting)
            }
        }
    }
}

/// The model must go to a file that can be written and that is not an input. Better known before
/// training.
fn check_out(args: &Args) -> Result<()> {
    if args.out.as_os_str() == "-" {
        return Err(user_error(
            "--out: expected a file for the model, got - (standard output)",
        ));
    }
    let checkpoint = args.resume.as_ref().map(|path| path.to_string_lossy());
    let mut inputs = vec![args.input.data.as_str()];
    inputs.extend(args.input.labels.as_deref());
    inputs.extend(args.validation.as_deref());
    inputs.extend(args.plan.as_deref());
    inputs.extend(checkpoint.as_deref());
    check_apart(&args.out.to_string_lossy(), &inputs)?;
    if !args.force && model_files::is_other_file(&args.out)? {
        return Err(user_error(format!(
            "--out {}: expected a new file or a model, got a file that is not a model; --force \
             replaces it",
            args.out.display()
        )));
    }
    drop(Staged::create(&args.out)?);
    Ok(())
}
