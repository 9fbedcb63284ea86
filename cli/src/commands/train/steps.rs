//! The steps of a run, with progress and checkpoints.

use crate::commands::train::args::Args;
use crate::options::input::Unseen;
use crate::terminal::hints::quoted;
use crate::terminal::interrupt::{self, Interrupted};
use crate::terminal::progress::StepReporter;
use anyhow::Result;
use clap::ValueEnum;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sumout::Trainer;
use sumout::training::Progress;
use sumout_data::model_files;

/// Steps between checkpoints, if the user does not say.
pub const CHECKPOINT_EVERY: usize = 1000;

/// Time between them, at least, if the user does not say: on a GPU, 1000 steps are done sooner than
/// written.
const PAUSE: Duration = Duration::from_secs(10);

/// Trains to the end, or to Ctrl-C, with checkpoints on the way.
pub fn run(args: &Args, trainer: &mut Trainer<'_>, out: &mut impl Write) -> Result<()> {
    let settings = trainer.settings().clone();
    let mut steps = Steps {
        reporter: StepReporter::new(&settings, trainer.steps_done()),
        checkpoint: checkpoint_path(&args.out),
        checkpoint_every: args.checkpoint_every.unwrap_or(CHECKPOINT_EVERY),
        pause: args.checkpoint_every.map_or(PAUSE, |_| Duration::ZERO),
        saved: Instant::now(),
        failed: Ok(()),
        stopped: None,
    };
    let deferred = interrupt::defer();
    trainer.run_with(|trainer, progress| steps.on_progress(trainer, progress, out))?;
    steps.reporter.finish();
    drop(deferred);
    steps.failed?;
    match steps.stopped {
        Some(step) => Err(Interrupted(how_to_resume(args, step, settings.steps)).into()),
        None => Ok(()),
    }
}

/// What happens after each step.
struct Steps {
    reporter: StepReporter,
    checkpoint: PathBuf,
    checkpoint_every: usize, // 0 for none
    pause: Duration,         // between two of them
    saved: Instant,          // when the last one was written, or the run began
    failed: Result<()>,
    stopped: Option<usize>, // the step after which Ctrl-C stopped the run
}

impl Steps {
    fn on_progress(
        &mut self,
        trainer: &Trainer<'_>,
        progress: &Progress,
        out: &mut impl Write,
    ) -> ControlFlow<()> {
        let Progress { step, steps, .. } = *progress;
        // A GPU can be ahead of the step that it reports. At the end, the model itself is written.
        let can_save = step == trainer.steps_done() && step != steps;
        let due = self.checkpoint_every > 0
            && step.is_multiple_of(self.checkpoint_every)
            && self.saved.elapsed() >= self.pause;
        let stop = can_save && interrupt::requested();
        if self.failed.is_ok() {
            // A GPU reports some more steps after a failure.
            let save = stop || (can_save && due);
            self.failed = self.report(trainer, progress, save, out);
        }
        self.stopped = stop.then_some(step);
        if stop || self.failed.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn report(
        &mut self,
        trainer: &Trainer<'_>,
        progress: &Progress,
        save: bool,
        out: &mut impl Write,
    ) -> Result<()> {
        self.reporter.step(progress, out)?;
        if save {
            model_files::save(&self.checkpoint, &trainer.checkpoint()?)?;
            self.saved = Instant::now();
        }
        Ok(())
    }
}

/// What to type to continue.
fn how_to_resume(args: &Args, step: usize, steps: usize) -> String {
    let checkpoint = checkpoint_path(&args.out).to_string_lossy().into_owned();
    let half = args.input.split.and_then(|half| half.to_possible_value());
    let (device, precision) = args.device.given();
    let options = [
        ("resume", Some(checkpoint)),
        ("data", Some(args.input.data.clone())),
        ("labels", args.input.labels.clone()),
        ("split", half.map(|half| half.get_name().to_owned())),
        ("validation", args.validation.clone()),
        ("device", device),
        ("precision", precision),
        ("out", Some(args.out.to_string_lossy().into_owned())),
    ];
    let mut command = String::from("sumout train");
    for (name, value) in options {
        if let Some(value) = value {
            command += &format!(" --{name} {}", quoted(&value));
        }
    }
    if args.input.no_header {
        command += " --no-header";
    }
    if args.input.unseen == Unseen::Missing {
        command += " --unseen missing";
    }
    format!("stopped after step {step} of {steps}; continue with\n  {command}")
}

/// `model.checkpoint.sumout` beside `model.sumout`, and `model.1.checkpoint.sumout` beside
/// `model.1`.
pub fn checkpoint_path(out: &Path) -> PathBuf {
    let stem = if out.extension().is_some_and(|end| end == "sumout") {
        out.with_extension("")
    } else {
        out.to_owned()
    };
    let mut name = stem.into_os_string();
    name.push(".checkpoint.sumout");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_of_models_do_not_share_a_name() {
        let beside = |out: &str| checkpoint_path(Path::new(out)).display().to_string();
        assert_eq!(beside("a/model.sumout"), "a/model.checkpoint.sumout");
        assert_eq!(beside("run.1"), "run.1.checkpoint.sumout");
        assert_eq!(beside("run.2"), "run.2.checkpoint.sumout");
    }
}
