//! A target that is a number.

use crate::commands::train::args::Args;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use sumout_data::dates::text_of;
use sumout_data::layout::{ColumnKind, Table, some_of};

/// The number of the target among the columns, if it is one to be predicted as a number.
pub fn column(args: &Args, table: &Table) -> Result<Option<usize>> {
    let Some(target) = args.input.target.as_ref().filter(|_| args.regression) else {
        return Ok(None);
    };
    let columns = &table.layout.columns;
    let Some(column) = columns.iter().position(|column| column.name == *target) else {
        let names: Vec<&String> = columns.iter().map(|column| &column.name).collect();
        let got = some_of(&names);
        return Err(user_error(format!(
            "--target {target}: expected a column with numbers in it, got columns {got}"
        )));
    };
    if let ColumnKind::Categorical(names) = &columns[column].kind {
        let got = some_of(names);
        return Err(user_error(format!(
            "--regression: expected numbers in '{target}', got {got}"
        )));
    }
    if columns.len() < 2 {
        return Err(user_error(format!(
            "--regression: expected columns besides '{target}' to predict it from, got none"
        )));
    }
    match numbers(table, column).count() {
        0 => Err(user_error(format!(
            "--regression: expected numbers in '{target}', got none"
        ))),
        _ => Ok(Some(column)),
    }
}

/// The target in words.
pub fn describe(table: &Table, column: usize) -> String {
    let (name, rows) = (table.layout.name(column), table.rows());
    let known = numbers(table, column).count();
    let of = if known == rows {
        "in all rows".to_owned()
    } else {
        format!("in {known} of {rows} rows")
    };
    let count = known.max(1) as f64;
    let mean = numbers(table, column).sum::<f64>() / count;
    let variance = numbers(table, column).map(|y| (y - mean).powi(2));
    let deviation = (variance.sum::<f64>() / count).sqrt();
    match table.layout.columns[column].kind {
        ColumnKind::Date(style) => {
            let mean = text_of(mean, style);
            format!("{name}, dates {of}, mean {mean}, standard deviation {deviation:.4} days")
        }
        _ => format!("{name}, numbers {of}, mean {mean:.4}, standard deviation {deviation:.4}"),
    }
}

/// The numbers of a column that are there.
fn numbers(table: &Table, column: usize) -> impl Iterator<Item = f64> {
    let cells = table.values.iter().skip(column).step_by(table.layout.width);
    cells.filter(|x| !x.is_nan()).map(|&x| f64::from(x))
}
