//! What a newcomer meets first: the first steps, the tour of a table, a smaller model, the manual.

mod program;

use program::{Folder, flowers};

#[test]
fn the_program_alone_says_what_to_do_first() {
    let run = Folder::new().run("");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let steps = run
        .stdout
        .lines()
        .filter(|line| line.starts_with("  sumout "));
    let mut seen = 0;
    for step in steps {
        let command = step.split_whitespace().nth(1).unwrap();
        let help = Folder::new().run(&format!("{command} --help"));
        assert_eq!(help.code, 0, "{step}");
        seen += 1;
    }
    assert_eq!(seen, 7);
    assert!(run.stdout.lines().all(|line| line.len() <= 100));
}

/// Every command that the tour prints does the same again when it is typed.
#[test]
fn the_tour_of_a_table_can_be_repeated() {
    let folder = Folder::new();
    let tour = folder.run("demo --table --out tour");
    assert_eq!(tour.code, 0, "{}", tour.stderr);
    let commands: Vec<&str> = tour
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("$ sumout "))
        .collect();
    let names: Vec<&str> = commands
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["train", "evaluate", "predict", "impute", "report"]);
    let filled = folder.read("tour/filled.csv");
    assert_eq!(
        filled.lines().count(),
        folder.read("tour/new.csv").lines().count()
    );
    assert!(folder.read("tour/new.csv").contains(",NA,") && !filled.contains("NA"));
    assert!(tour.stdout.contains(filled.lines().nth(3).unwrap()));
    for line in &commands[1..] {
        let again = folder.run(line);
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert!(tour.stdout.contains(&again.stdout), "{line}");
    }
    assert_eq!(folder.read("tour/filled.csv"), filled);
    let clean = tour
        .stdout
        .lines()
        .find(|line| line.starts_with("clean "))
        .unwrap();
    let accuracy: f64 = clean.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(accuracy > 0.95, "{clean}");
}

#[test]
fn a_compressed_model_answers_nearly_the_same() {
    let folder = Folder::new();
    folder.write("flowers.csv", &flowers(120));
    let train = "train --data flowers.csv --target species --steps 60 --out flowers.sumout";
    assert_eq!(folder.run(train).code, 0);
    let run = folder.run("compress flowers.sumout --out small.sumout");
    let bytes = |name: &str| std::fs::metadata(folder.path(name)).unwrap().len();
    let (small, whole) = (bytes("small.sumout"), bytes("flowers.sumout"));
    assert_eq!(
        run.stdout,
        format!("wrote small.sumout: {small} bytes instead of {whole}\n")
    );
    assert!(small < whole);
    let numbers = |model: &str| -> Vec<f64> {
        let predicted = folder
            .run(&format!("predict {model} --data flowers.csv"))
            .stdout;
        let cells = predicted.split([',', '\n']);
        cells.filter_map(|cell| cell.parse().ok()).collect()
    };
    let (ours, theirs) = (numbers("small.sumout"), numbers("flowers.sumout"));
    assert_eq!((ours.len(), theirs.len()), (480, 480));
    let differences = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
    let largest = differences.fold(0.0, f64::max);
    assert!(largest > 0.0 && largest < 0.01, "{largest}");
    let refused = folder.run("compress flowers.csv --out small.sumout");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = Folder::new();
    assert_eq!(folder.run("man --out man").code, 0);
    let train = folder.read("man/sumout-train.1");
    assert!(train.starts_with(".ie") || train.contains(".TH"), "{train}");
    assert!(train.contains("regression"));
    for command in ["demo", "impute", "serve", "compress", "data-get"] {
        assert!(
            folder.path(&format!("man/sumout-{command}.1")).exists(),
            "{command}"
        );
    }
}
