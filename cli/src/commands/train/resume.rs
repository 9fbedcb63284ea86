//! A run that was stopped continues with the same data. Other data would give other bits.

use crate::commands::train::args::Args;
use crate::commands::train::resume_command::{checkpoint_path, resume_command};
use crate::commands::train::start::{CLASS_WEIGHT, SAMPLED, VALIDATION, VALIDATION_FROM};
use crate::commands::train::training_data::{TrainingData, digest};
use crate::options::input::warn_of_findings;
use crate::terminal::user_error::user_error;
use anyhow::{Context, Result};
use std::path::Path;
use sumout::model::Notes;
use sumout::training::Checkpoint;
use sumout_data::layout::Split;
use sumout_data::model_files::{self, DATA, layout_of};

/// Reads a checkpoint and its data.
pub fn resume(args: &Args, checkpoint: &Path) -> Result<(Checkpoint, TrainingData)> {
    let stopped = Checkpoint::from_bytes(&model_files::bytes(checkpoint)?)
        .with_context(|| checkpoint.display().to_string())?;
    let model = stopped.model();
    let mut options = args.input.options(Split::Train)?;
    if model.target().is_some() {
        options.target = None; // a column like the others
    }
    let noted: Option<String> = model.about.training.get(VALIDATION_FROM);
    let validation = args.validation.as_deref().or(noted.as_deref());
    let is_sampled = model.about.training.has(SAMPLED);
    let limit = if is_sampled { 0 } else { u64::MAX }; // as at the start, whatever memory there is now
    let layout = layout_of(model);
    let mut data = TrainingData::read(args, &options, Some(&layout), validation, limit)?;
    if model.structure.classes == 1 {
        data.forget_labels();
    }
    if let Some(weights) = model.about.training.get::<Vec<f64>>(CLASS_WEIGHT) {
        data.weigh(&weights);
    }
    warn_of_findings(&data.table.layout);
    check_same(&model.about.training, &data, args, checkpoint)?;
    Ok((stopped, data))
}

/// What to say before a new run, if there is a checkpoint of an earlier run on the same data that did not come to its end.
pub fn unfinished(args: &Args, data: &TrainingData) -> Option<String> {
    let path = checkpoint_path(&args.out);
    if !path.is_file() {
        return None; // a device could go on for ever
    }
    let stopped = Checkpoint::from_bytes(&model_files::bytes(&path).ok()?).ok()?;
    let same: Option<String> = stopped.model().about.training.get(DATA);
    if same != Some(digest(&data.table)) {
        return None;
    }
    let step = stopped.steps_done();
    Some(format!(
        "{} is of a run that stopped after step {step}, before its end; continue it with\n  \
         {}\nThis run starts anew",
        path.display(),
        resume_command(args)
    ))
}

/// The data must be those of the start of the run.
fn check_same(notes: &Notes, data: &TrainingData, args: &Args, checkpoint: &Path) -> Result<()> {
    let file = checkpoint.display();
    // Old checkpoints have no note about validation.
    let before: Option<Option<String>> = notes.has(VALIDATION).then(|| notes.get(VALIDATION));
    let now = data.validation.as_ref().map(digest);
    let problem = match (&before, &now) {
        (Some(Some(_)), None) => {
            format!("{file}: expected --validation as at the start of this run, got none")
        }
        (Some(None), Some(_)) => {
            format!("{file}: expected no --validation, as at the start of this run, got one")
        }
        _ if notes.get(DATA) != Some(digest(&data.table)) => {
            let name = &args.input.data;
            format!("{name}: expected the data that {file} was trained on, got other data")
        }
        (Some(Some(before)), Some(now)) if before != now => {
            format!("--validation: expected the data that {file} was validated on, got other data")
        }
        _ => return Ok(()),
    };
    Err(user_error(problem))
}
