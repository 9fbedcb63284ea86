//! The demo, in small: the same seed prints the same table, and the page is whole, self-contained and says the same.

mod html;

use html::unbalanced;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn demo(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sumout"));
    command
        .current_dir(folder)
        .args(["demo", "--steps", "3", "--images", "30"])
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn same_seed_same_table_and_a_page_that_says_the_same() {
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let first = demo(
        folders[0].path(),
        &["--threads", "1", "--picture", "strip.png"],
    );
    assert!(first.status.success(), "{}", text(&first.stderr));
    let again = demo(folders[1].path(), &["--threads", "3"]);
    let other = demo(folders[2].path(), &["--seed", "2"]);
    assert_eq!(text(&first.stdout), text(&again.stdout));
    assert_ne!(first.stdout, other.stdout);

    let page = std::fs::read_to_string(folders[0].path().join("sumout-demo/report.html")).unwrap();
    let same = std::fs::read_to_string(folders[1].path().join("sumout-demo/report.html")).unwrap();
    assert!(page == same, "the page is a function of the seed too");
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    for outside in [
        "http:", "https:", "//", "<script", "<link", "@import", "url(", "<iframe",
    ] {
        let found = page
            .replace("base64,", "base64,\n")
            .lines()
            .any(|line| !is_base64(line) && line.contains(outside));
        assert!(!found, "the page has {outside}");
    }
    assert!(page.matches("src=").count() > 200);
    assert_eq!(
        page.matches("src=").count(),
        page.matches("src=\"data:image/png;base64,").count()
    );

    let table = text(&first.stdout);
    let numbers: Vec<&str> = table
        .split_whitespace()
        .filter(|word| is_accuracy(word))
        .collect();
    assert_eq!(numbers.len(), 16 * 3, "{table}");
    for number in &numbers {
        assert!(
            page.contains(&format!(">{number}</td>")),
            "{number} is in the table and not on the page"
        );
    }
    let strip = std::fs::read(folders[0].path().join("strip.png")).unwrap();
    assert!(strip.starts_with(b"\x89PNG") && strip.len() < 200_000);
}

/// Such as 97.3.
fn is_accuracy(word: &str) -> bool {
    word.split_once('.')
        .is_some_and(|(whole, part)| !whole.is_empty() && part.len() == 1)
        && word.parse::<f64>().is_ok()
}

/// The rest of a picture, up to the end of its tag.
fn is_base64(line: &str) -> bool {
    let data = line.split('"').next().unwrap_or(line);
    data.len() > 40
        && data
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c))
}

#[test]
fn the_model_of_the_demo_answers_as_the_table_does() {
    let folder = tempfile::tempdir().unwrap();
    let table = text(&demo(folder.path(), &[]).stdout);
    let model =
        sumout_data::model_files::load(&folder.path().join("sumout-demo/model.sumout")).unwrap();
    let request = sumout_data::layout::ReadOptions {
        split: sumout_data::layout::Split::Test,
        ..Default::default()
    };
    let test = sumout_data::read("digits", &request).unwrap();
    let (rows, labels) = (&test.values[..30 * 784], test.labels.unwrap());
    let mut predictor = sumout::Predictor::new(model).unwrap();
    let scores = predictor
        .log_joint(
            predictor.model().rows(rows).unwrap(),
            &sumout::queries::shifts(1),
        )
        .unwrap();
    let answers = scores.argmax();
    let right = answers
        .iter()
        .zip(&labels)
        .filter(|(answer, label)| **answer as i64 == **label)
        .count();
    let line = table
        .lines()
        .find(|line| line.starts_with("Sumout"))
        .unwrap();
    assert_eq!(
        line.split_whitespace().nth(1),
        Some(format!("{:.1}", 100.0 * right as f64 / 30.0).as_str()),
        "{table}"
    );
}

#[test]
fn a_folder_that_cannot_be_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "a file").unwrap();
    let refused = demo(folder.path(), &["--out", "taken"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert_eq!(
        text(&refused.stderr),
        "error: cannot make the folder taken: there is a file of that name\n"
    );
    assert_eq!(
        std::fs::read_to_string(folder.path().join("taken")).unwrap(),
        "a file"
    );
}

#[test]
fn a_closed_pipe_is_no_error_and_the_page_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sumout"));
    command
        .current_dir(folder.path())
        .args(["demo", "--steps", "1", "--images", "10"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(folder.path().join("sumout-demo/report.html").is_file());
}
