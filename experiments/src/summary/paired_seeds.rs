//! Two experiments that differ in one thing, compared seed by seed on the same holes.

use crate::inputs::test_masks;
use crate::results::{Record, Run, spread};
use crate::summary::markdown;
use anyhow::{Context, Result, ensure};

/// Whether all of its seeds were tested on the same holes, so that it can be compared seed by seed.
pub fn is_paired(record: &Record) -> bool {
    record.plan["options"]["mask_seed"].is_u64()
}

/// Means of both, the mean difference, its standard error, and the largest difference of one seed.
pub fn table(records: &[Record], one: &str, other: &str) -> Result<String> {
    let (one, other) = (find(records, one)?, find(records, other)?);
    let names = format!("{} and {}", one.name, other.name);
    ensure!(
        one.columns == other.columns,
        "{names} have different columns"
    );
    let differences = differences(one, other);
    ensure!(
        differences.len() > 1,
        "{names} have fewer than two seeds in common"
    );
    let [ours, theirs, apart] = [&one.runs, &other.runs, &differences].map(|runs| means(runs));
    let n = (differences.len() as f64).sqrt();
    let apart_refs: Vec<&Run> = differences.iter().collect();
    let columns = 0..one.columns.len();
    let errors = columns
        .clone()
        .map(|column| spread(&apart_refs, column).deviation.unwrap_or(0.0) / n);
    let errors: Vec<String> = errors.map(|error| format!("{error:.3}")).collect();
    let largest = columns.map(|column| format!("{:.2}", largest(&differences, column)));
    let two = |x: &f64| format!("{x:.2}");
    Ok([
        markdown::head(
            &format!("{} seeds", differences.len()),
            &test_masks::names(&one.columns),
        ),
        markdown::row(&one.title, &cells(&ours, two)),
        markdown::row(&other.title, &cells(&theirs, two)),
        markdown::row("difference", &cells(&apart, |x| format!("{x:+.3}"))),
        markdown::row("its standard error", &errors),
        markdown::row("largest of one seed", &largest.collect::<Vec<_>>()),
    ]
    .concat())
}

fn find<'a>(records: &'a [Record], name: &str) -> Result<&'a Record> {
    let found = records.iter().find(|record| record.name == name);
    found.with_context(|| format!("no {name}.json"))
}

/// The mean of each column.
fn means(runs: &[Run]) -> Vec<f64> {
    let runs: Vec<&Run> = runs.iter().collect();
    let columns = runs.first().map_or(0, |run| run.accuracies.len());
    (0..columns)
        .map(|column| spread(&runs, column).mean)
        .collect()
}

fn cells(numbers: &[f64], text: impl Fn(&f64) -> String) -> Vec<String> {
    numbers.iter().map(text).collect()
}

fn largest(differences: &[Run], column: usize) -> f64 {
    let sizes = differences.iter().map(|run| run.accuracies[column].abs());
    sizes.fold(0.0, f64::max)
}

/// How much better the other is, for each seed of both.
fn differences(one: &Record, other: &Record) -> Vec<Run> {
    let mut differences = Vec::new();
    for a in &one.runs {
        if let Some(b) = other.runs.iter().find(|b| b.seed == a.seed) {
            let pairs = a.accuracies.iter().zip(&b.accuracies);
            differences.push(Run {
                accuracies: pairs.map(|(a, b)| b - a).collect(),
                ..a.clone()
            });
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Method;
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

    /// Differences are taken seed by seed: 1 and 0 here, whatever the seeds share.
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
