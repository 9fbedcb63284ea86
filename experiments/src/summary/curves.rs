//! Accuracy curves on MNIST: every method that has results, by what is missing.

use crate::inputs::test_masks;
use crate::results::{Record, Row, spread};
use crate::summary::chart::{Chart, Line};
use crate::summary::compared::compared;
use std::ops::Range;

/// Pixels missing i.i.d.
pub fn iid(records: &[Record]) -> String {
    let columns = test_masks::iid();
    let chart = Chart {
        title: "Accuracy in % when each pixel is missing with a probability",
        below: "probability",
        heads: heads(&columns),
        broken_at: None,
    };
    chart.svg(&lines(records, &columns))
}

/// Squares.
pub fn squares(records: &[Record]) -> String {
    let columns = test_masks::squares();
    let chart = Chart {
        title: "Accuracy in % when squares are missing",
        below: "number × width²",
        heads: heads(&columns),
        broken_at: None,
    };
    chart.svg(&lines(records, &columns))
}

/// Means over seeds, the best over all columns first: a method has the same colour in both charts.
fn lines(records: &[Record], columns: &Range<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    for record in &compared(records, "mnist") {
        for row in record.rows() {
            let mean = |column: usize| spread(&row.runs, column).mean;
            let line = Line {
                name: record.title_of(&row.name),
                points: columns.clone().map(mean).collect(),
            };
            lines.push((sum_of_all(&row), line));
        }
    }
    lines.sort_by(|a, b| b.0.total_cmp(&a.0));
    lines.into_iter().map(|(_, line)| line).collect()
}

fn sum_of_all(row: &Row<'_>) -> f64 {
    let columns = 0..test_masks::all().len();
    columns.map(|column| spread(&row.runs, column).mean).sum()
}

/// The heads of some of the paper's columns.
pub fn heads(columns: &Range<usize>) -> Vec<String> {
    let kinds = &test_masks::all()[columns.clone()];
    kinds.iter().map(test_masks::name).collect()
}
