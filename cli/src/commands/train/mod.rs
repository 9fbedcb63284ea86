//! `sumout train`: trains a model on data with holes.

pub mod args;
mod training_data;
mod start;
mod resume;
mod steps;

pub use args::Args;

use crate::terminal::user_error::user_error;
use anyhow::{Context, Result};
use start::{print_start, with_class_names};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use steps::checkpoint_path;
use sumout::recipes::Fit;
use sumout::training::Checkpoint;
use sumout::{Precision, Trainer};
use sumout_data::atomic_file::{Staged, check_apart};
use sumout_data::model_files;
use training_data::TrainingData;

/// Trains, and writes the model.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    check_out(args)?;
    let (device, precision) = args.device.choice().ready(Precision::Tf32)?;
    let (beginning, data) = begin(args, out)?;
    let mut trainer = beginning.trainer(&data, out)?;
    if let Some(validation) = data.validate()? {
        trainer.validate_on(validation)?;
    }
    trainer.use_device(device, precision)?;
    let checkpoint_every = args.checkpoint_every.unwrap_or(steps::CHECKPOINT_EVERY);
    if checkpoint_every > 0 {
        trainer.report_every(checkpoint_every);
    }
    steps::run(args, &mut trainer, out)?;
    let model = trainer.into_model();
    model_files::save(&args.out, &model.to_bytes()?)?;
    let _ = fs::remove_file(checkpoint_path(&args.out)); // there may be none
    writeln!(out, "wrote {}", args.out.display())?;
    Ok(())
}

/// How a run begins.
enum Beginning {
    Fresh(Box<Fit>),
    Resumed(Box<Checkpoint>, PathBuf),
}

/// Reads the data, and the checkpoint if there is one.
fn begin(args: &Args, out: &mut impl Write) -> Result<(Beginning, TrainingData)> {
    match &args.resume {
        Some(path) => {
            let (checkpoint, data) = resume::resume(args, path, out)?;
            Ok((Beginning::Resumed(Box::new(checkpoint), path.clone()), data))
        }
        None => {
            let (fit, data) = start::start(args)?;
            Ok((Beginning::Fresh(Box::new(fit)), data))
        }
    }
}

impl Beginning {
    /// The trainer, before its first step or after its last one.
    fn trainer<'a>(self, data: &'a TrainingData, out: &mut impl Write) -> Result<Trainer<'a>> {
        match self {
            Self::Fresh(fit) => {
                let trainer = fit.trainer(data.train()?);
                let trainer = trainer.map_err(|error| with_class_names(error, &data.table))?;
                print_start(out, &trainer, data)?;
                Ok(trainer)
            }
            Self::Resumed(checkpoint, path) => {
                let trainer = Trainer::resume(*checkpoint, data.train()?);
                trainer.with_context(|| path.display().to_string())
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
    drop(Staged::create(&args.out)?);
    Ok(())
}
