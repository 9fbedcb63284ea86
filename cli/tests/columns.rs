//! What columns hold, as options and plans say it: bounds, whole numbers, steps in time, dates.

mod program;

use program::Folder;

/// A share from 0 to 100 that is often at its bounds, a price, and a count; every fourth cell is missing.
fn trained() -> Folder {
    let folder = Folder::new();
    let row = |i: usize| {
        let share = ((i * 37 % 141) as f64 - 20.0).clamp(0.0, 100.0);
        let price = (2.0 + (i * 29 % 50) as f64 / 20.0).exp();
        let cells = [share.to_string(), price.to_string(), (i % 4).to_string()];
        let hole = i % 4;
        let cell = |(at, cell): (usize, &String)| if at == hole { "".into() } else { cell.clone() };
        let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
        format!("{}\n", cells.join(","))
    };
    let rows: String = (0..120).map(row).collect();
    folder.write("rooms.csv", &format!("share,price,beds\n{rows}"));
    let bounds = "--bounds share=0:100 --bounds price=0: --bounds beds=0: --whole beds";
    let line = format!("train --data rooms.csv {bounds} --steps 30 --out m.sumout");
    let train = folder.run(&line);
    assert_eq!((train.code, &*train.stderr), (0, ""));
    folder
}

/// Every cell can occur.
fn check(text: &str) {
    for line in text.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        assert!((0.0..=100.0).contains(&cells[0]), "{line}");
        assert!(
            cells[1] >= 0.0 && cells[2] >= 0.0 && cells[2].fract() == 0.0,
            "{line}"
        );
    }
}

#[test]
fn numbers_stay_within_their_bounds() {
    let folder = trained();
    for how in ["mean", "median", "mode", "sample"] {
        check(
            &folder
                .run(&format!("impute m.sumout --data rooms.csv --how {how}"))
                .stdout,
        );
    }
    check(&folder.run("sample m.sumout --count 500").stdout);
    let shown = folder.run("inspect m.sumout").stdout;
    assert!(shown.contains("numbers from 0 to 100, around"), "{shown}");
    assert!(shown.contains("whole numbers from 0, around"), "{shown}");
    folder.write("far.csv", "share,price,beds\n50,3,1\n50,-3,1\n");
    let wrong = folder.run("evaluate m.sumout --data far.csv");
    let expected = "line 3, column 'price': expected numbers from 0, got '-3'";
    assert!(
        wrong.code == 2 && wrong.stderr.contains(expected),
        "{}",
        wrong.stderr
    );
}

#[test]
fn bounds_that_cannot_be() {
    let folder = trained();
    for (options, expected) in [
        (
            "--bounds share=0",
            "--bounds share=0: expected a column with its smallest",
        ),
        (
            "--bounds share=9:1",
            "--bounds share=9:1: expected a column with its smallest",
        ),
        (
            "--bounds shore=0:1",
            "--bounds: expected a column of the data (share, price, beds), got 'shore'",
        ),
        (
            "--bounds share=10:",
            "error: rooms.csv row 24, column 'share': expected numbers from 10, got 0",
        ),
        (
            "--whole price",
            "column 'price': expected whole numbers, got",
        ),
        (
            "--categorical beds --whole beds",
            "got 'beds', which holds categories",
        ),
    ] {
        let line = format!("train --data rooms.csv --steps 3 --out n.sumout {options}");
        let refused = folder.run(&line);
        assert!(
            refused.code == 2 && refused.stderr.contains(expected),
            "{}",
            refused.stderr
        );
    }
}

/// Columns as steps in time: a model of them reads and fills tables like any other.
#[test]
fn columns_are_steps_in_time() {
    let folder = Folder::new();
    let cell = |row: usize, step: usize| ((row * 7 + step) as f64 * 0.4).sin() + row as f64 % 3.0;
    let row = |row: usize| {
        let cells: Vec<String> = (0..6).map(|step| cell(row, step).to_string()).collect();
        format!("{},{}\n", cells.join(","), ["calm", "wild"][row % 2])
    };
    let rows: String = (0..60).map(row).collect();
    folder.write("waves.csv", &format!("t1,t2,t3,t4,t5,t6,mood\n{rows}"));
    folder.write(
        "plan.toml",
        "[sequence]\ncomponents = 4\n[settings]\nsteps = 20\n",
    );
    let train = "train plan.toml --data waves.csv --target mood --out m.sumout";
    let run = folder.run(train);
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder.write("gap.csv", "t6,t1,t3,t4,t5,t2\n1,0.5,,,1,0.7\n");
    let filled = folder.run("impute m.sumout --data gap.csv").stdout;
    let cells: Vec<&str> = filled.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((cells[0], cells[1], cells[5]), ("1", "0.5", "0.7"));
    assert!(
        cells.iter().all(|cell| cell.parse::<f64>().is_ok()),
        "{filled}"
    );
    let classes = folder.run("predict m.sumout --data gap.csv").stdout;
    assert!(classes.contains("calm"), "{classes}");
    folder.write("plan.toml", "[sequence]\nchannels = 4\n");
    let refused = folder.run(train).stderr;
    let expected = "expected columns for whole steps of [sequence] channels, got 6 columns";
    assert!(refused.contains(expected), "{refused}");
}

/// Dates are days to the model, and dates again to people: in training, in questions and in answers.
#[test]
fn dates_are_read_and_written() {
    let folder = Folder::new();
    let row = |i: usize| {
        let day = if i % 7 == 3 {
            String::new()
        } else {
            format!("2026-{:02}-{:02}", 1 + i % 6, 1 + i % 28)
        };
        let hour = format!("2026-03-{:02}T{:02}:30:00Z", 1 + i % 9, i % 24);
        format!(
            "{day},{hour},{},{}\n",
            10 * (1 + i % 6) + i % 5,
            ["no", "yes"][i % 2]
        )
    };
    let rows: String = (0..80).map(row).collect();
    folder.write("visits.csv", &format!("day,hour,visitors,rain\n{rows}"));
    let train = folder.run("train --data visits.csv --target rain --steps 30 --out m.sumout");
    assert_eq!(
        (train.code, &*train.stderr),
        (0, ""),
        "no warning: they are no words"
    );
    let shown = folder.run("inspect m.sumout").stdout;
    assert!(shown.contains("dates around 2026-"), "{shown}");
    folder.write(
        "new.csv",
        "day,hour,visitors\n,2026-03-02T10:30:00Z,31\n2026-02-30x,,5\n",
    );
    let wrong = folder.run("predict m.sumout --data new.csv");
    let expected = "line 3, column 'day': expected a date such as 2026-01-31 or 2026-01-31T14:05:00, got '2026-02-30x'";
    assert!(
        wrong.code == 2 && wrong.stderr.contains(expected),
        "{}",
        wrong.stderr
    );
    folder.write(
        "new.csv",
        "day,hour,visitors\n,2026-03-02T10:30:00Z,31\n2026-02-03,NA,5\n",
    );
    assert_eq!(folder.run("predict m.sumout --data new.csv").code, 0);
    for how in ["mean", "median", "mode", "sample"] {
        let filled = folder
            .run(&format!("impute m.sumout --data new.csv --how {how}"))
            .stdout;
        let cells: Vec<Vec<&str>> = filled
            .lines()
            .map(|line| line.split(',').collect())
            .collect();
        assert_eq!(
            (cells[1][1], cells[2][0]),
            ("2026-03-02T10:30:00Z", "2026-02-03"),
            "as written"
        );
        assert!(
            cells[1][0].len() == 10 && cells[1][0].starts_with("202"),
            "{filled}"
        );
        assert!(
            cells[2][1].len() == 19 && cells[2][1].starts_with("2026-"),
            "{filled}"
        );
    }
    let drawn = folder.run("sample m.sumout --count 3 --out new.jsonl");
    assert_eq!(drawn.code, 0, "{}", drawn.stderr);
    assert!(
        folder.read("new.jsonl").contains("\"day\":\"2026-"),
        "{}",
        folder.read("new.jsonl")
    );
    let words = "train --data visits.csv --categorical day,hour --steps 3 --out w.sumout";
    assert!(!folder.run(words).stdout.is_empty());
    assert!(
        folder.run("inspect w.sumout").stdout.contains("2026-01-"),
        "categories if asked for"
    );
}

/// With one or two rows of every class none is held out, and no loss of held-out rows is told.
#[test]
fn no_trial_without_held_out_rows() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},{},k{}\n", i * 37 % 101, i * 17 % 89, i % 286);
    let rows: String = (0..430).map(row).collect();
    folder.write("many.csv", &format!("x,y,c\n{rows}"));
    let run = folder.run("train --data many.csv --target c --steps 3 --out many.sumout");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(!run.stdout.contains("held-out"), "{}", run.stdout);
    assert!(run.stdout.contains("step     10 of 10"), "{}", run.stdout);
}
