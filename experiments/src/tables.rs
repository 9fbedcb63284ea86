//! `tables`: rewrites what stands between the marks of `experiments/README.md`, from the result files.
//!
//! ```text
//! <!-- table: NAME -->
//! written by the command
//! <!-- end -->
//! ```

use crate::columns;
use crate::crossed;
use crate::paired;
use crate::paper::{self, Paper};
use crate::results::{Record, Run, read};
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use sumout::masks::Missing;

/// Rewrites the README of a folder.
pub fn run(folder: &Path) -> Result<()> {
    let path = folder.join("README.md");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let records = records(folder)?;
    let paper = paper::read(folder)?;
    let tried = folder.join("tuning");
    let tried = if tried.exists() {
        self::records(&tried)?
    } else {
        Vec::new()
    };
    let new = rewritten(&text, |name| match name {
        "tuning" => Ok(tuning(&tried)),
        _ => table(name, &records, &paper),
    })?;
    fs::write(&path, new).with_context(|| format!("cannot write {}", path.display()))
}

/// All results of a folder, by name.
pub fn records(folder: &Path) -> Result<Vec<Record>> {
    let results = folder.join("results");
    let mut paths = Vec::new();
    for entry in
        fs::read_dir(&results).with_context(|| format!("cannot read {}", results.display()))?
    {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

/// The text with new tables.
fn rewritten(text: &str, table: impl Fn(&str) -> Result<String>) -> Result<String> {
    const END: &str = "<!-- end -->";
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!-- table: ") {
        let (name, after) = after
            .split_once(" -->")
            .context("a mark of a table that does not end")?;
        let (_, after) = after
            .split_once(END)
            .with_context(|| format!("table {name}: no {END}"))?;
        let _ = write!(new, "{before}<!-- table: {name} -->\n{}{END}", table(name)?);
        rest = after;
    }
    Ok(new + rest)
}

/// One table. Here is where it is chosen.
fn table(name: &str, records: &[Record], paper: &Paper) -> Result<String> {
    let iid = columns::IID.len();
    Ok(match name {
        "iid" => accuracies(records, &paper.row, 0..iid),
        "squares" => accuracies(records, &paper.row, iid..columns::all().len()),
        "nets-iid" => crossed::table(records, paper, false),
        "nets-squares" => crossed::table(records, paper, true),
        "precision" => paired::table(records, "precision-f32", "precision-tf32")?,
        "pairs" => pairs(records, &paper.pairs),
        "quick" => quick(records),
        "runs" => runs(records),
        _ => bail!("README.md asks for a table '{name}' that is not known"),
    })
}

/// Whether it has all of the paper's columns.
pub fn is_whole(record: &Record) -> bool {
    record.columns
        == columns::all()
            .iter()
            .map(Missing::to_string)
            .collect::<Vec<_>>()
}

/// What stands in tables and curves of the 16 columns.
pub fn compared(records: &[Record]) -> Vec<Record> {
    let alone = |record: &&Record| {
        is_whole(record) && !crossed::is_crossed(record) && !paired::is_paired(record)
    };
    let whole = records.iter().filter(alone).cloned();
    whole.chain(crossed::on_itself(records)).collect()
}

/// Rows of an experiment with their runs.
pub fn rows(record: &Record) -> Vec<(String, Vec<&Run>)> {
    let mut rows: Vec<(String, Vec<&Run>)> = Vec::new();
    for run in &record.runs {
        match rows.iter_mut().find(|(row, _)| *row == run.row) {
            Some((_, runs)) => runs.push(run),
            None => rows.push((run.row.clone(), vec![run])),
        }
    }
    rows
}

/// Mean and standard deviation over seeds (none for one seed) of a column.
pub fn mean_and_spread(runs: &[&Run], column: usize) -> (f64, Option<f64>) {
    let n = runs.len() as f64;
    let mean = runs.iter().map(|run| run.accuracies[column]).sum::<f64>() / n;
    let squares: f64 = runs
        .iter()
        .map(|run| (run.accuracies[column] - mean).powi(2))
        .sum();
    (mean, (runs.len() > 1).then(|| (squares / (n - 1.0)).sqrt()))
}

/// The paper's rows, each followed by ours of the same method, then ours that the paper does not have.
fn accuracies(records: &[Record], papers: &[paper::Row], part: std::ops::Range<usize>) -> String {
    let heads: Vec<String> = columns::all()[part.clone()]
        .iter()
        .map(columns::name)
        .collect();
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    let whole = compared(records);
    let ours = |paper: Option<&str>| {
        let mut lines = String::new();
        let of_paper =
            |record: &&Record| record.plan.get("paper").and_then(|name| name.as_str()) == paper;
        for record in whole.iter().filter(of_paper) {
            for (row, runs) in rows(record) {
                let cell = |column: usize| match mean_and_spread(&runs, column) {
                    (mean, Some(spread)) => format!("{mean:.2} ± {spread:.2}"),
                    (mean, None) => format!("{mean:.2}"),
                };
                let cells: Vec<String> = part.clone().map(cell).collect();
                let row = if row.is_empty() {
                    row
                } else {
                    format!(", {row}")
                };
                let _ = writeln!(
                    lines,
                    "| **{}{row}** (`{}`) | {} |",
                    record.title,
                    record.name,
                    cells.join(" | ")
                );
            }
        }
        lines
    };
    for paper in papers {
        if let Some(numbers) = paper.accuracies.get(part.clone()) {
            let cells: Vec<String> = numbers.iter().map(|x| format!("{x:.1}")).collect();
            let _ = writeln!(text, "| {}, paper | {} |", paper.name, cells.join(" | "));
        }
        text.push_str(&ours(Some(&paper.name)));
    }
    text + &ours(None)
}

/// Experiments with some of the columns.
fn quick(records: &[Record]) -> String {
    let known: Vec<String> = columns::all().iter().map(Missing::to_string).collect();
    let partly = |record: &&Record| {
        !is_whole(record) && record.columns.iter().all(|column| known.contains(column))
    };
    let mut text =
        "| experiment | test images | accuracy | seconds | machine |\n|---|---|---|---|---|\n"
            .to_owned();
    for record in records.iter().filter(partly) {
        for run in &record.runs {
            let pairs = record.columns.iter().zip(&run.accuracies);
            let cells: Vec<String> = pairs
                .map(|(column, accuracy)| format!("{column} {accuracy:.2}"))
                .collect();
            let seconds = run.train_seconds + run.test_seconds;
            let row = if run.row.is_empty() {
                String::new()
            } else {
                format!(", {}", run.row)
            };
            let _ = writeln!(
                text,
                "| `{}`{row} | {} | {} | {seconds:.0} | {} |",
                record.name,
                run.test,
                cells.join(", "),
                run.machine
            );
        }
    }
    text
}

/// Two-digit tasks: the paper's rows, each followed by ours.
fn pairs(records: &[Record], papers: &[paper::Row]) -> String {
    let heads = ["0", "25", "50", "75", "100", "125", "150"];
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for paper in papers {
        let cells: Vec<String> = paper.accuracies.iter().map(|x| format!("{x:.1}")).collect();
        let _ = writeln!(text, "| {}, paper | {} |", paper.name, cells.join(" | "));
        let asked = heads.map(|n| format!("nonzero:{n}"));
        for record in records
            .iter()
            .filter(|record| record.columns == asked && record.plan["paper"] == paper.name)
        {
            let repeats = crate::pairs::by_seed(&record.runs);
            let Some((_, seen)) = repeats.first() else {
                continue;
            };
            let seen = if *seen == 45 {
                String::new()
            } else {
                format!(", {seen} of the 45 pairs")
            };
            let repeats: Vec<&Run> = repeats.iter().map(|(run, _)| run).collect();
            let cell = |column: usize| match mean_and_spread(&repeats, column) {
                (mean, Some(spread)) => format!("{mean:.2} ± {spread:.2}"),
                (mean, None) => format!("{mean:.2}"),
            };
            let (cells, title): (Vec<String>, _) =
                ((0..heads.len()).map(cell).collect(), &record.title);
            let times = if repeats.len() == 1 {
                "once".into()
            } else {
                format!("{} times", repeats.len())
            };
            let _ = writeln!(
                text,
                "| **{title}** (`{}`), {times}{seen} | {} |",
                record.name,
                cells.join(" | ")
            );
        }
    }
    text
}

/// What was tried on held-out training images, the best first.
fn tuning(records: &[Record]) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    let heads: Vec<String> = first
        .columns
        .iter()
        .filter_map(|text| text.parse().ok())
        .map(|m| columns::name(&m))
        .collect();
    let mut text = format!(
        "| | mean | {} |\n|---|---|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    let mean = |run: &Run| run.accuracies.iter().sum::<f64>() / run.accuracies.len() as f64;
    let mut runs: Vec<(&Record, &Run)> = records
        .iter()
        .flat_map(|r| r.runs.iter().map(move |run| (r, run)))
        .collect();
    runs.sort_by(|a, b| mean(b.1).total_cmp(&mean(a.1)));
    for (record, run) in runs
        .into_iter()
        .filter(|(record, _)| record.columns == first.columns)
    {
        let cells: Vec<String> = run
            .accuracies
            .iter()
            .map(|accuracy| format!("{accuracy:.1}"))
            .collect();
        let row = if run.row.is_empty() {
            String::new()
        } else {
            format!(", {}", run.row)
        };
        let (title, name) = (&record.title, &record.name);
        let _ = writeln!(
            text,
            "| {title}{row} (`{name}`) | {:.2} | {} |",
            mean(run),
            cells.join(" | ")
        );
    }
    text
}

/// What to type, and how long it took.
fn runs(records: &[Record]) -> String {
    let mut text =
        "| command | seeds | seconds a run, learning + asking | machine |\n|---|---|---|---|\n"
            .to_owned();
    for record in records {
        let all: Vec<&Run> = record.runs.iter().collect();
        let Some(first) = all.first() else { continue };
        let mean =
            |f: fn(&Run) -> f64| all.iter().map(|run| f(run)).sum::<f64>() / all.len() as f64;
        let mut seeds: Vec<u64> = all.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        let (train, test) = (mean(|run| run.train_seconds), mean(|run| run.test_seconds));
        let (command, seeds) = (&record.command, seeds.join(" "));
        let _ = writeln!(
            text,
            "| `{command}` | {seeds} | {train:.0} + {test:.0} | {} |",
            first.machine
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Method;
    use serde_json::json;

    fn record(name: &str, columns: Vec<String>, accuracies: &[f64]) -> Record {
        let run = |(i, &accuracy): (usize, &f64)| {
            Run::example("", i as u64 + 1, vec![accuracy; columns.len()])
        };
        Record {
            name: name.into(),
            title: name.to_uppercase(),
            method: Method::Knn,
            command: format!("run {name}"),
            data: "abc".into(),
            plan: json!({ "paper": "KNN" }),
            settings: json!(null),
            runs: accuracies.iter().enumerate().map(run).collect(),
            columns,
        }
    }

    /// From a folder with two results to a README.
    #[test]
    fn tables_come_from_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("results")).unwrap();
        let all = columns::all().iter().map(Missing::to_string).collect();
        for record in [
            record("knn", all, &[90.0, 91.0, 95.0]),
            record("some", vec!["iid:0.5".into()], &[80.125]),
        ] {
            let text = serde_json::to_string(&record).unwrap();
            fs::write(path(&format!("results/{}.json", record.name)), text).unwrap();
        }
        let paper = "[[row]]\nname = \"KNN\"\naccuracies = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]\n\
                     [[row]]\nname = \"Half\"\naccuracies = [1, 2, 3, 4, 5, 6, 7]\n";
        fs::write(path("paper.toml"), paper).unwrap();
        let readme = "a\n<!-- table: squares -->\nold\n<!-- end -->\nb\n<!-- table: quick --><!-- end -->\n\
                      <!-- table: runs --><!-- end -->\n";
        fs::write(path("README.md"), readme).unwrap();
        run(folder.path()).unwrap();
        let text = fs::read_to_string(path("README.md")).unwrap();
        let squares = "a\n<!-- table: squares -->\n\
            | | 1×7² | 2×7² | 3×7² | 1×11² | 2×11² | 3×11² | 1×15² | 2×15² | 3×15² |\n|---|---|---|---|---|---|---|---|---|---|\n\
            | KNN, paper | 8.0 | 9.0 | 10.0 | 11.0 | 12.0 | 13.0 | 14.0 | 15.0 | 16.0 |\n| **KNN** (`knn`) | 92.00 ± 2.65 |";
        assert!(text.starts_with(squares), "{text}");
        assert!(!text.contains("Half") && !text.contains("old"), "{text}");
        assert!(
            text.contains("| `some` | 10000 | iid:0.5 80.12 | 120 | an abacus |"),
            "{text}"
        );
        assert!(
            text.contains("| `run knn` | 1 2 3 | 100 + 20 | an abacus |"),
            "{text}"
        );
        run(folder.path()).unwrap();
        assert_eq!(
            text,
            fs::read_to_string(path("README.md")).unwrap(),
            "again the same"
        );
        fs::write(path("README.md"), "<!-- table: quick -->").unwrap();
        assert!(
            run(folder.path())
                .unwrap_err()
                .to_string()
                .contains("no <!-- end -->")
        );
    }
}
