//! Where rows and labels come from: the arguments that commands share.

use crate::options::text::TextArgs;
use crate::terminal::hints::warning;
use crate::terminal::user_error::{one_line, user_error, warn};
use anyhow::Result;
use clap::ValueEnum;
use std::io::Write;
use sumout::Model;
use sumout_data::cells::{NoDefaultNa, is_default_na};
use sumout_data::error::{At, Place};
use sumout_data::findings::FindingKind;
use sumout_data::layout::{
    Absent, Chunk, ColumnKind, Keep, Layout, ReadOptions, RowStream, Split, Table, some_of,
};
use sumout_data::model_files::layout_of;
use sumout_data::notation::Notation;
use sumout_data::{Error, ErrorKind};

/// One half of a data set that has a training half and a test half.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Half {
    /// The training half
    Train,
    /// The test half
    Test,
}

/// How to treat a category or class that the model does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unseen {
    /// As an error
    Error,
    /// As missing
    Missing,
}

/// How to treat a column of the model that the data do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AbsentArg {
    /// As an error
    Error,
    /// As missing in every row
    Missing,
}

/// Where new rows go, and the seed of their random numbers.
#[derive(Debug, clap::Args)]
pub struct Drawn {
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to write the rows: .csv, .jsonl, .npy, .png or .parquet; `-` is standard output as CSV; a name that
    /// ends in `/` is a folder, with a .png for each image
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub out: String,
}

/// Which columns of a table stay beside the answers.
#[derive(Debug, clap::Args)]
pub struct KeepArgs {
    /// Column to copy into the output, such as an identifier; can be given several times
    #[arg(long, value_name = "COLUMN")]
    keep: Vec<String>,
    /// Copy all columns into the output
    #[arg(long, conflicts_with = "keep")]
    keep_all: bool,
}

impl KeepArgs {
    /// For the reader.
    pub fn keep(&self) -> Keep {
        if self.keep_all {
            return Keep::All;
        }
        if self.keep.is_empty() {
            return Keep::Nothing;
        }
        let mut seen = std::collections::HashSet::new();
        let names = self.keep.iter().filter(|name| seen.insert(*name));
        Keep::Named(names.cloned().collect())
    }
}

/// Where rows come from.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// A file (CSV, JSON lines, IDX or NPY, also gzipped; NPZ, Parquet, PNG or WAV), a folder of PNG or
    /// WAV files, the name of a data set, or `-` for standard input. An empty cell, NA, N/A, NaN, null and None
    /// are missing
    #[arg(long, value_name = "DATA")]
    pub data: String,
    /// A file with one label per row, if the labels are neither in the data nor in a file
    /// next to the data
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,
    /// The column of a table that holds the class, or with --regression the number to predict
    #[arg(long, value_name = "COLUMN", conflicts_with = "labels")]
    pub target: Option<String>,
    /// The first line of a CSV file is data, not names: columns are called x0, x1, …, or are matched
    /// to a model by their order
    #[arg(long)]
    pub no_header: bool,
    /// A cell with this text is also missing, such as `?` or -999; can be given several times. The
    /// model stores it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub na: Vec<String>,
    /// Words such as NA and None are words, not missing, in these columns, separated by commas; can be
    /// given several times. Without columns: in all of them. The model stores it
    #[arg(long, value_name = "COLUMNS", num_args = 0..=1, default_missing_value = "")]
    pub no_default_na: Vec<String>,
    /// How numbers and letters are written.
    #[command(flatten)]
    pub text: TextArgs,
    /// How to treat a category or class not seen in training
    #[arg(long, value_enum, default_value_t = Unseen::Error)]
    pub unseen: Unseen,
    /// How to treat a column of the model that the data do not have
    #[arg(long, value_enum, default_value_t = AbsentArg::Error)]
    pub absent: AbsentArg,
    /// Which half to read, if the data set has a training half and a test half [default: train for
    /// `sumout train`, else test]
    #[arg(long, value_name = "HALF")]
    pub split: Option<Half>,
}

impl Input {
    /// The file of labels, or nothing.
    pub fn labels_file(&self) -> &str {
        self.labels.as_deref().unwrap_or_default()
    }

    /// How the data are read.
    pub fn options(&self, split: Split) -> Result<ReadOptions> {
        let split = match self.split {
            Some(Half::Train) => Split::Train,
            Some(Half::Test) => Split::Test,
            None => split,
        };
        Ok(ReadOptions {
            split,
            target: self.target.clone(),
            no_header: self.no_header,
            na: self.na.clone(),
            no_default_na: self.no_default_na(),
            notation: self.text.notation()?,
            encoding: self.text.encoding(),
            unseen_missing: self.unseen == Unseen::Missing,
            absent: match self.absent {
                AbsentArg::Error => Absent::Error,
                AbsentArg::Missing => Absent::Missing,
            },
            ..ReadOptions::default()
        })
    }

    /// Where words such as NA are words; the option without columns gives an empty name.
    fn no_default_na(&self) -> NoDefaultNa {
        match &self.no_default_na[..] {
            [] => NoDefaultNa::Nowhere,
            names if names.iter().any(String::is_empty) => NoDefaultNa::Everywhere,
            names => NoDefaultNa::In(names.to_vec()),
        }
    }

    /// Opens the rows for a model without their labels; prints which columns are not used.
    pub fn open_unlabelled(&self, model: &Model, keep: Keep) -> Result<RowStream> {
        let named = matches!(keep, Keep::Named(_));
        let options = ReadOptions {
            no_labels: true,
            keep,
            ..self.options(Split::Test)?
        };
        let rows = sumout_data::open(&self.data, &options)?.fitted_to(&layout_of(model))?;
        if named && rows.layout.kept.is_empty() {
            let message = format!("--keep: expected a table with names, got {}", self.data);
            return Err(user_error(message));
        }
        say_ignored(&rows.layout);
        Ok(each_chunk(rows, |mut chunk| {
            warn_of(&chunk);
            chunk.labels = None;
            Ok(chunk)
        }))
    }

    /// Opens the rows for a model, with their labels if it has classes; prints which columns are not used.
    pub fn open(&self, model: &Model, keep: Keep) -> Result<RowStream> {
        if model.structure.classes == 1 && model.target().is_none() {
            return self.open_unlabelled(model, keep);
        }
        let mut options = ReadOptions {
            keep,
            ..self.options(Split::Test)?
        };
        if model.target().is_some() {
            options.target = None; // a column like the others
        }
        let rows = sumout_data::open(&self.data, &options)?.fitted_to(&layout_of(model))?;
        let rows = self.with_labels(rows)?;
        say_ignored(&rows.layout);
        let (data, last) = (self.data.clone(), model.structure.classes as i64 - 1);
        Ok(each_chunk(rows, move |chunk| {
            warn_of(&chunk);
            check_labels(&chunk, last, &data)?;
            Ok(chunk)
        }))
    }

    /// Adds the labels of the other file, if there is one.
    pub fn with_labels(&self, rows: RowStream) -> Result<RowStream> {
        let Some(path) = &self.labels else {
            return Ok(rows);
        };
        let mut layout = rows.layout.clone();
        let (labels, names) = self.read_labels(path, &layout.classes)?;
        layout.classes = names;
        let name = rows.name.clone();
        let mut labelled = LabelledRows {
            rows,
            labels,
            path: path.clone(),
            seen: 0,
        };
        Ok(RowStream::new(name, layout, move || labelled.next()))
    }

    /// How numbers are written in the data, and so in the results.
    pub fn notation(&self) -> Result<Notation> {
        self.text.notation()
    }

    /// The labels of a file of one column, and the names of the classes; −1 is missing.
    fn read_labels(&self, path: &str, classes: &[String]) -> Result<(Vec<i64>, Vec<String>)> {
        let is_class = classes.iter().any(|name| is_default_na(name));
        let options = ReadOptions {
            na: self.na.clone(),
            no_default_na: match self.no_default_na() {
                NoDefaultNa::In(_) if !is_class => NoDefaultNa::Nowhere, // columns of the data
                NoDefaultNa::Nowhere if !is_class => NoDefaultNa::Nowhere,
                _ => NoDefaultNa::Everywhere,
            },
            notation: self.text.notation()?,
            encoding: self.text.encoding(),
            ..ReadOptions::default()
        };
        let table = sumout_data::read(path, &options)?;
        for finding in &table.layout.findings {
            if classes.is_empty() && matches!(finding.what, FindingKind::DefaultNa { .. }) {
                let hint = "--no-default-na makes it a class";
                warn(&format!("{path}, {finding}; {hint}"));
            }
        }
        if table.layout.width != 1 {
            let got = format!("{} numbers", table.layout.width);
            let error = Error::expected(ErrorKind::Labels, "one label for each row", got);
            return Err(error.in_file(path).into());
        }
        let found = names_in(&table);
        let names = if classes.is_empty() { &found } else { classes };
        let label = |(row, &value): (usize, &f32)| {
            let label = label_of(value, &found, names, self.unseen);
            label.map_err(|error| error.at(place(path, row)))
        };
        let labels = table.values.iter().enumerate().map(label);
        let labels = labels.collect::<sumout_data::Result<_>>()?;
        Ok((labels, names.to_vec()))
    }
}

/// Rows whose labels are in another file.
struct LabelledRows {
    rows: RowStream,
    labels: Vec<i64>,
    path: String, // of the labels
    seen: usize,
}

impl LabelledRows {
    /// The next chunk, with its labels.
    fn next(&mut self) -> sumout_data::Result<Option<Chunk>> {
        let next = self.rows.next().transpose()?;
        let width = self.rows.layout.width;
        let count = next.as_ref().map_or(0, |chunk| chunk.values.len() / width);
        check_count(self.labels.len(), self.seen + count, next.is_none())
            .map_err(|error| error.in_file(&self.path))?;
        let mine = self.labels[self.seen..self.seen + count].to_vec();
        self.seen += count;
        Ok(next.map(|chunk| Chunk {
            labels: Some(mine),
            ..chunk
        }))
    }
}

/// The same rows, each chunk changed or refused on its way.
fn each_chunk(
    mut rows: RowStream,
    mut change: impl FnMut(Chunk) -> sumout_data::Result<Chunk> + Send + 'static,
) -> RowStream {
    let (name, layout) = (rows.name.clone(), rows.layout.clone());
    RowStream::new(name, layout, move || {
        let chunk = rows.next().transpose()?;
        chunk.map(&mut change).transpose()
    })
}

/// An error if a label is beyond the last class.
fn check_labels(chunk: &Chunk, last: i64, data: &str) -> sumout_data::Result<()> {
    let mut labels = chunk.labels.iter().flatten().zip(chunk.first..);
    let Some((label, row)) = labels.find(|(label, _)| **label > last) else {
        return Ok(());
    };
    let expected = format!("a label from 0 to {last}");
    Err(Error::expected(ErrorKind::NotAClass, expected, label).at(place(data, row)))
}

/// An error if there are fewer labels than rows so far, or not as many as rows at the end.
fn check_count(labels: usize, rows: usize, is_end: bool) -> sumout_data::Result<()> {
    if rows <= labels && (!is_end || rows == labels) {
        return Ok(());
    }
    let at_least = if is_end { "" } else { "at least " };
    let expected = format!("{at_least}{rows} labels, one for each row");
    Err(Error::expected(ErrorKind::Labels, expected, labels))
}

/// Where a row is; `row` is counted from 0, as people do not.
fn place(file: &str, row: usize) -> Place<'_> {
    Place {
        file,
        at: At::Row(row as u64 + 1),
    }
}

fn warn_of(chunk: &Chunk) {
    chunk
        .findings
        .iter()
        .for_each(|finding| warn(&warning(finding)));
}

/// Warns of what was found while rows were read.
pub fn warn_of_findings(layout: &Layout) {
    layout
        .findings
        .iter()
        .for_each(|finding| warn(&warning(finding)));
}

/// Prints which columns of the data are left out; write errors are ignored.
pub fn say_ignored(layout: &Layout) {
    if !layout.ignored.is_empty() {
        let ignored = one_line(&some_of(&layout.ignored));
        let _ = writeln!(std::io::stderr(), "not used: {ignored}");
    }
}

/// The names in a table of one column; none if it holds numbers.
fn names_in(table: &Table) -> Vec<String> {
    match table.layout.columns.first().map(|column| &column.kind) {
        Some(ColumnKind::Categorical(names)) => names.clone(),
        _ => Vec::new(),
    }
}

/// The class of a value, which is the number of a name in `found` if there are any; `names` are the classes.
fn label_of(
    value: f32,
    found: &[String],
    names: &[String],
    unseen: Unseen,
) -> sumout_data::Result<i64> {
    if value.is_nan() || (found.is_empty() && value == -1.0) {
        return Ok(-1);
    }
    let name = found.get(value as usize).cloned();
    let name = name.unwrap_or_else(|| value.to_string());
    if let Some(class) = names.iter().position(|known| *known == name) {
        return Ok(class as i64);
    }
    if names.is_empty() && value >= 0.0 && value.fract() == 0.0 {
        return Ok(value as i64);
    }
    if unseen == Unseen::Missing && !names.is_empty() {
        return Ok(-1);
    }
    if names.is_empty() {
        let expected = "a class (0, 1, …) or -1 for missing";
        return Err(Error::unexpected(ErrorKind::NotAClass, expected, name));
    }
    Err(Error::unexpected(
        ErrorKind::UnknownClass,
        some_of(names),
        name,
    ))
}
