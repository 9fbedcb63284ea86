//! Few labels on MNIST: accuracy by method and number of labels, with whole images and with holes.

use crate::results::{Record, Run, spread};
use crate::summary::chart::{Chart, Line};
use crate::summary::markdown;
use std::collections::BTreeSet;

/// A row of a record: a method with a number of labels.
struct Cell<'a> {
    method: String,
    labels: usize,
    has_holes: bool,
    runs: Vec<&'a Run>,
}

/// All cells of the records with few labels.
fn cells(records: &[Record]) -> Vec<Cell<'_>> {
    let mut cells = Vec::new();
    for record in records {
        let options = &record.plan["options"];
        if !options["labels"].is_array() {
            continue;
        }
        for row in record.rows() {
            let (kind, labels) = row.name.rsplit_once(' ').unwrap_or(("", &row.name));
            cells.push(Cell {
                method: method(record, kind),
                labels: labels.parse().unwrap_or_default(),
                has_holes: options["train_holes"].is_string(),
                runs: row.runs,
            });
        }
    }
    cells
}

fn method(record: &Record, kind: &str) -> String {
    match kind {
        "" => format!("**{}**", record.title),
        "lenet" => "LeNet".into(),
        "boosting" => "HistGradientBoosting".into(),
        "spreading" => "label spreading".into(),
        other => other.into(),
    }
}

/// The numbers of labels, and the methods in the order of the records.
fn axes(cells: &[Cell<'_>]) -> (Vec<usize>, Vec<String>) {
    let labels: BTreeSet<usize> = cells.iter().map(|cell| cell.labels).collect();
    let mut methods: Vec<String> = Vec::new();
    for cell in cells {
        if !methods.contains(&cell.method) {
            methods.push(cell.method.clone());
        }
    }
    (labels.into_iter().collect(), methods)
}

/// A row for each method.
pub fn table(records: &[Record]) -> String {
    let cells = cells(records);
    let (labels, methods) = axes(&cells);
    let whole = labels.iter().map(|count| format!("{count} labels"));
    let holed = labels
        .iter()
        .map(|count| format!("{count}, half of the pixels missing"));
    let mut text = markdown::head("", &whole.chain(holed).collect::<Vec<_>>());
    for method in &methods {
        let mut line = Vec::new();
        for has_holes in [false, true] {
            for &count in &labels {
                let found = cells.iter().find(|cell| {
                    (&cell.method, cell.labels, cell.has_holes) == (method, count, has_holes)
                });
                line.push(found.map_or_else(String::new, |cell| spread(&cell.runs, 0).to_string()));
            }
        }
        text += &markdown::row(method, &line);
    }
    text
}

/// Accuracy by the number of labels, of whole images or of images with holes; none before there are results.
pub fn curves(records: &[Record], has_holes: bool, title: &str) -> Option<String> {
    let cells = cells(records);
    let (labels, methods) = axes(&cells);
    let mut lines = Vec::new();
    for method in methods {
        let mut points = Vec::new();
        for &count in &labels {
            let found = cells.iter().find(|cell| {
                (&cell.method, cell.labels, cell.has_holes) == (&method, count, has_holes)
            });
            points.extend(found.map(|cell| spread(&cell.runs, 0).mean));
        }
        if points.len() == labels.len() {
            let name = method.trim_matches('*').to_owned();
            lines.push(Line { name, points });
        }
    }
    let chart = Chart {
        title,
        below: "labels of 60,000 images",
        heads: labels.iter().map(usize::to_string).collect(),
        broken_at: None,
    };
    (!lines.is_empty()).then(|| chart.svg(&lines))
}
