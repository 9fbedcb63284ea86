//! Nets that were trained on one kind of holes and asked about all others: their tables, and the row of those that were
//! asked about their own.

use crate::columns;
use crate::paper::Paper;
use crate::plan::Method;
use crate::results::{Record, Run};
use crate::tables::{mean_and_spread, rows};
use serde_json::json;
use std::fmt::Write;
use sumout::masks::Missing;

/// Whether its rows are nets trained on different holes.
pub fn is_crossed(record: &Record) -> bool {
    record.method == Method::Lenet && record.runs.iter().any(|run| !run.row.is_empty())
}

/// Each column from the net that was trained on it, the first from one trained on whole images.
pub fn on_itself(records: &[Record]) -> Option<Record> {
    let crossed = records.iter().find(|record| is_crossed(record))?;
    let plain = records
        .iter()
        .find(|record| record.method == Method::Lenet && !is_crossed(record))?;
    let of_seed = |seed: u64| -> Option<Run> {
        let column = |(index, name): (usize, &String)| {
            let (record, row) = if name == "clean" {
                (plain, "")
            } else {
                (crossed, name.as_str())
            };
            let run = record
                .runs
                .iter()
                .find(|run| run.row == row && run.seed == seed)?;
            run.accuracies.get(index).copied()
        };
        let accuracies = crossed
            .columns
            .iter()
            .enumerate()
            .map(column)
            .collect::<Option<Vec<f64>>>()?;
        Some(Run {
            row: String::new(),
            accuracies,
            ..crossed.runs.iter().find(|run| run.seed == seed)?.clone()
        })
    };
    let mut seeds: Vec<u64> = crossed.runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let runs: Vec<Run> = seeds.into_iter().filter_map(of_seed).collect();
    let title = "LeNet, trained on it";
    let plan = json!({ "paper": title });
    (!runs.is_empty()).then(|| Record {
        title: title.into(),
        plan,
        runs,
        ..crossed.clone()
    })
}

/// What a kind of holes is called.
fn name(holes: &str) -> String {
    match holes {
        "iid:rand" => "any p".into(),
        "rect:rand" => "any squares".into(),
        _ => holes
            .parse::<Missing>()
            .map_or_else(|_| holes.to_owned(), |missing| columns::name(&missing)),
    }
}

/// Nets asked about i.i.d. holes or squares: those trained on such, and those trained on any.
pub fn table(records: &[Record], paper: &Paper, squares: bool) -> String {
    let iid = columns::IID.len();
    let (part, kind) = if squares {
        (iid..columns::all().len(), "rect:")
    } else {
        (0..iid, "iid:")
    };
    let heads: Vec<String> = columns::all()[part.clone()]
        .iter()
        .map(columns::name)
        .collect();
    let mut text = format!(
        "| trained on | {} |\n|---|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for record in records.iter().filter(|record| is_crossed(record)) {
        let order = record.plan["options"]["holes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let order: Vec<&str> = order.iter().filter_map(|holes| holes.as_str()).collect();
        let mut rows = rows(record);
        rows.retain(|(row, _)| row.starts_with(kind) || row.ends_with(":rand"));
        rows.sort_by_key(|(row, _)| {
            (
                row.ends_with(":rand"),
                order.iter().position(|holes| holes == row),
            )
        });
        for (row, runs) in rows {
            if let Some(net) = paper.net.iter().find(|net| net.name == row) {
                let numbers: Vec<f64> = if squares {
                    net.squares.clone()
                } else {
                    net.iid.clone()
                };
                let blank = vec![String::new(); part.len() - numbers.len()]; // the paper has no p = 0
                let cells: Vec<String> = blank
                    .into_iter()
                    .chain(numbers.iter().map(|x| format!("{x:.1}")))
                    .collect();
                let _ = writeln!(text, "| {}, paper | {} |", name(&row), cells.join(" | "));
            }
            let cells: Vec<String> = part
                .clone()
                .map(|i| format!("{:.2}", mean_and_spread(&runs, i).0))
                .collect();
            let _ = writeln!(text, "| **{}** | {} |", name(&row), cells.join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Net;

    fn record(holes: &[&str], rows: &[&str]) -> Record {
        let columns: Vec<String> = columns::all().iter().map(Missing::to_string).collect();
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
        let names: Vec<String> = columns::all()[1..].iter().map(Missing::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let records = [record(&["clean"], &[""]), record(&names, &names)];
        assert!(!is_crossed(&records[0]) && is_crossed(&records[1]));
        let own = on_itself(&records).unwrap();
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
            on_itself(&[record(&["clean"], &[""]), record(&names, &names[1..])]).is_none(),
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
        let net = Net {
            name: "iid:0.5".into(),
            iid: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            squares: Vec::new(),
        };
        let paper = Paper {
            row: Vec::new(),
            net: vec![net],
            pairs: Vec::new(),
        };
        let iid = table(&records, &paper, false);
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
            table(&records, &paper, true)
                .lines()
                .nth(2)
                .unwrap()
                .starts_with("| **1×7²** | 207.00 |")
        );
    }
}
