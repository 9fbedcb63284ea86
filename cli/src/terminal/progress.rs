//! The progress of training: a live bar on standard error, and plain lines on standard output. The
//! same seed prints the same lines.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use sumout::Settings;
use sumout::recipes::{FitProgress, Part};
use sumout::training::Loss;

/// Lines that a run prints.
const LINES: usize = 10;

/// Ignores a closed pipe: training makes a file, so it does not stop when nobody reads its lines.
pub struct Patient<W: Write>(pub W);

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

/// Reports the steps of a run.
pub struct StepReporter {
    bar: ProgressBar,
    batch: usize,
    generative: f64,
    since: Loss,
    started: Instant,
    first: usize,                // steps that were done before
    trial: Option<(Part, Loss)>, // the trial under way, and its best loss on the held-out rows
}

impl StepReporter {
    /// For a run of which `done` steps are done. The bar is hidden if standard error is not a
    /// terminal.
    pub fn new(settings: &Settings, steps: usize, done: usize) -> Self {
        let style = "{bar:24} step {pos} of {len}  {msg}  time left {eta}";
        let bar = bar(steps, style).with_position(done as u64);
        bar.reset_eta();
        Self {
            bar,
            batch: settings.batch,
            generative: settings.generative,
            since: Loss::default(),
            started: Instant::now(),
            first: done,
            trial: None,
        }
    }

    /// Reports a step.
    pub fn step(&mut self, progress: &FitProgress, out: &mut impl Write) -> Result<()> {
        self.since.add(&progress.loss);
        self.bar.set_length(progress.steps as u64);
        self.bar.set_position(progress.step as u64);
        let rate = self.bar.per_sec() * self.batch as f64;
        self.bar
            .set_message(format!("loss {:.3}  {rate:.0} rows/s", progress.objective));
        self.trial_step(progress, out)?;
        if matches!(progress.part, Part::Trial { .. }) {
            self.since = Loss::default();
            return Ok(());
        }
        let FitProgress { step, steps, .. } = *progress;
        if step.is_multiple_of(steps.div_ceil(LINES)) || step == steps {
            let (part, loss) = (name(progress.part), describe(&self.since, self.generative));
            self.line(&format!("step {step:>6} of {steps}{part}  {loss}"), out)?;
            self.since = Loss::default();
            self.say_time_left(step - self.first, steps - step);
        }
        if let Some(validation) = &progress.validation {
            let loss = describe(validation, self.generative);
            self.line(&format!("validation {:>10}  {loss}", ""), out)?;
        }
        Ok(())
    }

    /// Notes the best loss of a trial, and prints it when the next part begins.
    fn trial_step(&mut self, progress: &FitProgress, out: &mut impl Write) -> Result<()> {
        if let Some((Part::Trial { number, of }, best)) =
            self.trial.take_if(|(part, _)| *part != progress.part)
        {
            let loss = describe(&best, self.generative);
            self.line(&format!("trial {number:>5} of {of}  held-out {loss}"), out)?;
        }
        let Some(loss) = progress.validation else {
            return Ok(());
        };
        if matches!(progress.part, Part::Trial { .. }) {
            let objective = |loss: &Loss| loss.objective(self.generative);
            let is_better = |(_, best): &(Part, Loss)| objective(&loss) < objective(best);
            if self.trial.as_ref().is_none_or(is_better) {
                self.trial = Some((progress.part, loss));
            }
        }
        Ok(())
    }

    /// The time left on standard error, where there is no bar to show it. Not with the lines: those are the same for the
    /// same seed.
    fn say_time_left(&self, done: usize, to_do: usize) {
        let words = time_left(self.started.elapsed(), done, to_do);
        if let Some(words) = words.filter(|_| self.bar.is_hidden()) {
            let _ = writeln!(io::stderr(), "time left {words}");
        }
    }

    /// A line above the bar.
    fn line(&self, line: &str, out: &mut impl Write) -> Result<()> {
        self.above_the_bar(|| writeln!(out, "{line}").and_then(|()| out.flush()))?;
        Ok(())
    }

    /// Prints something while the bar is away.
    pub fn above_the_bar<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Reports the steps of a fit over all rows, where they do not fit into memory.
pub struct RoundReporter {
    bar: ProgressBar,
    steps: usize,
}

impl RoundReporter {
    /// For a run of which `done` steps are done.
    pub fn new(steps: usize, done: usize) -> Self {
        let style = "{bar:24} step {pos} of {len}  {msg}  time left {eta}";
        let bar = bar(steps, style).with_position(done as u64);
        bar.reset_eta();
        Self { bar, steps }
    }

    /// Reports a step; some of them also as a line.
    pub fn step(&self, step: usize, loss: &Loss, beta: f64, out: &mut impl Write) -> Result<()> {
        self.bar.set_position(step as u64);
        let words = describe(loss, beta);
        self.bar.set_message(words.clone());
        let steps = self.steps;
        if step.is_multiple_of(steps.div_ceil(LINES)) || step == steps {
            let line = format!("step {step:>6} of {steps}  {words}");
            self.bar
                .suspend(|| writeln!(out, "{line}").and_then(|()| out.flush()))?;
        }
        Ok(())
    }
}

/// How long the steps that are left will take, in words; nothing if that is soon, or if it is too early to say.
fn time_left(elapsed: Duration, done: usize, to_do: usize) -> Option<String> {
    const SHORT: f64 = 10.0; // seconds
    let elapsed = elapsed.as_secs_f64();
    let left = elapsed / done.max(1) as f64 * to_do as f64;
    (elapsed + left > SHORT && to_do > 0).then(|| match left.round() as u64 {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    })
}

/// A live bar on standard error.
pub fn bar(length: usize, style: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(style);
    let bar = ProgressBar::new(length as u64);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// What is trained, where there are several parts.
fn name(part: Part) -> String {
    match part {
        Part::Tree { number, of } if of > 1 => format!("  tree {number} of {of}"),
        Part::Together => "  all together".to_owned(),
        _ => String::new(),
    }
}

fn describe(loss: &Loss, generative: f64) -> String {
    let accuracy = match loss.labelled {
        0 => String::new(),
        _ => format!("  accuracy {:.4}", loss.accuracy()),
    };
    format!("loss {:.4}{accuracy}", loss.objective(generative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_in_words() {
        let after = |seconds, done, to_do| time_left(Duration::from_secs(seconds), done, to_do);
        assert_eq!(after(1, 10, 40), None, "it takes five seconds in all");
        assert_eq!(after(10, 10, 90).unwrap(), "90 s");
        assert_eq!(after(10, 10, 290).unwrap(), "5 min");
        assert_eq!(after(100, 10, 720).unwrap(), "2.0 h");
        assert_eq!(after(100, 10, 0), None);
    }
}
