//! `sumout report` and `evaluate --plot`: pages and charts of every kind of model, and what is refused.

mod html;
mod program;

use html::unbalanced;
use program::{Folder, flowers};

/// Writes a page about a model and some rows, and checks that it is whole.
fn page(folder: &Folder, line: &str) -> String {
    let run = folder.run(&format!("report {line} --out page.html"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, "wrote page.html  (open it in a browser)\n");
    let page = folder.read("page.html");
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    for outside in ["http:", "https:", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "the page has {outside}");
    }
    for odd in ["NaN", ">inf", "-inf", " inf ", "inf%"] {
        assert!(!page.contains(odd), "the page has {odd}: {page}");
    }
    page
}

fn trained(table: &str, options: &str) -> Folder {
    let folder = Folder::new();
    folder.write("table.csv", table);
    let run = folder.run(&format!(
        "train --data table.csv {options} --out model.sumout"
    ));
    assert_eq!(run.code, 0, "{}", run.stderr);
    folder
}

/// A table of numbers in which each column follows from the one before it.
fn chain(rows: usize, columns: usize) -> String {
    let names: Vec<String> = (0..columns).map(|j| format!("column {j}")).collect();
    let mut text = names.join(",") + "\n";
    for i in 0..rows {
        let cell =
            |j: usize| ((i * 37 % 101) as f64 / 10.0 + (i * (j + 3) % 7) as f64 / 5.0).to_string();
        let cells: Vec<String> = (0..columns).map(cell).collect();
        text.push_str(&(cells.join(",") + "\n"));
    }
    text
}

#[test]
fn a_page_about_classes() {
    let folder = trained(&flowers(200), "--target species --steps 300 --trees 2");
    let mut new = flowers(260);
    new.push_str("2.0,3.1,red,tulip\n"); // a small one that is said to be of the largest kind
    folder.write("new.csv", &new);
    let text = page(&folder, "model.sumout --data new.csv");
    for words in [
        "predicts <b>species</b>, one of 3 classes, from 3 columns",
        "all 261 rows",
        "of the rows have the right class",
        "What missing cells cost",
        "Which columns matter",
        "Which to ask for first",
        "Do probabilities mean what they say?",
        "<td>261</td><td>species</td><td><b>tulip</b></td><td>iris (",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(
        !text.contains("The tree of columns"),
        "all columns meet at once"
    );
    assert!(!text.contains("class=\"warning\""));
    assert_eq!(
        text,
        page(&folder, "model.sumout --data new.csv --threads 1")
    );
    let again = page(&folder, "model.sumout --data table.csv");
    assert!(again.contains("The model was trained on these rows."));
    let some = page(&folder, "model.sumout --data new.csv --rows 50");
    assert!(some.contains("50 of 261 rows, drawn at random"));
}

/// The accuracies of the page are those of `sumout evaluate`.
#[test]
fn a_page_says_what_evaluate_says() {
    let folder = trained(&flowers(200), "--target species --steps 60 --trees 1");
    folder.write("new.csv", &flowers(77));
    let text = page(&folder, "model.sumout --data new.csv");
    let json =
        folder.run("evaluate model.sumout --data new.csv --missing clean --missing iid:0.5 --json");
    let lines = json
        .stdout
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"accuracy\": "));
    let accuracies = lines.map(|line| line.trim_end_matches(',').parse().unwrap());
    let accuracies: Vec<f64> = accuracies.collect();
    assert_eq!(accuracies.len(), 2);
    for (accuracy, words) in accuracies
        .iter()
        .zip(["have the right class", "with half of"])
    {
        let card = format!("<strong>{:.1}<small> %</small></strong>", 100.0 * accuracy);
        let found = text
            .lines()
            .any(|line| line.contains(&card) && line.contains(words));
        assert!(found, "{card} {words} in {text}");
    }
}

#[test]
fn a_page_about_classes_without_labels() {
    let folder = trained(&flowers(120), "--target species --steps 30 --trees 1");
    let table = folder.read("table.csv");
    let rows = table.lines().map(|line| line.rsplit_once(',').unwrap().0);
    folder.write("new.csv", &rows.collect::<Vec<_>>().join("\n"));
    let text = page(&folder, "model.sumout --data new.csv");
    assert!(
        text.contains("Which columns matter") && !text.contains("accuracy"),
        "{text}"
    );
}

#[test]
fn a_page_about_a_density() {
    let folder = trained(&flowers(150), "--ignore species --steps 60 --trees 1");
    let text = page(&folder, "model.sumout --data table.csv");
    for words in [
        "knows how 3 columns depend on each other",
        "How columns depend on each other",
        "of the filled categories are right",
        "intervals, from 10 % to 90 %",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn a_page_about_a_number() {
    let options = "--target 'column_3' --regression --steps 60 --trees 1".replace('\'', "");
    let folder = trained(&chain(120, 4).replace("column ", "column_"), &options);
    folder.write("new.csv", &chain(60, 4).replace("column ", "column_"));
    let text = page(&folder, "model.sumout --data new.csv");
    for words in [
        "predicts the number <b>column_3</b> from 3 other columns",
        "of the variance of the target is explained (r2)",
        "What a column tells about <b>column_3</b>",
        "nats gained",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    folder.write("unknown.csv", "column_0,column_1,column_2\n1,2,3\n4,5,6\n");
    let text = page(&folder, "model.sumout --data unknown.csv");
    assert!(
        text.contains("knows how 4 columns depend on each other"),
        "{text}"
    );
}

#[test]
fn a_page_about_images() {
    let folder = Folder::new();
    let train = "train mnist-ht --data digits --steps 3 --out model.sumout";
    assert_eq!(folder.run(train).code, 0);
    let text = page(&folder, "model.sumout --data digits --rows 40");
    assert!(text.contains("What missing pixels cost") && text.contains("40 of 1,000 rows"));
    assert!(!text.contains("Which columns matter") && !text.contains("The tree of columns"));
}

/// Names are text, however they look, and long ones are cut or wrapped.
#[test]
fn a_page_about_odd_names() {
    let names = [
        "<script>alert(1)</script>",
        "a&b \"quoted\"",
        &"long ".repeat(60),
    ];
    let row = |i: usize| format!("{},{},{}\n", i % 5, (i * 7) % 11, ["<b>", "&amp;"][i % 2]);
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("\"{}\"", name.replace('"', "\"\"")))
        .collect();
    let table = (0..60).fold(names.join(",") + "\n", |text, i| text + &row(i));
    let folder = trained(&table, "--steps 10 --trees 1");
    let text = page(&folder, "model.sumout --data table.csv");
    assert!(
        text.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && text.contains("a&amp;b &quot;")
    );
}

#[test]
fn many_columns_and_many_classes() {
    let mut table = chain(300, 200);
    table = table.replacen('\n', ",kind\n", 1);
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    for (i, line) in lines.iter_mut().enumerate().skip(1) {
        line.push_str(&format!(",kind number {}", i % 50));
    }
    let folder = trained(
        &(lines.join("\n") + "\n"),
        "--target kind --steps 3 --trees 1",
    );
    let text = page(&folder, "model.sumout --data table.csv --rows 20");
    assert!(text.contains("one of 50 classes, from 200 columns"));
    assert!(
        text.contains("The other 180 columns") && text.contains("<summary>The pictures</summary>")
    );
    assert!(text.len() < 2_000_000, "{}", text.len());
}

#[test]
fn charts_of_evaluate() {
    let folder = trained(&flowers(200), "--target species --steps 60 --trees 1");
    folder.write("new.csv", &flowers(77));
    let plain = folder.run("evaluate model.sumout --data new.csv --plot curve.svg");
    assert_eq!(
        (plain.code, plain.stdout.lines().count()),
        (0, 7),
        "{}",
        plain.stderr
    );
    let chart = folder.read("curve.svg");
    assert_eq!(unbalanced(&chart), Vec::<String>::new());
    let first = plain.stdout.lines().nth(1).unwrap();
    let accuracy: f64 = first.split_whitespace().nth(2).unwrap().parse().unwrap();
    let point = format!("accuracy, clean: {:.1} %", 100.0 * accuracy);
    assert!(chart.contains(&point), "{point} in {chart}");
    assert_eq!(chart.matches("<circle").count(), 12);
    let named =
        "evaluate model.sumout --data new.csv --missing iid:0.3 --missing nonzero:1 --plot two.svg";
    assert_eq!(folder.run(named).code, 0);
    assert!(folder.read("two.svg").contains(">nonzero:1</text>"));
    let options = "--target length --regression --steps 30 --trees 1 --out houses.sumout";
    assert_eq!(
        folder
            .run(&format!("train --data table.csv {options}"))
            .code,
        0
    );
    assert_eq!(
        folder
            .run("evaluate houses.sumout --data new.csv --plot r2.svg")
            .code,
        0
    );
    assert!(folder.read("r2.svg").contains("r2, iid:0.9: "));
}

#[test]
fn nonsense_is_refused() {
    let folder = trained(&flowers(90), "--target species --steps 5 --trees 1");
    folder.write("empty.csv", "width,length,colour,species\n");
    folder.write("bare.csv", "width,length,colour\n1,2,red\n");
    let density =
        "train --data table.csv --ignore species --steps 5 --trees 1 --out density.sumout";
    assert_eq!(folder.run(density).code, 0);
    let lines = [
        "report",
        "report table.csv --data table.csv",
        "report model.sumout --data gone.csv",
        "report model.sumout --data empty.csv",
        "report model.sumout --data table.csv --rows 0",
        "report model.sumout --data table.csv --out model.sumout",
        "report model.sumout --data table.csv --out gone/page.html",
        "report model.sumout --data table.csv --out -",
        "evaluate model.sumout --data table.csv --plot curve.png",
        "evaluate model.sumout --data table.csv --plot gone/curve.svg",
        "evaluate model.sumout --data bare.csv --plot curve.svg",
        "evaluate density.sumout --data table.csv --plot curve.svg",
    ];
    let shown: String = lines.iter().map(|line| folder.refuse(line)).collect();
    insta::assert_snapshot!(shown);
}
