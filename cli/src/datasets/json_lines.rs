//! JSON lines: every line is an object of named cells or a list of cells; null and names left out are holes.

use super::records::{Cell, EachRow, Place, Records};
use super::source::Input;
use super::table::some_of;
use crate::mistake::mistake;
use anyhow::Result;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;

/// One line, in the order in which it was written (a map would sort the names and hide one that comes twice).
enum Line {
    Named(Vec<(String, Value)>),
    List(Vec<Value>),
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
    line: u64,
    buffer: Vec<u8>,
}

impl JsonRecords {
    /// `listed` names the cells of lines that are lists.
    pub fn new(input: Input, listed: Vec<String>) -> Self {
        let name = input.name.clone();
        Self { name, reader: input.into_reader(), listed, chosen: Vec::new(), line: 0, buffer: Vec::new() }
    }

    fn place(&self) -> Place<'_> {
        Place { file: &self.name, unit: "line", row: self.line }
    }

    /// The next line that is not blank.
    fn next(&mut self) -> Result<Option<Line>> {
        loop {
            self.buffer.clear();
            let read = self.reader.read_until(b'\n', &mut self.buffer);
            if read.map_err(|error| super::source::damaged(&self.name, error))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let wrong = |error: serde_json::Error| {
            // serde counts lines within this one, so only its column is of use.
            let (text, column) = (error.to_string(), error.column());
            let text = text.split(" at line ").next().unwrap_or_default();
            mistake(format!("{}: expected a JSON object or list: {text} at column {column}", self.place()))
        };
        serde_json::from_slice(&self.buffer).map(Some).map_err(wrong)
    }

    /// The cells that were chosen, in their order.
    fn pick<'a>(&self, line: &'a Line) -> Result<Vec<Cell<'a>>> {
        let fails = |what: String| mistake(format!("{}: {what}", self.place()));
        let cells: HashMap<&str, &Value> = match line {
            Line::Named(cells) => {
                let by_name: HashMap<_, _> = cells.iter().map(|(name, value)| (name.as_str(), value)).collect();
                if by_name.len() < cells.len() {
                    return Err(fails("expected every name once, got one of them twice".to_owned()));
                }
                if !cells.is_empty() && !self.chosen.iter().any(|name| by_name.contains_key(name.as_str())) {
                    let got: Vec<&str> = cells.iter().map(|(name, _)| name.as_str()).collect();
                    return Err(fails(format!("expected {}, got {}", some_of(&self.chosen), some_of(&got))));
                }
                by_name
            }
            Line::List(cells) if cells.len() != self.listed.len() => {
                return Err(fails(format!("expected a list of {} cells, got {}", self.listed.len(), cells.len())));
            }
            Line::List(cells) => self.listed.iter().map(String::as_str).zip(cells).collect(),
        };
        let cell = |name: &String| match cells.get(name.as_str()) {
            None | Some(Value::Null) => Ok(Cell::Missing),
            Some(Value::Number(number)) => Ok(Cell::Number(number.as_f64().unwrap_or(f64::INFINITY))),
            Some(Value::String(text)) => Ok(Cell::of_text(text)),
            Some(Value::Bool(true)) => Ok(Cell::Text("true")),
            Some(Value::Bool(false)) => Ok(Cell::Text("false")),
            Some(Value::Array(_) | Value::Object(_)) => {
                Err(fails(format!("column '{name}': expected a number, text or null, got a list or an object")))
            }
        };
        self.chosen.iter().map(cell).collect()
    }
}

/// The names that lines use, in the order in which they first come; x0, x1, … for lists. Reads to the end.
pub fn names(input: Input) -> Result<Vec<String>> {
    let mut records = JsonRecords::new(input, Vec::new());
    let (mut names, mut seen) = (Vec::new(), HashMap::new());
    let mut lists = None;
    while let Some(line) = records.next()? {
        let named = matches!(line, Line::Named(_));
        if lists.replace(!named).is_some_and(|lists| lists == named) {
            let place = records.place();
            return Err(mistake(format!("{place}: expected all lines to be objects or all to be lists, got both")));
        }
        let found: Vec<String> = match line {
            Line::Named(cells) => cells.into_iter().map(|(name, _)| name).collect(),
            Line::List(cells) if names.is_empty() => (0..cells.len()).map(|i| format!("x{i}")).collect(),
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

    fn select(&mut self, names: &[String]) {
        self.chosen = names.to_vec();
    }

    fn fill(&mut self, most: usize, each: &mut EachRow<'_>) -> Result<usize> {
        for count in 0..most {
            let Some(line) = self.next()? else { return Ok(count) };
            let cells = self.pick(&line)?;
            each(self.place(), &cells)?;
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Origin;
    use super::*;

    fn input(text: &str) -> Input {
        Origin::Memory { name: "a.jsonl".into(), bytes: text.as_bytes().into() }.open().unwrap()
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn cells(text: &str, chosen: &[&str]) -> Result<Vec<Vec<String>>> {
        let mut records = JsonRecords::new(input(text), strings(&["a", "b"]));
        records.select(&strings(chosen));
        let mut rows = Vec::new();
        records.fill(9, &mut |_, cells| {
            rows.push(cells.iter().map(|cell| cell.category().unwrap_or("—".into())).collect());
            Ok(())
        })?;
        Ok(rows)
    }

    #[test]
    fn objects_and_lists() {
        let text = "{\"b\": 1, \"a\": null}\n\n{\"a\": \"x\", \"c\": 7}\n{\"b\": true}\n{}\n";
        assert_eq!(cells(text, &["a", "b"]).unwrap(), [["—", "1"], ["x", "—"], ["—", "true"], ["—", "—"]]);
        assert_eq!(names(input(text)).unwrap(), ["b", "a", "c"]);
        assert_eq!(cells("[1, null]\n[2.5, \"NA\"]", &["b", "a"]).unwrap(), [["—", "1"], ["—", "2.5"]]);
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
        assert!(says("[1e999, 2]").starts_with("a.jsonl line 1: expected a JSON object or list: number out of range"));
        assert_eq!(says("\n[1]"), "a.jsonl line 2: expected a list of 2 cells, got 1");
        assert_eq!(says("{\"agee\": 1}"), "a.jsonl line 1: expected a, b, got agee");
        assert_eq!(says("{\"a\": 1, \"a\": 2}"), "a.jsonl line 1: expected every name once, got one of them twice");
        assert_eq!(
            says("{\"a\": [1]}"),
            "a.jsonl line 1: column 'a': expected a number, text or null, got a list or an object"
        );
        let error = names(input("[1]\n{\"a\": 1}")).unwrap_err().to_string();
        assert_eq!(error, "a.jsonl line 2: expected all lines to be objects or all to be lists, got both");
        let deep = "[".repeat(100_000);
        assert!(says(&deep).contains("recursion limit exceeded"));
    }
}
