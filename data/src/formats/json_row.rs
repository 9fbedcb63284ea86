//! One row in JSON: a list of cells, or an object of named ones. Cells go straight from the text to a [`RowSink`], without
//! a tree of values in between.

use crate::error::{Error, ErrorKind, Result};
use crate::rows::cells::Cell;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Takes the cells of a row.
pub trait RowSink {
    /// How many cells a row has that is a list.
    fn list_length(&self) -> usize;

    /// The column of a cell of a list, by its position; `None` skips it.
    fn by_position(&self, position: usize) -> Option<usize>;

    /// The column of a name; `None` skips its value. Called for every name of an object, in order.
    fn by_name(&mut self, name: &str) -> Result<Option<usize>>;

    /// The end of an object: what its names mean together.
    fn end_of_names(&mut self) -> Result<()> {
        Ok(())
    }

    /// What messages call a column.
    fn name(&self, column: usize) -> &str;

    /// Takes a cell. Null is missing; a truth value is its word.
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<()>;
}

/// What is expected where a row begins.
const ROW: &str = "a list of cells or an object of named cells";

/// What is expected where a cell begins.
const CELL: &str = "a number, text or null";

/// How far a row has been read, and what was wrong with it. The parser itself can carry only text.
#[derive(Debug, Default)]
pub struct RowProgress {
    column: Option<usize>,
    error: Option<Error>,
}

impl RowProgress {
    /// Stops the parser with an error.
    fn fail<E: de::Error>(&mut self, error: Error) -> E {
        self.error = Some(error);
        E::custom("stopped")
    }

    /// Why the parser stopped, with the column where it did. The place in the text is the character if it is `one_line`.
    pub fn explain(
        &mut self,
        error: &serde_json::Error,
        sink: &impl RowSink,
        one_line: bool,
    ) -> Error {
        let column = self.column.take();
        let explained = match self.error.take() {
            Some(error) => error,
            None => explain(error, one_line),
        };
        match column {
            Some(column) if !error.is_eof() => explained.in_column(sink.name(column)),
            _ => explained,
        }
    }
}

/// The parser's error as an error about data.
pub fn explain(error: &serde_json::Error, one_line: bool) -> Error {
    let text = error.to_string();
    let what = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(what, _)| what);
    if error.is_eof() {
        return Error::damaged("the JSON ends too early");
    }
    if what == "number out of range" {
        return Error::expected(ErrorKind::NotFinite, "a finite number", "one out of range");
    }
    if let Some((got, expected)) = what
        .strip_prefix("invalid type: ")
        .and_then(|rest| rest.split_once(", expected "))
    {
        return Error::expected(ErrorKind::WrongType, expected, got);
    }
    if error.is_data() {
        return Error::damaged(what);
    }
    Error::damaged(match one_line {
        true => format!("not valid JSON: {what} at character {}", error.column()),
        false => format!("not valid JSON: {text}"),
    })
}

/// Reads a row that stands alone, such as a line.
pub fn read_row(text: &[u8], sink: &mut impl RowSink) -> Result<()> {
    let mut progress = RowProgress::default();
    let mut parser = serde_json::Deserializer::from_slice(text);
    let row = JsonRow {
        sink: &mut *sink,
        progress: &mut progress,
    };
    let read = row.deserialize(&mut parser).and_then(|()| parser.end());
    read.map_err(|error| progress.explain(&error, sink, true))
}

/// Reads one row wherever it stands in a text.
pub struct JsonRow<'a, S> {
    /// Where cells go.
    pub sink: &'a mut S,
    /// How far it has been read.
    pub progress: &'a mut RowProgress,
}

impl<'de, S: RowSink> DeserializeSeed<'de> for JsonRow<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.progress.column = None;
        deserializer.deserialize_any(self)
    }
}

impl<S: RowSink> JsonRow<'_, S> {
    /// The seed of the next cell.
    fn cell(&mut self, column: usize) -> JsonCell<'_, S> {
        self.progress.column = Some(column);
        JsonCell {
            sink: &mut *self.sink,
            progress: &mut *self.progress,
            column,
        }
    }

    fn wrong_length<E: de::Error>(&mut self, got: usize) -> E {
        self.progress.column = None;
        let expected = format!("a list of {} cells", self.sink.list_length());
        let error = Error::expected(ErrorKind::CellCount, expected, got);
        self.progress.fail(error)
    }
}

impl<'de, S: RowSink> Visitor<'de> for JsonRow<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ROW)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let length = self.sink.list_length();
        for position in 0..length {
            let there = match self.sink.by_position(position) {
                Some(column) => list.next_element_seed(self.cell(column))?.is_some(),
                None => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !there {
                return Err(self.wrong_length(position));
            }
        }
        self.progress.column = None;
        let mut more = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        if more > 0 {
            return Err(self.wrong_length(length + more));
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.progress.column = None;
            match self.sink.by_name(&name) {
                Ok(Some(column)) => map.next_value_seed(self.cell(column))?,
                Ok(None) => drop(map.next_value::<IgnoredAny>()?),
                Err(error) => return Err(self.progress.fail(error)),
            }
        }
        self.progress.column = None;
        let end = self.sink.end_of_names();
        end.map_err(|error| self.progress.fail(error))
    }
}

/// Reads one cell.
struct JsonCell<'a, S> {
    sink: &'a mut S,
    progress: &'a mut RowProgress,
    column: usize,
}

impl<S: RowSink> JsonCell<'_, S> {
    fn take<E: de::Error>(self, cell: Cell<'_>) -> Result<(), E> {
        let taken = self.sink.cell(self.column, cell);
        taken.map_err(|error| self.progress.fail(error))
    }

    fn refuse<E: de::Error>(self, got: &str) -> Result<(), E> {
        let error = Error::expected(ErrorKind::WrongType, CELL, got);
        Err(self.progress.fail(error))
    }
}

impl<'de, S: RowSink> DeserializeSeed<'de> for JsonCell<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: RowSink> Visitor<'de> for JsonCell<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CELL)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.take(Cell::Missing)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.take(Cell::Text(if value { "true" } else { "false" }))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.take(Cell::Number(value as f64))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.take(Cell::Number(value as f64))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.take(Cell::Number(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.take(Cell::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        self.refuse("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        self.refuse("an object")
    }
}
