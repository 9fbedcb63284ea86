//! The rows that a model is trained on, and those that it is validated on.

use crate::commands::train::args::Args;
use crate::options::input::warn_of_findings;
use crate::options::memory;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use sumout::Rows;
use sumout::random::{Purpose, Stream};
use sumout::training::{Data, labels};
use sumout_data::data_digest::DataDigest;
use sumout_data::layout::{Layout, ReadOptions, Split, Table};
use sumout_data::spool::{self, Gathered, Spool};

/// Training rows and validation rows.
pub struct TrainingData {
    /// To train on.
    pub table: Table,
    /// To keep the best model by.
    pub validation: Option<Table>,
    /// Weights of the training rows; empty where all weigh the same.
    weights: Vec<f32>,
    /// The digest of both together, if both are from one table.
    pub split_from: Option<String>,
    /// All rows, where `table` is a sample of them.
    pub spool: Option<Spool>,
}

impl TrainingData {
    /// Leaves labels aside, for a model without classes.
    pub fn forget_labels(&mut self) {
        for table in std::iter::once(&mut self.table).chain(&mut self.validation) {
            table.labels = None;
            table.layout.classes.clear();
        }
    }

    /// Reads both; for a model, if the run is resumed. `validation` is what the user named, then or now. Of rows that
    /// take more than `limit` bytes, the table is a sample.
    pub fn read(
        args: &Args,
        options: &ReadOptions,
        model: Option<&Layout>,
        validation: Option<&str>,
        limit: u64,
    ) -> Result<Self> {
        let data = sumout_data::open(&args.input.data, options)?;
        let rows = match model {
            Some(model) => data.fitted_to(model)?,
            None => data.rows()?,
        };
        let rows = args.input.with_labels(rows)?;
        let (table, spool) = match spool::gather(rows, limit)? {
            Gathered::Table(table) => (table, None),
            Gathered::Sample(table, spool) => (table, Some(spool)),
        };
        check_table(&table, &args.input.data)?;
        if spool.is_some() {
            check_suits_sample(args)?;
        }
        let Some(validation) = validation else {
            return Ok(Self {
                table,
                validation: None,
                weights: Vec::new(),
                split_from: None,
                spool,
            });
        };
        if let Ok(share) = validation.parse::<f64>() {
            return split(&table, share);
        }
        let options = ReadOptions {
            split: Split::Test,
            target: options.target.clone(),
            ignore: Vec::new(),
            categorical: Vec::new(),
            ..options.clone()
        };
        let validation = sumout_data::read_fitted(validation, &options, &table.layout)?;
        warn_of_findings(&validation.layout);
        Ok(Self {
            table,
            validation: Some(validation),
            weights: Vec::new(),
            split_from: None,
            spool,
        })
    }

    /// Gives every training row the weight of its class, and a row without a label the weight 1; then all are scaled to
    /// weigh 1 on average, as in Python.
    pub fn weigh(&mut self, class_weights: &[f64]) {
        let weight =
            |label: &i64| usize::try_from(*label).map_or(1.0, |class| class_weights[class]);
        let weights: Vec<f64> = self.table.labels.iter().flatten().map(weight).collect();
        let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        self.weights = weights
            .iter()
            .map(|weight| (weight / mean) as f32)
            .collect();
    }

    /// The training rows, for the trainer.
    pub fn train(&self) -> Result<Data<'_>> {
        Ok(data_of(&self.table)?.weighted(&self.weights))
    }

    /// The validation rows, for the trainer.
    pub fn validate(&self) -> Result<Option<Data<'_>>> {
        self.validation.as_ref().map(data_of).transpose()
    }
}

fn data_of(table: &Table) -> Result<Data<'_>> {
    let rows = Rows::new(&table.values, table.layout.width)?;
    let labels = labels(table.labels.as_deref().unwrap_or_default());
    Ok(Data::new(rows, &labels))
}

/// What rows may take of the memory: training makes copies of them.
pub fn limit(args: &Args) -> u64 {
    const COPIES: u64 = 4;
    args.memory.unwrap_or_else(memory::half_of_free) / COPIES
}

/// What needs all rows in memory.
fn check_suits_sample(args: &Args) -> Result<()> {
    let option = match (args.regression, &args.validation) {
        (true, _) => "--regression",
        (_, Some(_)) => "--validation",
        _ => return Ok(()),
    };
    Err(user_error(format!(
        "{option}: expected data that fit into a quarter of --memory, got more"
    )))
}

/// There must be rows, and two classes if there is a target.
fn check_table(table: &Table, name: &str) -> Result<()> {
    if table.values.is_empty() {
        return Err(user_error(format!(
            "{name}: expected at least one row, got none"
        )));
    }
    let (classes, target) = (&table.layout.classes, &table.layout.target);
    let Some(target) = target.as_ref().filter(|_| classes.len() < 2) else {
        return Ok(());
    };
    let got = match classes.first() {
        Some(only) => format!("only '{only}'"),
        None => "none".to_owned(),
    };
    Err(user_error(format!(
        "{name}: expected at least two classes in '{target}', got {got}; \
         use --ignore {target} in place of --target to train without classes"
    )))
}

/// Draws a share of the rows for validation. The same data are always split in the same way.
fn split(table: &Table, share: f64) -> Result<TrainingData> {
    let rows = table.rows();
    let kept = (share * rows as f64).round() as usize;
    if !(share > 0.0 && share < 1.0) || kept == 0 || kept == rows {
        return Err(user_error(format!(
            "--validation: expected data, or a share of the {rows} rows that leaves rows for both \
             training and validation, got {share}"
        )));
    }
    let order = Stream::new(0, Purpose::Shuffle, u32::MAX, 0).permutation(rows);
    Ok(TrainingData {
        table: picked(table, &order[kept..]),
        validation: Some(picked(table, &order[..kept])),
        weights: Vec::new(),
        split_from: Some(digest(table)),
        spool: None,
    })
}

/// These rows of a table, in its order.
fn picked(table: &Table, rows: &[u32]) -> Table {
    let width = table.layout.width;
    let mut rows = rows.to_vec();
    rows.sort_unstable();
    let numbers = |&row: &u32| &table.values[row as usize * width..][..width];
    let labels_of = |labels: &Vec<i64>| rows.iter().map(|&row| labels[row as usize]).collect();
    Table {
        layout: table.layout.clone(),
        values: rows.iter().flat_map(numbers).copied().collect(),
        labels: table.labels.as_ref().map(labels_of),
    }
}

/// A table in words.
pub fn describe(table: &Table) -> String {
    let layout = &table.layout;
    let what = match &layout.shape {
        Some(shape) => shape.to_string(),
        None => count(layout.width, "column", "columns"),
    };
    let missing = table.values.iter().filter(|x| x.is_nan()).count();
    let holes = if missing > 0 {
        let share = missing as f64 / table.values.len() as f64;
        format!(", {:.1} % missing", 100.0 * share)
    } else {
        String::new()
    };
    let has_target = table.labels.is_some() || layout.predicted.is_some();
    let labels = if has_target { "" } else { ", no labels" };
    let rows = count(table.rows(), "row", "rows");
    format!("{rows} of {what}{labels}{holes}")
}

/// Rows of every class.
pub fn class_counts(table: &Table) -> Vec<usize> {
    let mut counts = vec![0; table.classes()];
    let labels = table.labels.iter().flatten();
    labels
        .filter(|label| **label >= 0)
        .for_each(|label| counts[*label as usize] += 1);
    counts
}

/// The labels of a table in words, if it has any: how many rows have one, and how many of which class.
pub fn describe_labels(table: &Table) -> Option<String> {
    const SHOWN: usize = 20;
    table.labels.as_ref()?;
    let (rows, counts) = (table.rows(), class_counts(table));
    let of = match counts.iter().sum::<usize>() {
        labelled if labelled == rows => "all".to_owned(),
        labelled => format!("{labelled} of {rows}"),
    };
    let classes = count(counts.len(), "class", "classes");
    if counts.len() > SHOWN {
        let range = |pick: Option<&usize>| pick.copied().unwrap_or_default();
        let (least, most) = (range(counts.iter().min()), range(counts.iter().max()));
        return Some(format!("{of} rows, {classes} of {least} to {most} rows"));
    }
    let each = counts.iter().enumerate();
    let each: Vec<String> = each
        .map(|(class, count)| format!("{} ({count})", class_name(table, class)))
        .collect();
    Some(format!("{of} rows, {classes}: {}", each.join(", ")))
}

/// What people call a class.
pub fn class_name(table: &Table, class: usize) -> String {
    let name = table.layout.classes.get(class);
    name.cloned().unwrap_or_else(|| class.to_string())
}

fn count(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// The digest of a table.
pub fn digest(table: &Table) -> String {
    let mut digest = DataDigest::default();
    digest.add(&table.values, table.labels.as_deref());
    digest.finish()
}
