//! JSON lines: every line is an object of named cells or a list of cells; null and names left out are holes.
//!
//! [`JsonLines`] gives the lines of anything that can be read; [`JsonRecords`] is a file of them.

use crate::error::{At, Error, ErrorKind, Place, Result, read_error};
use crate::files::lines::LineBuffer;
use crate::files::source::{ByteReader, LONGEST_ROW, row_too_long};
use crate::formats::json_row::{self, RowSink, read_row};
use crate::rows::cells::{Cell, EachRow, Field, FieldKind, Records, Written};
use crate::rows::layout::some_of;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, BufRead};

/// Lines of a text being read, without blank ones.
pub struct JsonLines<R> {
    reader: R,
    max_row: u64,
    line: u64,
    text: LineBuffer,
}

impl<R: BufRead> JsonLines<R> {
    /// A line may have at most `max_row` bytes.
    pub fn new(reader: R, max_row: u64) -> Self {
        Self {
            reader,
            max_row,
            line: 0,
            text: LineBuffer::default(),
        }
    }

    /// Reads the next line that is not blank; false at the end.
    pub fn next_line(&mut self) -> Result<bool> {
        loop {
            let read = self.text.read(&mut self.reader, self.max_row);
            self.line += 1;
            if !read.map_err(|error| self.unreadable(error))? {
                return Ok(false);
            }
            if self.text().len() as u64 > self.max_row {
                return Err(row_too_long(self.max_row).at(self.place()));
            }
            if !self.text().trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    fn unreadable(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::FileTooLarge => {
                Error::new(ErrorKind::RowTooLong, error.to_string()).at(self.place())
            }
            _ => read_error("", error),
        }
    }

    /// The line that was read.
    pub fn text(&self) -> &[u8] {
        self.text.bytes()
    }

    /// Where it is.
    pub fn place(&self) -> Place<'static> {
        Place {
            file: "",
            at: At::Line(self.line),
        }
    }
}

/// The values of one line as they were written, in their order (a map would sort the names and hide one that comes twice).
enum WrittenLine {
    Named(Vec<(String, Box<RawValue>)>),
    List(Vec<Box<RawValue>>),
}

impl WrittenLine {
    fn parse(text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text).map_err(|error| json_row::explain(&error, true))
    }
}

impl<'de> Deserialize<'de> for WrittenLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LineVisitor;
        impl<'de> Visitor<'de> for LineVisitor {
            type Value = WrittenLine;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of cells or an object of named cells")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WrittenLine, A::Error> {
                let mut cells = Vec::new();
                while let Some(cell) = map.next_entry()? {
                    cells.push(cell);
                }
                Ok(WrittenLine::Named(cells))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WrittenLine, A::Error> {
                let mut cells = Vec::new();
                while let Some(cell) = list.next_element()? {
                    cells.push(cell);
                }
                Ok(WrittenLine::List(cells))
            }
        }
        deserializer.deserialize_any(LineVisitor)
    }
}

/// A cell with its own text.
#[derive(Clone, Debug)]
enum OwnCell {
    Missing,
    Number(f64),
    Text(String),
}

impl OwnCell {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Missing => Cell::Missing,
            Self::Number(number) => Cell::Number(*number),
            Self::Text(text) => Cell::Text(text),
        }
    }
}

impl From<Cell<'_>> for OwnCell {
    fn from(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Missing => Self::Missing,
            Cell::Number(number) => Self::Number(number),
            Cell::Text(text) => Self::Text(text.to_owned()),
        }
    }
}

/// The chosen cells of one line.
struct ChosenCells<'a> {
    names: &'a [String],
    by_name: &'a HashMap<String, usize>,
    /// For every cell of a list, the chosen column.
    listed: &'a [Option<usize>],
    cells: Vec<OwnCell>,
    /// All names of the line.
    seen: HashSet<String>,
}

impl RowSink for ChosenCells<'_> {
    fn list_length(&self) -> usize {
        self.listed.len()
    }

    fn by_position(&self, position: usize) -> Option<usize> {
        self.listed[position]
    }

    fn by_name(&mut self, name: &str) -> Result<Option<usize>> {
        if !self.seen.insert(name.to_owned()) {
            let (expected, got) = ("every name once", format!("'{name}' twice"));
            return Err(Error::expected(ErrorKind::DuplicateName, expected, got));
        }
        Ok(self.by_name.get(name).copied())
    }

    fn name(&self, column: usize) -> &str {
        &self.names[column]
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<()> {
        self.cells[column] = cell.into();
        Ok(())
    }
}

/// A file of JSON lines being read.
pub struct JsonRecords {
    name: String,
    lines: JsonLines<Box<dyn BufRead + Send>>,
    /// What the cells of a list stand for.
    listed: Vec<String>,
    chosen: Vec<String>,
    /// The chosen columns by name, and for every cell of a list.
    by_name: HashMap<String, usize>,
    by_position: Vec<Option<usize>>,
    /// The names of the first line, and which of them are kept.
    keepable: Vec<String>,
    kept: Vec<usize>,
    /// The first line was read only for its names.
    held: bool,
}

impl JsonRecords {
    /// `listed` names the cells of lines that are lists.
    pub fn new(input: ByteReader, listed: Vec<String>) -> Self {
        Self {
            name: input.name.clone(),
            lines: JsonLines::new(input.into_reader(), LONGEST_ROW),
            listed,
            chosen: Vec::new(),
            by_name: HashMap::new(),
            by_position: Vec::new(),
            keepable: Vec::new(),
            kept: Vec::new(),
            held: false,
        }
    }

    /// Reads the next line; false at the end.
    fn next_line(&mut self) -> Result<bool> {
        Ok(std::mem::take(&mut self.held) || self.lines.next_line()?)
    }

    /// The chosen cells of the line.
    fn cells(&self) -> Result<Vec<OwnCell>> {
        let mut row = ChosenCells {
            names: &self.chosen,
            by_name: &self.by_name,
            listed: &self.by_position,
            cells: vec![OwnCell::Missing; self.chosen.len()],
            seen: HashSet::new(),
        };
        read_row(self.lines.text(), &mut row)?;
        self.check_names(&row.seen)?;
        Ok(row.cells)
    }

    /// A line must have something of what is read, and nothing that would get lost where columns are kept.
    fn check_names(&self, seen: &HashSet<String>) -> Result<()> {
        if seen.is_empty() {
            return Ok(());
        }
        if !seen.iter().any(|name| self.by_name.contains_key(name)) {
            let got = some_of(&self.names_of_line()?);
            let expected = some_of(&self.chosen);
            return Err(Error::expected(ErrorKind::MissingColumn, expected, got));
        }
        let known =
            |name: &&String| self.keepable.contains(name) || self.by_name.contains_key(*name);
        if self.kept.is_empty() || seen.iter().all(|name| known(&name)) {
            return Ok(());
        }
        let names = self.names_of_line()?;
        let lost = names.iter().find(|name| !known(name));
        let got = format!("'{}' too", lost.map_or("", |name| name));
        let expected = "the names of the first line";
        Err(Error::expected(ErrorKind::MissingColumn, expected, got))
    }

    /// The names of the line in their order; those of lists if it is one.
    fn names_of_line(&self) -> Result<Vec<String>> {
        Ok(match WrittenLine::parse(self.lines.text())? {
            WrittenLine::Named(cells) => cells.into_iter().map(|(name, _)| name).collect(),
            WrittenLine::List(_) => self.listed.clone(),
        })
    }

    /// The kept cells of the line as they were written.
    fn written(&self) -> Result<Vec<Written>> {
        if self.kept.is_empty() {
            return Ok(Vec::new());
        }
        let by_name: HashMap<String, Box<RawValue>> = match WrittenLine::parse(self.lines.text())? {
            WrittenLine::Named(cells) => cells.into_iter().collect(),
            WrittenLine::List(cells) => self.listed.iter().cloned().zip(cells).collect(),
        };
        let keep = |&column: &usize| match by_name.get(&self.keepable[column]) {
            Some(text) => Written::Json(text.get().to_owned()),
            None => Written::Missing,
        };
        Ok(self.kept.iter().map(keep).collect())
    }

    /// Hands over the line that was read.
    fn row(&self, each: &mut EachRow<'_>) -> Result<()> {
        let own = self.cells().map_err(|error| error.at(self.lines.place()))?;
        let cells: Vec<Cell<'_>> = own.iter().map(OwnCell::cell).collect();
        let kept = self
            .written()
            .map_err(|error| error.at(self.lines.place()))?;
        each(self.lines.place(), &cells, kept)
    }
}

/// The names that lines use, in the order in which they first come; x0, x1, … for lists. Reads to the end.
pub fn names(input: ByteReader) -> Result<Vec<String>> {
    let name = input.name.clone();
    let mut lines = JsonLines::new(input.into_reader(), LONGEST_ROW);
    let mut names = NamesSoFar::default();
    while lines.next_line().map_err(|error| error.in_file(&name))? {
        let added = WrittenLine::parse(lines.text()).and_then(|line| names.add(line));
        added.map_err(|error| error.at(lines.place()).in_file(&name))?;
    }
    Ok(names.names)
}

/// NamesSoFar that have been seen so far.
#[derive(Default)]
struct NamesSoFar {
    names: Vec<String>,
    seen: HashSet<String>,
    /// Whether lines are lists, once one is known.
    lists: Option<bool>,
}

impl NamesSoFar {
    fn add(&mut self, line: WrittenLine) -> Result<()> {
        let is_list = matches!(line, WrittenLine::List(_));
        if self
            .lists
            .replace(is_list)
            .is_some_and(|lists| lists != is_list)
        {
            let expected = "all lines to be objects or all to be lists";
            return Err(Error::expected(ErrorKind::WrongType, expected, "both"));
        }
        let found: Vec<String> = match line {
            WrittenLine::Named(cells) => cells.into_iter().map(|(name, _)| name).collect(),
            WrittenLine::List(cells) if self.names.is_empty() => {
                (0..cells.len()).map(|i| format!("x{i}")).collect()
            }
            WrittenLine::List(_) => return Ok(()),
        };
        let new = found
            .into_iter()
            .filter(|name| self.seen.insert(name.clone()));
        self.names.extend(new);
        Ok(())
    }
}

impl Records for JsonRecords {
    fn header(&self) -> Option<&[String]> {
        None
    }

    fn keepable(&mut self) -> Result<Vec<Field>> {
        let first = self.next_line().and_then(|there| match there {
            true => self
                .names_of_line()
                .map_err(|error| error.at(self.lines.place())),
            false => Ok(self.listed.clone()),
        });
        self.keepable = first.map_err(|error| error.in_file(&self.name))?;
        self.held = !self.lines.text().is_empty();
        let field = |name: &String| Field::new(name, FieldKind::Text);
        Ok(self.keepable.iter().map(field).collect())
    }

    fn select(&mut self, names: &[String], kept: &[usize]) {
        self.chosen = names.to_vec();
        self.by_name = names.iter().cloned().zip(0..).collect();
        let place = |name: &String| self.by_name.get(name).copied();
        self.by_position = self.listed.iter().map(place).collect();
        self.kept = kept.to_vec();
    }

    fn fill(&mut self, max_rows: usize, each: &mut EachRow<'_>) -> Result<usize> {
        for count in 0..max_rows {
            let there = self
                .next_line()
                .map_err(|error| error.in_file(&self.name))?;
            if !there {
                return Ok(count);
            }
            self.row(each).map_err(|error| error.in_file(&self.name))?;
        }
        Ok(max_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::source::Origin;

    fn input(text: &str) -> ByteReader {
        Origin::Memory {
            name: "a.jsonl".into(),
            bytes: text.as_bytes().into(),
        }
        .open()
        .unwrap()
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn cells(text: &str, chosen: &[&str]) -> Result<Vec<Vec<String>>> {
        let mut records = JsonRecords::new(input(text), strings(&["a", "b"]));
        records.select(&strings(chosen), &[]);
        let mut rows = Vec::new();
        records.fill(9, &mut |_, cells, _| {
            rows.push(
                cells
                    .iter()
                    .map(|cell| cell.category().unwrap_or("—".into()))
                    .collect(),
            );
            Ok(())
        })?;
        Ok(rows)
    }

    #[test]
    fn objects_and_lists() {
        let text = "{\"b\": 1, \"a\": null}\n\n{\"a\": \"x\", \"c\": 7}\n{\"b\": true}\n{}\n";
        assert_eq!(
            cells(text, &["a", "b"]).unwrap(),
            [["—", "1"], ["x", "—"], ["—", "true"], ["—", "—"]]
        );
        assert_eq!(names(input(text)).unwrap(), ["b", "a", "c"]);
        assert_eq!(
            cells("[1, null]\n[2.5, \"NA\"]", &["b", "a"]).unwrap(),
            [["—", "1"], ["NA", "2.5"]]
        );
        assert_eq!(names(input("[1, 2]\n[3, 4]")).unwrap(), ["x0", "x1"]);
    }

    #[test]
    fn nonsense_is_named() {
        let says = |text: &str| cells(text, &["a", "b"]).unwrap_err().to_string();
        assert_eq!(
            says("[1, 2]\n{\"a\": }"),
            "a.jsonl line 2, column 'a': not valid JSON: expected value at character 7"
        );
        assert_eq!(
            says("7"),
            "a.jsonl line 1: expected a list of cells or an object of named cells, got integer `7`"
        );
        assert_eq!(
            says("[1e999, 2]"),
            "a.jsonl line 1, column 'a': expected a finite number, got one out of range"
        );
        assert_eq!(
            says("\n[1]"),
            "a.jsonl line 2: expected a list of 2 cells, got 1"
        );
        assert_eq!(
            says("{\"agee\": 1}"),
            "a.jsonl line 1: expected a, b, got agee"
        );
        assert_eq!(
            says("{\"a\": 1, \"a\": 2}"),
            "a.jsonl line 1: expected every name once, got 'a' twice"
        );
        assert_eq!(
            says("{\"a\": [1]}"),
            "a.jsonl line 1, column 'a': expected a number, text or null, got a list"
        );
        let error = names(input("[1]\n{\"a\": 1}")).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.jsonl line 2: expected all lines to be objects or all to be lists, got both"
        );
        let deep = "[".repeat(100_000);
        assert!(says(&deep).ends_with("got a list"), "{}", says(&deep));
        let deep = format!("[{deep}{}, 1]", "]".repeat(100_000));
        assert!(says(&deep).ends_with("got a list"));
        let skipped = format!("{{\"c\": {deep}, \"a\": 1}}");
        assert_eq!(cells(&skipped, &["a"]).unwrap(), [["1"]]);
    }
}
