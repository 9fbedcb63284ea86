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

#[test]
fn help_is_a_command_too() {
    let folder = Folder::new();
    let asked = folder.run("help train");
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    assert_eq!(asked.stdout, folder.run("train --help").stdout);
}

/// Rows of a shop: a price with this sign before it, a size with a decimal comma, and a sort.
fn shop(rows: usize, sign: &str) -> String {
    let row = |i: usize| {
        let size = if i.is_multiple_of(5) {
            String::new()
        } else {
            format!("{},{}", i % 9, i % 10)
        };
        format!("{sign}{}.{:02};{size};{}\n", i, i % 100, i % 2)
    };
    let rows: String = (0..rows).map(row).collect();
    format!("price;size;sort\n{rows}")
}

#[test]
fn common_mistakes_get_the_option_that_helps() {
    let folder = Folder::new();
    folder.write("shop.csv", &shop(1200, "$").replace(',', "."));
    folder.write("plain.csv", &shop(1200, "").replace(',', "."));
    let says = |line: &str, words: &str| {
        let run = folder.run(line);
        assert!(
            run.code != 0 && run.stderr.contains(words),
            "{}",
            run.stderr
        );
    };
    let target = "train --data plain.csv --out m.sumout --target";
    says(&format!("{target} price"), "--regression predicts a number");
    says(&format!("{target} Sort"), "did you mean 'sort'?");
    let signs =
        "expected numbers without a sign of currency or percent, got '$0.00'; --ignore price";
    says("train --data shop.csv --target sort --out m.sumout", signs);
}

#[test]
fn what_was_filled_can_be_read_as_its_input_was() {
    let folder = Folder::new();
    folder.write("shop.csv", &shop(60, "K"));
    let how = "--decimal , --ignore price";
    let train = format!("train --data shop.csv --target sort {how} --steps 5 --out m.sumout");
    assert_eq!(folder.run(&train).code, 0);
    let impute = "impute m.sumout --data shop.csv --decimal , --out filled.csv";
    assert_eq!(folder.run(impute).code, 0);
    let (before, after) = (folder.read("shop.csv"), folder.read("filled.csv"));
    for (before, after) in before.lines().zip(after.lines()) {
        let same = before == after || before.contains(";;");
        assert!(same && !after.contains(";;"), "{before} became {after}");
    }
    let again = train.replace("shop.csv", "filled.csv");
    assert_eq!(folder.run(&again).code, 0, "{after}");
}
