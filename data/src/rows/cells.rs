//! Cells that are numbers, text or holes: what CSV, JSON lines and Parquet have in common.

use crate::dates::DateStyle;
use crate::error::{Error, ErrorKind, Place, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// A cell before it is known what its column means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A hole.
    Missing,
    /// A number, in a format that has numbers.
    Number(f64),
    /// Text, which may be a number.
    Text(&'a str),
}

/// Where the words that programs write for a hole, such as NA and None, are words like all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoDefaultNa {
    /// In no column.
    #[default]
    Nowhere,
    /// In these columns.
    In(Vec<String>),
    /// In all columns.
    Everywhere,
}

impl NoDefaultNa {
    /// Whether it holds for a column.
    pub fn covers(&self, column: &str) -> bool {
        match self {
            Self::Nowhere => false,
            Self::In(columns) => columns.iter().any(|name| name == column),
            Self::Everywhere => true,
        }
    }

    /// Where one of two holds.
    pub fn or(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Everywhere, _) | (_, Self::Everywhere) => Self::Everywhere,
            (Self::Nowhere, one) | (one, Self::Nowhere) => one.clone(),
            (Self::In(some), Self::In(more)) => Self::In([some.as_slice(), more].concat()),
        }
    }
}

/// Whether a text is a word that programs write for a hole.
pub fn is_default_na(text: &str) -> bool {
    let any_case = ["NA", "N/A", "NaN", "null"];
    let as_it_is = ["None", "#N/A", "<NA>"];
    any_case.iter().any(|word| text.eq_ignore_ascii_case(word)) || as_it_is.contains(&text)
}

/// What counts as a hole: an empty cell, what programs write for one, and what the user names.
#[derive(Clone, Debug, Default)]
pub struct MissingTexts {
    named: Vec<String>,
    numbers: Vec<f64>,
}

impl MissingTexts {
    /// These texts too; one that is a number stands for all ways to write it.
    pub fn and(named: &[String]) -> Self {
        Self {
            named: named.to_vec(),
            numbers: named.iter().filter_map(|text| text.parse().ok()).collect(),
        }
    }

    /// Whether some numbers are missing.
    pub fn has_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// The same cell, missing if it stands for a hole; `default_na` says whether words such as NA do.
    pub fn known<'a>(&self, cell: Cell<'a>, default_na: bool) -> Cell<'a> {
        let Cell::Text(text) = cell else {
            return self.known_beside_null(cell);
        };
        let text = text.trim();
        if text.is_empty() || (default_na && is_default_na(text)) {
            Cell::Missing
        } else {
            self.named(text)
        }
    }

    /// The same cell of a format that has a null: text is missing only if the user names it.
    pub fn known_beside_null<'a>(&self, cell: Cell<'a>) -> Cell<'a> {
        match cell {
            Cell::Missing => Cell::Missing,
            Cell::Number(number) => self.number(number),
            Cell::Text(text) => self.named(text.trim()),
        }
    }

    fn named<'a>(&self, text: &'a str) -> Cell<'a> {
        let is_hole = |number: f64| self.numbers.contains(&number);
        let number = || !self.numbers.is_empty() && text.parse().is_ok_and(is_hole);
        if self.named.iter().any(|hole| hole == text) || number() {
            Cell::Missing
        } else {
            Cell::Text(text)
        }
    }

    fn number(&self, number: f64) -> Cell<'static> {
        if number.is_nan() || self.numbers.contains(&number) {
            Cell::Missing
        } else {
            Cell::Number(number)
        }
    }
}

/// A cell as it was written, to be handed through.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    /// A hole.
    Missing,
    /// Text.
    Text(String),
    /// The text of a JSON value.
    Json(String),
    /// A whole number.
    Whole(i64),
    /// A number.
    Double(f64),
}

impl Written {
    /// The same for an output.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Missing => Value::Missing,
            Self::Text(text) => Value::Text(text),
            Self::Json(text) => Value::Json(text),
            Self::Whole(number) => Value::Whole(*number),
            Self::Double(number) => Value::Double(*number),
        }
    }
}

impl<'a> Cell<'a> {
    /// The number in it, infinite ones included.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Missing => None,
            Self::Number(number) => Some(number),
            Self::Text(text) => text.parse().ok(),
        }
    }

    /// What a category is called. 3.0 is 3, because programs that put holes in a column of whole numbers write it so.
    pub fn category(self) -> Option<String> {
        match self {
            Self::Missing => None,
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => {
                let whole = text.split_once('.').filter(|(whole, rest)| {
                    whole.parse::<i64>().is_ok()
                        && !rest.is_empty()
                        && rest.bytes().all(|b| b == b'0')
                });
                Some(whole.map_or(text, |(whole, _)| whole).to_owned())
            }
        }
    }
}

/// Called with each row: where it is, its chosen cells, and those that are kept as they were written.
pub type EachRow<'a> = dyn FnMut(Place<'_>, &[Cell<'_>], Vec<Written>) -> Result<()> + 'a;

/// Rows of cells, read a few at a time.
pub trait Records: Send {
    /// The names of the columns; `None` where every row names its own cells. A column without a name is "".
    fn header(&self) -> Option<&[String]>;

    /// The columns that can be kept as they are written, and what they hold.
    fn keepable(&mut self) -> Result<Vec<Field>>;

    /// Chooses the columns that [`Records::fill`] hands over, and their order: by name as cells, which are missing where
    /// there is no such column; and by their number in [`Records::keepable`] as they are written.
    fn select(&mut self, names: &[String], kept: &[usize]);

    /// Hands over the next rows, at most `max_rows`; returns how many. 0 is the end.
    fn fill(&mut self, max_rows: usize, each: &mut EachRow<'_>) -> Result<usize>;
}

/// What a column of an output holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Numbers of 32 bits.
    Single,
    /// Numbers of 64 bits.
    Double,
    /// Whole numbers.
    Whole,
    /// Text.
    Text,
    /// A number that stands for one of these names. Formats that hold text show the name.
    Category(Vec<String>),
    /// A number of days that stands for a date. Formats that hold text show the date.
    Date(DateStyle),
}

/// A column of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// What the header calls it.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
}

impl Field {
    /// A column.
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// A cell of an output. NaN is missing too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A hole.
    Missing,
    /// A number, the number of a category, or the days of a date.
    Single(f32),
    /// A number.
    Double(f64),
    /// A whole number.
    Whole(i64),
    /// Text. In a column of numbers it is a number as it was written.
    Text(&'a str),
    /// The text of a JSON value.
    Json(&'a str),
    /// The days of a date, which is shown.
    Date(f64, DateStyle),
}

impl<'a> Value<'a> {
    /// The number in it; NaN for a hole and for text that is none.
    pub fn number(self) -> f64 {
        match self {
            Self::Missing => f64::NAN,
            Self::Text(text) => text.trim().parse().unwrap_or(f64::NAN),
            Self::Json(text) => plain_json(text)
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(f64::NAN),
            Self::Single(number) => number.into(),
            Self::Double(number) | Self::Date(number, _) => number,
            Self::Whole(number) => number as f64,
        }
    }

    /// The same cell with categories as their names, days as dates and NaN as a hole.
    pub fn shown(self, kind: &'a FieldKind) -> Self {
        let number = self.number();
        match (kind, self) {
            (_, written @ (Self::Text(_) | Self::Json(_))) => written,
            (_, _) if number.is_nan() => Self::Missing,
            (FieldKind::Category(names), _) => names
                .get(number as usize)
                .map_or(Self::Missing, |name| Self::Text(name)),
            (FieldKind::Date(style), _) => Self::Date(number, *style),
            (_, other) => other,
        }
    }
}

/// Columns must not share a name; several may have none.
pub fn check_distinct(names: &[String]) -> Result<()> {
    let mut seen = HashSet::new();
    let mut again = names
        .iter()
        .filter(|name| !name.is_empty() && !seen.insert(*name));
    let Some(twice) = again.next() else {
        return Ok(());
    };
    let (expected, got) = (
        "every column to have its own name",
        format!("'{twice}' twice"),
    );
    Err(Error::expected(ErrorKind::DuplicateName, expected, got))
}

/// The text of a JSON value as other formats would write it: without quotes, and null as nothing.
pub fn plain_json(text: &str) -> Option<String> {
    match text {
        "null" => None,
        text => Some(serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_numbers_and_categories() {
        let usual = MissingTexts::default();
        let cell = |text| usual.known(Cell::Text(text), true);
        for hole in [
            "NA", "na", "NaN", "nan", "null", "NULL", "N/A", "n/a", "None", "#N/A", "<NA>",
        ] {
            assert_eq!(cell(hole), Cell::Missing, "{hole}");
            let word = usual.known(Cell::Text(hole), false);
            assert_eq!(word, Cell::Text(hole), "{hole}");
        }
        for empty in ["", "  "] {
            assert_eq!(cell(empty), Cell::Missing);
            assert_eq!(usual.known(Cell::Text(empty), false), Cell::Missing);
        }
        for text in ["none", "?", "-", "-999"] {
            assert_eq!(cell(text), Cell::Text(text));
        }
        let named = MissingTexts::and(&["?".to_owned(), "-999".to_owned()]);
        let cell_of = |text| named.known(Cell::Text(text), true);
        assert_eq!(["?", "-999", "-999.0", ""].map(cell_of), [Cell::Missing; 4]);
        let beside_null = |text| named.known_beside_null(Cell::Text(text));
        assert_eq!(["?", "-999.0"].map(beside_null), [Cell::Missing; 2]);
        assert_eq!(["NA", ""].map(beside_null), ["NA", ""].map(Cell::Text));
        assert_eq!(
            [-999.0, 999.0].map(|number| named.known(Cell::Number(number), true)),
            [Cell::Missing, Cell::Number(999.0)]
        );
        assert_eq!(cell(" x "), Cell::Text("x"));
        let number = |text| cell(text).number();
        assert_eq!(
            [number("1e3"), number("-.5"), number("inf")],
            [Some(1000.0), Some(-0.5), Some(f64::INFINITY)]
        );
        assert_eq!([number("1,5"), number("N/A"), number("0x10")], [None; 3]);
        let category = |text| cell(text).category().unwrap();
        assert_eq!(
            [category("3.0"), category("-3.00"), category("3.5")],
            ["3", "-3", "3.5"]
        );
        assert_eq!(
            [category("007"), category("v1.0"), category("3.")],
            ["007", "v1.0", "3."]
        );
        assert_eq!(Cell::Number(3.0).category().unwrap(), "3");
    }

    #[test]
    fn default_words_can_be_words() {
        let some = NoDefaultNa::In(vec!["a".into()]);
        let more = NoDefaultNa::In(vec!["b".into()]);
        assert!(some.covers("a") && !some.covers("b") && !NoDefaultNa::Nowhere.covers("a"));
        assert!(some.or(&more).covers("a") && some.or(&more).covers("b"));
        assert_eq!(some.or(&NoDefaultNa::Nowhere), some);
        assert!(some.or(&NoDefaultNa::Everywhere).covers("c"));
    }

    #[test]
    fn categories_are_shown_by_name() {
        let kind = FieldKind::Category(vec!["red".into(), "blue".into()]);
        assert_eq!(Value::Single(1.0).shown(&kind), Value::Text("blue"));
        assert_eq!(Value::Single(f32::NAN).shown(&kind), Value::Missing);
        assert_eq!(Value::Single(7.0).shown(&kind), Value::Missing);
        assert_eq!(
            Value::Double(f64::NAN).shown(&FieldKind::Double),
            Value::Missing
        );
        assert_eq!(Value::Whole(3).shown(&FieldKind::Whole), Value::Whole(3));
    }
}
