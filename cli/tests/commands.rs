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
        ]
    ));
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
