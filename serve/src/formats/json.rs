//! Rows in JSON: `{"rows": [[1, null, "red"], {"age": 3}]}`, or one row a line. A row is a list of cells or an object of
//! named ones; null, and a name left out, is missing. Text is a category, even "NA".
//!
//! Numbers go straight from the text into the rows, without a tree of values in between.

use crate::columns::Columns;
use crate::problem::Problem;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell as Slot;
use std::fmt;
use sumout_data::cells::Cell;

/// Where the parser is, for messages about text that no visitor sees, such as 1e999.
#[derive(Default)]
struct Place {
    row: Slot<Option<usize>>,
    column: Slot<Option<usize>>,
    too_many: Slot<bool>,
}

/// What is said of text that was cut off.
const TOO_EARLY: &str = "the JSON ends too early";

/// The rows of a whole body, at most `most`.
pub fn body(bytes: &[u8], columns: &Columns, most: usize) -> Result<Vec<f32>, Problem> {
    let place = Place::default();
    let mut values = Vec::new();
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let seed = Body {
        columns,
        place: &place,
        most,
        values: &mut values,
    };
    match seed.deserialize(&mut parser).and_then(|()| parser.end()) {
        Ok(()) => Ok(values),
        Err(_) if place.too_many.get() => Err(Problem::large(format!(
            "rows: expected at most {most}, got more"
        ))),
        Err(error) => Err(Problem::bad(explain(&error, &place, columns, "row"))),
    }
}

/// One row of JSON lines, added to `values`.
pub fn line(
    bytes: &[u8],
    columns: &Columns,
    number: usize,
    values: &mut Vec<f32>,
) -> Result<(), Problem> {
    let place = Place::default();
    place.row.set(Some(number));
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let row = Row {
        columns,
        place: &place,
        values,
    }
    .deserialize(&mut parser)
    .and_then(|()| parser.end());
    row.map_err(|error| Problem::bad(explain(&error, &place, columns, "line")))
}

fn explain(error: &serde_json::Error, place: &Place, columns: &Columns, unit: &str) -> String {
    let at = match (place.row.get(), place.column.get()) {
        // Where text ends that was cut off says nothing about the row.
        (Some(row), _) if error.is_eof() && unit == "line" => {
            return format!("line {row}: {TOO_EARLY}");
        }
        _ if error.is_eof() => return TOO_EARLY.to_owned(),
        (Some(row), Some(column)) if column < columns.width() => {
            format!("{unit} {row}, column '{}': ", columns.name(column))
        }
        (Some(row), _) => format!("{unit} {row}: "),
        _ => String::new(),
    };
    let text = error.to_string();
    // Only what is no JSON needs a place in the text; in a line, that is always the first.
    let text = match text.rsplit_once(" at line ") {
        Some((what, _)) if unit == "line" || error.is_data() => what,
        _ => &text,
    };
    format!("{at}{text}")
}

struct Body<'a> {
    columns: &'a Columns,
    place: &'a Place,
    most: usize,
    values: &'a mut Vec<f32>,
}

impl<'de> DeserializeSeed<'de> for Body<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Body<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object {\"rows\": […]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = false;
        while let Some(name) = map.next_key::<String>()? {
            if name != "rows" || seen {
                let name: String = name.chars().take(40).collect();
                return Err(A::Error::custom(format!(
                    "expected the one field 'rows', got '{name}'"
                )));
            }
            seen = true;
            let Self {
                columns,
                place,
                most,
                ..
            } = self;
            map.next_value_seed(Rows {
                columns,
                place,
                most,
                values: self.values,
            })?;
        }
        if seen {
            Ok(())
        } else {
            Err(A::Error::custom("expected the field 'rows'"))
        }
    }
}

struct Rows<'a> {
    columns: &'a Columns,
    place: &'a Place,
    most: usize,
    values: &'a mut Vec<f32>,
}

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        for row in 0.. {
            self.place.row.set(Some(row));
            self.place.column.set(None);
            if row == self.most {
                if list.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
                self.place.too_many.set(true);
                return Err(A::Error::custom("too many rows"));
            }
            let row = Row {
                columns: self.columns,
                place: self.place,
                values: self.values,
            };
            if list.next_element_seed(row)?.is_none() {
                break;
            }
        }
        self.place.row.set(None);
        self.place.column.set(None);
        Ok(())
    }
}

struct Row<'a> {
    columns: &'a Columns,
    place: &'a Place,
    values: &'a mut Vec<f32>,
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row: a list of cells or an object of named ones")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let width = self.columns.width();
        self.values.reserve(width);
        for column in 0..width {
            self.place.column.set(Some(column));
            match list.next_element_seed(OneCell {
                columns: self.columns,
                column,
            })? {
                Some(value) => self.values.push(value),
                None => {
                    self.place.column.set(None);
                    return Err(A::Error::custom(format!(
                        "expected {width} cells, got {column}"
                    )));
                }
            }
        }
        self.place.column.set(None);
        let mut more = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        match more {
            0 => Ok(()),
            _ => Err(A::Error::custom(format!(
                "expected {width} cells, got {}",
                width + more
            ))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let first = self.values.len();
        self.values.resize(first + self.columns.width(), f32::NAN);
        let mut seen = vec![false; self.columns.width()];
        while let Some(name) = map.next_key::<String>()? {
            self.place.column.set(None);
            let Some(column) = self.columns.find(&name) else {
                let name: String = name.chars().take(40).collect();
                return Err(A::Error::custom(format!(
                    "expected columns of the model, got '{name}'"
                )));
            };
            self.place.column.set(Some(column));
            if std::mem::replace(&mut seen[column], true) {
                return Err(A::Error::custom("expected every name once, got it twice"));
            }
            self.values[first + column] = map.next_value_seed(OneCell {
                columns: self.columns,
                column,
            })?;
        }
        self.place.column.set(None);
        Ok(())
    }
}

/// One cell becomes one number.
struct OneCell<'a> {
    columns: &'a Columns,
    column: usize,
}

impl OneCell<'_> {
    fn of<E: Error>(self, cell: Cell<'_>) -> Result<f32, E> {
        self.columns
            .value_or_null(self.column, cell)
            .map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for OneCell<'_> {
    type Value = f32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f32, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneCell<'_> {
    type Value = f32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, text or null")
    }

    fn visit_unit<E: Error>(self) -> Result<f32, E> {
        Ok(f32::NAN)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<f32, E> {
        self.of(Cell::Text(if value { "true" } else { "false" }))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f32, E> {
        self.of(Cell::Number(value as f64))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f32, E> {
        self.of(Cell::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f32, E> {
        self.of(Cell::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<f32, E> {
        // Text is a category; a number in quotes is a slip that would otherwise pass unseen.
        if self.columns.categories(self.column).is_none() && !self.columns.is_named_hole(value) {
            let value: String = value.chars().take(40).collect();
            return Err(E::custom(format!(
                "expected a number or null, got the text '{value}'"
            )));
        }
        self.of(Cell::Text(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{tests::columns, tests::pets};
    use sumout_data::model_files::layout_of;

    fn read(text: &str) -> Result<Vec<f32>, String> {
        body(text.as_bytes(), &columns(), 3)
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
    fn text_is_a_category_and_no_hole() {
        for text in ["NA", "", "null", "None"] {
            let error = read(&format!(r#"{{"rows": [{{"sex": "{text}"}}]}}"#)).unwrap_err();
            assert_eq!(
                error,
                format!("400 row 0, column 'sex': expected f, m, got '{text}'")
            );
        }
        let mut model = pets();
        model.about.categories[1][1] = "NA".into();
        model.about.training.set("na", ["?", "-999"]);
        let columns = Columns::new(&layout_of(&model), &model.structure);
        let rows = br#"{"rows": [[-999, "NA", 1, null], ["?", "?", 0, 0]]}"#;
        assert_eq!(
            shown(body(rows, &columns, 3).unwrap()),
            [-9., 1., 1., -9., -9., -9., 0., 0.]
        );
    }

    #[test]
    fn nonsense_is_placed() {
        let says = |text: &str| read(text).unwrap_err();
        let row = |cells: &str| says(&format!(r#"{{"rows": [{{}}, {cells}]}}"#));
        assert!(
            row("[1e999, null, null, null]")
                .starts_with("400 row 1, column 'age': number out of range")
        );
        assert!(
            row("[1e300, null, null, null]")
                .starts_with("400 row 1, column 'age': expected a finite number")
        );
        assert!(
            row("[\"3\", null, null, null]")
                .starts_with("400 row 1, column 'age': expected a number or null, got")
        );
        assert_eq!(
            row("[1, \"x\", null, null]"),
            "400 row 1, column 'sex': expected f, m, got 'x'"
        );
        assert_eq!(
            row("[1 2]"),
            "400 row 1, column 'sex': expected `,` or `]` at line 1 column 18"
        );
        assert!(
            row("[1, [2], null, null]")
                .starts_with("400 row 1, column 'sex': invalid type: sequence")
        );
        assert!(row("[1, null]").starts_with("400 row 1: expected 4 cells, got 2"));
        assert!(row("[1, null, 0, 0, 7, 8]").starts_with("400 row 1: expected 4 cells, got 6"));
        assert!(
            row("{\"agee\": 1}")
                .starts_with("400 row 1: expected columns of the model, got 'agee'")
        );
        assert!(
            row("{\"age\": 1, \"age\": 2}")
                .starts_with("400 row 1, column 'age': expected every name once")
        );
        assert!(
            row("7").starts_with(
                "400 row 1: invalid type: integer `7`, expected a row: a list of cells"
            )
        );
        assert_eq!(
            says(r#"{"rows": [{}, {}, {}, {}]}"#),
            "413 rows: expected at most 3, got more"
        );
        assert!(says("{}").starts_with("400 expected the field 'rows'"));
        assert!(
            says(r#"{"rows": [], "model": 1}"#)
                .starts_with("400 expected the one field 'rows', got 'model'")
        );
        assert!(
            says("[[1]]")
                .starts_with("400 invalid type: sequence, expected an object {\"rows\": […]}")
        );
        assert!(says(r#"{"rows": []} x"#).starts_with("400 trailing characters"));
        assert_eq!(says(""), "400 the JSON ends too early");
        assert_eq!(says(r#"{"rows": [[1, "#), "400 the JSON ends too early");
        let deep = format!(r#"{{"rows": [{}"#, "[".repeat(10_000));
        assert!(
            says(&deep).starts_with("400 row 0, column 'age': "),
            "{}",
            says(&deep)
        );
        let deep = format!(r#"{{"rows": [[1, null, 0, 0, {}"#, "[".repeat(10_000));
        assert_eq!(says(&deep), "400 the JSON ends too early");
    }

    #[test]
    fn a_line_is_a_row() {
        let mut values = Vec::new();
        line(br#"{"age": 4}"#, &columns(), 1, &mut values).unwrap();
        assert_eq!((values.len(), values[0]), (4, 4.0));
        let problem = line(br#"[1, "q", 0, 0]"#, &columns(), 7, &mut values).unwrap_err();
        assert_eq!(
            problem.message,
            "line 7, column 'sex': expected f, m, got 'q'"
        );
        let problem = line(br#"[1, "f""#, &columns(), 8, &mut values).unwrap_err();
        assert_eq!(problem.message, "line 8: the JSON ends too early");
    }
}
