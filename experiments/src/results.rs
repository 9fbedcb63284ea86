//! Result files: `results/NAME.json`, written again after every run, so that an experiment that was
//! stopped continues where it was.

use crate::experiment::{Experiment, Method};
use crate::inputs::test_masks;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sumout_data::model_files;

/// The contents of a result file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The name of the experiment.
    pub name: String,
    /// The name in tables and curves.
    pub title: String,
    /// What was run.
    pub method: Method,
    /// What to type to run it again.
    pub command: String,
    /// SHA-256 of the data.
    pub data: String,
    /// The plan at the time of the run.
    pub plan: Value,
    /// All settings that follow from the plan, if the method reports them.
    pub settings: Value,
    /// Kinds of holes.
    pub columns: Vec<String>,
    /// The runs, in the order of rows and seeds.
    pub runs: Vec<Run>,
}

/// One seed of one row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Names the row if an experiment has several, for example by what it was trained on.
    #[serde(default)]
    pub row: String,
    /// Of weights and of all else that the method samples.
    pub seed: u64,
    /// Of the holes.
    pub mask_seed: u64,
    /// Training images.
    pub train: usize,
    /// Test images, for each column.
    pub test: usize,
    /// Seconds of training.
    pub train_seconds: f64,
    /// Seconds of testing, all columns together.
    pub test_seconds: f64,
    /// What computed it.
    pub machine: String,
    /// In percent, one for each column.
    pub accuracies: Vec<f64>,
}

/// One row of a table with its runs, one for each seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// The name of the row; empty if the experiment has only one.
    pub name: String,
    /// One for each seed.
    pub runs: Vec<&'a Run>,
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; none for one seed.
    pub deviation: Option<f64>,
}

impl Record {
    /// Whether it has all 16 columns of the paper.
    pub fn is_whole(&self) -> bool {
        self.columns == test_masks::all_texts()
    }

    /// Whether it ran on that data set; MNIST is what plans do not name.
    pub fn is_on(&self, set: &str) -> bool {
        self.plan["set"].as_str().unwrap_or("mnist") == set
    }

    /// Rows in the order of their runs.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        for run in &self.runs {
            match rows.iter_mut().find(|row| row.name == run.row) {
                Some(row) => row.runs.push(run),
                None => rows.push(Row {
                    name: run.row.clone(),
                    runs: vec![run],
                }),
            }
        }
        rows
    }

    /// The title, and the name of the row if it has one.
    pub fn title_of(&self, row: &str) -> String {
        format!("{}{}", self.title, after_comma(row))
    }
}

/// A row's name behind a comma, or nothing.
pub fn after_comma(row: &str) -> String {
    if row.is_empty() {
        String::new()
    } else {
        format!(", {row}")
    }
}

/// All seeds, each once.
pub fn seeds(runs: &[Run]) -> Vec<u64> {
    let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}

/// The mean of one column over seeds.
pub fn spread(runs: &[&Run], column: usize) -> Spread {
    let n = runs.len() as f64;
    let mean = runs.iter().map(|run| run.accuracies[column]).sum::<f64>() / n;
    let squared = |run: &&Run| (run.accuracies[column] - mean).powi(2);
    let squares: f64 = runs.iter().map(squared).sum();
    let deviation = (runs.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
    Spread { mean, deviation }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deviation {
            Some(deviation) => write!(f, "{:.2} ± {deviation:.2}", self.mean),
            None => write!(f, "{:.2}", self.mean),
        }
    }
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

/// The result file of an experiment that is running.
pub struct ResultFile {
    path: PathBuf,
    record: Mutex<Record>,
}

impl ResultFile {
    /// Continues with the file that is there, if it has the same plan and data. `again` starts
    /// over.
    pub fn open(
        experiment: &Experiment,
        checksum: &str,
        command: String,
        again: bool,
    ) -> Result<Self> {
        let folder = &experiment.results;
        let path = folder.join(format!("{}.json", experiment.name));
        let fresh = Record {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            method: experiment.method,
            command,
            data: checksum.into(),
            plan: serde_json::to_value(experiment)?,
            settings: Value::Null,
            columns: experiment.columns.clone(),
            runs: Vec::new(),
        };
        let old = if path.exists() && !again {
            Some(read(&path)?)
        } else {
            None
        };
        let old = old.filter(|old| old.plan == fresh.plan && old.data == fresh.data);
        fs::create_dir_all(folder)?;
        Ok(Self {
            path,
            record: Mutex::new(old.unwrap_or(fresh)),
        })
    }

    /// Whether the file has this run.
    pub fn has(&self, row: &str, seed: u64) -> bool {
        let runs = &self.record().runs;
        runs.iter().any(|run| run.row == row && run.seed == seed)
    }

    /// All settings that follow from the plan.
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
        let text = serde_json::to_string_pretty(&*record)? + "\n";
        Ok(model_files::save(&self.path, text.as_bytes())?)
    }

    /// Saves a model beside the results; it stays out of the repository.
    pub fn save_model(&self, model: &[u8]) -> Result<()> {
        Ok(model_files::save(
            &self.path.with_extension("sumout"),
            model,
        )?)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All result files of a folder, by name.
pub fn records(folder: &Path) -> Result<Vec<Record>> {
    let results = folder.join("results");
    let cannot_read = || format!("cannot read {}", results.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(&results).with_context(cannot_read)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

/// Reads a result file.
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
    let name = value_in_file(Path::new("/proc/cpuinfo"), "model name")
        .unwrap_or_else(|| "an unknown processor".into());
    format!("{cores} cores of {name}")
}

/// The first GPU in words.
pub fn gpu() -> String {
    let folders = fs::read_dir("/proc/driver/nvidia/gpus").into_iter();
    folders
        .flatten()
        .flatten()
        .find_map(|gpu| value_in_file(&gpu.path().join("information"), "Model"))
        .unwrap_or_else(|| "a GPU".into())
}

/// The text behind the colon of the line that begins with `key`.
fn value_in_file(path: &Path, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim().to_owned())
}
