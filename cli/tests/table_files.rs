//! Tables as people have them: identifiers, odd holes, names never met, columns with nothing in them.

mod program;

use program::Folder;

/// A model of `a` and `colour` with the target `y`; whole numbers that 32 bits cannot hold, and names for holes.
fn folder() -> Folder {
    let folder = Folder::new();
    let row = |i: usize| {
        format!(
            "{},{},{}\n",
            16_777_216 + i % 9,
            ["red", "blue"][i / 2 % 2],
            ["no", "yes"][i % 2]
        )
    };
    folder.write(
        "train.csv",
        &format!(
            "a,colour,y\n{}?,?,yes\n",
            (0..40).map(row).collect::<String>()
        ),
    );
    let train = folder.run("train --data train.csv --target y --na ? --steps 20 --out m.sumout");
    assert!(
        train.code == 0 && train.stderr.contains("are kept in steps of 2;"),
        "{}",
        train.stderr
    );
    folder
}

#[test]
fn impute_leaves_what_is_there_as_it_was_written() {
    let folder = folder();
    let text =
        "id,colour, y,,a,note\n007,red,maybe,1,16777217,\"x, y\"\n008, blue ,NA,2,+16777220.50,?\n";
    folder.write("whole.csv", text);
    let filled = folder.run("impute m.sumout --data whole.csv");
    assert_eq!(
        (filled.stdout, filled.stderr),
        (text.replace(", y,", ",y,"), String::new())
    );
    folder.write(
        "holes.csv",
        "id,colour,y,a\n007,,no,16777217\n008,red,,?\n009,N/A,yes,\n",
    );
    let filled = folder
        .run("impute m.sumout --data holes.csv --how mode --variance v.csv --probabilities p.csv")
        .stdout;
    let cells: Vec<Vec<&str>> = filled
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(
        (&cells[0][2..], cells[1][1]),
        (&["no", "16777217"][..], "red")
    );
    for (row, column) in [(0, 1), (2, 1)] {
        assert!(["red", "blue"].contains(&cells[row][column]), "{filled}");
    }
    for row in [1, 2] {
        let number: f64 = cells[row][3].parse().unwrap();
        assert!(
            (16_777_200.0..16_777_240.0).contains(&number) && cells[row][3].len() < 12,
            "{filled}"
        );
    }
    let variances = folder.read("v.csv");
    let lines: Vec<&str> = variances.lines().collect();
    assert_eq!(
        (lines[0], lines[1]),
        ("a,colour", ","),
        "what is seen and what is no number has none"
    );
    assert!(
        lines[2].trim_end_matches(',').parse::<f64>().unwrap() > 0.0,
        "{variances}"
    );
    let probabilities = folder.read("p.csv");
    let lines: Vec<&str> = probabilities.lines().collect();
    assert_eq!(
        (lines[0], lines[2]),
        ("p_colour=blue,p_colour=red", ","),
        "what is seen has none"
    );
    for line in [lines[1], lines[3]] {
        let sum: f64 = line.split(',').map(|p| p.parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{probabilities}");
    }
}

#[test]
fn json_lines_stay_as_they_were_too() {
    let folder = folder();
    let line =
        "{\"id\":\"007\",\"a\":1.6777217e7,\"colour\":\"red\",\"more\":[1, {\"z\":2,\"b\":1}]}\n";
    folder.write("whole.jsonl", line);
    assert_eq!(
        folder
            .run("impute m.sumout --data whole.jsonl --out out.jsonl")
            .code,
        0
    );
    assert_eq!(folder.read("out.jsonl"), line);
    let run = folder.run("predict m.sumout --data whole.jsonl");
    assert_eq!(run.stderr, "not used: id, more\n");
    folder.write(
        "new.jsonl",
        &format!("{line}{{\"id\":8,\"unknown\":1,\"a\":1}}\n"),
    );
    let run = folder.run("impute m.sumout --data new.jsonl --out out.jsonl");
    assert_eq!(
        run.stderr,
        "error: new.jsonl line 2: expected the names of the first line, got 'unknown' too\n"
    );
    folder.write("short.jsonl", "{\"id\":\"a\"}\n");
    let run = folder.run("impute m.sumout --data short.jsonl");
    assert!(
        run.stderr.contains("expected a, colour, got id"),
        "{}",
        run.stderr
    );
    folder.write("csv.csv", "id,colour,a\n007,red,007\n");
    assert_eq!(
        folder
            .run("impute m.sumout --data csv.csv --out out.jsonl")
            .code,
        0
    );
    assert_eq!(
        folder.read("out.jsonl"),
        "{\"id\":\"007\",\"colour\":\"red\",\"a\":\"007\"}\n"
    );
    let back = folder.run("impute m.sumout --data out.jsonl").stdout;
    assert_eq!(back, "id,colour,a\n007,red,007\n");
}

#[test]
fn predictions_stand_beside_what_they_are_about() {
    let folder = folder();
    folder.write(
        "new.csv",
        "id,colour,class,a\n007,red,x,16777217\n008,,y,\n",
    );
    let lines = [
        "predict m.sumout --data new.csv --keep id",
        "predict m.sumout --data new.csv --keep a --keep id",
        "predict m.sumout --data new.csv --keep-all",
        "predict m.sumout --data new.csv --keep name",
        "predict m.sumout --data digits --keep id",
    ];
    insta::assert_snapshot!(lines.map(|line| folder.show(line)).concat());
}

#[test]
fn names_that_the_model_never_met() {
    let folder = folder();
    folder.write(
        "new.csv",
        "a,colour,y\n16777217,green,no\n16777217,red,maybe\n",
    );
    let lines = [
        "predict m.sumout --data new.csv",
        "predict m.sumout --data new.csv --unseen missing",
        "impute m.sumout --data new.csv --unseen missing",
        "evaluate m.sumout --data new.csv --unseen missing",
    ];
    insta::assert_snapshot!(lines.map(|line| folder.show(line)).concat());
    folder.write("new.csv", "a,colour,y\n16777217,red,maybe\n");
    assert_eq!(
        folder.run("predict m.sumout --data new.csv").code,
        0,
        "the class is what is asked for"
    );
    assert_eq!(folder.run("impute m.sumout --data new.csv").code, 0);
    assert_eq!(folder.run("evaluate m.sumout --data new.csv").code, 2);
}

#[test]
fn columns_that_are_not_there() {
    let folder = folder();
    folder.write("short.csv", "id,colour\n007,red\n008,\n");
    folder.write("holes.csv", "id,colour,a\n007,red,\n008,,\n");
    let refused = folder.run("predict m.sumout --data short.csv");
    let hint = "--absent missing treats absent columns as missing\n";
    assert!(
        refused.code == 2 && refused.stderr.ends_with(hint),
        "{}",
        refused.stderr
    );
    for command in ["predict", "impute", "predict --keep-all"] {
        let of = |data: &str| {
            let run = folder.run(&format!(
                "{command} m.sumout --data {data} --absent missing"
            ));
            assert_eq!(run.code, 0, "{}", run.stderr);
            run.stdout.replace(",a,", ",") // kept only where it is there
        };
        if command != "predict --keep-all" {
            assert_eq!(of("short.csv"), of("holes.csv"), "{command}");
        } else {
            assert!(of("short.csv").starts_with("id,colour,class,p_no"));
        }
    }
    folder.write("other.csv", "id,size\n1,2\n");
    let none = folder.run("predict m.sumout --data other.csv --absent missing");
    assert!(
        none.code == 2,
        "a table without any column of the model is a mistake"
    );
}

#[test]
fn a_number_out_of_this_world_gets_a_word() {
    let folder = folder();
    folder.write("new.csv", "a,colour\n16777217,red\n1e30,red\n1e31,red\n");
    let said = folder.run("predict m.sumout --data new.csv").stderr;
    let expected =
        "row 2 (the first of 2) is too unlike the training data to classify; ignore its posterior";
    assert_eq!(said, format!("warning: {expected}\n"));
    folder.write("new.csv", "a,colour,y\n1e30,red,no\n");
    let asked = folder.run("evaluate m.sumout --data new.csv");
    assert!(
        asked.stderr.contains("row 1 is too unlike") && asked.stdout.contains("e5"),
        "{}",
        asked.stdout
    );
}

#[test]
fn what_is_read_is_never_overwritten() {
    let folder = folder();
    let (table, model) = (
        folder.read("train.csv"),
        std::fs::read(folder.path("m.sumout")).unwrap(),
    );
    for line in [
        "train --data train.csv --target y --steps 3 --out train.csv",
        "predict m.sumout --data train.csv --out ./train.csv",
        "predict m.sumout --data new.csv --labels train.csv --out train.csv",
        "impute m.sumout --data train.csv --out train.csv",
        "impute m.sumout --data train.csv --out new.csv --variance new.csv",
    ] {
        let run = folder.run(line);
        assert!(
            run.code == 2 && run.stderr.contains("this command uses that file already"),
            "{line}: {}",
            run.stderr
        );
    }
    assert_eq!(
        (
            folder.read("train.csv"),
            std::fs::read(folder.path("m.sumout")).unwrap()
        ),
        (table, model)
    );
}

#[test]
fn a_model_remembers_what_is_missing() {
    let folder = folder();
    folder.write("new.csv", "a,colour\n?,?\n");
    folder.write("empty.csv", "a,colour\n,\n");
    assert_eq!(
        folder.run("predict m.sumout --data new.csv").stdout,
        folder.run("predict m.sumout --data empty.csv").stdout
    );
    folder.write("new.csv", "a,colour\n-999.0,red\n");
    let told = folder.run("predict m.sumout --data new.csv --na -999");
    folder.write("new.csv", "a,colour\n,red\n");
    assert_eq!(
        told.stdout,
        folder.run("predict m.sumout --data new.csv").stdout
    );
}

#[test]
fn doubtful_tables() {
    let folder = Folder::new();
    let mut shown = String::new();
    let mut case = |name: &str, head: &str, row: &dyn Fn(usize) -> String, more: &str| {
        let rows: String = (0..60).map(|i| row(i) + "\n").collect();
        folder.write(&format!("{name}.csv"), &format!("{head}\n{rows}"));
        let line = format!("train --data {name}.csv {more} --steps 3 --out a.sumout");
        let run = folder.run(&line);
        shown.push_str(&format!(
            "$ sumout {line}\n{}[exit code {}]\n\n",
            run.stderr, run.code
        ));
    };
    let x = |i: usize| i * 7 % 11;
    case("one", "x,y", &|i| format!("{},yes", x(i)), "--target y");
    case("none", "x,y", &|i| format!("{},", x(i)), "--target y");
    case("comma", "x;y", &|i| format!("{},5;{}", x(i), x(i)), "");
    case(
        "price",
        "x,y",
        &|i| format!("{},{}.5", x(i), i),
        "--target y",
    );
    case("word", "x,name", &|i| format!("{},n{i}", x(i)), "");
    case(
        "thousand",
        "x;y",
        &|i| format!("1,{:03};{}", x(i), x(i)),
        "",
    );
    case(
        "european",
        "x;y",
        &|i| format!("1.{:03},5;{}", x(i), x(i)),
        "",
    );
    case(
        "mixed",
        "x;y",
        &|i| {
            format!(
                "{};{}",
                if i == 7 {
                    "1,065".to_owned()
                } else {
                    x(i).to_string()
                },
                x(i)
            )
        },
        "",
    );
    case(
        "price_sign",
        "x,y",
        &|i| format!("${}.00,{}", x(i), x(i)),
        "",
    );
    case(
        "zip",
        "x,y",
        &|i| format!("{:05},{}", 1010 * x(i), x(i)),
        "",
    );
    case(
        "almost",
        "x,name",
        &|i| format!("{},n{}", x(i), i.max(1)),
        "",
    );
    case(
        "day",
        "x,day",
        &|i| format!("{},{:02}.01.2026", x(i), i % 28 + 1),
        "",
    );
    case("number", "id,x", &|i| format!("{i},{}", x(i)), "");
    case("empty", "x,gone", &|i| format!("{},", x(i)), "");
    case("nothing", "x,gone", &|_| ",".to_owned(), "");
    case(
        "time",
        "x,y",
        &|i| format!("{},{}", 1_700_000_000 + x(i), x(i)),
        "",
    );
    case("constant", "x,y", &|i| format!("5,{}", x(i)), "");
    case(
        "both",
        "x,y",
        &|i| format!("{},{}", x(i), i % 2),
        "--target y --ignore y",
    );
    case(
        "outlier",
        "x,y",
        &|i| {
            format!(
                "{},{}",
                if i == 9 {
                    "3e38".to_owned()
                } else {
                    x(i).to_string()
                },
                x(i)
            )
        },
        "",
    );
    insta::assert_snapshot!(shown);
}

/// Commas in names, a column that is empty once rows are kept apart, classes that the model has never met.
#[test]
fn columns_by_any_name() {
    let folder = Folder::new();
    let row = |i: usize| {
        format!(
            "{},{},{},{}\n",
            i * 7 % 5,
            i % 3,
            if i == 0 { "1" } else { "" },
            ["no", "yes"][i % 2]
        )
    };
    let rows: String = (0..40).map(row).collect();
    folder.write("a.csv", &format!("\"x, cm\",b,rare,y\n{rows}"));
    let mut ignoring = folder.command("train --data a.csv --target y --steps 5 --out m.sumout");
    let run: program::Run = ignoring
        .args(["--ignore", "x, cm"])
        .output()
        .unwrap()
        .into();
    assert!(
        run.code == 0 && run.stderr.contains("not used: 'x, cm'"),
        "{}",
        run.stderr
    );
    let both = folder.run("train --data a.csv --target y --steps 5 --ignore b,rare --out m.sumout");
    assert!(
        both.code == 0 && both.stderr.contains("not used: b, rare"),
        "{}",
        both.stderr
    );
    let apart =
        folder.run("train --data a.csv --target y --steps 50 --validation 0.8 --out n.sumout");
    let validations = apart.stdout.matches("validation             loss").count();
    assert!(validations >= 10, "{}", apart.stdout); // ten of every tree
    assert!(
        apart.code == 0
            && apart
                .stderr
                .contains("column 'rare' has no values in the training rows"),
        "{}",
        apart.stderr
    );
    folder.write("rows.csv", "\"x, cm\"\n1\n2\n");
    folder.write("labels.csv", "y\nyes\nperhaps\n");
    let asked = "evaluate m.sumout --data rows.csv --labels labels.csv";
    assert_eq!(folder.run(asked).code, 2);
    assert_eq!(folder.run(&format!("{asked} --unseen missing")).code, 0);
}

/// Rows with the word None for houses without a garage.
fn garages(rows: usize) -> String {
    let row = |i: usize| format!("{},{}\n", i * 7 % 11, ["Ex", "Gd", "None"][i % 3]);
    format!("area,garage\n{}", (0..rows).map(row).collect::<String>())
}

#[test]
fn a_category_that_is_called_none() {
    let folder = Folder::new();
    folder.write("houses.csv", &garages(60));
    let train = "train --data houses.csv --steps 20 --out a.sumout";
    let as_class = format!("{train} --target garage");
    for line in [train, &as_class] {
        let said = folder.run(line).stderr;
        let expected = "column 'garage': 'None' stands beside other words and is read as missing, \
                        in 20 of 60 cells; --no-default-na garage makes it a word";
        assert!(said.contains(expected), "{said}");
    }
    for option in ["--no-default-na garage", "--no-default-na"] {
        let run = folder.run(&format!("{train} {option}"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{option}");
        let filled = folder.run("impute a.sumout --data houses.csv");
        assert_eq!(filled.stdout, garages(60), "the model remembers");
        assert!(
            folder
                .run(&format!("{as_class} {option}"))
                .stdout
                .contains("3 classes")
        );
        let classes = folder.run("predict a.sumout --data houses.csv").stdout;
        assert!(classes.starts_with("class,p_Ex,p_Gd,p_None,"), "{classes}");
        let scored = folder
            .run("evaluate a.sumout --data houses.csv --json")
            .stdout;
        assert!(scored.contains("\"labelled\": 60"), "{scored}");
    }
    let wrong = folder.run(&format!("{train} --no-default-na garden"));
    assert!(wrong.code == 2 && wrong.stderr.contains("expected a column 'garden'"));
}

#[test]
fn a_label_that_is_called_none() {
    let folder = Folder::new();
    let labels: String = garages(60)
        .lines()
        .skip(1)
        .map(|l| l[l.find(',').unwrap() + 1..].to_owned() + "\n")
        .collect();
    folder.write("houses.csv", &garages(60));
    folder.write("labels.csv", &format!("garage\n{labels}"));
    let train =
        "train --data houses.csv --ignore garage --labels labels.csv --steps 5 --out a.sumout";
    let said = folder.run(train).stderr;
    assert!(
        said.contains("labels.csv, column 'garage': 'None' stands beside"),
        "{said}"
    );
    let run = folder.run(&format!("{train} --no-default-na"));
    assert!(run.stdout.contains("3 classes"), "{}", run.stdout);
    let scored = folder
        .run("evaluate a.sumout --data houses.csv --labels labels.csv --json")
        .stdout;
    assert!(scored.contains("\"labelled\": 60"), "{scored}");
}

/// The same table in several notations and encodings gives the same model.
#[test]
fn other_notations_and_encodings() {
    let folder = Folder::new();
    let table = |separator: &str, decimal: &str, group: &str| {
        let row = |i: usize| {
            let colour = ["grün", "rot"][i % 2];
            format!("1{group}00{}{decimal}5{separator}{colour}\n", i % 7)
        };
        let rows: String = (0..40).map(row).collect();
        format!("größe{separator}farbe\n{rows}")
    };
    let model = |bytes: Vec<u8>, options: &str| {
        std::fs::write(folder.path("a.csv"), bytes).unwrap();
        let run = folder.run(&format!(
            "train --data a.csv --steps 5 --out m.sumout {options}"
        ));
        assert_eq!(run.code, 0, "{options}: {}", run.stderr);
        std::fs::read(folder.path("m.sumout")).unwrap()
    };
    let plain = model(table(",", ".", "").into_bytes(), "");
    let german = table(";", ",", ".");
    assert!(plain == model(german.clone().into_bytes(), "--decimal , --thousands ."));
    assert!(plain == model(table(";", ".", ",").into_bytes(), "--thousands ,"));
    assert!(plain == model(table(";", ",", "").into_bytes(), "--decimal ,"));
    let latin: Vec<u8> = german.chars().map(|letter| letter as u8).collect();
    let all = "--decimal , --thousands . --encoding latin-1";
    assert!(plain == model(latin.clone(), all));
    let wide = |mark: Option<u16>| -> Vec<u8> {
        let units = mark.into_iter().chain(german.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    assert!(plain == model(wide(Some(0xfeff)), "--decimal , --thousands ."));
    assert!(plain == model(wide(None), "--decimal , --thousands . --encoding utf-16"));

    std::fs::write(folder.path("a.csv"), latin).unwrap();
    let filled = folder
        .run(&format!("impute m.sumout --data a.csv {all}"))
        .stdout;
    assert_eq!(
        filled,
        table(";", ",", ""),
        "numbers come back as they were written, without groups"
    );
    let mut shown = folder.refuse("train --data a.csv --out n.sumout");
    std::fs::write(folder.path("a.csv"), wide(None)).unwrap();
    shown.push_str(&folder.refuse("train --data a.csv --out n.sumout"));
    folder.write("a.csv", &table(";", ",", ""));
    shown.push_str(&folder.refuse("predict m.sumout --data a.csv"));
    folder.write("a.csv", "größe;farbe\n1.065;rot\n");
    shown.push_str(&folder.refuse("predict m.sumout --data a.csv --decimal ,"));
    shown.push_str(&folder.refuse("predict m.sumout --data a.csv --decimal , --thousands ,"));
    let both = format!("a;b\n{}1,065.5;2\n", "3,5;1\n".repeat(10)); // no option reads all of it
    folder.write("both.csv", &both);
    for options in ["", " --thousands ,", " --decimal ,"] {
        let line = format!("train --data both.csv --out n.sumout{options}");
        shown.push_str(&folder.refuse(&line));
    }
    insta::assert_snapshot!(shown);
}

/// Names with line breaks and signs that steer a terminal are shown as text.
#[test]
fn names_that_would_steer_a_terminal() {
    let folder = Folder::new();
    let row = |i: usize| format!("{},w{i},{}\n", i % 7, ["\"a\nb\"", "\u{1b}[31mc"][i % 2]);
    let rows: String = (0..40).map(row).collect();
    folder.write("a.csv", &format!("\"x\ny\",\"i\nd\",k\u{1b}[2J\n{rows}"));
    let run = folder.run("train --data a.csv --steps 3 --out m.sumout");
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(
        run.stderr.contains(r"column 'i\nd' looks like"),
        "{}",
        run.stderr
    );
    let target = "train --data a.csv --steps 3 --out m.sumout --target k\u{1b}[2J";
    assert_eq!(folder.run(target).code, 0);
    let shown = folder.run("inspect m.sumout").stdout;
    assert!(
        !shown.contains('\u{1b}') && shown.contains(r"x\ny"),
        "{shown}"
    );
    let printed = folder
        .run("evaluate m.sumout --data a.csv --per-class")
        .stdout;
    assert!(
        !printed.contains('\u{1b}') && printed.contains(r"a\nb"),
        "{printed}"
    );
}
