//! One line per job, for people or as JSON.

use anyhow::{Context, Result};
use serde::Serialize;
use std::io::Write;
use sumout::{Device, Precision};

/// A line of JSON.
#[derive(Serialize)]
struct BenchLine {
    peer: &'static str,
    job: &'static str,
    device: String,
    batch: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    computed_again: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gflop_per_s: Option<f64>,
}

/// Time and operations of a matrix product.
pub struct Measured {
    pub seconds: f64,
    pub flops: f64,
}

/// A job that goes through rows.
pub struct RowsJob {
    pub job: &'static str,
    /// Rows in this many seconds.
    pub rows: usize,
    pub seconds: f64,
    /// Multiply-adds of one row.
    pub edges: usize,
    /// The share of the rows that were computed again, where that was counted.
    pub computed_again: Option<f64>,
}

/// Prints one line per job.
pub struct Reporter<'a, W: Write> {
    pub json: bool,
    pub batch: usize,
    pub device: Device,
    pub out: &'a mut W,
}

impl<W: Write> Reporter<'_, W> {
    /// The first line, for people.
    pub fn start(&mut self, name: &str, precision: Precision) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let what = match self.device {
            Device::Cpu => format!("{} threads", rayon::current_num_threads()),
            Device::Cuda(_) => format!("{} in {precision:?}", self.device),
        };
        let batch = self.batch;
        writeln!(self.out, "{name} on {what}, batches of {batch}")?;
        Ok(())
    }

    /// A job that goes through rows.
    pub fn rows(&mut self, measured: &RowsJob) -> Result<()> {
        let rate = rate(measured.rows as f64, measured.seconds);
        let job = measured.job;
        let line = BenchLine {
            samples_per_s: Some(rate),
            edges: Some(measured.edges),
            computed_again: measured.computed_again,
            ..self.empty_line(job)
        };
        let again = measured
            .computed_again
            .map(|share| format!("  {:.2} % computed again", 100.0 * share));
        let again = again.unwrap_or_default();
        self.print(&line, &format!("{job:<13} {rate:>10.1} samples/s{again}"))
    }

    /// A job of matrix products.
    pub fn products(&mut self, job: &'static str, measured: &Measured) -> Result<()> {
        let rate = rate(measured.flops / 1e9, measured.seconds);
        let line = BenchLine {
            gflop_per_s: Some(rate),
            ..self.empty_line(job)
        };
        self.print(&line, &format!("{job:<13} {rate:>10.1} GFLOP/s"))
    }

    fn empty_line(&self, job: &'static str) -> BenchLine {
        BenchLine {
            peer: "sumout",
            job,
            device: self.device.to_string(),
            batch: self.batch,
            samples_per_s: None,
            edges: None,
            computed_again: None,
            gflop_per_s: None,
        }
    }

    fn print(&mut self, line: &BenchLine, text: &str) -> Result<()> {
        if self.json {
            writeln!(self.out, "{}", serde_json::to_string(line)?)?;
        } else {
            writeln!(self.out, "{text}")?;
        }
        self.out.flush().context("standard output")
    }
}

/// Per second, to a tenth.
fn rate(count: f64, seconds: f64) -> f64 {
    (10.0 * count / seconds).round() / 10.0
}
