//! Rows that take more memory than training may have: a sample starts the model, all rows teach it.

mod program;

use program::Folder;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};

/// Two kinds of flowers: numbers, a colour and holes; the last kind has few rows, all at the end.
fn flowers(rows: usize) -> String {
    let mut text = String::from("length,width,colour,kind\n");
    for row in 0..rows {
        let kind = if row + 12 > rows { 2 } else { row % 2 };
        let length = kind as f64 * 2.0 + (row * 7919 % 1000) as f64 / 500.0;
        let width = 5.0 - kind as f64 + (row * 104_729 % 1000) as f64 / 700.0;
        let colour = ["red", "blue", "white"][(kind + row / 5 % 2) % 3];
        match row % 11 {
            3 => writeln!(text, ",{width},{colour},k{kind}"),
            7 => writeln!(text, "{length},{width},,k{kind}"),
            9 => writeln!(text, "{length},{width},{colour},"),
            _ => writeln!(text, "{length},{width},{colour},k{kind}"),
        }
        .unwrap();
    }
    text
}

const TRAIN: &str =
    "train --data f.csv --target kind --steps 30 --trees 1 --memory 1MB --checkpoint-every 1";

#[test]
fn a_table_larger_than_memory_is_learned_and_resumed_to_the_same_bits() {
    let folder = Folder::new();
    folder.write("f.csv", &flowers(62_000));
    let whole = folder.run(&format!("{TRAIN} --out whole.sumout"));
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let said = &whole.stdout;
    assert!(
        said.contains("62000 rows, of which a sample starts the model"),
        "{said}"
    );
    assert!(said.contains("all rows   62000 rows, 40 steps"), "{said}");
    assert!(said.contains("3 classes: k0 ("), "{said}");
    let score = folder.run("evaluate whole.sumout --data f.csv");
    assert!(
        score.stdout.contains("accuracy"),
        "{}{}",
        score.stdout,
        score.stderr
    );

    let mut child = folder
        .command(&format!("{TRAIN} --out a.sumout"))
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut steps = lines
        .map_while(Result::ok)
        .filter(|line| line.contains("of 40 "));
    assert!(steps.next().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let resumed = "train --resume a.checkpoint.sumout --data f.csv --target kind --out a.sumout";
    let resumed = folder.run(resumed);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let said = &resumed.stdout;
    assert!(
        said.starts_with("all rows   62000 rows, 3") && !said.contains(" trial"),
        "{said}"
    );
    let model = |name: &str| fs::read(folder.path(name)).unwrap();
    assert!(model("a.sumout") == model("whole.sumout"));
    assert!(!folder.path("a.checkpoint.sumout").exists());
}

#[test]
fn what_needs_all_rows_says_so() {
    let folder = Folder::new();
    folder.write("f.csv", &flowers(30_000));
    for option in ["--validation 0.1", "--target length --regression"] {
        let run = folder.run(&format!(
            "train --data f.csv --memory 1MB --out a.sumout {option}"
        ));
        assert!(
            run.code != 0 && run.stderr.contains("fit into a quarter of --memory"),
            "{}",
            run.stderr
        );
    }
    let run = folder.run("train --data f.csv --memory lots --out a.sumout");
    assert!(
        run.stderr.contains("expected a size such as 2GB"),
        "{}",
        run.stderr
    );
}
