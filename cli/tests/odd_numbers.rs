//! Numbers that lie: what every command does with them. The table of `docs/reliability.md` is made of these snapshots.

mod program;

use program::{Folder, rounded};

/// Rows of an odd table: a name, its cells by row, and the options of `train` that it needs.
struct Odd {
    name: &'static str,
    cell: fn(usize) -> String,
    options: &'static str,
}

const CLASSES: &str = "--target y";

fn odd(name: &'static str, options: &'static str, cell: fn(usize) -> String) -> Odd {
    Odd {
        name,
        cell,
        options,
    }
}

/// Every table has a column `x` of ordinary numbers; the odd ones are in `odd`.
fn tables() -> Vec<Odd> {
    vec![
        odd("NaN", CLASSES, |i| of(i, ["nan", "1"])),
        odd("infinity", CLASSES, |i| of(i, ["inf", "1"])),
        odd("minus infinity", CLASSES, |i| of(i, ["-Infinity", "1"])),
        odd("subnormal", CLASSES, |i| of(i, ["1e-40", "2e-40"])),
        odd("smaller than any", CLASSES, |i| of(i, ["1e-60", "2e-60"])),
        odd("1e38", CLASSES, |i| of(i, ["1e38", "-2e38"])),
        odd("1e39", CLASSES, |i| of(i, ["1e39", "1"])),
        odd("one value", CLASSES, |_| "7".into()),
        odd("one value 1e38", CLASSES, |_| "1e38".into()),
        odd("2^53", CLASSES, |i| {
            of(i, ["9007199254740992", "9007199254740993"])
        }),
        odd("dates as numbers", CLASSES, |i| {
            format!("2026{:02}{:02}", i % 12 + 1, i % 28 + 1)
        }),
        odd("nothing", CLASSES, |_| String::new()),
    ]
}

fn of(i: usize, [even, odd]: [&str; 2]) -> String {
    [even, odd][i % 2].to_owned()
}

/// 40 rows of a table; the label of a row is its number modulo 2.
fn text(table: &Odd) -> String {
    let mut text = "x,odd,y\n".to_owned();
    for i in 0..40 {
        let x = (i * 7 % 11) as f64 / 2.0;
        text.push_str(&format!("{x},{},{}\n", (table.cell)(i), ["a", "b"][i % 2]));
    }
    text
}

/// What a command says: its errors and warnings, or that all numbers that it wrote are finite.
fn said(folder: &Folder, line: &str) -> String {
    let run = folder.run(line);
    assert!(!run.stderr.contains("panicked"), "{line}: {}", run.stderr);
    let numbers = run.stdout.split([',', '\n', ' ', '\t']);
    let strange = |word: &&str| {
        let word = word.to_ascii_lowercase();
        word == "nan" || word.ends_with("inf")
    };
    let strange: Vec<&str> = numbers.filter(strange).collect();
    let command = line.split(' ').next().unwrap();
    let answer = match (run.code, strange.first()) {
        (0, None) => "answers".to_owned(),
        (0, Some(word)) => format!("answers with {word}"),
        (code, _) => format!("exit code {code}"),
    };
    let lines = run.stderr.lines();
    let lines: Vec<&str> = lines
        .filter(|line| !line.starts_with("time left"))
        .collect();
    let indented = lines.join("\n").trim_end().replace('\n', "\n    ");
    let words = if indented.is_empty() {
        String::new()
    } else {
        format!("\n    {indented}")
    };
    format!("  {command}: {answer}{}\n", rounded(&words))
}

/// Trains on a table, then asks all questions about it, also where it was trained on an ordinary one.
fn shown(table: &Odd) -> String {
    let folder = Folder::new();
    folder.write("odd.csv", &text(table));
    let usual = Odd {
        cell: |i| (i % 5).to_string(),
        ..odd("", CLASSES, |_| String::new())
    };
    folder.write("usual.csv", &text(&usual));
    let train = |data: &str| {
        format!(
            "train --data {data}.csv {} --steps 20 --trees 1 --out {data}.sumout",
            table.options
        )
    };
    assert_eq!(folder.run(&train("usual")).code, 0);
    let mut shown = format!("{}\n{}", table.name, said(&folder, &train("odd")));
    for model in ["odd", "usual"] {
        if !folder.path(&format!("{model}.sumout")).exists() {
            continue;
        }
        shown.push_str(&format!(" for the model of the {model} table\n"));
        for line in [
            "predict M",
            "impute M",
            "evaluate M --missing iid:0.5",
            "sample M --count 5",
        ] {
            let line = line.replace('M', &format!("{model}.sumout"));
            let data = if line.starts_with("sample") {
                ""
            } else {
                " --data odd.csv"
            };
            shown.push_str(&said(&folder, &format!("{line}{data}")));
        }
    }
    shown
}

#[test]
fn numbers_that_lie() {
    let shown: Vec<String> = tables().iter().map(shown).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// Tables whose rows or labels are odd.
#[test]
fn rows_and_labels_that_lie() {
    let folder = Folder::new();
    let row = |i: usize, y: &str| format!("{},{},{y}\n", i % 7, i * i % 11);
    let table = |label: fn(usize) -> String| {
        (0..40).fold("x,z,y\n".to_owned(), |text, i| text + &row(i, &label(i)))
    };
    let tables = [
        (
            "classes of one row",
            table(|i| format!("c{}", if i < 3 { i } else { 9 })),
        ),
        ("a class for every row", table(|i| format!("c{i}"))),
        ("all labels missing", table(|_| String::new())),
        ("one class", table(|_| "a".into())),
        (
            "all rows equal",
            "x,z,y\n".to_owned() + &"1,2,a\n1,2,b\n".repeat(20),
        ),
        ("one row", "x,z,y\n1,2,a\n".into()),
        (
            "nothing but holes",
            "x,z,y\n".to_owned() + &",,a\n,,b\n".repeat(20),
        ),
    ];
    let mut shown = String::new();
    for (name, text) in tables {
        folder.write("odd.csv", &text);
        shown.push_str(&format!("{name}\n"));
        let train = "train --data odd.csv --target y --steps 20 --trees 1 --out odd.sumout";
        for line in [
            train,
            "predict odd.sumout --data odd.csv",
            "impute odd.sumout --data odd.csv",
            "evaluate odd.sumout --data odd.csv",
            "sample odd.sumout --count 5",
        ] {
            if line == train || folder.path("odd.sumout").exists() {
                shown.push_str(&said(&folder, line));
            }
        }
        let _ = std::fs::remove_file(folder.path("odd.sumout"));
        shown.push('\n');
    }
    insta::assert_snapshot!(shown);
}

/// Many classes and wide rows: they take time in proportion, and answers add up.
#[test]
fn many_classes_and_wide_rows() {
    let folder = Folder::new();
    let classes = (0..6000).fold("x,y\n".to_owned(), |text, i| {
        text + &format!("{},c{}\n", i % 97, i % 3000)
    });
    folder.write("classes.csv", &classes);
    let mut shown = said(
        &folder,
        "train --data classes.csv --target y --steps 2 --trees 1 --out classes.sumout",
    );
    folder.write("few.csv", "x\n3\n\n");
    shown.push_str(&said(
        &folder,
        "predict classes.sumout --data few.csv --out few.out.csv",
    ));
    let names: Vec<String> = (0..3_000).map(|i| format!("n{i}")).collect();
    let row = |i: usize| {
        (0..3_000)
            .map(|j| ((i * 31 + j * 7) % 13).to_string())
            .collect::<Vec<_>>()
            .join(",")
            + "\n"
    };
    let wide = format!(
        "{}\n{}",
        names.join(","),
        (0..8).map(row).collect::<String>()
    );
    folder.write("wide.csv", &wide);
    shown.push_str(&said(
        &folder,
        "train --data wide.csv --steps 2 --trees 1 --out wide.sumout",
    ));
    shown.push_str(&said(
        &folder,
        "predict wide.sumout --data wide.csv --out wide.out.csv",
    ));
    insta::assert_snapshot!(shown);
}
