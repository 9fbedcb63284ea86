//! The cells that the rest of their row did not lead to expect.
//!
//! ```text
//! surprise of a cell   median of log P(x_j | x_others) over the column − log P(x_j | x_others)     nats
//! ```
//!
//! A density depends on the units of its column; the difference from the column's median does not. A label counts as a
//! cell: log P(y | x_o).

use crate::model_page::columns::Information;
use crate::model_page::subject::{Predicts, Subject};
use crate::text::{breakable, escape, fixed, four_digits, thousands};
use anyhow::Result;
use std::fmt::Write;
use sumout::Kind;
use sumout_data::dates::text_of;
use sumout_data::layout::ColumnKind;

/// A cell, and what was expected of it.
#[derive(Clone, Debug)]
pub struct Surprise {
    /// Its row, counted from 1.
    pub row: usize,
    /// Its column.
    pub column: String,
    /// What is there.
    pub seen: String,
    /// What the rest of the row led to expect.
    pub expected: String,
    /// How much less likely it is than the median cell of its column, in nats.
    pub nats: f64,
}

/// Cells that are shown.
const SHOWN: usize = 20;

/// Three nats are 20 times less likely than usual; less is no surprise.
const LEAST: f64 = 3.0;

/// A cell on its way; the label is the column after the last.
struct Cell {
    row: usize,
    column: usize,
    nats: f64,
}

/// The most surprising cells, of a table; of images only labels.
pub fn measure(
    subject: &mut Subject<'_>,
    information: Option<&Information>,
) -> Result<Vec<Surprise>> {
    let width = subject.sample.layout.width;
    let mut cells = Vec::new();
    if let Some(information) = information {
        for column in 0..width {
            let logs = information.cells.iter().skip(column).step_by(width);
            cells.extend(surprises(column, logs.copied().collect()));
        }
    }
    if subject.predicts == Predicts::Class {
        cells.extend(surprises(width, label_logs(subject)?));
    }
    cells.retain(|cell| cell.nats >= LEAST);
    cells.sort_by(|a, b| b.nats.total_cmp(&a.nats).then(a.row.cmp(&b.row)));
    cells.truncate(SHOWN);
    cells.iter().map(|cell| described(subject, cell)).collect()
}

/// log P(y | x_o) of the labels, (n); NaN where there is none.
fn label_logs(subject: &mut Subject<'_>) -> Result<Vec<f64>> {
    let sample = subject.sample;
    let rows = subject.predictor.model().rows(&sample.values)?;
    let posterior = subject.predictor.posterior(rows)?;
    let log = |(row, &label): (usize, &i64)| match usize::try_from(label) {
        Ok(label) => posterior[(row, label)].max(f64::MIN_POSITIVE).ln(),
        Err(_) => f64::NAN,
    };
    Ok(sample.labels.iter().enumerate().map(log).collect())
}

/// The cells of one column, from their logs (n).
fn surprises(column: usize, logs: Vec<f64>) -> Vec<Cell> {
    let mut sorted: Vec<f64> = logs.iter().copied().filter(|log| !log.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let known = logs
        .into_iter()
        .enumerate()
        .filter(|(_, log)| !log.is_nan());
    let cell = |(row, log): (usize, f64)| Cell {
        row,
        column,
        nats: median - log,
    };
    known.map(cell).collect()
}

/// Asks what was expected.
fn described(subject: &mut Subject<'_>, cell: &Cell) -> Result<Surprise> {
    let sample = subject.sample;
    let (layout, width) = (&sample.layout, sample.layout.width);
    let values = &sample.values[cell.row * width..][..width];
    let (column, seen, expected) = if cell.column == width {
        let model = subject.predictor.model();
        let label = model.class_name(sample.labels[cell.row] as usize);
        let target = layout.target.clone().unwrap_or_else(|| "label".into());
        (target, label, expected_class(subject, values)?)
    } else {
        let kind = layout.columns.get(cell.column).map(|column| &column.kind);
        let seen = shown(values[cell.column].into(), kind);
        (
            layout.name(cell.column),
            seen,
            expected_value(subject, values, cell.column)?,
        )
    };
    Ok(Surprise {
        row: sample.numbers[cell.row] + 1,
        column,
        seen,
        expected,
        nats: cell.nats,
    })
}

fn expected_class(subject: &mut Subject<'_>, values: &[f32]) -> Result<String> {
    let rows = subject.predictor.model().rows(values)?;
    let posterior = subject.predictor.posterior(rows)?;
    let best = posterior.argmax()[0];
    let (name, p) = (
        subject.predictor.model().class_name(best),
        posterior[(0, best)],
    );
    Ok(likely(&name, p))
}

fn expected_value(subject: &mut Subject<'_>, values: &[f32], column: usize) -> Result<String> {
    let mut values = values.to_vec();
    values[column] = f32::NAN;
    let model = subject.predictor.model();
    let kind = subject
        .sample
        .layout
        .columns
        .get(column)
        .map(|column| &column.kind);
    let is_number = model.structure.row_kinds()[column] == Kind::Gaussian;
    let rows = model.rows(&values)?;
    if is_number {
        let imputed = subject.predictor.impute_mean(rows, None)?;
        let (mean, variance) = (imputed.mean[(0, column)], imputed.variance[(0, column)]);
        return Ok(around(mean.into(), f64::from(variance).sqrt(), kind));
    }
    let probabilities = subject
        .predictor
        .impute_probabilities(rows, &[column], None)?;
    let best = probabilities[0].argmax()[0];
    let p = probabilities[0][(0, best)];
    Ok(likely(&shown(best as f64, kind), p.into()))
}

/// A mean and its standard deviation, of which two digits count.
fn around(mean: f64, sd: f64, kind: Option<&ColumnKind>) -> String {
    if let Some(ColumnKind::Date(style)) = kind {
        return format!("{} ± {sd:.0} days", text_of(mean, *style));
    }
    let decimals = 1.0 - sd.max(f64::MIN_POSITIVE).log10().floor();
    if (-4.0..=8.0).contains(&decimals) && mean.abs() < 1e9 {
        let decimals = decimals.max(0.0) as usize;
        return format!("{} ± {sd:.decimals$}", fixed(mean, decimals));
    }
    format!("{} ± {}", four_digits(mean), four_digits(sd))
}

/// A value and its probability.
fn likely(name: &str, p: f64) -> String {
    format!("{name} ({:.0} %)", 100.0 * p)
}

/// A value as the data have it.
fn shown(value: f64, kind: Option<&ColumnKind>) -> String {
    match kind {
        Some(ColumnKind::Categorical(names)) => {
            let name = names.get(value as usize);
            name.cloned().unwrap_or_else(|| value.to_string())
        }
        Some(ColumnKind::Date(style)) => text_of(value, *style),
        _ => four_digits(value),
    }
}

/// The cells as a table.
pub fn section(surprises: &[Surprise]) -> String {
    if surprises.is_empty() {
        return "<section class=\"card\">\n<h2>What is surprising</h2>\n\
                <p>Nothing: no cell is 20 times less likely, given the rest of its row, than is usual in its column.</p>\n</section>\n"
            .into();
    }
    let mut rows = String::new();
    for surprise in surprises {
        let Surprise {
            row,
            column,
            seen,
            expected,
            nats,
        } = surprise;
        let [seen, expected] = [seen, expected].map(|text| escape(text));
        let column = breakable(column);
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{column}</td><td><b>{seen}</b></td><td>{expected}</td><td>{}</td></tr>",
            thousands(*row),
            times(*nats)
        );
    }
    format!(
        "<section class=\"card\">\n<h2>What is surprising</h2>\n\
         <p>Cells that the rest of their row did not lead to expect: errors of typing or measuring, wrong labels, or rare cases. Each is \
         so many times less likely, given the rest of its row, than the median cell of its column. Rows are counted from 1, without the \
         line of names.</p>\n\
         <div class=\"wide\"><table class=\"cells\"><thead><tr><th>row</th><th>column</th><th>there is</th><th>expected</th>\
         <th>times less likely</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

/// e^nats, rounded.
fn times(nats: f64) -> String {
    const MANY: f64 = 1e6;
    match nats.exp() {
        times if times < MANY => thousands(times.round() as usize),
        _ => format!("over {}", thousands(MANY as usize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout_data::dates::DateStyle;

    #[test]
    fn a_surprise_is_measured_from_the_median() {
        let cells = surprises(3, vec![-1.0, f64::NAN, -9.0, -2.0]);
        let found: Vec<(usize, f64)> = cells.iter().map(|cell| (cell.row, cell.nats)).collect();
        assert_eq!(found, [(0, -1.0), (2, 7.0), (3, 0.0)]);
        assert!(surprises(0, vec![f64::NAN]).is_empty());
    }

    #[test]
    fn values_are_written_as_in_the_data() {
        assert_eq!(around(188.51, 5.564, None), "188.5 ± 5.6");
        assert_eq!(around(3701.2, 312.0, None), "3701 ± 312");
        assert_eq!(around(0.1234, 1e-12, None), "0.1234 ± 1.000e-12");
        assert_eq!(shown(39.099998, None), "39.1");
        assert_eq!(
            (times(3.0).as_str(), times(99.0).as_str()),
            ("20", "over 1,000,000")
        );
        let names = ColumnKind::Categorical(vec!["a".into(), "b".into()]);
        assert_eq!(shown(1.0, Some(&names)), "b");
        let date = text_of(1.0, DateStyle::Day);
        assert_eq!(shown(1.0, Some(&ColumnKind::Date(DateStyle::Day))), date);
    }
}
