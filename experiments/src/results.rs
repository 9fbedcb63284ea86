//! Results: `experiments/results/NAME.json`, written anew after every run, so that an experiment that was stopped goes
//! on with what is left.

use crate::plan::{Method, Plan};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sumout_data::model_files;

/// What is known of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of its plan.
    pub name: String,
    /// What tables and curves call it.
    pub title: String,
    /// What was run.
    pub method: Method,
    /// What to type to run it again.
    pub command: String,
    /// SHA-256 of the data.
    pub data: String,
    /// The plan as it was.
    pub plan: Value,
    /// All settings that followed from it, where the method says so.
    pub settings: Value,
    /// Kinds of holes.
    pub columns: Vec<String>,
    /// What came of it, in the order of rows and seeds.
    pub runs: Vec<Run>,
}

/// One seed of one row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Tells rows apart where an experiment has several: what it was trained on, say.
    #[serde(default)]
    pub row: String,
    /// Of weights and whatever else the method draws.
    pub seed: u64,
    /// Of the holes.
    pub mask_seed: u64,
    /// Images learned from.
    pub train: usize,
    /// Images asked about, for each column.
    pub test: usize,
    /// Seconds of learning.
    pub train_seconds: f64,
    /// Seconds of answering, all columns together.
    pub test_seconds: f64,
    /// What computed it.
    pub machine: String,
    /// In percent, one for each column.
    pub accuracies: Vec<f64>,
}

#[cfg(test)]
impl Run {
    /// One of an abacus, for tests.
    pub fn example(row: &str, seed: u64, accuracies: Vec<f64>) -> Self {
        Self {
            row: row.into(),
            seed,
            mask_seed: seed,
            train: 60_000,
            test: 10_000,
            train_seconds: 100.0,
            test_seconds: 20.4,
            machine: "an abacus".into(),
            accuracies,
        }
    }
}

/// A record that is being written.
pub struct Book {
    path: PathBuf,
    record: Mutex<Record>,
}

impl Book {
    /// Goes on with what is there, if it came of the same plan and data.
    pub fn open(
        folder: &Path,
        plan: &Plan,
        data: &str,
        command: String,
        again: bool,
    ) -> Result<Self> {
        let path = folder.join("results").join(format!("{}.json", plan.name));
        let fresh = Record {
            name: plan.name.clone(),
            title: plan.title.clone(),
            method: plan.method,
            command,
            data: data.into(),
            plan: serde_json::to_value(plan)?,
            settings: Value::Null,
            columns: plan.columns.clone(),
            runs: Vec::new(),
        };
        let old = if path.exists() && !again {
            Some(read(&path)?)
        } else {
            None
        };
        let old = old.filter(|old| old.plan == fresh.plan && old.data == fresh.data);
        fs::create_dir_all(folder.join("results"))?;
        Ok(Self {
            path,
            record: Mutex::new(old.unwrap_or(fresh)),
        })
    }

    /// Whether this was run before.
    pub fn has(&self, row: &str, seed: u64) -> bool {
        self.record()
            .runs
            .iter()
            .any(|run| run.row == row && run.seed == seed)
    }

    /// What followed from the plan.
    pub fn set_settings(&self, settings: Value) {
        self.record().settings = settings;
    }

    /// Adds a run and writes the file.
    pub fn add(&self, run: Run) -> Result<()> {
        let mut record = self.record();
        record.runs.push(run);
        record
            .runs
            .sort_by(|a, b| (&a.row, a.seed).cmp(&(&b.row, b.seed)));
        model_files::save(
            &self.path,
            (serde_json::to_string_pretty(&*record)? + "\n").as_bytes(),
        )?;
        Ok(())
    }

    /// A file beside the results, of this experiment.
    #[cfg_attr(
        not(feature = "networks"),
        allow(dead_code, reason = "nets are kept there")
    )]
    pub fn beside(&self, name: &str) -> PathBuf {
        let own = self.path.file_stem().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!("{own}-{name}"))
    }

    /// Keeps a model beside the results; it stays out of the repository.
    pub fn keep(&self, model: &[u8]) -> Result<()> {
        Ok(model_files::save(
            &self.path.with_extension("sumout"),
            model,
        )?)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a record.
pub fn read(path: &Path) -> Result<Record> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// Seconds to a tenth.
pub fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

/// This machine in words.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let name = line_of(Path::new("/proc/cpuinfo"), "model name")
        .unwrap_or_else(|| "an unknown processor".into());
    format!("{cores} cores of {name}")
}

/// Its first GPU in words.
pub fn gpu() -> String {
    let cards = fs::read_dir("/proc/driver/nvidia/gpus")
        .into_iter()
        .flatten()
        .flatten();
    let name = cards
        .filter_map(|card| line_of(&card.path().join("information"), "Model"))
        .next();
    name.unwrap_or_else(|| "a GPU".into())
}

/// What stands behind the colon of the line that begins so.
fn line_of(path: &Path, begins: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, value) = text
        .lines()
        .find(|line| line.starts_with(begins))?
        .split_once(':')?;
    Some(value.trim().to_owned())
}
