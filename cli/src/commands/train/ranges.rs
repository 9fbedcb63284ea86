//! What the numbers of columns can be, as options give it: `--bounds share=0:100`, `--whole children`.

use crate::terminal::user_error::user_error;
use anyhow::Result;
use sumout::model::ColumnRange;
use sumout_data::error::{At, Place};
use sumout_data::layout::{ColumnKind, Layout, Table, some_of};
use sumout_data::{Error, ErrorKind};

/// One for each column, or none where any number will do. `file` has the data.
pub fn ranges(
    bounds: &[String],
    whole: &[String],
    data: &Table,
    file: &str,
) -> Result<Vec<ColumnRange>> {
    if bounds.is_empty() && whole.is_empty() {
        return Ok(Vec::new());
    }
    let layout = &data.layout;
    let mut ranges = vec![ColumnRange::default(); layout.width];
    for text in bounds {
        let (name, range) = parse(text)?;
        let range_of = &mut ranges[number_column("--bounds", name, layout)?];
        (range_of.low, range_of.high) = (range.low, range.high);
    }
    for name in whole.iter().flat_map(|names| columns_of(names, layout)) {
        ranges[number_column("--whole", name, layout)?].whole = true;
    }
    check(&ranges, data, file)?;
    Ok(ranges)
}

/// A name may have commas in it.
fn columns_of<'a>(names: &'a str, layout: &Layout) -> Vec<&'a str> {
    if layout.columns.iter().any(|column| column.name == names) {
        return vec![names];
    }
    names.split(',').collect()
}

/// `name=low:high`, where one of the numbers may be left out.
fn parse(text: &str) -> Result<(&str, ColumnRange)> {
    let expected = "expected a column with its smallest and largest number, such as share=0:100, or \
                    price=0: for one bound";
    let wrong = || user_error(format!("--bounds {text}: {expected}"));
    let (name, numbers) = text.rsplit_once('=').ok_or_else(wrong)?;
    let (low, high) = numbers.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().ok().filter(|x: &f32| x.is_finite());
    let bound = |text: &str| match text.trim() {
        "" => Ok(None),
        text => number(text).map(Some).ok_or_else(wrong),
    };
    let range = ColumnRange {
        low: bound(low)?,
        high: bound(high)?,
        ..ColumnRange::default()
    };
    let ordered = range
        .low
        .zip(range.high)
        .is_none_or(|(low, high)| low < high);
    if !range.is_bounded() || !ordered {
        return Err(wrong());
    }
    Ok((name, range))
}

/// The place of a column of numbers.
fn number_column(option: &str, name: &str, layout: &Layout) -> Result<usize> {
    let names: Vec<String> = (0..layout.width)
        .map(|column| layout.name(column))
        .collect();
    let Some(column) = names.iter().position(|known| known == name) else {
        let names = some_of(&names);
        return Err(user_error(format!(
            "{option}: expected a column of the data ({names}), got '{name}'"
        )));
    };
    match layout.columns.get(column).map(|column| &column.kind) {
        Some(ColumnKind::Categorical(_)) => Err(user_error(format!(
            "{option}: expected a column of numbers, got '{name}', which holds categories"
        ))),
        _ => Ok(column),
    }
}

/// All numbers are possible.
fn check(ranges: &[ColumnRange], data: &Table, file: &str) -> Result<()> {
    for (at, &x) in data.values.iter().enumerate() {
        let (row, column) = (at / ranges.len(), at % ranges.len());
        let range = ranges[column];
        if !range.contains(x) || (range.whole && x.fract() != 0.0 && !x.is_nan()) {
            let error = Error::expected(ErrorKind::OutOfBounds, range.describe(), x);
            let at = At::Row(row as u64 + 1);
            let error = error.at(Place { file, at });
            return Err(error.in_column(&data.layout.name(column)).into());
        }
    }
    Ok(())
}
