//! The steps of a run, with progress and checkpoints.

use crate::commands::train::args::Args;
use crate::commands::train::resume_command::{checkpoint_path, resume_command};
use crate::terminal::interrupt::{self, Interrupted};
use crate::terminal::progress::StepReporter;
use crate::terminal::user_error::{in_words, warn};
use anyhow::Result;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use sumout::recipes::{FitProgress, Fitting};
use sumout_data::model_files;
use sumout_data::notation::Notation;

/// Trains to the end, or to Ctrl-C, with checkpoints on the way.
pub fn run(args: &Args, fitting: &mut Fitting<'_>, out: &mut impl Write) -> Result<()> {
    let checkpoint = checkpoint_path(&args.out);
    let mut steps = Steps {
        reporter: StepReporter::new(fitting.settings(), fitting.steps(), fitting.steps_done()),
        due: CheckpointTimes::new(args.checkpoint_every, Instant::now()),
        next: Next::GoOn,
    };
    fitting.prepare()?; // there is nothing to keep yet: Ctrl-C ends the program
    let deferred = interrupt::defer(
        "stopping after this step, with a checkpoint; Ctrl-C again stops at once, without one",
    );
    while !fitting.is_done() {
        steps.next = Next::GoOn;
        fitting.run_with(|progress| steps.on_progress(progress, out))?;
        match std::mem::replace(&mut steps.next, Next::GoOn) {
            Next::GoOn => {}
            Next::Save => save_or_warn(&checkpoint, fitting, &steps.reporter),
            Next::Fail(error) => return Err(error),
            Next::Stop => {
                save(&checkpoint, fitting)?;
                steps.reporter.finish();
                drop(deferred);
                let (step, steps) = (fitting.steps_done(), fitting.steps());
                let command = resume_command(args);
                let words =
                    format!("stopped after step {step} of {steps}; continue with\n  {command}");
                return Err(Interrupted(words).into());
            }
        }
    }
    steps.reporter.finish();
    Ok(())
}

/// What to do after a step.
enum Next {
    GoOn,
    Save,
    Stop,
    Fail(anyhow::Error),
}

/// What happens after each step.
struct Steps {
    reporter: StepReporter,
    due: CheckpointTimes,
    next: Next,
}

impl Steps {
    fn on_progress(&mut self, progress: &FitProgress, out: &mut impl Write) -> ControlFlow<()> {
        if matches!(self.next, Next::GoOn) {
            // A GPU reports some more steps after a break.
            let is_last = progress.step == progress.steps; // then the model itself is written
            self.next = match self.reporter.step(progress, out) {
                Err(error) => Next::Fail(error),
                Ok(()) if is_last => Next::GoOn,
                Ok(()) if interrupt::requested() => Next::Stop,
                Ok(()) if self.due.at(progress.step, Instant::now()) => Next::Save,
                Ok(()) => Next::GoOn,
            };
        }
        match self.next {
            Next::GoOn => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }
}

fn save(path: &Path, fitting: &mut Fitting<'_>) -> Result<()> {
    if fitting.is_done() {
        return Ok(()); // the model itself is written
    }
    Ok(model_files::save(path, &fitting.checkpoint()?)?)
}

/// A checkpoint is only a precaution: without one, training goes on.
fn save_or_warn(path: &Path, fitting: &mut Fitting<'_>, reporter: &StepReporter) {
    if let Err(error) = save(path, fitting) {
        let (step, error) = (fitting.steps_done(), in_words(&error, Notation::default()));
        let line = format!("no checkpoint after step {step}: {error}");
        reporter.above_the_bar(|| warn(&line));
    }
}

/// When a checkpoint is written: after so many steps, and after a minute without one.
pub struct CheckpointTimes {
    every: usize,    // steps; 0 for none at all
    pause: Duration, // between two of them
    last: Instant,
}

impl CheckpointTimes {
    /// Steps between checkpoints, if nothing is given; then they are also some time apart.
    const EVERY: usize = 1000;
    const PAUSE: Duration = Duration::from_secs(10);
    const LONGEST: Duration = Duration::from_secs(60);

    pub fn new(every: Option<usize>, now: Instant) -> Self {
        Self {
            every: every.unwrap_or(Self::EVERY),
            pause: every.map_or(Self::PAUSE, |_| Duration::ZERO),
            last: now,
        }
    }

    /// Whether one is due after this step.
    pub fn at(&mut self, step: usize, now: Instant) -> bool {
        let since = now.duration_since(self.last);
        let by_steps = self.every > 0 && step.is_multiple_of(self.every) && since >= self.pause;
        let due = by_steps || (self.every > 0 && since >= Self::LONGEST);
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
        let mut times = CheckpointTimes::new(Some(1000), start);
        let due = [(1, 0), (999, 59), (1000, 59), (1001, 60), (1002, 119)];
        let due = due.map(|(step, seconds)| times.at(step, after(seconds)));
        assert_eq!(due, [false, false, true, false, true]);
        let mut usual = CheckpointTimes::new(None, start);
        let due = [(1000, 9), (2000, 10), (3000, 19), (3001, 70)];
        let due = due.map(|(step, seconds)| usual.at(step, after(seconds)));
        assert_eq!(due, [false, true, false, true]);
        let mut never = CheckpointTimes::new(Some(0), start);
        assert!(!never.at(1000, after(1000)));
    }
}
