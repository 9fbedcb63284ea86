//! `tables`: rewrites the tables between the marks of `README.md` and of `tuning/README.md`, from
//! the result files.
//!
//! ```text
//! <!-- table: NAME -->
//! written by the command
//! <!-- end -->
//! ```

use crate::inputs::test_masks;
use crate::methods::digit_pairs::{self, PAIRS};
use crate::results::{Record, Run, Spread, after_comma, records, seeds, spread};
use crate::summary::compared::compared;
use crate::summary::cross_trained::{self, TestedOn};
use crate::summary::markdown;
use crate::summary::paired_seeds;
use crate::summary::paper::{self, Paper, PaperRow};
use crate::summary::{few_labels, image_sets, speech};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Everything that tables are made of.
struct Sources {
    records: Vec<Record>,
    tried: Vec<Record>, // on held-out images, to choose settings
    paper: Paper,
}

/// Rewrites the README of a folder and of its folder `tuning`.
pub fn run(folder: &Path) -> Result<()> {
    let tuning = folder.join("tuning");
    let sources = Sources {
        records: records(folder)?,
        tried: if tuning.exists() {
            records(&tuning)?
        } else {
            Vec::new()
        },
        paper: paper::read(folder)?,
    };
    rewrite(&folder.join("README.md"), &sources)?;
    let tried = tuning.join("README.md");
    if tried.exists() {
        rewrite(&tried, &sources)?;
    }
    Ok(())
}

fn rewrite(path: &Path, sources: &Sources) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let new = rewritten(&text, |name| table(name, sources))?;
    fs::write(path, new).with_context(|| format!("cannot write {}", path.display()))
}

/// The text with new tables.
fn rewritten(text: &str, table: impl Fn(&str) -> Result<String>) -> Result<String> {
    const END: &str = "<!-- end -->";
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!-- table: ") {
        let (name, after) = after
            .split_once(" -->")
            .context("the mark of a table does not end")?;
        let (_, after) = after
            .split_once(END)
            .with_context(|| format!("table {name}: no {END}"))?;
        let _ = write!(new, "{before}<!-- table: {name} -->\n{}{END}", table(name)?);
        rest = after;
    }
    Ok(new + rest)
}

/// One table. It is chosen here.
fn table(name: &str, sources: &Sources) -> Result<String> {
    let Sources {
        records,
        tried,
        paper,
    } = sources;
    Ok(match name {
        "iid" => accuracies(records, &paper.row, test_masks::iid()),
        "squares" => accuracies(records, &paper.row, test_masks::squares()),
        "unseen" => unseen(records),
        "nets-iid" => cross_trained::table(records, paper, TestedOn::Iid),
        "nets-squares" => cross_trained::table(records, paper, TestedOn::Squares),
        "precision" => paired_seeds::table(records, "precision-f32", "precision-tf32")?,
        "pairs" => pairs(records, &paper.pairs),
        "fashion-iid" => image_sets::table(records, "fashion-mnist", &[], test_masks::iid()),
        "fashion-squares" => {
            image_sets::table(records, "fashion-mnist", &[], test_masks::squares())
        }
        "norb-iid" => image_sets::table(records, "norb", &paper.norb, test_masks::iid()),
        "norb-squares" => image_sets::table(records, "norb", &paper.norb, test_masks::squares()),
        "eth80-iid" => image_sets::table(records, "eth80", &[], test_masks::iid()),
        "eth80-squares" => image_sets::table(records, "eth80", &[], test_masks::squares()),
        "speech-timit" => speech::table(records, "timit", &paper.speech),
        "speech-arctic" => speech::table(records, "arctic", &[]),
        "few-labels" => few_labels::table(records),
        "tuning" => tuning(tried, "d-base"),
        "tuning-shared" => tuning(tried, "ds-1"),
        "quick" => quick(records),
        "runs" => runs(records),
        _ => bail!("expected the name of a table in README.md, got '{name}'"),
    })
}

/// The paper's rows, each followed by ours of the same method, then ours that the paper does not
/// have.
fn accuracies(records: &[Record], papers: &[PaperRow], columns: Range<usize>) -> String {
    let heads: Vec<String> = test_masks::all()[columns.clone()]
        .iter()
        .map(test_masks::name)
        .collect();
    let mut text = markdown::head("", &heads);
    let records = compared(records, "mnist");
    for paper in papers {
        if let Some(numbers) = paper.accuracies.get(columns.clone()) {
            text += &paper_row(&paper.name, numbers);
        }
        text += &our_rows(&records, Some(&paper.name), &columns);
    }
    text + &our_rows(&records, None, &columns)
}

fn paper_row(name: &str, numbers: &[f64]) -> String {
    let cells: Vec<String> = numbers.iter().map(|x| format!("{x:.1}")).collect();
    markdown::row(&format!("{name}, paper"), &cells)
}

/// Our rows that belong to a row of the paper, or to none.
fn our_rows(records: &[Record], paper: Option<&str>, columns: &Range<usize>) -> String {
    let beside = |record: &&Record| record.plan["paper"].as_str() == paper;
    image_sets::our_rows(records.iter().filter(beside), columns)
}

/// Holes that no method was trained on, the best method first.
fn unseen(records: &[Record]) -> String {
    let heads = test_masks::names(&test_masks::UNSEEN.map(str::to_owned));
    let mut rows = Vec::new();
    for record in records
        .iter()
        .filter(|record| record.is_on("mnist") && record.columns == test_masks::UNSEEN)
    {
        for row in record.rows() {
            let spreads: Vec<Spread> = (0..heads.len())
                .map(|column| spread(&row.runs, column))
                .collect();
            let total: f64 = spreads.iter().map(|spread| spread.mean).sum();
            let name = record.title_of(&cross_trained::name(&row.name));
            let cells: Vec<String> = spreads.iter().map(Spread::to_string).collect();
            rows.push((total, markdown::row(&name, &cells)));
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rows: Vec<String> = rows.into_iter().map(|(_, row)| row).collect();
    markdown::head("", &heads) + &rows.concat()
}

/// Whether it has some of the columns, on MNIST; few labels have a table of their own.
fn is_part(record: &Record) -> bool {
    let known = test_masks::all_texts();
    let has_part = record.columns.iter().all(|column| known.contains(column));
    let has_few_labels = record.plan["options"]["labels"].is_array();
    has_part && !record.is_whole() && record.is_on("mnist") && !has_few_labels
}

/// Experiments with some of the columns.
fn quick(records: &[Record]) -> String {
    let mut text =
        "| experiment | test images | accuracy | seconds | machine |\n|---|---|---|---|---|\n"
            .to_owned();
    for record in records.iter().filter(|record| is_part(record)) {
        for run in &record.runs {
            text += &quick_row(record, run);
        }
    }
    text
}

fn quick_row(record: &Record, run: &Run) -> String {
    let columns = record.columns.iter().zip(&run.accuracies);
    let accuracies: Vec<String> = columns
        .map(|(column, accuracy)| format!("{column} {accuracy:.2}"))
        .collect();
    let seconds = run.train_seconds + run.test_seconds;
    let name = format!("`{}`{}", record.name, after_comma(&run.row));
    let cells = [
        run.test.to_string(),
        accuracies.join(", "),
        format!("{seconds:.0}"),
        run.machine.clone(),
    ];
    markdown::row(&name, &cells)
}

/// Two-digit tasks: the paper's rows, each followed by ours.
fn pairs(records: &[Record], papers: &[PaperRow]) -> String {
    let deleted = ["0", "25", "50", "75", "100", "125", "150"].map(str::to_owned);
    let columns = deleted.clone().map(|n| format!("nonzero:{n}"));
    let mut text = markdown::head("", &deleted);
    for paper in papers {
        text += &paper_row(&paper.name, &paper.accuracies);
        let ours =
            |record: &&Record| record.columns == columns && record.plan["paper"] == paper.name;
        for record in records.iter().filter(ours) {
            text += &pairs_row(record).unwrap_or_default();
        }
    }
    text
}

/// Means over pairs and repeats; none before the first run.
fn pairs_row(record: &Record) -> Option<String> {
    let means = digit_pairs::means_by_seed(&record.runs);
    let pairs = means.first()?.pairs;
    let part = if pairs == PAIRS {
        String::new()
    } else {
        format!(", {pairs} of the {PAIRS} pairs")
    };
    let runs: Vec<&Run> = means.iter().map(|mean| &mean.run).collect();
    let times = if runs.len() == 1 {
        "once".into()
    } else {
        format!("{} times", runs.len())
    };
    let cells: Vec<String> = (0..record.columns.len())
        .map(|column| spread(&runs, column).to_string())
        .collect();
    let name = format!("**{}** (`{}`), {times}{part}", record.title, record.name);
    Some(markdown::row(&name, &cells))
}

/// What was tried on held-out training images of MNIST, with the columns of one of them, the best first.
fn tuning(records: &[Record], like: &str) -> String {
    let of_set = || records.iter().filter(|record| record.is_on("mnist"));
    let Some(first) = of_set().find(|record| record.name == like) else {
        return String::new();
    };
    let heads: Vec<String> = ["mean".to_owned()]
        .into_iter()
        .chain(test_masks::names(&first.columns))
        .collect();
    let comparable = of_set().filter(|record| record.columns == first.columns);
    let mut runs: Vec<(&Record, &Run)> = comparable
        .flat_map(|record| record.runs.iter().map(move |run| (record, run)))
        .collect();
    runs.sort_by(|a, b| mean_accuracy(b.1).total_cmp(&mean_accuracy(a.1)));
    let mut text = markdown::head("", &heads);
    for (record, run) in runs {
        let mut cells = vec![format!("{:.2}", mean_accuracy(run))];
        cells.extend(run.accuracies.iter().map(|x| format!("{x:.1}")));
        let name = format!("{} (`{}`)", record.title_of(&run.row), record.name);
        text += &markdown::row(&name, &cells);
    }
    text
}

fn mean_accuracy(run: &Run) -> f64 {
    run.accuracies.iter().sum::<f64>() / run.accuracies.len() as f64
}

/// What to type, and how long it took.
fn runs(records: &[Record]) -> String {
    let mut text =
        "| command | seeds | seconds per run, training + testing | machine |\n|---|---|---|---|\n"
            .to_owned();
    for record in records {
        for machine in machines(&record.runs) {
            let on_it = |run: &&Run| run.machine == machine;
            let runs: Vec<Run> = record.runs.iter().filter(on_it).cloned().collect();
            let seeds: Vec<String> = seeds(&runs).iter().map(u64::to_string).collect();
            let train = mean_seconds(&runs, |run| run.train_seconds);
            let test = mean_seconds(&runs, |run| run.test_seconds);
            let cells = [
                seeds.join(" "),
                format!("{train:.0} + {test:.0}"),
                machine.to_owned(),
            ];
            text += &markdown::row(&format!("`{}`", record.command), &cells);
        }
    }
    text
}

/// The machines of some runs, each once.
fn machines(runs: &[Run]) -> BTreeSet<&str> {
    runs.iter().map(|run| run.machine.as_str()).collect()
}

fn mean_seconds(runs: &[Run], seconds: fn(&Run) -> f64) -> f64 {
    runs.iter().map(seconds).sum::<f64>() / runs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Method;
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

    #[test]
    fn methods_on_unseen_holes_the_best_first() {
        let unseen_columns = || test_masks::UNSEEN.map(str::to_owned).to_vec();
        let text = unseen(&[
            record("worse", unseen_columns(), &[70.0, 72.0]),
            record("better", unseen_columns(), &[80.0]),
            record("other", test_masks::all_texts(), &[90.0]),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[0].starts_with("| | stripes of 2 | stripes of 4 | half | rows .50 |"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("| BETTER | 80.00 |")
                && lines[3].starts_with("| WORSE | 71.00 ± 1.41 |"),
            "{text}"
        );
    }

    #[test]
    fn seconds_of_two_machines_are_not_mixed() {
        let mut record = record("some", vec!["clean".into()], &[80.0, 81.0, 82.0]);
        record.runs[2].machine = "a card".into();
        record.runs[2].train_seconds = 5.0;
        let text = runs(&[record]);
        assert!(
            text.ends_with(
                "| `run some` | 3 | 5 + 20 | a card |\n| `run some` | 1 2 | 100 + 20 | an abacus |\n"
            ),
            "{text}"
        );
    }

    /// From a folder with two results to a README.
    #[test]
    fn tables_come_from_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("results")).unwrap();
        let all = test_masks::all_texts();
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
