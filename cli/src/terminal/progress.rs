//! The progress of training: a live bar on standard error, and plain lines on standard output. The
//! same seed prints the same lines.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use sumout::Settings;
use sumout::training::Loss;
use sumout::training::Progress;

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
    every: usize,
    since: Loss,
}

impl StepReporter {
    /// For a run of which `done` steps are done. The bar is hidden if standard error is not a
    /// terminal.
    pub fn new(settings: &Settings, done: usize) -> Self {
        let style = "{bar:24} step {pos} of {len}  {msg}  time left {eta}";
        let bar = bar(settings.steps, style).with_position(done as u64);
        bar.reset_eta();
        Self {
            bar,
            batch: settings.batch,
            generative: settings.generative,
            every: settings.steps.div_ceil(LINES),
            since: Loss::default(),
        }
    }

    /// Reports a step.
    pub fn step(&mut self, progress: &Progress, out: &mut impl Write) -> Result<()> {
        self.since.add(&progress.loss);
        self.bar.set_position(progress.step as u64);
        let rate = self.bar.per_sec() * self.batch as f64;
        self.bar
            .set_message(format!("loss {:.3}  {rate:.0} rows/s", progress.objective));
        let Progress { step, steps, .. } = *progress;
        if step.is_multiple_of(self.every) || step == steps {
            let loss = describe(&self.since, self.generative);
            self.line(&format!("step {step:>6} of {steps}  {loss}"), out)?;
            self.since = Loss::default();
        }
        if let Some(validation) = &progress.validation {
            let loss = describe(validation, self.generative);
            self.line(&format!("validation {:>10}  {loss}", ""), out)?;
        }
        Ok(())
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

/// A live bar on standard error.
pub fn bar(length: usize, style: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(style);
    let bar = ProgressBar::new(length as u64);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn describe(loss: &Loss, generative: f64) -> String {
    let accuracy = match loss.labelled {
        0 => String::new(),
        _ => format!("  accuracy {:.4}", loss.accuracy()),
    };
    format!("loss {:.4}{accuracy}", loss.objective(generative))
}
