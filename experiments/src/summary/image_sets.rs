//! Other sets of images than MNIST: their tables and curves.

use crate::results::{Record, spread};
use crate::summary::chart::{Chart, Line};
use crate::summary::compared::compared;
use crate::summary::curves::heads;
use crate::summary::markdown;
use crate::summary::paper::PaperRow;
use std::ops::Range;

/// The paper's rows, then ours.
pub fn table(records: &[Record], set: &str, papers: &[PaperRow], columns: Range<usize>) -> String {
    let mut text = markdown::head("", &heads(&columns));
    for paper in papers {
        if let Some(numbers) = paper.accuracies.get(columns.clone()) {
            let cells: Vec<String> = numbers.iter().map(|x| format!("{x:.1}")).collect();
            text += &markdown::row(&format!("{}, paper", paper.name), &cells);
        }
    }
    text + &our_rows(compared(records, set).iter(), &columns)
}

/// Our rows of a table: mean and spread of the seeds in every column.
pub fn our_rows<'a>(records: impl Iterator<Item = &'a Record>, columns: &Range<usize>) -> String {
    let mut text = String::new();
    for record in records {
        for row in record.rows() {
            let cell = |column| spread(&row.runs, column).to_string();
            let cells: Vec<String> = columns.clone().map(cell).collect();
            let name = format!("**{}** (`{}`)", record.title_of(&row.name), record.name);
            text += &markdown::row(&name, &cells);
        }
    }
    text
}

/// Accuracy curves, or none before there are results.
pub fn curves(records: &[Record], set: &str, columns: Range<usize>, title: &str) -> Option<String> {
    let mut lines = Vec::new();
    for record in &compared(records, set) {
        for row in record.rows() {
            let mean = |column: usize| spread(&row.runs, column).mean;
            lines.push(Line {
                name: record.title_of(&row.name),
                points: columns.clone().map(mean).collect(),
            });
        }
    }
    let below = if columns.start == 0 {
        "probability"
    } else {
        "number × width²"
    };
    let chart = Chart {
        title,
        below,
        heads: heads(&columns),
        broken_at: None,
    };
    (!lines.is_empty()).then(|| chart.svg(&lines))
}
