//! Speech: accuracy by the share of samples that are missing, and by the length of gaps.

use crate::results::{Record, Spread, spread};
use crate::summary::chart::{Chart, Line};
use crate::summary::markdown;
use crate::summary::paper::PaperSpeech;
use sumout::masks::Missing;

/// Half of the samples are missing, each alone: what the paper has.
const HALF: &str = "iid:0.5";

/// Samples in a millisecond.
const PER_MILLISECOND: usize = 16;

/// The head of a column.
fn head(column: &str) -> String {
    match column.parse() {
        Ok(Missing::None) => "whole".into(),
        Ok(Missing::Iid(p)) => format!("{:.0} %", 100.0 * p),
        Ok(Missing::Blocks { width, .. }) => format!("{} ms", width / PER_MILLISECOND),
        _ => column.into(),
    }
}

/// Whether samples are missing in gaps.
fn is_gaps(column: &str) -> bool {
    matches!(column.parse(), Ok(Missing::Blocks { .. }))
}

/// The records of a set.
fn of_set<'a>(records: &'a [Record], set: &'a str) -> impl Iterator<Item = &'a Record> {
    records.iter().filter(move |record| record.is_on(set))
}

/// What was filled in before a net saw it.
fn row_name(record: &Record, row: &str) -> String {
    let fill = match row {
        "" => "",
        "mean" => ", mean",
        "omp" => ", inpainting",
        other => other,
    };
    format!("{}{fill}", record.title)
}

/// The paper's rows, then ours: all columns, and how much is lost when half is missing.
pub fn table(records: &[Record], set: &str, papers: &[PaperSpeech]) -> String {
    let Some(first) = of_set(records, set).next() else {
        return String::new();
    };
    let columns = &first.columns;
    let mut heads: Vec<String> = columns.iter().map(|column| head(column)).collect();
    heads.push("drop at 50 %".into());
    let mut text = markdown::head("", &heads);
    for paper in papers {
        let mut cells = vec![String::new(); heads.len()];
        cells[0] = paper.whole.to_string();
        if let Some(half) = columns.iter().position(|column| column == HALF) {
            cells[half] = paper.half.to_string();
        }
        cells[columns.len()] = (paper.whole - paper.half).to_string();
        text += &markdown::row(&format!("{}, paper, all of TIMIT", paper.name), &cells);
    }
    for record in of_set(records, set).filter(|record| &record.columns == columns) {
        for row in record.rows() {
            let spreads: Vec<Spread> = (0..columns.len())
                .map(|column| spread(&row.runs, column))
                .collect();
            let mut cells: Vec<String> = spreads.iter().map(Spread::to_string).collect();
            cells.push(drop_at_half(columns, &spreads));
            let name = format!("**{}** (`{}`)", row_name(record, &row.name), record.name);
            text += &markdown::row(&name, &cells);
        }
    }
    text
}

/// The loss of accuracy when half of the samples are missing, in points.
fn drop_at_half(columns: &[String], spreads: &[Spread]) -> String {
    let half = columns.iter().position(|column| column == HALF);
    half.map_or_else(String::new, |half| {
        format!("{:.1}", spreads[0].mean - spreads[half].mean)
    })
}

/// Accuracy curves, or none before there are results.
pub fn curves(records: &[Record], set: &str, title: &str) -> Option<String> {
    let columns = &of_set(records, set).next()?.columns;
    let mut lines = Vec::new();
    for record in of_set(records, set).filter(|record| &record.columns == columns) {
        for row in record.rows() {
            lines.push(Line {
                name: row_name(record, &row.name),
                points: (0..columns.len())
                    .map(|column| spread(&row.runs, column).mean)
                    .collect(),
            });
        }
    }
    let chart = Chart {
        title,
        below: "samples missing alone; then half of them in gaps of this length",
        heads: columns.iter().map(|column| head(column)).collect(),
        broken_at: columns.iter().position(|column| is_gaps(column)),
    };
    Some(chart.svg(&lines))
}
