//! JSON lines: every line is an object of named cells or a list of cells; null and names left out are holes.

use crate::cells::{Cell, EachRow, Field, FieldKind, Holes, Place, Records, Written};
use crate::error::mistake;
use crate::layout::some_of;
use crate::source::{Input, LONGEST_ROW, row_too_long};
use anyhow::Result;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, Read};

/// One line, in the order in which it was written (a map would sort the names and hide one that comes twice).
enum Line {
    Named(Vec<(String, Box<RawValue>)>),
    List(Vec<Box<RawValue>>),
}

/// A value, as far as a cell of a table can be one.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Value {
    Null(()),
    Bool(bool),
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LineVisitor;
        impl<'de> Visitor<'de> for LineVisitor {
            type Value = Line;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
                let mut cells = Vec::new();
                while let Some(cell) = map.next_entry()? {
                    cells.push(cell);
                }
                Ok(Line::Named(cells))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Line, A::Error> {
                let mut cells = Vec::new();
                while let Some(cell) = list.next_element()? {
                    cells.push(cell);
                }
                Ok(Line::List(cells))
            }
        }
        deserializer.deserialize_any(LineVisitor)
    }
}

/// A file of JSON lines being read.
pub struct JsonRecords {
    name: String,
    reader: Box<dyn BufRead + Send>,
    /// What the cells of a list stand for.
    listed: Vec<String>,
    chosen: Vec<String>,
    /// The names of the first line, and which of them are kept.
    keepable: Vec<String>,
    kept: Vec<usize>,
    holes: Holes,
    line: u64,
    buffer: Vec<u8>,
    /// A first line that was looked at only for its names.
    held: Option<Line>,
}

impl JsonRecords {
    /// `listed` names the cells of lines that are lists.
    pub fn new(input: Input, listed: Vec<String>, holes: Holes) -> Self {
        Self {
            name: input.name.clone(),
            reader: input.into_reader(),
            listed,
            chosen: Vec::new(),
            keepable: Vec::new(),
            kept: Vec::new(),
            holes,
            line: 0,
            buffer: Vec::new(),
            held: None,
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            file: &self.name,
            unit: "line",
            row: self.line,
        }
    }

    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<Line>> {
        if let Some(line) = self.held.take() {
            return Ok(Some(line));
        }
        loop {
            self.buffer.clear();
            let read = self
                .reader
                .by_ref()
                .take(LONGEST_ROW + 1)
                .read_until(b'\n', &mut self.buffer);
            if read.map_err(|error| crate::source::damaged(&self.name, error))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if self.buffer.len() as u64 > LONGEST_ROW {
                return Err(mistake(format!("{}: {}", self.place(), row_too_long())));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let wrong = |error: serde_json::Error| {
            // serde counts lines within this one, so only its column is of use.
            let (text, column) = (error.to_string(), error.column());
            let text = text.split(" at line ").next().unwrap_or_default();
            mistake(format!(
                "{}: expected a JSON object or list: {text} at column {column}",
                self.place()
            ))
        };
        serde_json::from_slice(&self.buffer)
            .map(Some)
            .map_err(wrong)
    }

    /// The values of a line by their names.
    fn by_name<'a>(&'a self, line: &'a Line) -> Result<HashMap<&'a str, &'a RawValue>> {
        let fails = |what: String| mistake(format!("{}: {what}", self.place()));
        match line {
            Line::Named(cells) => {
                let by_name: HashMap<_, _> = cells
                    .iter()
                    .map(|(name, value)| (name.as_str(), &**value))
                    .collect();
                if by_name.len() < cells.len() {
                    return Err(fails(
                        "expected every name once, got one of them twice".to_owned(),
                    ));
                }
                if !cells.is_empty()
                    && !self
                        .chosen
                        .iter()
                        .any(|name| by_name.contains_key(name.as_str()))
                {
                    let got: Vec<&str> = cells.iter().map(|(name, _)| name.as_str()).collect();
                    return Err(fails(format!(
                        "expected {}, got {}",
                        some_of(&self.chosen),
                        some_of(&got)
                    )));
                }
                let known =
                    |name: &String| self.keepable.contains(name) || self.chosen.contains(name);
                if let Some((lost, _)) = cells
                    .iter()
                    .find(|(name, _)| !self.kept.is_empty() && !known(name))
                {
                    return Err(fails(format!(
                        "expected the names of the first line, got '{lost}' too"
                    )));
                }
                Ok(by_name)
            }
            Line::List(cells) if cells.len() != self.listed.len() => Err(fails(format!(
                "expected a list of {} cells, got {}",
                self.listed.len(),
                cells.len()
            ))),
            Line::List(cells) => Ok(self
                .listed
                .iter()
                .map(String::as_str)
                .zip(cells.iter().map(|cell| &**cell))
                .collect()),
        }
    }

    /// The value of a cell.
    fn value(&self, name: &str, written: &RawValue) -> Result<Value> {
        let expected = |got: &str| {
            let place = self.place();
            mistake(format!(
                "{place}: column '{name}': expected a number, text or null, got {got}"
            ))
        };
        serde_json::from_str(written.get()).map_err(|_| match written.get().as_bytes() {
            [b'[' | b'{', ..] => expected("a list or an object"),
            _ => expected(written.get()),
        })
    }

    /// The cell of a value.
    fn cell<'a>(&self, value: Option<&'a Value>) -> Cell<'a> {
        match value {
            None | Some(Value::Null(())) => Cell::Missing,
            Some(Value::Number(number)) => self.holes.number(*number),
            Some(Value::Text(text)) => self.holes.cell(text),
            Some(Value::Bool(true)) => Cell::Text("true"),
            Some(Value::Bool(false)) => Cell::Text("false"),
        }
    }
}

/// The names that lines use, in the order in which they first come; x0, x1, … for lists. Reads to the end.
pub fn names(input: Input) -> Result<Vec<String>> {
    let mut records = JsonRecords::new(input, Vec::new(), Holes::default());
    let (mut names, mut seen) = (Vec::new(), HashMap::new());
    let mut lists = None;
    while let Some(line) = records.next()? {
        let named = matches!(line, Line::Named(_));
        if lists.replace(!named).is_some_and(|lists| lists == named) {
            let place = records.place();
            return Err(mistake(format!(
                "{place}: expected all lines to be objects or all to be lists, got both"
            )));
        }
        let found: Vec<String> = match line {
            Line::Named(cells) => cells.into_iter().map(|(name, _)| name).collect(),
            Line::List(cells) if names.is_empty() => {
                (0..cells.len()).map(|i| format!("x{i}")).collect()
            }
            Line::List(_) => continue,
        };
        for name in found {
            seen.entry(name.clone()).or_insert_with(|| names.push(name));
        }
    }
    Ok(names)
}

impl Records for JsonRecords {
    fn header(&self) -> Option<&[String]> {
        None
    }

    fn keepable(&mut self) -> Result<Vec<Field>> {
        self.held = self.next()?;
        self.keepable = match &self.held {
            Some(Line::Named(cells)) => cells.iter().map(|(name, _)| name.clone()).collect(),
            _ => self.listed.clone(),
        };
        Ok(self
            .keepable
            .iter()
            .map(|name| Field::new(name, FieldKind::Text))
            .collect())
    }

    fn select(&mut self, names: &[String], kept: &[usize]) {
        (self.chosen, self.kept) = (names.to_vec(), kept.to_vec());
    }

    fn fill(&mut self, most: usize, each: &mut EachRow<'_>) -> Result<usize> {
        for count in 0..most {
            let Some(line) = self.next()? else {
                return Ok(count);
            };
            let written = self.by_name(&line)?;
            let value = |name: &String| {
                written
                    .get(name.as_str())
                    .map(|text| self.value(name, text))
                    .transpose()
            };
            let values = self.chosen.iter().map(value).collect::<Result<Vec<_>>>()?;
            let cells: Vec<Cell> = values
                .iter()
                .map(|value| self.cell(value.as_ref()))
                .collect();
            let keep = |&column: &usize| match written.get(self.keepable[column].as_str()) {
                Some(text) => Written::Json(text.get().to_owned()),
                None => Written::Missing,
            };
            let kept = self.kept.iter().map(keep).collect();
            each(self.place(), &cells, kept)?;
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Origin;

    fn input(text: &str) -> Input {
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
        let mut records = JsonRecords::new(input(text), strings(&["a", "b"]), Holes::default());
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
            [["—", "1"], ["—", "2.5"]]
        );
        assert_eq!(names(input("[1, 2]\n[3, 4]")).unwrap(), ["x0", "x1"]);
    }

    #[test]
    fn nonsense_is_named() {
        let says = |text: &str| cells(text, &["a", "b"]).unwrap_err().to_string();
        assert_eq!(
            says("[1, 2]\n{\"a\": }"),
            "a.jsonl line 2: expected a JSON object or list: expected value at column 7"
        );
        assert_eq!(
            says("7"),
            "a.jsonl line 1: expected a JSON object or list: invalid type: integer `7`, expected an object or a list at \
             column 1"
        );
        assert_eq!(
            says("[1e999, 2]"),
            "a.jsonl line 1: column 'a': expected a number, text or null, got 1e999"
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
            "a.jsonl line 1: expected every name once, got one of them twice"
        );
        assert_eq!(
            says("{\"a\": [1]}"),
            "a.jsonl line 1: column 'a': expected a number, text or null, got a list or an object"
        );
        let error = names(input("[1]\n{\"a\": 1}")).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.jsonl line 2: expected all lines to be objects or all to be lists, got both"
        );
        let deep = "[".repeat(100_000);
        assert!(says(&deep).contains("EOF while parsing"), "{}", says(&deep));
        let deep = format!("[{deep}{}, 1]", "]".repeat(100_000));
        assert!(says(&deep).ends_with("got a list or an object"));
    }
}
