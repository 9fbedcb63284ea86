//! What every reader gives: rows of numbers with holes, labels, and what the columns mean.

use crate::error::Result;
use crate::files::encoding::Encoding;
use crate::rows::cells::{Field, NoDefaultNa, Written};
use crate::rows::dates::DateStyle;
use crate::rows::findings::Finding;
use crate::rows::notation::Notation;
use serde::Deserialize;
use std::fmt;
use sumout::model::ColumnRange;

/// Rows × columns × channels of an image. A row of data holds its numbers in that order, channels fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Rows of pixels.
    pub height: usize,
    /// Columns of pixels.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
}

impl ImageShape {
    /// Numbers in an image.
    pub fn numbers(&self) -> usize {
        self.height * self.width * self.channels
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}×{}", self.height, self.width, self.channels)
    }
}

/// What one number of a row can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Any number.
    Numeric,
    /// A whole number that stands for one of these names.
    Categorical(Vec<String>),
    /// Dates, as days since 1970-01-01.
    Date(DateStyle),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As the header says.
    pub name: String,
    /// What its numbers mean.
    pub kind: ColumnKind,
}

/// A column that is handed through as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptColumn {
    /// Its name and what it holds.
    pub field: Field,
    /// Which number of a row it is, if it is one.
    pub column: Option<usize>,
}

/// What all rows have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Numbers in a row.
    pub width: usize,
    /// For images.
    pub shape: Option<ImageShape>,
    /// The numbers of images run to 1, not to 255.
    pub unit: bool,
    /// One for each number, or empty where numbers have no names: images and arrays.
    pub columns: Vec<Column>,
    /// What labels stand for; empty where they are just numbers.
    pub classes: Vec<String>,
    /// The column that labels come from.
    pub target: Option<String>,
    /// The number of a row that the model predicts: it may be absent.
    pub predicted: Option<usize>,
    /// Columns that were there and are not used.
    pub ignored: Vec<String>,
    /// Columns that are handed through, in the order of the file.
    pub kept: Vec<KeptColumn>,
    /// What the user calls missing.
    pub na: Vec<String>,
    /// Where words such as NA are not missing.
    pub no_default_na: NoDefaultNa,
    /// What the numbers of each column can be; empty where any number will do.
    pub ranges: Vec<ColumnRange>,
    /// What is worth a warning.
    pub findings: Vec<Finding>,
}

impl Layout {
    /// Unnamed numbers; with a shape, images.
    pub fn unnamed(width: usize, shape: Option<ImageShape>) -> Self {
        Self {
            width,
            shape,
            ..Self::default()
        }
    }

    /// How numbers are an image, and whether they run to 1.
    pub fn image(&self) -> Option<(ImageShape, bool)> {
        self.shape.map(|shape| (shape, self.unit))
    }

    /// The name of a column; x0, x1, … where they have none.
    pub fn name(&self, column: usize) -> String {
        self.columns
            .get(column)
            .map_or_else(|| format!("x{column}"), |column| column.name.clone())
    }
}

/// Some rows of a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// The number of its first row, counted from 0.
    pub first: usize,
    /// (rows, width); NaN is missing.
    pub values: Vec<f32>,
    /// (rows); −1 is missing. `None` where the data have no labels.
    pub labels: Option<Vec<i64>>,
    /// The file of each row, where every row is a file; else empty.
    pub files: Vec<String>,
    /// (rows, kept columns): cells as they were written. A hole of a column that is a number of the row is missing.
    pub kept: Vec<Written>,
    /// What is worth a warning and was not found in an earlier chunk.
    pub findings: Vec<Finding>,
}

/// A data set as a stream: chunks of rows, of which only one is in memory.
pub struct RowStream {
    /// What messages call it.
    pub name: String,
    /// What all rows have in common.
    pub layout: Layout,
    chunks: Box<dyn Iterator<Item = Result<Chunk>> + Send>,
}

impl RowStream {
    /// Rows of a layout; `next` gives the chunks, then `None`. After an error it is not called again.
    pub fn new(
        name: impl Into<String>,
        layout: Layout,
        mut next: impl FnMut() -> Result<Option<Chunk>> + Send + 'static,
    ) -> Self {
        let mut done = false;
        let chunks = std::iter::from_fn(move || {
            let chunk = if done { None } else { next().transpose() };
            done = !matches!(chunk, Some(Ok(_)));
            chunk
        });
        Self {
            name: name.into(),
            layout,
            chunks: Box::new(chunks),
        }
    }

    /// The same rows, read on another thread while this one works with those before.
    pub fn read_ahead(self) -> Self {
        let (send, receive) = std::sync::mpsc::sync_channel(2);
        let (name, layout) = (self.name.clone(), self.layout.clone());
        std::thread::spawn(move || {
            let mut chunks = self.into_iter();
            while chunks.next().is_some_and(|chunk| send.send(chunk).is_ok()) {} // until nobody wants more
        });
        Self::new(name, layout, move || receive.recv().ok().transpose())
    }

    /// All rows at once.
    pub fn collect_table(self) -> Result<Table> {
        let mut table = Table {
            layout: self.layout,
            values: Vec::new(),
            labels: None,
        };
        for chunk in self.chunks {
            let chunk = chunk?;
            table.values.extend_from_slice(&chunk.values);
            table.layout.findings.extend(chunk.findings);
            if let Some(labels) = chunk.labels {
                table
                    .labels
                    .get_or_insert_default()
                    .extend_from_slice(&labels);
            }
        }
        Ok(table)
    }
}

impl Iterator for RowStream {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.chunks.next()
    }
}

impl fmt::Debug for RowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowStream")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

/// A whole data set in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What all rows have in common.
    pub layout: Layout,
    /// (rows, width); NaN is missing.
    pub values: Vec<f32>,
    /// (rows); −1 is missing. `None` where the data have no labels.
    pub labels: Option<Vec<i64>>,
}

impl Table {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.values.len() / self.layout.width
    }

    /// K: the classes there are names for, or as many as the largest label needs.
    pub fn classes(&self) -> usize {
        let largest = self
            .labels
            .iter()
            .flatten()
            .max()
            .map_or(0, |&label| (label + 1) as usize);
        largest.max(self.layout.classes.len())
    }
}

/// Which half of a data set that comes in two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// To train on.
    #[default]
    Train,
    /// To test with.
    Test,
}

impl Split {
    /// "train" or "test", as names of folders and arrays say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

/// Which columns are handed through as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None.
    #[default]
    Nothing,
    /// These.
    Named(Vec<String>),
    /// All of them.
    All,
}

/// What a column of the model is that a table does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    /// An error.
    #[default]
    Error,
    /// Missing in every row. One column at least must be there.
    Missing,
}

/// How a data set is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Which half, where there are two.
    pub split: Split,
    /// The column with the class, for tables.
    pub target: Option<String>,
    /// Columns whose numbers are names of categories.
    pub categorical: Vec<String>,
    /// Columns to leave out.
    pub ignore: Vec<String>,
    /// The first line of a CSV file is data.
    pub no_header: bool,
    /// The target is not read: labels are not needed.
    pub no_labels: bool,
    /// Texts that are missing, besides the usual ones.
    pub na: Vec<String>,
    /// Where words such as NA are not missing.
    pub no_default_na: NoDefaultNa,
    /// How numbers are written, in CSV files.
    pub notation: Notation,
    /// How letters are written, in CSV files and JSON lines.
    pub encoding: Encoding,
    /// A category or class that the model does not know is missing, not an error.
    pub unseen_missing: bool,
    /// What a column of the model is that the data do not have.
    pub absent: Absent,
    /// What is handed through, of tables read for a model.
    pub keep: Keep,
}

/// About 4 MB of f32 values at a time, and never less than a row.
pub fn rows_per_chunk(width: usize) -> usize {
    ((1 << 20) / width.max(1)).clamp(1, 4096)
}

/// Orders names of classes and categories: as numbers if all of them are, else by their letters.
pub fn sort_names(names: &mut [String]) {
    let number = |name: &String| name.parse::<f64>().ok().filter(|x| !x.is_nan());
    if names.iter().all(|name| number(name).is_some()) {
        names.sort_by(|a, b| {
            number(a)
                .unwrap_or(0.0)
                .total_cmp(&number(b).unwrap_or(0.0))
        });
    } else {
        names.sort();
    }
}

/// The first few names, for a message.
pub fn some_of<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 8;
    let name = |name: &T| match name.as_ref() {
        name if name.contains(',') => format!("'{name}'"),
        name => name.to_owned(),
    };
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(name)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", … ({} in all)", names.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_people_expect() {
        let sorted = |names: &[&str]| {
            let mut names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            sort_names(&mut names);
            names.join(" ")
        };
        assert_eq!(sorted(&["10", "9", "-1"]), "-1 9 10");
        assert_eq!(sorted(&["b10", "b9", "3"]), "3 b10 b9");
    }

    #[test]
    fn chunks_hold_at_least_a_row() {
        assert_eq!(
            [
                rows_per_chunk(1),
                rows_per_chunk(784),
                rows_per_chunk(usize::MAX)
            ],
            [4096, 1337, 1]
        );
    }
}
