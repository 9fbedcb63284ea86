//! Two experiments that differ in one thing, seed by seed on the same holes: how far apart they are.

use crate::columns;
use crate::results::{Record, Run};
use crate::tables::mean_and_spread;
use anyhow::{Context, Result, ensure};

/// Whether all of its seeds were asked about the same holes, so that it can be compared seed by seed.
pub fn is_paired(record: &Record) -> bool {
    record.plan["options"]["mask_seed"].is_u64()
}

/// Means of both, the mean difference, its standard error, and the largest difference of one seed.
pub fn table(records: &[Record], one: &str, other: &str) -> Result<String> {
    let find = |name: &str| {
        records
            .iter()
            .find(|record| record.name == name)
            .with_context(|| format!("no {name}.json"))
    };
    let (one, other) = (find(one)?, find(other)?);
    ensure!(
        one.columns == other.columns,
        "{} and {} have different columns",
        one.name,
        other.name
    );
    let differences = differences(one, other);
    ensure!(
        differences.len() > 1,
        "{} and {} have fewer than two seeds in common",
        one.name,
        other.name
    );
    let heads: Vec<String> = one
        .columns
        .iter()
        .filter_map(|text| text.parse().ok())
        .map(|m| columns::name(&m))
        .collect();
    let line = |name: &str, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..heads.len()).map(cell).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let (ours, theirs): (Vec<&Run>, Vec<&Run>) =
        (one.runs.iter().collect(), other.runs.iter().collect());
    let apart: Vec<&Run> = differences.iter().collect();
    let n = (apart.len() as f64).sqrt();
    let largest = |column: usize| {
        apart
            .iter()
            .map(|run| run.accuracies[column].abs())
            .fold(0.0, f64::max)
    };
    Ok([
        format!(
            "| {} seeds | {} |\n|---|{}\n",
            apart.len(),
            heads.join(" | "),
            "---|".repeat(heads.len())
        ),
        line(&one.title, &|column| {
            format!("{:.2}", mean_and_spread(&ours, column).0)
        }),
        line(&other.title, &|column| {
            format!("{:.2}", mean_and_spread(&theirs, column).0)
        }),
        line("difference", &|column| {
            format!("{:+.3}", mean_and_spread(&apart, column).0)
        }),
        line("its standard error", &|column| {
            format!(
                "{:.3}",
                mean_and_spread(&apart, column).1.unwrap_or(0.0) / n
            )
        }),
        line("largest of one seed", &|column| {
            format!("{:.2}", largest(column))
        }),
    ]
    .concat())
}

/// What the other has more, for each seed of both.
fn differences(one: &Record, other: &Record) -> Vec<Run> {
    let pairs = one
        .runs
        .iter()
        .filter_map(|a| Some((a, other.runs.iter().find(|b| b.seed == a.seed)?)));
    let subtracted = |(a, b): (&Run, &Run)| {
        let accuracies = a
            .accuracies
            .iter()
            .zip(&b.accuracies)
            .map(|(a, b)| b - a)
            .collect();
        Run {
            accuracies,
            ..a.clone()
        }
    };
    pairs.map(subtracted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Method;
    use serde_json::json;

    fn record(name: &str, accuracies: &[(u64, f64)]) -> Record {
        let run = |&(seed, accuracy): &(u64, f64)| Run::example("", seed, vec![accuracy]);
        Record {
            name: name.into(),
            title: name.to_uppercase(),
            method: Method::Tmm,
            command: "run".into(),
            data: "abc".into(),
            plan: json!({ "options": { "mask_seed": 1 } }),
            settings: json!(null),
            columns: vec!["iid:0.5".into()],
            runs: accuracies.iter().map(run).collect(),
        }
    }

    /// Differences are taken seed by seed: 1 and 0 here, whatever seeds have in common.
    #[test]
    fn seed_by_seed() {
        let (a, b) = (
            record("a", &[(1, 90.0), (2, 95.0)]),
            record("b", &[(1, 91.0), (2, 95.0)]),
        );
        assert!(is_paired(&a));
        let text = table(&[a.clone(), b], "a", "b").unwrap();
        let expected = "| 2 seeds | .50 |\n|---|---|\n| A | 92.50 |\n| B | 93.00 |\n| difference | +0.500 |\n\
                        | its standard error | 0.500 |\n| largest of one seed | 1.00 |\n";
        assert_eq!(text, expected);
        assert!(
            table(&[a.clone(), record("b", &[(3, 1.0), (4, 2.0)])], "a", "b").is_err(),
            "no seed in common"
        );
        assert!(table(&[a], "a", "b").is_err());
    }
}
