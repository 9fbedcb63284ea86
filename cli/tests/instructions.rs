//! One program for every machine: with fewer instructions, the same answers.

mod program;

use program::Folder;

const SETS: [&str; 4] = ["plain", "avx2", "avx512", "all"];
const ROWS: usize = 300;

/// What the program prints when it may use these instructions.
fn with(folder: &Folder, instructions: &str, line: &str) -> String {
    let mut command = folder.command(line);
    let output = command
        .env("SUMOUT_INSTRUCTIONS", instructions)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The largest difference between the numbers of two tables, relative to those above 1. Texts must be the same.
fn difference(ours: &str, theirs: &str) -> f64 {
    let cells = |text: &str| -> Vec<String> {
        let cells = text.split(['\n', ',']);
        cells.map(str::to_owned).collect()
    };
    let (ours, theirs) = (cells(ours), cells(theirs));
    assert_eq!(ours.len(), theirs.len());
    let pair = |(a, b): (&String, &String)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() / b.abs().max(1.0),
        _ => {
            assert_eq!(a, b);
            0.0
        }
    };
    ours.iter().zip(&theirs).map(pair).fold(0.0, f64::max)
}

/// Layers of mnist-ht are wide enough for tiles; the digits have holes.
#[test]
fn answers_do_not_depend_on_the_instructions() {
    let folder = Folder::new();
    let trained = folder.run("train mnist-ht --data digits --steps 3 --out ht.sumout");
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    let digits = folder.run("sample ht.sumout --count 300 --out digits.csv");
    assert_eq!(digits.code, 0, "{}", digits.stderr);
    let text = folder.read("digits.csv");
    let mut lines = text.lines().enumerate();
    let hole = |row: usize, column: usize| row > 0 && (row * 7 + column * 13) % 5 < row % 5;
    let with_holes = |(row, line): (usize, &str)| {
        let cells = line.split(',').enumerate();
        let cells = cells.map(|(column, cell)| if hole(row, column) { "" } else { cell });
        cells.collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = lines.by_ref().map(with_holes).collect();
    assert_eq!(rows.len(), ROWS + 1);
    folder.write("holes.csv", &rows.join("\n"));
    let line = "predict ht.sumout --data holes.csv";
    let best = with(&folder, "all", line);
    assert_eq!(best.lines().count(), ROWS + 1);
    for instructions in SETS {
        let off = difference(&with(&folder, instructions, line), &best);
        assert!(off <= 1e-6, "{instructions}: {off}");
    }
}
