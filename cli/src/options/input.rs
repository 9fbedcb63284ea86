//! Where rows and labels come from: the arguments that commands share.

use anyhow::Result;
use clap::ValueEnum;
use std::io::Write;
use sumout::Model;
use sumout_data::error::mistake;
use sumout_data::layout::some_of;
use sumout_data::layout::{Chunk, ColumnKind, Keep, Layout, Request, Rows, Split};
use sumout_data::model_files::layout_of;

/// One half of a data set that comes in two.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Half {
    /// To learn from
    Train,
    /// To be judged by
    Test,
}

/// What becomes of a name that the model does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unseen {
    /// A mistake
    Error,
    /// Missing
    Missing,
}

/// Where rows that are made go, and how what is random in them is drawn.
#[derive(Debug, clap::Args)]
pub struct Drawn {
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where rows go: .csv, .jsonl, .npy, .png or .parquet; `-` is standard output as CSV
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub out: String,
}

/// Which columns of a table stay beside the answers.
#[derive(Debug, clap::Args)]
pub struct KeepArgs {
    /// Columns to write beside the answers, such as an identifier; may be given many times
    #[arg(long, value_name = "COLUMN")]
    keep: Vec<String>,
    /// Write all columns beside the answers
    #[arg(long, conflicts_with = "keep")]
    keep_all: bool,
}

impl KeepArgs {
    /// For the reader.
    pub fn keep(&self) -> Keep {
        match self.keep_all {
            true => Keep::All,
            false if self.keep.is_empty() => Keep::Nothing,
            false => {
                let mut seen = std::collections::HashSet::new();
                Keep::Named(
                    self.keep
                        .iter()
                        .filter(|name| seen.insert(*name))
                        .cloned()
                        .collect(),
                )
            }
        }
    }
}

/// Rows to be asked about.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// A file (IDX, NPY, NPZ, CSV, JSON lines, Parquet, PNG; gzip where usual), a folder of PNGs, the name of a data set,
    /// or `-` for standard input. An empty cell, NA, N/A, NaN, null and None are missing
    #[arg(long, value_name = "DATA")]
    pub data: String,
    /// A file with one label for each row, where they are not in the data or beside them
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,
    /// The column of a table that holds the class
    #[arg(long, value_name = "COLUMN", conflicts_with = "labels")]
    pub target: Option<String>,
    /// The first line of a CSV file is data, not names: columns are called x0, x1, … or go by their order
    #[arg(long)]
    pub no_header: bool,
    /// A cell with this text is missing too, such as `?` or -999; may be given many times. A model remembers it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub na: Vec<String>,
    /// What a category or class is that the model has never met
    #[arg(long, value_enum, default_value_t = Unseen::Error)]
    pub unseen: Unseen,
    /// Which half of a data set that comes in two [default: train for `sumout train`, else test]
    #[arg(long, value_name = "HALF")]
    pub split: Option<Half>,
}

impl Input {
    /// The file of labels, or nothing.
    pub fn labels_file(&self) -> &str {
        self.labels.as_deref().unwrap_or_default()
    }

    /// What the reader is asked for.
    pub fn request(&self, split: Split, model: Option<Layout>) -> Request {
        let split = match self.split {
            Some(Half::Train) => Split::Train,
            Some(Half::Test) => Split::Test,
            None => split,
        };
        Request {
            split,
            target: self.target.clone(),
            no_header: self.no_header,
            na: self.na.clone(),
            unseen_missing: self.unseen == Unseen::Missing,
            model,
            ..Request::default()
        }
    }

    /// Opens the rows for a model without looking at their labels; says on standard error which columns are not used.
    pub fn open_unlabelled(&self, model: &Model, keep: Keep) -> Result<Rows> {
        let named = matches!(keep, Keep::Named(_));
        let request = self.request(Split::Test, Some(layout_of(model)));
        let mut rows = sumout_data::open(
            &self.data,
            &Request {
                no_labels: true,
                keep,
                ..request
            },
        )?;
        if named && rows.layout.kept.is_empty() {
            return Err(mistake(format!(
                "--keep: expected a table with names, got {}",
                self.data
            )));
        }
        say_ignored(&rows.layout);
        Ok(Rows::new(rows.layout.clone(), move || {
            let chunk = rows.next().transpose()?;
            Ok(chunk.map(|chunk| Chunk {
                labels: None,
                ..chunk
            }))
        }))
    }

    /// Opens the rows for a model, with their labels; says on standard error which columns are not used.
    pub fn open(&self, model: &Model, keep: Keep) -> Result<Rows> {
        let request = self.request(Split::Test, Some(layout_of(model)));
        let mut rows =
            self.with_labels(sumout_data::open(&self.data, &Request { keep, ..request })?)?;
        say_ignored(&rows.layout);
        let (data, last) = (self.data.clone(), model.structure.classes as i64 - 1);
        Ok(Rows::new(rows.layout.clone(), move || {
            let chunk = rows.next().transpose()?;
            let mut labels = chunk
                .iter()
                .flat_map(|chunk| chunk.labels.iter().flatten().zip(chunk.first..));
            if let Some((label, row)) = labels.find(|(label, _)| **label > last) {
                return Err(mistake(format!(
                    "{data} row {row}: expected a label from 0 to {last}, got {label}"
                )));
            }
            Ok(chunk)
        }))
    }

    /// Adds the labels of the other file, if there is one.
    pub fn with_labels(&self, mut rows: Rows) -> Result<Rows> {
        let Some(path) = &self.labels else {
            return Ok(rows);
        };
        let mut layout = rows.layout.clone();
        let (labels, names) = read_labels(path, &layout.classes, self.unseen)?;
        layout.classes = names;
        let (path, mut seen) = (path.clone(), 0);
        Ok(Rows::new(layout, move || {
            let next = rows.next().transpose()?;
            let width = rows.layout.width;
            let count = next.as_ref().map_or(0, |chunk| chunk.values.len() / width);
            if seen + count > labels.len() || (next.is_none() && seen != labels.len()) {
                let expected = if next.is_none() {
                    format!("{seen}")
                } else {
                    format!("at least {}", seen + count)
                };
                let got = labels.len();
                return Err(mistake(format!(
                    "{path}: expected {expected} labels, one for each row, got {got}"
                )));
            }
            let mine = labels[seen..seen + count].to_vec();
            seen += count;
            Ok(next.map(|chunk| Chunk {
                labels: Some(mine),
                ..chunk
            }))
        }))
    }
}

/// Says which columns of the data are left out. Nobody listening is no reason to stop.
pub fn say_ignored(layout: &Layout) {
    if !layout.ignored.is_empty() {
        let _ = writeln!(std::io::stderr(), "not used: {}", some_of(&layout.ignored));
    }
}

/// The labels of a file of one column, and the names of the classes; −1 is missing.
fn read_labels(path: &str, classes: &[String], unseen: Unseen) -> Result<(Vec<i64>, Vec<String>)> {
    let table = sumout_data::read(path, &Request::default())?;
    if table.layout.width != 1 {
        let got = table.layout.width;
        return Err(mistake(format!(
            "{path}: expected one label for each row, got {got} numbers"
        )));
    }
    let (found, names) = match table.layout.columns.first().map(|column| &column.kind) {
        Some(ColumnKind::Categorical(names)) if classes.is_empty() => {
            (names.clone(), names.clone())
        }
        Some(ColumnKind::Categorical(names)) => (names.clone(), classes.to_vec()),
        _ => (Vec::new(), classes.to_vec()),
    };
    let label = |(row, &value): (usize, &f32)| {
        if value.is_nan() || (found.is_empty() && value == -1.0) {
            return Ok(-1);
        }
        let name = found
            .get(value as usize)
            .cloned()
            .unwrap_or_else(|| value.to_string());
        if let Some(class) = names.iter().position(|known| *known == name) {
            return Ok(class as i64);
        }
        if names.is_empty() && value >= 0.0 && value.fract() == 0.0 {
            return Ok(value as i64);
        }
        if unseen == Unseen::Missing && !names.is_empty() {
            return Ok(-1);
        }
        let expected = if names.is_empty() {
            "a class (0, 1, …) or -1 for missing".into()
        } else {
            some_of(&names)
        };
        Err(mistake(format!(
            "{path} row {row}: expected {expected}, got '{name}'"
        )))
    };
    let labels = table
        .values
        .iter()
        .enumerate()
        .map(label)
        .collect::<Result<_>>()?;
    Ok((labels, names))
}
