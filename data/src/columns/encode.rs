//! From cells to numbers, by the columns of a model or of a table. Files and the HTTP service use the same encoder.
//!
//! ```
//! use sumout_data::{cells::Cell, encode::Encoder, layout::{Column, ColumnKind, Layout}};
//! let kind = ColumnKind::Categorical(vec!["cat".into(), "dog".into()]);
//! let columns = vec![Column { name: "kind".into(), kind }];
//! let encoder = Encoder::new(&Layout { width: 1, columns, ..Layout::default() });
//! assert_eq!(encoder.value(0, Cell::Text("dog"))?, 1.0);
//! let error = encoder.value(0, Cell::Text("cow")).unwrap_err();
//! assert_eq!(error.to_string(), "column 'kind': expected cat, dog, got 'cow'");
//! # Ok::<(), sumout_data::Error>(())
//! ```

use crate::columns::codes_of_names::CodesOfNames;
use crate::columns::match_columns::places_of;
use crate::error::{Error, ErrorKind, Place, Result, clip};
use crate::rows::cells::{Cell, MissingTexts, Records, Written, is_default_na};
use crate::rows::dates::{DateStyle, days_of};
use crate::rows::findings::{Finding, FindingKind};
use crate::rows::layout::{
    Absent, Chunk, ColumnKind, KeptColumn, Layout, RowStream, rows_per_chunk, some_of,
};
use crate::rows::notation::notations_of;
use std::collections::{HashMap, HashSet};
use sumout::model::ColumnRange;
use sumout::structure::Kind;

/// A cell of text takes about this many times the memory of a number.
const KEPT_SIZE: usize = 8;

/// What one column takes.
#[derive(Clone, Debug)]
enum Takes {
    /// Any finite number.
    Number,
    /// A whole number from 0 to this: a category without a name.
    Code(u32),
    /// One of these names.
    Name(CodesOfNames),
    /// A date, or its number of days.
    Date(DateStyle),
}

/// Turns cells into numbers and labels.
#[derive(Clone, Debug)]
pub struct Encoder {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
    takes: Vec<Takes>,
    classes: CodesOfNames,
    target: String,
    missing: MissingTexts,
    /// For every column and then the target, whether words such as NA are missing.
    default_na: Vec<bool>,
    /// What the numbers of each column can be, or empty.
    ranges: Vec<ColumnRange>,
    /// Whether the names are the model's own; images have none.
    pub named: bool,
    /// The column that the model predicts, which may be absent.
    pub predicted: Option<usize>,
}

impl Encoder {
    /// For rows of this layout.
    pub fn new(layout: &Layout) -> Self {
        let takes = |column: usize| match layout.columns.get(column).map(|column| &column.kind) {
            Some(ColumnKind::Categorical(names)) => Takes::Name(CodesOfNames::new(names)),
            Some(ColumnKind::Date(style)) => Takes::Date(*style),
            _ => Takes::Number,
        };
        let names = (0..layout.width).map(|column| layout.name(column));
        let names: Vec<String> = names.collect();
        Self {
            by_name: names.iter().cloned().zip(0..).collect(),
            names,
            takes: (0..layout.width).map(takes).collect(),
            classes: CodesOfNames::new(&layout.classes),
            target: layout.target.clone().unwrap_or("target".to_owned()),
            missing: MissingTexts::and(&layout.na),
            default_na: default_na(layout),
            ranges: layout.ranges.clone(),
            named: !layout.columns.is_empty(),
            predicted: layout.predicted,
        }
    }

    /// The same for a model whose columns are of these kinds: a category without names takes its numbers only.
    pub fn with_kinds(mut self, kinds: &[Kind]) -> Self {
        for (takes, kind) in self.takes.iter_mut().zip(kinds) {
            match (&*takes, kind) {
                (Takes::Number, Kind::Bernoulli) => *takes = Takes::Code(1),
                (Takes::Number, Kind::Categorical(count)) => *takes = Takes::Code(count - 1),
                _ => {}
            }
        }
        self
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.names.len()
    }

    /// The name of a column; x0, x1, … where it has none.
    pub fn name(&self, column: usize) -> &str {
        &self.names[column]
    }

    /// The column of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The names of a column's categories; none for a number.
    pub fn categories(&self, column: usize) -> Option<&[String]> {
        match &self.takes[column] {
            Takes::Name(names) => Some(&names.names),
            _ => None,
        }
    }

    /// How the dates of a column are written; none for other columns.
    pub fn date(&self, column: usize) -> Option<DateStyle> {
        match self.takes[column] {
            Takes::Date(style) => Some(style),
            _ => None,
        }
    }

    /// Whether a column is a category, named or not.
    pub fn is_discrete(&self, column: usize) -> bool {
        !matches!(self.takes[column], Takes::Number | Takes::Date(_))
    }

    /// Whether a column takes every finite number as it is: none is out of bounds, and none stands for a hole.
    pub fn takes_any_number(&self, column: usize) -> bool {
        let anything = ColumnRange::default();
        let range = self.ranges.get(column).unwrap_or(&anything);
        !self.is_discrete(column) && *range == anything && !self.missing.has_numbers()
    }

    /// How many values a category has, named or not; none for a number.
    pub fn values(&self, column: usize) -> Option<usize> {
        match &self.takes[column] {
            Takes::Number | Takes::Date(_) => None,
            Takes::Code(last) => Some(*last as usize + 1),
            Takes::Name(names) => Some(names.names.len()),
        }
    }

    /// For every column, its place in a table with these names, if it is there.
    pub fn places(&self, header: &[String], absent: Absent) -> Result<Vec<Option<usize>>> {
        places_of(&self.names, self.named, header, absent, self.predicted)
    }

    /// The number of a cell; NaN if it is missing.
    pub fn value(&self, column: usize, cell: Cell<'_>) -> Result<f32> {
        if cell == Cell::Missing {
            return Ok(f32::NAN);
        }
        let value = match &self.takes[column] {
            Takes::Number => number(cell).and_then(|x| self.inside(column, x)),
            Takes::Date(_) => days(cell).and_then(|x| self.inside(column, x)),
            Takes::Code(last) => code(cell, *last),
            Takes::Name(names) => match names.code(cell) {
                Some(code) => Ok(code as f32),
                None => Err(unknown(ErrorKind::UnknownCategory, &names.names, cell)),
            },
        };
        value.map_err(|error| error.in_column(&self.names[column]))
    }

    /// A number that the column can hold.
    fn inside(&self, column: usize, x: f32) -> Result<f32> {
        match self.ranges.get(column) {
            Some(range) if !range.contains(x) => {
                let expected = range.describe();
                Err(Error::unexpected(
                    ErrorKind::OutOfBounds,
                    expected,
                    x.to_string(),
                ))
            }
            _ => Ok(x),
        }
    }

    /// A cell as it was written, missing if it stands for a hole, as NA does; the target comes after all columns.
    pub fn known<'a>(&self, column: usize, cell: Cell<'a>) -> Cell<'a> {
        self.missing.known(cell, self.default_na[column])
    }

    /// The same for a format that has a null: NA is a word.
    pub fn known_beside_null<'a>(&self, cell: Cell<'a>) -> Cell<'a> {
        self.missing.known_beside_null(cell)
    }

    /// The number of a cell as it was written: text such as NA is missing.
    pub fn written_value(&self, column: usize, cell: Cell<'_>) -> Result<f32> {
        self.value(column, self.known(column, cell))
    }

    /// The class of a cell as it was written; −1 if it is missing. Classes without names are called 0, 1, ….
    pub fn label(&self, cell: Cell<'_>) -> Result<i64> {
        let cell = self.known(self.width(), cell);
        let Some(text) = cell.category() else {
            return Ok(-1);
        };
        let label = if self.classes.names.is_empty() {
            let class = text.parse().ok().filter(|&class: &i64| class >= -1);
            class.ok_or_else(|| {
                Error::unexpected(ErrorKind::NotAClass, "a class (0, 1, …)", clip(&text))
            })
        } else {
            let code = self.classes.code(cell).map(|code| code as i64);
            code.ok_or_else(|| unknown(ErrorKind::UnknownClass, &self.classes.names, cell))
        };
        label.map_err(|error| error.in_column(&self.target))
    }
}

/// For every column and then the target, whether words such as NA are missing: not where the user says so, and not where
/// they are a category that the model knows.
fn default_na(layout: &Layout) -> Vec<bool> {
    let is_hole = |name: &str, known: &[String]| {
        !layout.no_default_na.covers(name) && !known.iter().any(|name| is_default_na(name))
    };
    let of_column = |column: usize| match layout.columns.get(column).map(|column| &column.kind) {
        Some(ColumnKind::Categorical(names)) => is_hole(&layout.name(column), names),
        _ => is_hole(&layout.name(column), &[]),
    };
    let target = layout.target.as_deref().unwrap_or_default();
    let of_target = is_hole(target, &layout.classes);
    (0..layout.width)
        .map(of_column)
        .chain([of_target])
        .collect()
}

/// A cell as a message shows it.
fn shown(cell: Cell<'_>) -> String {
    clip(&cell.category().unwrap_or_default())
}

fn number(cell: Cell<'_>) -> Result<f32> {
    let (kind, expected) = match cell.number().map(|number| number as f32) {
        Some(number) if number.is_finite() => return Ok(number),
        Some(_) => (ErrorKind::NotFinite, "a finite number of 32 bits"),
        None if notations_of(&shown(cell)).contains(&true) => {
            (ErrorKind::OtherNotation, "a number such as 1065.5")
        }
        None => (ErrorKind::NotANumber, "a number"),
    };
    Err(Error::unexpected(kind, expected, shown(cell)))
}

/// The days of a date; a number is one of days already.
fn days(cell: Cell<'_>) -> Result<f32> {
    let days = match cell {
        Cell::Text(text) => days_of(text).or(cell.number()),
        _ => cell.number(),
    };
    let days = days.map(|days| days as f32).filter(|days| days.is_finite());
    days.ok_or_else(|| {
        let expected = "a date such as 2026-01-31 or 2026-01-31T14:05:00";
        Error::unexpected(ErrorKind::NotADate, expected, shown(cell))
    })
}

fn code(cell: Cell<'_>, last: u32) -> Result<f32> {
    let fits = |number: &f64| number.fract() == 0.0 && (0.0..=f64::from(last)).contains(number);
    let number = cell.number().filter(fits).map(|number| number as f32);
    number.ok_or_else(|| {
        let expected = format!("a whole number from 0 to {last}");
        Error::unexpected(ErrorKind::NotACode, expected, shown(cell))
    })
}

fn unknown(kind: ErrorKind, names: &[String], cell: Cell<'_>) -> Error {
    Error::unexpected(kind, some_of(names), shown(cell))
}

/// Rows of cells on their way to chunks of numbers.
struct EncodedRows {
    encoder: Encoder,
    kept: Vec<KeptColumn>,
    unseen_missing: bool,
    /// Columns about which an unknown category was reported; the target comes after all others.
    reported: HashSet<usize>,
    labelled: bool,
    max_rows: usize, // of a chunk
    rows: usize,     // of the chunks before
    chunk: Chunk,
}

impl EncodedRows {
    /// The next chunk of a table; none at its end.
    fn next(&mut self, records: &mut dyn Records) -> Result<Option<Chunk>> {
        self.chunk = Chunk {
            first: self.rows,
            labels: self.labelled.then(Vec::new),
            ..Chunk::default()
        };
        let max_rows = self.max_rows;
        let mut add = |place: Place<'_>, cells: &[Cell<'_>], kept| self.add(place, cells, kept);
        let count = records.fill(max_rows, &mut add)?;
        self.rows += count;
        Ok((count > 0).then(|| std::mem::take(&mut self.chunk)))
    }

    /// Adds a row to the chunk.
    fn add(&mut self, place: Place<'_>, cells: &[Cell<'_>], kept: Vec<Written>) -> Result<()> {
        let width = self.encoder.width();
        for (column, &cell) in cells[..width].iter().enumerate() {
            let value = self.encoder.written_value(column, cell);
            let value = self.lenient(column, value, f32::NAN);
            self.chunk
                .values
                .push(value.map_err(|error| error.at(place))?);
        }
        if self.chunk.labels.is_some() {
            let label = self.encoder.label(cells[width]);
            let label = self
                .lenient(width, label, -1)
                .map_err(|error| error.at(place))?;
            self.chunk.labels.get_or_insert_default().push(label);
        }
        let is_hole = |at| self.encoder.known(at, cells[at]) == Cell::Missing;
        let hole = |kept: &KeptColumn| kept.column.is_some_and(is_hole);
        let kept = kept.into_iter().zip(&self.kept);
        let kept = kept.map(|(cell, kept)| if hole(kept) { Written::Missing } else { cell });
        self.chunk.kept.extend(kept);
        Ok(())
    }

    /// What the model does not know is missing, if the user wants it so; it is reported once per column.
    fn lenient<T>(&mut self, column: usize, value: Result<T>, missing: T) -> Result<T> {
        let error = match value {
            Err(error) if self.unseen_missing => error,
            other => return other,
        };
        if !matches!(
            error.kind(),
            ErrorKind::UnknownCategory | ErrorKind::UnknownClass
        ) {
            return Err(error);
        }
        if self.reported.insert(column) {
            let name = error.got().unwrap_or_default().to_owned();
            let what = FindingKind::UnknownCategory { name };
            let finding = Finding::new(error.column().unwrap_or_default(), what);
            self.chunk.findings.push(finding);
        }
        Ok(missing)
    }
}

/// The rows as numbers, chunk by chunk.
pub fn encoded(
    name: &str,
    mut rows: Box<dyn Records>,
    layout: Layout,
    unseen_missing: bool,
) -> RowStream {
    let mut encoded = EncodedRows {
        encoder: Encoder::new(&layout),
        kept: layout.kept.clone(),
        unseen_missing,
        reported: HashSet::new(),
        labelled: layout.target.is_some(),
        max_rows: rows_per_chunk(layout.width + KEPT_SIZE * layout.kept.len()),
        rows: 0,
        chunk: Chunk::default(),
    };
    RowStream::new(name, layout, move || encoded.next(&mut *rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::cells::NoDefaultNa;
    use crate::rows::layout::Column;

    /// Age (a number), sex (f, m), coin (0 or 1) and a category without names.
    fn encoder() -> Encoder {
        let kind = |column: usize| match column {
            1 => ColumnKind::Categorical(vec!["f".into(), "m".into()]),
            _ => ColumnKind::Numeric,
        };
        let columns = ["age", "sex", "coin", "kind"].iter().enumerate();
        let columns = columns.map(|(column, &name)| Column {
            name: name.into(),
            kind: kind(column),
        });
        let layout = Layout {
            width: 4,
            columns: columns.collect(),
            na: vec!["?".into()],
            ..Layout::default()
        };
        let kinds = [
            Kind::Gaussian,
            Kind::Categorical(2),
            Kind::Bernoulli,
            Kind::Categorical(3),
        ];
        Encoder::new(&layout).with_kinds(&kinds)
    }

    #[test]
    fn cells_become_numbers_or_errors() {
        let encoder = encoder();
        let value = |column, cell| encoder.written_value(column, cell);
        let says = |column, cell| value(column, cell).unwrap_err().to_string();
        assert_eq!(value(0, Cell::Text("-1.5")).unwrap(), -1.5);
        assert_eq!(value(1, Cell::Text("m")).unwrap(), 1.0);
        assert_eq!(value(2, Cell::Number(1.0)).unwrap(), 1.0);
        for hole in [
            Cell::Missing,
            Cell::Text(" NA "),
            Cell::Text("?"),
            Cell::Number(f64::NAN),
        ] {
            assert!(
                (0..4).all(|column| value(column, hole).unwrap().is_nan()),
                "{hole:?}"
            );
        }
        assert_eq!(
            says(0, Cell::Text("old")),
            "column 'age': expected a number, got 'old'"
        );
        assert_eq!(
            says(0, Cell::Text("3,5")),
            "column 'age': expected a number such as 1065.5, got '3,5'"
        );
        assert!(
            says(0, Cell::Number(1e39)).contains("expected a finite number of 32 bits, got '1")
        );
        assert_eq!(
            says(1, Cell::Number(1.0)),
            "column 'sex': expected f, m, got '1'"
        );
        assert_eq!(
            says(2, Cell::Number(0.5)),
            "column 'coin': expected a whole number from 0 to 1, got '0.5'"
        );
        assert_eq!(
            says(3, Cell::Number(3.0)),
            "column 'kind': expected a whole number from 0 to 2, got '3'"
        );
    }

    #[test]
    fn a_category_of_the_model_is_not_missing() {
        let kind = |names: &[&str]| {
            ColumnKind::Categorical(names.iter().map(|name| (*name).into()).collect())
        };
        let column = |name: &str, kind| Column {
            name: name.into(),
            kind,
        };
        let columns = vec![
            column("garage", kind(&["Ex", "None"])),
            column("pool", kind(&["Ex", "Gd"])),
            column("fence", kind(&["Ex", "Gd"])),
        ];
        let layout = Layout {
            width: 3,
            columns,
            classes: vec!["NA".into(), "yes".into()],
            no_default_na: NoDefaultNa::In(vec!["fence".into()]),
            ..Layout::default()
        };
        let encoder = Encoder::new(&layout);
        let value = |column| encoder.written_value(column, Cell::Text("None"));
        assert_eq!(value(0).unwrap(), 1.0, "the model knows it");
        assert!(value(1).unwrap().is_nan());
        assert!(
            value(2).is_err(),
            "it is a word, which the model does not know"
        );
        assert_eq!(encoder.label(Cell::Text("NA")).unwrap(), 0);
        assert!(encoder.written_value(0, Cell::Text("")).unwrap().is_nan());
    }
}
