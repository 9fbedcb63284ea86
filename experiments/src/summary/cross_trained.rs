//! Nets that were trained on one kind of holes and tested on all kinds: their tables, and the row
//! of nets that were tested on their own kind.

use crate::experiment::Method;
use crate::inputs::test_masks;
use crate::results::{Record, Row, Run, seeds, spread};
use crate::summary::markdown;
use crate::summary::paper::{Paper, PaperNet};
use serde_json::json;
use std::ops::Range;
use sumout::masks::Missing;

/// Whether its rows are nets trained on different holes.
pub fn is_cross_trained(record: &Record) -> bool {
    let has_rows = record.runs.iter().any(|run| !run.row.is_empty());
    record.method == Method::Lenet && record.is_whole() && has_rows
}

/// Each column from the net that was trained on it, the first from one trained on whole images.
pub fn tested_on_own(records: &[&Record]) -> Option<Record> {
    let title = "LeNet, trained on it";
    let &crossed = records.iter().find(|record| is_cross_trained(record))?;
    let plain = records
        .iter()
        .find(|record| record.method == Method::Lenet && !is_cross_trained(record))?;
    let runs: Vec<Run> = seeds(&crossed.runs)
        .into_iter()
        .filter_map(|seed| own_run(crossed, plain, seed))
        .collect();
    (!runs.is_empty()).then(|| Record {
        title: title.into(),
        plan: json!({ "paper": title, "set": crossed.plan["set"] }),
        runs,
        ..crossed.clone()
    })
}

/// One seed; none if a net is missing.
fn own_run(crossed: &Record, plain: &Record, seed: u64) -> Option<Run> {
    let mut accuracies = Vec::new();
    for (column, holes) in crossed.columns.iter().enumerate() {
        let (record, row) = if holes == "clean" {
            (plain, "")
        } else {
            (crossed, holes.as_str())
        };
        let of_net = |run: &&Run| run.row == row && run.seed == seed;
        let run = record.runs.iter().find(of_net)?;
        accuracies.push(*run.accuracies.get(column)?);
    }
    let first = crossed.runs.iter().find(|run| run.seed == seed)?;
    Some(Run {
        row: String::new(),
        accuracies,
        ..first.clone()
    })
}

/// The head of a row.
pub fn name(holes: &str) -> String {
    match holes {
        "" => String::new(),
        "iid:rand" => "any p".into(),
        "rect:rand" => "any squares".into(),
        _ => holes
            .parse::<Missing>()
            .map_or_else(|_| holes.to_owned(), |missing| test_masks::name(&missing)),
    }
}

/// What the columns of a table are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TestedOn {
    /// Pixels missing i.i.d.
    Iid,
    /// Squares.
    Squares,
}

impl TestedOn {
    fn columns(self) -> Range<usize> {
        match self {
            Self::Iid => test_masks::iid(),
            Self::Squares => test_masks::squares(),
        }
    }

    /// Whether a net belongs to the table: it was trained on such holes, or on any.
    fn has(self, row: &Row<'_>) -> bool {
        let kind = match self {
            Self::Iid => "iid:",
            Self::Squares => "rect:",
        };
        row.name.starts_with(kind) || row.name.ends_with(":rand")
    }

    fn numbers(self, net: &PaperNet) -> &[f64] {
        match self {
            Self::Iid => &net.iid,
            Self::Squares => &net.squares,
        }
    }
}

/// Nets tested on i.i.d. holes or on squares: those trained on such holes, and those trained on
/// any.
pub fn table(records: &[Record], paper: &Paper, tested_on: TestedOn) -> String {
    let columns = tested_on.columns();
    let heads: Vec<String> = test_masks::all()[columns.clone()]
        .iter()
        .map(test_masks::name)
        .collect();
    let mut text = markdown::head("trained on", &heads);
    let of_mnist = |record: &&Record| record.is_on("mnist") && is_cross_trained(record);
    for record in records.iter().filter(of_mnist) {
        for row in sorted_rows(record, tested_on) {
            if let Some(net) = paper.net.iter().find(|net| net.name == row.name) {
                let numbers = tested_on.numbers(net);
                let mut cells = vec![String::new(); columns.len() - numbers.len()]; // the paper has no p = 0
                cells.extend(numbers.iter().map(|x| format!("{x:.1}")));
                text += &markdown::row(&format!("{}, paper", name(&row.name)), &cells);
            }
            let cell = |column| format!("{:.2}", spread(&row.runs, column).mean);
            let cells: Vec<String> = columns.clone().map(cell).collect();
            text += &markdown::row(&format!("**{}**", name(&row.name)), &cells);
        }
    }
    text
}

/// The rows of one table.
fn sorted_rows(record: &Record, tested_on: TestedOn) -> Vec<Row<'_>> {
    let mut rows = rows_in_order(record);
    rows.retain(|row| tested_on.has(row));
    rows
}

/// All rows in the order of the plan, nets trained on any holes last.
pub fn rows_in_order(record: &Record) -> Vec<Row<'_>> {
    let mut rows = record.rows();
    rows.sort_by_key(|row| place_in_plan(record, &row.name));
    rows.sort_by_key(|row| row.name.ends_with(":rand"));
    rows
}

fn place_in_plan(record: &Record, row: &str) -> Option<usize> {
    let holes = record.plan["options"]["holes"].as_array()?;
    holes.iter().position(|holes| holes == row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holes: &[&str], rows: &[&str]) -> Record {
        let columns: Vec<String> = test_masks::all().iter().map(Missing::to_string).collect();
        let run = |(i, row): (usize, &&str)| {
            Run::example(
                row,
                1,
                (0..columns.len())
                    .map(|column| (100 * i + column) as f64)
                    .collect(),
            )
        };
        Record {
            name: "nets".into(),
            title: "Nets".into(),
            method: Method::Lenet,
            command: "run nets".into(),
            data: "abc".into(),
            plan: json!({ "options": { "holes": holes } }),
            settings: json!(null),
            runs: rows.iter().enumerate().map(run).collect(),
            columns,
        }
    }

    /// Sixteen nets, of which each is best at its own column: row i has the number 100 i + column.
    #[test]
    fn each_on_its_own() {
        let names: Vec<String> = test_masks::all()[1..]
            .iter()
            .map(Missing::to_string)
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let records = [record(&["clean"], &[""]), record(&names, &names)];
        assert!(!is_cross_trained(&records[0]) && is_cross_trained(&records[1]));
        let own = tested_on_own(&records.each_ref()).unwrap();
        let expected: Vec<f64> = (0..16)
            .map(|column| {
                if column == 0 {
                    0.0
                } else {
                    (100 * (column - 1) + column).into()
                }
            })
            .collect();
        assert_eq!((own.runs.len(), &own.runs[0].accuracies), (1, &expected));
        assert!(
            tested_on_own(&[&records[0], &record(&names, &names[1..])]).is_none(),
            "a net is missing"
        );
    }

    #[test]
    fn beside_the_paper() {
        let rows = ["iid:0.5", "iid:rand", "rect:1x7", "rect:rand"];
        let records = [record(
            &["rect:rand", "iid:rand", "rect:1x7", "iid:0.5"],
            &rows,
        )];
        let net = PaperNet {
            name: "iid:0.5".into(),
            iid: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            squares: Vec::new(),
        };
        let paper = Paper {
            row: Vec::new(),
            net: vec![net],
            pairs: Vec::new(),
            norb: Vec::new(),
            speech: Vec::new(),
        };
        let iid = table(&records, &paper, TestedOn::Iid);
        let lines: Vec<&str> = iid.lines().collect();
        assert_eq!(lines.len(), 6, "{iid}");
        assert_eq!(
            lines[2],
            "| .50, paper |  | 1.0 | 2.0 | 3.0 | 4.0 | 5.0 | 6.0 |"
        );
        assert!(lines[3].starts_with("| **.50** | 0.00 | 1.00 |"), "{iid}");
        assert!(
            lines[4].starts_with("| **any squares** | 300.00")
                && lines[5].starts_with("| **any p** | 100.00")
        );
        assert!(
            table(&records, &paper, TestedOn::Squares)
                .lines()
                .nth(2)
                .unwrap()
                .starts_with("| **1×7²** | 207.00 |")
        );
    }
}
