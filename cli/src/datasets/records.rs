//! Tables of cells that are numbers, text or holes: what CSV, JSON lines and Parquet have in common.

use anyhow::Result;
use std::fmt;

/// A cell before it is known what its column means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A hole.
    Missing,
    /// A number, where the format knows it for one.
    Number(f64),
    /// Text, which may be a number.
    Text(&'a str),
}

impl<'a> Cell<'a> {
    /// The cell of a text file: empty, NA, NaN and null are holes, in capitals or not.
    pub fn of_text(text: &'a str) -> Self {
        let text = text.trim();
        match ["", "NA", "NaN", "null"].iter().any(|hole| text.eq_ignore_ascii_case(hole)) {
            true => Self::Missing,
            false => Self::Text(text),
        }
    }

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
                    whole.parse::<i64>().is_ok() && !rest.is_empty() && rest.bytes().all(|b| b == b'0')
                });
                Some(whole.map_or(text, |(whole, _)| whole).to_owned())
            }
        }
    }
}

/// Where a row is, as messages say it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a str,
    /// "line" for text, counted from 1; "row" where there are no lines, counted from 0.
    pub unit: &'static str,
    /// Its number.
    pub row: u64,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.file, self.unit, self.row)
    }
}

/// What is done with each row: where it is and its chosen cells.
pub type EachRow<'a> = dyn FnMut(Place<'_>, &[Cell<'_>]) -> Result<()> + 'a;

/// Rows of cells, read a few at a time.
pub trait Records: Send {
    /// The names of the columns; `None` where every row names its own cells. A column without a name is "".
    fn header(&self) -> Option<&[String]>;

    /// Chooses the columns that [`Records::fill`] hands over, and their order. All of them are in the header, if there
    /// is one.
    fn select(&mut self, names: &[String]);

    /// Hands over the next rows, at most `most`; returns how many. 0 is the end.
    fn fill(&mut self, most: usize, each: &mut EachRow<'_>) -> Result<usize>;
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
        Self { name: name.into(), kind }
    }
}

/// A cell of an output. NaN is missing too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A hole.
    Missing,
    /// A number, or the number of a category.
    Single(f32),
    /// A number.
    Double(f64),
    /// A whole number.
    Whole(i64),
    /// Text.
    Text(&'a str),
}

impl<'a> Value<'a> {
    /// The number in it; NaN for a hole and for text.
    pub fn number(self) -> f64 {
        match self {
            Self::Missing | Self::Text(_) => f64::NAN,
            Self::Single(number) => number.into(),
            Self::Double(number) => number,
            Self::Whole(number) => number as f64,
        }
    }

    /// The same cell with categories as their names and NaN as a hole.
    pub fn shown(self, kind: &'a FieldKind) -> Self {
        let number = self.number();
        match (kind, self) {
            (_, text @ Self::Text(_)) => text,
            (_, _) if number.is_nan() => Self::Missing,
            (FieldKind::Category(names), _) => {
                names.get(number as usize).map_or(Self::Missing, |name| Self::Text(name))
            }
            (_, other) => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_numbers_and_categories() {
        for hole in ["", "  ", "NA", "na", "NaN", "nan", "null", "NULL"] {
            assert_eq!(Cell::of_text(hole), Cell::Missing, "{hole}");
        }
        assert_eq!(Cell::of_text(" x "), Cell::Text("x"));
        let number = |text| Cell::of_text(text).number();
        assert_eq!([number("1e3"), number("-.5"), number("inf")], [Some(1000.0), Some(-0.5), Some(f64::INFINITY)]);
        assert_eq!([number("1,5"), number("N/A"), number("0x10")], [None; 3]);
        let category = |text| Cell::of_text(text).category().unwrap();
        assert_eq!([category("3.0"), category("-3.00"), category("3.5")], ["3", "-3", "3.5"]);
        assert_eq!([category("007"), category("v1.0"), category("3.")], ["007", "v1.0", "3."]);
        assert_eq!(Cell::Number(3.0).category().unwrap(), "3");
    }

    #[test]
    fn categories_are_shown_by_name() {
        let kind = FieldKind::Category(vec!["red".into(), "blue".into()]);
        assert_eq!(Value::Single(1.0).shown(&kind), Value::Text("blue"));
        assert_eq!(Value::Single(f32::NAN).shown(&kind), Value::Missing);
        assert_eq!(Value::Single(7.0).shown(&kind), Value::Missing);
        assert_eq!(Value::Double(f64::NAN).shown(&FieldKind::Double), Value::Missing);
        assert_eq!(Value::Whole(3).shown(&FieldKind::Whole), Value::Whole(3));
    }
}
