//! How far a run has come: a live bar on standard error, and plain lines on standard output that are the same for the
//! same seed.

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use sumout::training::{Loss, Progress};

/// Lines a run prints.
const LINES: usize = 10;

/// Writes on after its reader has gone: what training makes is a file, and the lines are a courtesy.
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

/// Reports a run.
pub struct Report {
    bar: ProgressBar,
    batch: usize,
    generative: f64,
    every: usize,
    since: Loss,
}

impl Report {
    /// For a run of so many steps of so many rows, of which some are done. The bar is hidden where nobody sees it.
    pub fn new(steps: usize, done: usize, batch: usize, generative: f64) -> Self {
        let bar = ProgressBar::new(steps as u64).with_position(done as u64);
        let style = "{bar:24} step {pos} of {len}  {msg}  time left {eta}";
        bar.set_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.reset_eta();
        Self {
            bar,
            batch,
            generative,
            every: steps.div_ceil(LINES),
            since: Loss::default(),
        }
    }

    /// Hears of a step.
    pub fn step(&mut self, progress: &Progress, out: &mut impl Write) -> Result<()> {
        self.since.add(&progress.loss);
        self.bar.set_position(progress.step as u64);
        let rate = self.bar.per_sec() * self.batch as f64;
        self.bar
            .set_message(format!("loss {:.3}  {rate:.0} rows/s", progress.objective));
        let due = progress.step.is_multiple_of(self.every) || progress.step == progress.steps;
        if due {
            let Progress { step, steps, .. } = *progress;
            let line = format!(
                "step {step:>6} of {steps}  {}",
                describe(&self.since, self.generative)
            );
            self.line(&line, out)?;
            self.since = Loss::default();
        }
        if let Some(validation) = &progress.validation {
            let line = format!(
                "validation {:>10}  {}",
                "",
                describe(validation, self.generative)
            );
            self.line(&line, out)?;
        }
        Ok(())
    }

    /// A line above the bar.
    fn line(&self, line: &str, out: &mut impl Write) -> Result<()> {
        self.bar
            .suspend(|| writeln!(out, "{line}").and_then(|()| out.flush()))?;
        Ok(())
    }

    /// Takes the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn describe(loss: &Loss, generative: f64) -> String {
    let accuracy = match loss.labelled {
        0 => String::new(),
        _ => format!("  accuracy {:.4}", loss.accuracy()),
    };
    format!("loss {:.4}{accuracy}", loss.objective(generative))
}
