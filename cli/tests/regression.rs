//! A target that is a number: training, predictions with their quantiles, evaluation.

mod program;

use program::Folder;

/// Houses: the price follows from the size and the district, some cells are missing.
fn houses(rows: usize, first: usize) -> String {
    let mut text = "size,price,district\n".to_owned();
    for i in first..first + rows {
        let size = 40.0 + (i * 37 % 101) as f64;
        let district = ["centre", "port"][i * 13 % 7 % 2];
        let factor = if district == "port" { 2.0 } else { 3.0 };
        let price = factor * size + (i * 29 % 23) as f64 - 11.0;
        let cell = |hole: bool, value: String| if hole { String::new() } else { value };
        let (size, district) = (
            cell(i % 7 == 3, format!("{size}")),
            cell(i % 9 == 4, district.to_owned()),
        );
        let price = cell(i % 31 == 30, format!("{price:.1}"));
        text.push_str(&format!("{size},{price},{district}\n"));
    }
    text
}

const TRAIN: &str = "train --data houses.csv --target price --regression --steps 60 --trees 1";

fn trained() -> Folder {
    let folder = Folder::new();
    folder.write("houses.csv", &houses(120, 0));
    folder.write("new.csv", &houses(40, 500));
    let run = folder.run(&format!("{TRAIN} --out houses.sumout"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

fn transcript(folder: &Folder, lines: &[&str]) -> String {
    lines.iter().map(|line| folder.show(line)).collect()
}

#[test]
fn a_number_is_predicted_and_evaluated() {
    let folder = trained();
    folder.write(
        "asked.csv",
        "district,size,id\nport,100,a\n,,b\ncentre,,c\n",
    );
    insta::assert_snapshot!(transcript(
        &folder,
        &[
            &format!("{TRAIN} --out again.sumout"),
            "predict houses.sumout --data asked.csv",
            "predict houses.sumout --data asked.csv --keep id --quantiles 0.1,0.9",
            "evaluate houses.sumout --data new.csv --missing clean --missing iid:0.5",
            "evaluate houses.sumout --data new.csv --target price --json",
            "evaluate houses.sumout --data houses.csv",
        ]
    ));
    let seen = folder.run("inspect houses.sumout").stdout;
    assert!(seen.contains("\npredicts the number\n  price\n"), "{seen}");
}

/// What the table says of the target does not matter, nor whether it is there.
#[test]
fn the_target_is_not_looked_at() {
    let folder = trained();
    folder.write("with.csv", "size,price,district\n100,1,port\n");
    folder.write("without.csv", "size,district\n100,port\n");
    folder.write("row.jsonl", "{\"size\": 100, \"district\": \"port\"}\n");
    let of = |data: &str| {
        let run = folder.run(&format!("predict houses.sumout --data {data}"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    assert_eq!(of("with.csv"), of("without.csv"));
    assert_eq!(of("with.csv --target price"), of("without.csv"));
    assert_eq!(of("row.jsonl"), of("without.csv"));
    let cells = of("with.csv");
    let mean: f64 = cells
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!((mean - 200.0).abs() < 40.0, "{cells}");
}

#[test]
fn mistakes_about_numbers_are_said() {
    let folder = trained();
    folder.write("flowers.csv", &program::flowers(90));
    folder.write("lone.csv", "y\n1\n2\n");
    let run = folder.run("train --data flowers.csv --target species --steps 2 --out c.sumout");
    assert_eq!(run.code, 0, "{}", run.stderr);
    insta::assert_snapshot!(
        [
            "train --data flowers.csv --target species --regression --out a.sumout",
            "train --data flowers.csv --target prize --regression --out a.sumout",
            "train --data lone.csv --target y --regression --out a.sumout",
            "train --data flowers.csv --regression --out a.sumout",
            "train mnist --data flowers.csv --target width --regression --out a.sumout",
            "predict c.sumout --data flowers.csv --quantiles 0.5",
            "predict houses.sumout --data new.csv --quantiles 5",
            "predict houses.sumout --data flowers.csv",
            "evaluate houses.sumout houses.sumout --data new.csv",
            "evaluate houses.sumout --data new.csv --per-class",
        ]
        .map(|line| folder.refuse(line))
        .concat()
    );
}

/// A date is predicted as a date, in every format that holds text; its standard deviation is in days.
#[test]
fn a_date_is_predicted_as_a_date() {
    let folder = Folder::new();
    let day = |i: usize| format!("2026-{:02}-{:02}", 1 + i / 28 % 3, 1 + i % 28);
    let row = |i: usize| format!("{i},{},{}\n", i % 5, day(i));
    let rows: String = (0..84).map(row).collect();
    folder.write("days.csv", &format!("x,t,d\n{rows}"));
    let run = folder
        .run("train --data days.csv --target d --regression --steps 60 --trees 1 --out d.sumout");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let described = "d, dates in all rows, mean 2026-02-";
    assert!(run.stdout.contains(described), "{}", run.stdout);
    let is_day = |text: &str| text.len() == 10 && text.starts_with("202");
    let table = folder.run("predict d.sumout --data days.csv").stdout;
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert!(is_day(cells[0]), "{line}");
        assert!(cells[1].parse::<f64>().is_ok(), "{line}");
        assert!(cells[2..].iter().all(|cell| is_day(cell)), "{line}");
    }
    let run = folder.run("predict d.sumout --data days.csv --quantiles 0.5 --out d.jsonl");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in folder.read("d.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(row["mean"].as_str().is_some_and(is_day), "{line}");
        assert!(row["q50"].as_str().is_some_and(is_day), "{line}");
        assert!(row["sd"].is_number(), "{line}");
    }
}
