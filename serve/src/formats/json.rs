//! Rows in JSON: `{"rows": [[1, null, "red"], {"age": 3}]}`, or one row per line. A row is a list of cells or an object of
//! named ones; null, and a name left out, is missing. Text is a category, even "NA".

use crate::problem::Problem;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use std::collections::HashMap;
use std::fmt;
use sumout_data::cells::Cell;
use sumout_data::encode::Encoder;
use sumout_data::error::{At, Place, clip};
use sumout_data::formats::json_row::{JsonRow, RowProgress, RowSink};
use sumout_data::match_columns::nearest;
use sumout_data::{Error, ErrorKind};

/// Rows that become numbers cell by cell, as a service takes JSON: text is never a number. Columns that the
/// model does not know are left out, as those of a CSV file are.
pub struct NumberRows<'a> {
    encoder: &'a Encoder,
    /// (rows, width).
    pub values: Vec<f32>,
    /// Where the row begins that is being read.
    first: usize,
    /// Which columns it has named.
    named: Vec<bool>,
    /// Its names that are not the model's.
    unknown: Unknown,
}

impl<'a> NumberRows<'a> {
    /// No rows yet.
    pub fn new(encoder: &'a Encoder) -> Self {
        Self {
            encoder,
            values: Vec::new(),
            first: 0,
            named: Vec::new(),
            unknown: Unknown::default(),
        }
    }

    /// A new row of holes.
    pub fn begin(&mut self) {
        self.first = self.values.len();
        self.values
            .resize(self.first + self.encoder.width(), f32::NAN);
        self.named.clear();
        self.unknown.begin();
    }

    /// Whether a row lacks a column that it should have, were it a line of CSV.
    fn lacks(&self, column: usize) -> bool {
        let is_named = self.named.get(column).is_some_and(|&named| named);
        !is_named && self.encoder.predicted != Some(column)
    }
}

/// Names of a row that are not the model's.
#[derive(Default)]
struct Unknown {
    first: Option<String>,
    /// Those that are much like the name of a column.
    alike: Vec<(String, usize)>,
    /// What is known of names in earlier rows, for which it need not be found again.
    known: HashMap<String, Option<usize>>,
}

impl Unknown {
    fn begin(&mut self) {
        self.first = None;
        self.alike.clear();
    }

    fn add(&mut self, name: &str, encoder: &Encoder) {
        if self.first.is_none() {
            self.first = Some(name.to_owned());
        }
        if let Some(column) = self.column_like(name, encoder) {
            self.alike.push((name.to_owned(), column));
        }
    }

    /// The column that was probably meant. A body of nothing but names cannot keep the service busy with this.
    fn column_like(&mut self, name: &str, encoder: &Encoder) -> Option<usize> {
        const LONGEST: usize = 100; // bytes
        const MOST: usize = 1000; // names
        if let Some(&column) = self.known.get(name) {
            return column;
        }
        if name.len() > LONGEST || self.known.len() == MOST {
            return None;
        }
        let names: Vec<&str> = (0..encoder.width()).map(|c| encoder.name(c)).collect();
        let column = nearest(name, &names).and_then(|meant| encoder.find(meant));
        self.known.insert(name.to_owned(), column);
        column
    }
}

impl RowSink for NumberRows<'_> {
    fn list_length(&self) -> usize {
        self.encoder.width()
    }

    fn by_position(&self, position: usize) -> Option<usize> {
        Some(position)
    }

    fn by_name(&mut self, name: &str) -> Result<Option<usize>, Error> {
        let Some(column) = self.encoder.find(name) else {
            self.unknown.add(name, self.encoder);
            return Ok(None);
        };
        self.named.resize(self.encoder.width(), false);
        if std::mem::replace(&mut self.named[column], true) {
            let (expected, got) = ("every name once", format!("'{name}' twice"));
            return Err(Error::expected(ErrorKind::DuplicateName, expected, got));
        }
        Ok(Some(column))
    }

    /// A name left out is missing, so that a wrong one would pass unseen.
    fn end_of_names(&mut self) -> Result<(), Error> {
        let (expected, kind) = ("columns of the model", ErrorKind::MissingColumn);
        if let Some(first) = self
            .unknown
            .first
            .as_ref()
            .filter(|_| self.named.is_empty())
        {
            return Err(Error::unexpected(kind, expected, clip(first)));
        }
        let mut alike = self.unknown.alike.iter();
        let Some((name, column)) = alike.find(|(_, column)| self.lacks(*column)) else {
            return Ok(());
        };
        let meant = self.encoder.name(*column);
        let got = format!("'{}'; did you mean '{meant}'?", clip(name));
        Err(Error::expected(kind, expected, got))
    }

    fn name(&self, column: usize) -> &str {
        self.encoder.name(column)
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Error> {
        let known = self.encoder.known_beside_null(cell);
        // A number in quotes is a mistake that would otherwise pass unseen.
        if let (Cell::Text(text), None, None) = (
            known,
            self.encoder.categories(column),
            self.encoder.date(column),
        ) {
            let expected = "a number or null";
            return Err(Error::unexpected(
                ErrorKind::NotANumber,
                expected,
                clip(text),
            ));
        }
        self.values[self.first + column] = self.encoder.value(column, known)?;
        Ok(())
    }
}

/// The rows of a whole document, at most `max_rows`.
pub fn document(bytes: &[u8], encoder: &Encoder, max_rows: usize) -> Result<Vec<f32>, Problem> {
    let mut reader = DocumentReader {
        rows: NumberRows::new(encoder),
        progress: RowProgress::default(),
        row: None,
        max_rows,
        too_many: false,
    };
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let read = DocumentSeed(&mut reader).deserialize(&mut parser);
    match read.and_then(|()| parser.end()) {
        Ok(()) => Ok(reader.rows.values),
        Err(_) if reader.too_many => {
            let message = format!("rows: expected at most {max_rows}, got more");
            Err(Problem::large(message))
        }
        Err(error) => Err(reader.explain(&error).into()),
    }
}

/// A document being read.
struct DocumentReader<'a> {
    rows: NumberRows<'a>,
    progress: RowProgress,
    /// The row being read, counted from 0.
    row: Option<usize>,
    max_rows: usize,
    too_many: bool,
}

impl DocumentReader<'_> {
    fn explain(mut self, error: &serde_json::Error) -> Error {
        let explained = self.progress.explain(error, &self.rows, false);
        match self.row {
            // Where a text ends that was cut off says nothing about the row.
            Some(row) if !error.is_eof() => explained.at(Place {
                file: "",
                at: At::Row(row as u64 + 1),
            }),
            _ => explained,
        }
    }
}

/// `{"rows": […]}`.
struct DocumentSeed<'s, 'a>(&'s mut DocumentReader<'a>);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object {\"rows\": […]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = false;
        while let Some(name) = map.next_key::<String>()? {
            if name != "rows" || seen {
                let message = format!("expected the one field 'rows', got '{}'", clip(&name));
                return Err(A::Error::custom(message));
            }
            seen = true;
            map.next_value_seed(ListSeed(&mut *self.0))?;
        }
        if seen {
            Ok(())
        } else {
            Err(A::Error::custom("expected the field 'rows'"))
        }
    }
}

/// The list of rows.
struct ListSeed<'s, 'a>(&'s mut DocumentReader<'a>);

impl<'de> DeserializeSeed<'de> for ListSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self(reader) = self;
        for row in 0.. {
            if row == reader.max_rows {
                reader.too_many = list.next_element::<IgnoredAny>()?.is_some();
                if reader.too_many {
                    return Err(A::Error::custom("too many rows"));
                }
                break;
            }
            reader.row = Some(row);
            let before = reader.rows.values.len();
            reader.rows.begin();
            let seed = JsonRow {
                sink: &mut reader.rows,
                progress: &mut reader.progress,
            };
            if list.next_element_seed(seed)?.is_none() {
                reader.rows.values.truncate(before);
                break;
            }
        }
        reader.row = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{encoder, encoder_of, pets};

    fn read(text: &str) -> Result<Vec<f32>, String> {
        document(text.as_bytes(), &encoder(), 3)
            .map_err(|problem| format!("{} {}", problem.status.as_u16(), problem.message))
    }

    /// Holes as −9, because NaN equals nothing.
    fn shown(values: Vec<f32>) -> Vec<f32> {
        values
            .into_iter()
            .map(|x| if x.is_nan() { -9.0 } else { x })
            .collect()
    }

    fn filled(text: &str) -> Vec<f32> {
        shown(read(text).unwrap())
    }

    #[test]
    fn lists_and_objects() {
        assert_eq!(
            filled(r#"{"rows": [[1.5, "m", 1, null], {"sex": "f", "kind": 2}]}"#),
            [1.5, 1., 1., -9., -9., 0., -9., 2.]
        );
        assert_eq!(filled(r#"{"rows": [{}]}"#), [-9.0; 4]);
        assert_eq!(filled(r#"{"rows": []}"#), [0.0; 0]);
        assert_eq!(filled(r#"{"rows": [{}, {}, {}]}"#).len(), 12);
    }

    #[test]
    fn other_columns_are_left_out() {
        let row = r#"{"rows": [{"id": [7], "age": 3, "agee": "x", "kind": 2}]}"#;
        assert_eq!(filled(row), [3., -9., -9., 2.]);
    }

    #[test]
    fn text_is_a_category_and_no_hole() {
        for text in ["NA", "", "null", "None"] {
            let error = read(&format!(r#"{{"rows": [{{"sex": "{text}"}}]}}"#)).unwrap_err();
            assert_eq!(
                error,
                format!("400 row 1, column 'sex': expected f, m, got '{text}'")
            );
        }
        let mut model = pets();
        model.about.categories[1][1] = "NA".into();
        model.about.training.set("na", ["?", "-999"]);
        let rows = br#"{"rows": [[-999, "NA", 1, null], ["?", "?", 0, 0]]}"#;
        assert_eq!(
            shown(document(rows, &encoder_of(&model), 3).unwrap()),
            [-9., 1., 1., -9., -9., -9., 0., 0.]
        );
    }

    #[test]
    fn bad_cells_are_placed() {
        let row = |cells: &str| read(&format!(r#"{{"rows": [{{}}, {cells}]}}"#)).unwrap_err();
        let age = |cell: &str| row(&format!("[{cell}, null, null, null]"));
        assert_eq!(
            age("1e999"),
            "400 row 2, column 'age': expected a finite number, got one out of range"
        );
        assert!(age("1e300").starts_with("400 row 2, column 'age': expected a finite number of"));
        assert_eq!(
            age("\"3\""),
            "400 row 2, column 'age': expected a number or null, got '3'"
        );
        assert_eq!(
            age("true"),
            "400 row 2, column 'age': expected a number or null, got 'true'"
        );
        assert_eq!(
            row("[1, \"x\", null, null]"),
            "400 row 2, column 'sex': expected f, m, got 'x'"
        );
        assert_eq!(
            row("[1, [2], null, null]"),
            "400 row 2, column 'sex': expected a number, text or null, got a list"
        );
    }

    #[test]
    fn bad_rows_are_placed() {
        let says = |text: &str| read(text).unwrap_err();
        let row = |cells: &str| says(&format!(r#"{{"rows": [{{}}, {cells}]}}"#));
        assert_eq!(
            row("[1 2]"),
            "400 row 2, column 'sex': not valid JSON: expected `,` or `]` at line 1 column 18"
        );
        assert_eq!(
            row("[1, null]"),
            "400 row 2: expected a list of 4 cells, got 2"
        );
        assert_eq!(
            row("[1, null, 0, 0, 7, 8]"),
            "400 row 2: expected a list of 4 cells, got 6"
        );
        assert_eq!(
            row("{\"agee\": 1}"),
            "400 row 2: expected columns of the model, got 'agee'"
        );
        assert_eq!(
            row("{\"agee\": 1, \"sex\": \"f\"}"),
            "400 row 2: expected columns of the model, got 'agee'; did you mean 'age'?"
        );
        assert_eq!(
            row("{\"age\": 1, \"age\": 2}"),
            "400 row 2: expected every name once, got 'age' twice"
        );
        assert_eq!(
            row("7"),
            "400 row 2: expected a list of cells or an object of named cells, got integer `7`"
        );
        assert_eq!(
            says(r#"{"rows": [{}, {}, {}, {}]}"#),
            "413 rows: expected at most 3, got more"
        );
        let deep = format!(r#"{{"rows": [{}"#, "[".repeat(10_000));
        assert!(
            says(&deep).starts_with("400 row 1, column 'age': "),
            "{}",
            says(&deep)
        );
    }

    #[test]
    fn bad_documents_are_refused() {
        let says = |text: &str| read(text).unwrap_err();
        assert_eq!(says("{}"), "400 expected the field 'rows'");
        assert_eq!(
            says(r#"{"rows": [], "model": 1}"#),
            "400 expected the one field 'rows', got 'model'"
        );
        assert_eq!(
            says("[[1]]"),
            "400 expected an object {\"rows\": […]}, got sequence"
        );
        assert!(says(r#"{"rows": []} x"#).starts_with("400 not valid JSON: trailing characters"));
        assert_eq!(says(""), "400 the JSON ends too early");
        assert_eq!(says(r#"{"rows": [[1, "#), "400 the JSON ends too early");
        let deep = format!(r#"{{"rows": [[1, null, 0, 0, {}"#, "[".repeat(10_000));
        assert_eq!(says(&deep), "400 the JSON ends too early");
    }
}
