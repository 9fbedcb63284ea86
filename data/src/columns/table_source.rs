//! Tables of cells before it is known what their columns mean: CSV, JSON lines or Parquet, from a file or a pipe.

use crate::columns::encode::encoded;
use crate::columns::infer_columns::{Wanted, infer};
use crate::columns::match_columns::{Chosen, split_names};
use crate::error::{Error, ErrorKind, Result, read_error};
use crate::files::encoding::decoded;
use crate::files::source::{ByteReader, Origin, changed};
use crate::formats::csv::CsvRecords;
use crate::formats::json_lines::{self, JsonRecords};
use crate::formats::parquet::ParquetRecords;
use crate::formats::parquet_folder::ParquetFolder;
use crate::rows::cells::{NoDefaultNa, Records};
use crate::rows::layout::{Layout, ReadOptions, RowStream, some_of};

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values.
    Csv,
    /// A JSON object or list in every line.
    JsonLines,
    /// Parquet: a file, or a folder of files with the same columns.
    Parquet,
}

/// A table that can be read.
pub struct TableSource {
    origin: Origin,
    /// Without one it is CSV or JSON lines, by the first character.
    format: Option<TableFormat>,
}

/// JSON lines begin with a bracket.
fn text_format(input: &mut ByteReader) -> Result<TableFormat> {
    let first = input.peek()?.trim_ascii_start().first().copied();
    Ok(if matches!(first, Some(b'{' | b'[')) {
        TableFormat::JsonLines
    } else {
        TableFormat::Csv
    })
}

impl TableSource {
    /// Nothing is read yet.
    pub fn new(origin: Origin, format: Option<TableFormat>) -> Self {
        Self { origin, format }
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        self.origin.name()
    }

    /// Starts reading; `listed` names the cells of JSON lines that are lists.
    pub fn records(&self, options: &ReadOptions, listed: &[String]) -> Result<Box<dyn Records>> {
        if self.format == Some(TableFormat::Parquet) {
            return match &self.origin {
                Origin::File(path) if path.is_dir() => Ok(Box::new(ParquetFolder::open(path)?)),
                file => Ok(Box::new(ParquetRecords::open(file)?)),
            };
        }
        let mut input = self.text(options)?;
        match self.format.map_or_else(|| text_format(&mut input), Ok)? {
            TableFormat::JsonLines => Ok(Box::new(JsonRecords::new(input, listed.to_vec()))),
            _ => {
                let records = CsvRecords::open(input, options.no_header, options.notation)?;
                Ok(Box::new(records))
            }
        }
    }

    /// The table as text in UTF-8.
    fn text(&self, options: &ReadOptions) -> Result<ByteReader> {
        decoded(self.origin.open()?, options.encoding)
    }

    /// Finds out what the columns are. Reads the table twice: once for that, once for the numbers.
    pub fn rows(self, options: &ReadOptions) -> Result<RowStream> {
        let source = Self::new(self.origin.reopenable()?, self.format);
        let before = source.origin.stamp();
        let file = source.name();
        let named = |error: Error| error.in_file(&file);
        let names = match source.records(options, &[])?.header() {
            Some(names) => names.to_vec(),
            None => json_lines::names(source.text(options)?)?,
        };
        if names.is_empty() {
            let error = Error::expected(ErrorKind::Empty, "at least one row", "none");
            return Err(named(error));
        }
        let ignore = split_names(&options.ignore, &names);
        let categorical = split_names(&options.categorical, &names);
        let mut chosen = Chosen::new(&names, options.target.as_ref(), &ignore).map_err(named)?;
        check_named(&categorical, &chosen.columns, "to be categorical").map_err(named)?;
        let no_default_na = columns_of(&options.no_default_na, &names);
        if let NoDefaultNa::In(columns) = &no_default_na {
            check_named(columns, &chosen.names(), "in which NA is a word").map_err(named)?;
        }
        let mut rows = source.records(options, &names)?;
        rows.select(&chosen.names(), &[]);
        let wanted = Wanted {
            columns: &chosen.columns,
            target: chosen.target.as_ref(),
            categorical: &categorical,
            na: &options.na,
            no_default_na: &no_default_na,
            by_place: names
                .iter()
                .zip(0..)
                .all(|(name, i)| *name == format!("x{i}")),
        };
        let found = infer(&file, &mut *rows, &wanted)?;
        let empty = found.empty.iter();
        chosen
            .ignored
            .extend(empty.map(|name| format!("{name} (nothing is in it)")));
        chosen.columns.retain(|name| !found.empty.contains(name));
        let mut rows = source.records(options, &names)?;
        if source.origin.stamp() != before {
            return Err(read_error(&file, changed()));
        }
        rows.select(&chosen.names(), &[]);
        let layout = Layout {
            width: found.columns.len(),
            columns: found.columns,
            classes: found.classes,
            target: chosen.target,
            ignored: chosen.ignored,
            na: options.na.clone(),
            no_default_na,
            findings: found.findings,
            ..Layout::default()
        };
        Ok(encoded(&file, rows, layout, options.unseen_missing))
    }
}

/// The same with names that were given with commas between them apart.
pub fn columns_of(given: &NoDefaultNa, names: &[String]) -> NoDefaultNa {
    match given {
        NoDefaultNa::In(columns) => NoDefaultNa::In(split_names(columns, names)),
        other => other.clone(),
    }
}

/// Columns that the user names must be there; `what` says what they are named for.
fn check_named(wanted: &[String], columns: &[String], what: &str) -> Result<()> {
    match wanted.iter().find(|name| !columns.contains(name)) {
        None => Ok(()),
        Some(unknown) => {
            let expected = format!("a column '{unknown}' {what}");
            Err(Error::expected(
                ErrorKind::MissingColumn,
                expected,
                some_of(columns),
            ))
        }
    }
}
