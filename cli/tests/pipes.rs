//! Standard input and output, named pipes, and pipes that close. This program is its own other end.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use sumout_cli::terminal::user_error::is_closed_pipe;
use sumout_data::cells::{Field, FieldKind};
use sumout_data::layout::{Layout, ReadOptions, Table};
use sumout_data::output::{Output, OutputFormat};

/// Says which part the other end plays.
const PART: &str = "SUMOUT_TEST_PART";

fn read(input: &str, for_model: bool) -> sumout_data::Result<Table> {
    let data = sumout_data::open(input, &ReadOptions::default())?;
    let rows = if for_model {
        data.fitted_to(&Layout::unnamed(2, None))?
    } else {
        data.rows()?
    };
    rows.collect_table()
}

fn text(table: &Table) -> String {
    format!("{} rows {:?}", table.rows(), table.values)
}

/// The other end: not a test of its own, so without a part to play it does nothing.
#[test]
fn other_end() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let said = match part.as_str() {
        "read" | "read for a model" => {
            read("-", part != "read").map_or_else(|error| error.to_string(), |table| text(&table))
        }
        _ => {
            std::io::stdin().read_line(&mut String::new()).unwrap(); // until the pipe is as it should be
            let fields = vec![
                Field::new("a", FieldKind::Single),
                Field::new("b", FieldKind::Single),
            ];
            let mut out = Output::create("-", OutputFormat::Csv, fields, None).unwrap();
            let written = (0..100_000).try_for_each(|_| out.numbers(&[1.5, f32::NAN]));
            let written = written.and_then(|()| out.finish());
            format!(
                "closed pipe: {}",
                written.is_err_and(|error| is_closed_pipe(&error.into()))
            )
        }
    };
    writeln!(std::io::stderr(), "<{said}>").unwrap();
}

/// Starts the other end, feeds it, and returns what it says.
fn ask(part: &str, input: &str, read_all: bool) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "other_end", "--nocapture"])
        .env(PART, part)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if !read_all {
        // Only once the test harness over there has said its own piece.
        let out = BufReader::new(child.stdout.take().unwrap());
        out.lines()
            .map_while(Result::ok)
            .find(|line| line.starts_with("running"))
            .unwrap();
    }
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    said.split(['<', '>']).nth(1).unwrap_or(&said).to_owned()
}

#[test]
fn standard_input_is_csv_or_json_lines() {
    for part in ["read", "read for a model"] {
        assert_eq!(
            ask(part, "a,b\n1,2\n3,\n", true),
            "2 rows [1.0, 2.0, 3.0, NaN]"
        );
        assert_eq!(
            ask(part, "\n[1, 2]\n[3, null]\n", true),
            "2 rows [1.0, 2.0, 3.0, NaN]"
        );
        assert_eq!(
            ask(part, "a,b\n1,2\n3\n", true),
            "standard input line 3: expected 2 cells, as in the first line, got 1"
        );
    }
    assert_eq!(
        ask("read", "{\"a\": 1}\n{\"b\": 2}\n", true),
        "2 rows [1.0, NaN, NaN, 2.0]"
    );
    assert_eq!(
        ask("read for a model", "{\"x1\": 1}\n{\"x0\": 2}\n", true),
        "2 rows [NaN, 1.0, 2.0, NaN]"
    );
}

#[test]
fn a_closed_pipe_is_told_from_an_error() {
    assert_eq!(ask("write", "", true), "closed pipe: false");
    assert_eq!(ask("write", "", false), "closed pipe: true");
}

#[test]
fn named_pipes_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    for for_model in [false, true] {
        let path = folder.path().join(format!("pipe-{for_model}"));
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let writer = path.clone();
        let feeder = std::thread::spawn(move || fs::write(writer, "a,b\n1,2\n3,\n").unwrap());
        let table = read_file(&path, for_model);
        feeder.join().unwrap();
        assert_eq!(text(&table), "2 rows [1.0, 2.0, 3.0, NaN]");
    }
}

fn read_file(path: &Path, for_model: bool) -> Table {
    read(path.to_str().unwrap(), for_model).unwrap()
}

/// `sumout train … | head -1` still makes the model: what training is for is the file.
#[test]
fn a_closed_pipe_does_not_stop_training() {
    let folder = tempfile_folder("closed_pipe_training");
    let rows: String = (0..40)
        .map(|i| format!("{},{}\n", i % 7, ["a", "b"][i % 2]))
        .collect();
    fs::write(folder.join("d.csv"), format!("x,y\n{rows}")).unwrap();
    let model = folder.join("m.sumout");
    let mut child = Command::new(env!("CARGO_BIN_EXE_sumout"))
        .args(["train", "--target", "y", "--steps", "50", "--data"])
        .arg(folder.join("d.csv"))
        .arg("--out")
        .arg(&model)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take()); // the reader is gone before the first line
    assert!(child.wait().unwrap().success());
    assert!(model.exists());
    fs::remove_dir_all(folder).unwrap();
}

fn tempfile_folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("sumout-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}
