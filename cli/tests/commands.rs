//! Every command as a user types it: what it prints, what it writes, and how it ends.

mod program;

use program::Folder;
use std::fs;

/// A folder with a table of flowers and a model trained on it.
fn flowers() -> Folder {
    let folder = Folder::new();
    folder.write("flowers.csv", &program::flowers(90));
    let train =
        folder.run("train --data flowers.csv --target species --steps 200 --out flowers.sumout");
    assert_eq!(train.code, 0, "{}", train.stderr);
    folder
}

/// What a terminal shows for all these lines.
fn transcript(folder: &Folder, lines: &[&str]) -> String {
    lines.iter().map(|line| folder.show(line)).collect()
}

#[test]
fn train_prints_the_same_for_the_same_seed() {
    let folder = Folder::new();
    folder.write("flowers.csv", &program::flowers(90));
    let command =
        "train --data flowers.csv --target species --steps 30 --batch 32 --seed 7 --out a.sumout";
    let first = folder.run(command);
    let bytes = fs::read(folder.path("a.sumout")).unwrap();
    let again = folder.run(&format!("{command} --threads 1"));
    assert_eq!(first.stdout, again.stdout);
    assert!(bytes == fs::read(folder.path("a.sumout")).unwrap());
    assert_eq!(first.stderr, "", "the bar is for terminals");
    assert_eq!(folder.names(), ["a.sumout", "flowers.csv"]);
}

#[test]
fn train() {
    let folder = Folder::new();
    folder.write("flowers.csv", &program::flowers(90));
    folder.write(
        "plan.toml",
        "[columns]\ncomponents = 2\nchannels = [3]\n[settings]\nsteps = 10\nvalidate_every = 5\n",
    );
    insta::assert_snapshot!(transcript(
        &folder,
        &[
            "train --data flowers.csv --target species --steps 30 --batch 32 --out a.sumout",
            "train plan.toml --data flowers.csv --target species --validation 0.2 --out a.sumout",
            "train plan.toml --data flowers.csv --validation flowers.csv --ignore species --out a.sumout",
            "train plan.toml --data flowers.csv --target species --categorical width --out a.sumout",
        ]
    ));
}

/// Rows without a label are counted, and so are the rows of every class.
#[test]
fn train_counts_labels() {
    let folder = Folder::new();
    let label = |i: usize| match i {
        0..12 => "no",
        12..20 => "yes",
        _ => "",
    };
    let rows: String = (0..200)
        .map(|i| format!("{},{}\n", i * 7 % 11, label(i)))
        .collect();
    folder.write("few.csv", &format!("x,y\n{rows}"));
    let run = folder.run("train --data few.csv --target y --steps 5 --out a.sumout");
    let expected = "labels     20 of 200 rows, 2 classes: no (12), yes (8)\n";
    assert!(run.stdout.contains(expected), "{}", run.stdout);
    let warned =
        "warning: classes with fewer than 10 labelled rows, which are hard to learn: yes (8)\n";
    assert_eq!(run.stderr, warned);
    let many: String = (0..300)
        .map(|i| format!("{},c{}\n", i % 7, i % 30))
        .collect();
    folder.write("many.csv", &format!("x,y\n{many}"));
    let run = folder.run("train --data many.csv --target y --steps 5 --out a.sumout");
    let expected = "labels     all rows, 30 classes of 10 to 10 rows\n";
    assert!(run.stdout.contains(expected), "{}", run.stdout);
    assert_eq!(run.stderr, "");
}

/// Images of 4×4 pixels in NPY, ten of the first class and thirty of the second.
fn write_images(folder: &Folder) {
    let head = "{'descr': '|u1', 'fortran_order': False, 'shape': (40, 4, 4), }";
    let head = format!("{head:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.as_bytes());
    bytes.extend((0..640).map(|i| (i * 37 % 251) as u8));
    fs::write(folder.path("images.npy"), bytes).unwrap();
    let labels: String = (0..40)
        .map(|i| ["a\n", "b\n"][usize::from(i >= 10)])
        .collect();
    folder.write("labels.csv", &format!("label\n{labels}"));
}

/// What is assumed of an image of which nothing is seen: the labels' frequencies, as for tables and as in Python.
#[test]
fn the_prior_of_images() {
    let folder = Folder::new();
    write_images(&folder);
    let prior = |option: &str| {
        let train =
            "train --data images.npy --labels labels.csv --steps 2 --batch 8 --out a.sumout";
        let run = folder.run(&format!("{train} {option}"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        let shown = folder.run("inspect a.sumout").stdout;
        let lines = shown
            .lines()
            .skip_while(|line| *line != "class and its prior");
        let last = |line: &str| line.split_whitespace().last().unwrap().to_owned();
        lines.skip(1).take(2).map(last).collect::<Vec<_>>()
    };
    assert_eq!(prior(""), ["0.2500", "0.7500"]);
    assert_eq!(prior("--prior labels"), ["0.2500", "0.7500"]);
    assert_eq!(prior("--prior uniform"), ["0.5000", "0.5000"]);
    assert_eq!(prior("--prior a=9,b=1"), ["0.9000", "0.1000"]);
    let line = "train --data images.npy --labels labels.csv --out b.sumout --prior a=1";
    let wrong = folder.refuse(line);
    assert!(
        wrong.contains("--prior: expected labels, uniform, or a number"),
        "{wrong}"
    );
}

/// A rare class that is hard to tell is found more often when all classes weigh the same.
#[test]
fn classes_can_weigh_the_same() {
    let folder = Folder::new();
    let row = |i: usize| {
        let is_rare = i.is_multiple_of(10);
        let x = (i * 37 % 100) as f64 / 50.0 + if is_rare { 1.0 } else { 0.0 };
        format!("{x},{}\n", ["usual", "rare"][usize::from(is_rare)])
    };
    let rows: String = (0..400).map(row).collect();
    folder.write("a.csv", &format!("x,y\n{rows}"));
    let rare = |options: &str| {
        let train = "train --data a.csv --target y --steps 150 --out a.sumout";
        let run = folder.run(&format!("{train} {options}"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        let classes = folder.run("predict a.sumout --data a.csv").stdout;
        classes.matches("\nrare,").count()
    };
    let (usual, balanced) = (rare(""), rare("--class-weight balanced"));
    assert!(usual < 40 && balanced > 80, "{usual} {balanced}");
    assert_eq!(rare("--class-weight usual=1,rare=9"), balanced);
    let shown = folder.run("inspect a.sumout").stdout;
    let even = |line: &str| line.ends_with(" 0.5000");
    assert_eq!(
        shown.lines().filter(|line| even(line)).count(),
        2,
        "{shown}"
    );
    rare("--class-weight balanced --prior usual=9,rare=1");
    let shown = folder.run("inspect a.sumout").stdout;
    assert!(shown.contains(" 0.9000\n"), "{shown}");
}

#[test]
fn labels_in_a_file_of_their_own() {
    let folder = Folder::new();
    folder.write("x.csv", "a,b\n1,2\n3,\n1.5,2.5\n3.5,1\n");
    folder.write("labels.csv", "label\nno\nyes\nno\nNA\n");
    folder.write("short.csv", "label\nno\nyes\n");
    folder.write("other.csv", "label\nno\nyes\nno\nmaybe\n");
    insta::assert_snapshot!(transcript(
        &folder,
        &[
            "train --data x.csv --labels labels.csv --steps 5 --out a.sumout",
            "evaluate a.sumout --data x.csv --labels labels.csv",
            "evaluate a.sumout --data x.csv --labels short.csv",
            "evaluate a.sumout --data x.csv --labels other.csv",
        ]
    ));
}

#[test]
fn evaluate() {
    let folder = flowers();
    folder.write("unlabelled.csv", "width,length,colour\n1,,red\n,,\n");
    insta::assert_snapshot!(transcript(
        &folder,
        &[
            "evaluate flowers.sumout --data flowers.csv --missing clean --missing iid:0.5 --missing iid:1",
            "evaluate flowers.sumout flowers.sumout --data flowers.csv --json",
            "evaluate flowers.sumout --data unlabelled.csv",
            "evaluate flowers.sumout --data flowers.csv --per-class",
        ]
    ));
}

/// Only the rows of the training are known: not others, and not fewer.
#[test]
fn evaluate_knows_the_training_rows() {
    let folder = flowers();
    let warns = |model: &str, data: &str| {
        let run = folder.run(&format!("evaluate {model} --data {data}"));
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stderr.contains("was trained on these rows")
    };
    folder.write("more.csv", &program::flowers(91));
    assert!(warns("flowers.sumout", "flowers.csv"));
    assert!(!warns("flowers.sumout", "more.csv"));
    let train =
        "train --data flowers.csv --target species --validation 0.2 --steps 5 --out s.sumout";
    assert_eq!(folder.run(train).code, 0);
    assert!(warns("s.sumout", "flowers.csv"), "some of them were used");
}

#[test]
fn predict() {
    let folder = flowers();
    folder.write(
        "new.csv",
        "length,width,id,colour\n1.3,,7,red\n,,8,\n9,4.5,9,blue\n",
    );
    folder.write("empty.csv", "width,length,colour\n");
    let mut shown = transcript(
        &folder,
        &[
            "predict flowers.sumout --data new.csv",
            "predict flowers.sumout --data empty.csv",
            "predict flowers.sumout --data new.csv --out a.jsonl",
        ],
    );
    shown.push_str(&program::rounded(&folder.read("a.jsonl")));
    insta::assert_snapshot!(shown);
    let from_file = folder.run("predict flowers.sumout --data new.csv");
    let piped = folder.run_with(
        "predict flowers.sumout --data - --out -",
        &folder.read("new.csv"),
    );
    assert_eq!(piped.stdout, from_file.stdout);
    assert_eq!(
        folder
            .run("predict flowers.sumout --data new.csv --out a.npy")
            .code,
        0
    );
    let train = "train --data flowers.csv --ignore species --steps 5 --out density.sumout";
    assert_eq!(folder.run(train).code, 0);
    let predicted = folder.run("predict density.sumout --data new.csv").stdout;
    let lines: Vec<&str> = predicted.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "log_likelihood"));
    assert_eq!(lines[2], "0", "nothing is observed");
}

#[test]
fn impute() {
    let folder = flowers();
    folder.write(
        "new.csv",
        "width,length,colour,species\n1.3,,red,rose\n,,,\n,2,,tulip\n",
    );
    insta::assert_snapshot!(transcript(
        &folder,
        &[
            "impute flowers.sumout --data new.csv",
            "impute flowers.sumout --data new.csv --how median",
            "impute flowers.sumout --data new.csv --how mode",
            "impute flowers.sumout --data new.csv --how sample --seed 2",
            "impute flowers.sumout --data new.csv --given-labels",
            "impute flowers.sumout --data new.csv --class iris",
            "impute flowers.sumout --data new.csv --class oak",
        ]
    ));
}

#[test]
fn sample_and_explain() {
    let folder = flowers();
    insta::assert_snapshot!(transcript(
        &folder,
        &[
            "sample flowers.sumout --count 3",
            "sample flowers.sumout --count 2 --class tulip --seed 3",
            "explain flowers.sumout --level 1 --channel 2 --how mode",
            "explain flowers.sumout --level 1 --channel 2 --count 2",
        ]
    ));
    assert_eq!(
        folder
            .run("sample flowers.sumout --count 2 --class tulip --out drawn.npy")
            .code,
        0
    );
    let array = fs::read(folder.path("drawn.npy")).unwrap();
    let class =
        |row: usize| f32::from_le_bytes(array[128 + row * 16 + 12..][..4].try_into().unwrap());
    assert_eq!(
        (class(0), class(1)),
        (2.0, 2.0),
        "tulip is the third class, after three columns"
    );
    let thousands = folder.run("sample flowers.sumout --count 3000").stdout;
    let rows: std::collections::HashSet<&str> = thousands.lines().collect();
    assert!(
        rows.len() > 2990,
        "pieces of draws must differ, got {} kinds",
        rows.len()
    );
}

#[test]
fn inspect() {
    let folder = flowers();
    insta::assert_snapshot!(transcript(&folder, &["inspect", "inspect flowers.sumout"]));
    insta::assert_snapshot!("inspect_a_preset", folder.run("inspect mnist-ht").stdout);
}

#[test]
fn images_in_images_out() {
    let folder = Folder::new();
    let level = "[[image.levels]]\nwindow = [99, 99]\nchannels = 4\nsharing = \"own\"\n";
    folder.write("plan.toml", &format!("[image]\ncomponents = 4\n{level}"));
    insta::assert_snapshot!(transcript(
        &folder,
        &[
            "train plan.toml --data digits --steps 5 --batch 16 --out d.sumout",
            "sample d.sumout --count 9 --out s.png",
            "explain d.sumout --level 0 --node 100 --channel 1 --how mode --out one.png",
            "impute d.sumout --data one.png --how mode --out i.npy",
            "impute d.sumout --data s.png --out i.npy",
        ]
    ));
    assert_eq!(
        fs::metadata(folder.path("i.npy")).unwrap().len(),
        128 + 784 * 4
    );
    assert!(
        folder
            .run("predict d.sumout --data one.png")
            .stdout
            .starts_with("file,class,p_0,")
    );
    assert!(
        folder
            .run("sample d.sumout --count 2 --out drawn.csv")
            .stderr
            .is_empty()
    );
    let run = folder.run("predict d.sumout --data drawn.csv");
    assert_eq!(
        (
            run.stdout.lines().count(),
            run.stderr.contains("not used: class")
        ),
        (3, true),
        "{}",
        run.stderr
    );
    let run = folder.run("evaluate d.sumout --data digits --missing rect:2x11 --shifts 1");
    assert_eq!(run.stdout.lines().count(), 2, "{}", run.stderr);
}

#[test]
fn a_folder_of_images_in_a_folder_of_images_out() {
    let folder = Folder::new();
    let level = "[[image.levels]]\nwindow = [99, 99]\nchannels = 4\nsharing = \"own\"\n";
    folder.write("plan.toml", &format!("[image]\ncomponents = 4\n{level}"));
    folder.run("train plan.toml --data digits --steps 5 --batch 16 --out d.sumout");
    let drawn = folder.run("sample d.sumout --count 3 --out drawn/");
    assert_eq!(drawn.code, 0, "{}", drawn.stderr);
    fs::rename(folder.path("drawn/000002.png"), folder.path("drawn/b.png")).unwrap();
    let filled = folder.run("impute d.sumout --data drawn --out filled/");
    assert_eq!(filled.code, 0, "{}", filled.stderr);
    for name in ["000001.png", "b.png", "000003.png"] {
        let read = |from: &str| fs::read(folder.path(&format!("{from}/{name}"))).unwrap();
        assert_eq!(read("filled"), read("drawn"), "{name}: nothing was missing");
    }
    let same = folder.run("impute d.sumout --data drawn --out drawn/");
    assert!(
        same.code != 0 && same.stderr.contains("drawn"),
        "{}",
        same.stderr
    );
}

#[test]
fn bench_prints_a_line_for_each_job() {
    let folder = Folder::new();
    let fast = "--batch 4 --rounds 1 --steps 1 --digits-steps 1";
    let run = folder.run(&format!("bench --json --preset mnist-cp {fast}"));
    let lines: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let jobs: Vec<_> = lines
        .iter()
        .map(|line| line["job"].as_str().unwrap())
        .collect();
    let real = ["predict", "likelihoods", "shifts", "train-10%", "train-50%"];
    let all = [&["train", "train-preset", "score"][..], &real, &["limit"]].concat();
    assert_eq!(jobs, all);
    assert_eq!(lines[0]["edges"], 512_000);
    assert!(
        lines[8]["gflop_per_s"].as_f64().unwrap() > 0.0
            && lines[2]["samples_per_s"].as_f64().unwrap() > 0.0
    );
    for line in &lines[3..8] {
        assert!(
            (0.0..=1.0).contains(&line["computed_again"].as_f64().unwrap()),
            "{line}"
        );
    }
}

#[test]
fn help_and_completions() {
    let folder = Folder::new();
    let commands = [
        "train", "evaluate", "predict", "impute", "sample", "explain", "inspect", "bench", "data",
    ];
    let lines: Vec<String> = commands
        .iter()
        .map(|command| format!("{command} --help"))
        .collect();
    let shown: String = ["--help"]
        .into_iter()
        .chain(lines.iter().map(String::as_str))
        .map(|l| folder.show(l))
        .collect();
    insta::assert_snapshot!(shown);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            folder
                .run(&format!("completions {shell}"))
                .stdout
                .contains("given-labels"),
            "{shell}"
        );
    }
}
