//! The steps of a run, with progress and checkpoints.

use crate::commands::train::args::Args;
use crate::commands::train::resume_command::{checkpoint_path, resume_command};
use crate::terminal::interrupt::{self, Interrupted};
use crate::terminal::progress::StepReporter;
use crate::terminal::user_error::{in_words, warn};
use anyhow::Result;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sumout::Trainer;
use sumout::training::Progress;
use sumout_data::model_files;

/// Trains to the end, or to Ctrl-C, with checkpoints on the way.
pub fn run(args: &Args, trainer: &mut Trainer<'_>, out: &mut impl Write) -> Result<()> {
    let settings = trainer.settings().clone();
    let mut steps = Steps {
        reporter: StepReporter::new(&settings, trainer.steps_done()),
        checkpoint: checkpoint_path(&args.out),
        due: CheckpointTimes::new(args.checkpoint_every, Instant::now()),
        failed: Ok(()),
        stopped: None,
    };
    let deferred = interrupt::defer(
        "stopping after this step, with a checkpoint; Ctrl-C again stops at once, without one",
    );
    trainer.run_with(|trainer, progress| steps.on_progress(trainer, progress, out))?;
    steps.reporter.finish();
    drop(deferred);
    steps.failed?;
    match steps.stopped {
        Some(step) => {
            let (steps, command) = (settings.steps, resume_command(args));
            let words = format!("stopped after step {step} of {steps}; continue with\n  {command}");
            Err(Interrupted(words).into())
        }
        None => Ok(()),
    }
}

/// What happens after each step.
struct Steps {
    reporter: StepReporter,
    checkpoint: PathBuf,
    due: CheckpointTimes,
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
        let stop = can_save && interrupt::requested();
        if self.failed.is_ok() {
            // A GPU reports some more steps after a failure.
            self.failed = self.reporter.step(progress, out);
            if can_save && self.due.at(step, Instant::now()) && !stop {
                self.save_or_warn(trainer, step);
            }
        }
        if stop && self.failed.is_ok() {
            self.failed = self.save(trainer);
        }
        self.stopped = stop.then_some(step);
        if stop || self.failed.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn save(&self, trainer: &Trainer<'_>) -> Result<()> {
        Ok(model_files::save(&self.checkpoint, &trainer.checkpoint()?)?)
    }

    /// A checkpoint is only a precaution: without one, training goes on.
    fn save_or_warn(&self, trainer: &Trainer<'_>, step: usize) {
        if let Err(error) = self.save(trainer) {
            let error = in_words(&error);
            let line = format!("no checkpoint after step {step}: {error}");
            self.reporter.above_the_bar(|| warn(&line));
        }
    }
}

/// When a checkpoint is written: after so many steps, and after a minute without one.
struct CheckpointTimes {
    every: usize, // steps; 0 for none at all
    last: Instant,
}

impl CheckpointTimes {
    const LONGEST: Duration = Duration::from_secs(60);

    fn new(every: usize, now: Instant) -> Self {
        Self { every, last: now }
    }

    /// Whether one is due after this step.
    fn at(&mut self, step: usize, now: Instant) -> bool {
        let late = now.duration_since(self.last) >= Self::LONGEST;
        let due = self.every > 0 && (late || step.is_multiple_of(self.every));
        if due {
            self.last = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_come_by_steps_and_by_time() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut times = CheckpointTimes::new(1000, start);
        let due = [(1, 0), (999, 59), (1000, 59), (1001, 60), (1002, 119)];
        let due = due.map(|(step, seconds)| times.at(step, after(seconds)));
        assert_eq!(due, [false, false, true, false, true]);
        let mut never = CheckpointTimes::new(0, start);
        assert!(!never.at(1000, after(1000)));
    }
}
