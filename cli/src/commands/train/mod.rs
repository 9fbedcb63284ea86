//! `sumout train`: trains a model on data with holes.

pub mod args;
mod training_data;
mod start;
mod resume;
mod steps;

pub use args::Args;

use anyhow::Result;
use std::fs;
use std::io::Write;
use steps::checkpoint_path;
use sumout::device::Precision;
use sumout::model::model_file;
use sumout::training::trainer::Trainer;
use sumout_data::atomic_file::{Staged, check_apart};
use sumout_data::error::mistake;
use sumout_data::model_files;
use training_data::TrainingData;

/// A trainer and its data.
struct Session {
    trainer: Trainer,
    data: TrainingData,
}

/// Trains, and writes the model.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    check_out(args)?;
    let (device, precision) = args.device.choice().ready(Precision::Tf32)?;
    let Session { mut trainer, data } = match &args.resume {
        Some(checkpoint) => resume::resume(args, checkpoint, out)?,
        None => start::start(args, out)?,
    };
    trainer.use_device(device, precision)?;
    if args.checkpoint_every > 0 {
        trainer.look_every(args.checkpoint_every);
    }
    steps::run(args, &mut trainer, &data, out)?;
    let model = trainer.into_model();
    model_files::save(&args.out, &model_file::to_bytes(&model)?)?;
    let _ = fs::remove_file(checkpoint_path(&args.out)); // there may be none
    writeln!(out, "wrote {}", args.out.display())?;
    Ok(())
}

/// The model must go to a file that can be written and that is not an input. Better known before
/// training.
fn check_out(args: &Args) -> Result<()> {
    if args.out.as_os_str() == "-" {
        return Err(mistake(
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
