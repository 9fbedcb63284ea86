//! What bad input gets: a message that says what was expected and what came, the right exit code, and no damage.

mod program;

use program::Folder;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::Duration;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("flowers.csv", &program::flowers(60));
    let train = folder.run("train --data flowers.csv --target species --steps 5 --out m.sumout");
    assert_eq!(train.code, 0, "{}", train.stderr);
    folder
}

#[test]
fn arguments() {
    let folder = folder();
    let density = "train --data flowers.csv --steps 5 --out density.sumout";
    assert_eq!(folder.run(density).code, 0);
    let lines = [
        "train --out a.sumout",
        "train flowers.csv",
        "train flowers.csv --data flowers.csv --out a.sumout",
        "predict m.sumout flowers.csv",
        "train mnist --data flowers.csv --out a.sumout",
        "train --data nowhere.csv --out a.sumout",
        "train --data flowers.csv --target kind --out a.sumout",
        "train --data flowers.csv --target species --steps 0 --out a.sumout",
        "train --data flowers.csv --validation 1.5 --out a.sumout",
        "train mnist-ht --data flowers.csv --target species --out a.sumout",
        "train --resume m.sumout --seed 3 --data flowers.csv --out a.sumout",
        "evaluate m.sumout --data flowers.csv --missing iid:2",
        "evaluate m.sumout --data flowers.csv --missing rect:1x5",
        "evaluate m.sumout --data flowers.csv --shifts 1",
        "train --data flowers.csv --target species --out -",
        "train --data flowers.csv --target species --ignore width,species --out a.sumout",
        "predict m.sumout --data flowers.csv --out a.xlsx",
        "predict m.sumout --data flowers.csv --out a.png",
        "sample m.sumout --class oak",
        "sample density.sumout --class oak",
        "sample m.sumout --out a.png",
        "sample m.sumout --count -3",
        "explain m.sumout --level 1 --channel 99",
        "explain m.sumout --level 3 --channel 0",
        "inspect nothing",
        "bench --preset nothing",
        "bench --batch 0",
        "completions tcl",
        "predict m.sumout --data flowers.csv --threads 0",
        "predict m.sumout --data flowers.csv --threads 2000",
        "impute m.sumout --data flowers.csv --out - --variance -",
        "impute m.sumout --data flowers.csv --variance v.csv --probabilities v.csv",
    ];
    insta::assert_snapshot!(lines.map(|line| folder.refuse(line)).concat());
}

#[test]
fn data() {
    let folder = folder();
    let mut shown = String::new();
    let mut case = |name: &str, text: &str, line: &str| {
        folder.write(name, text);
        shown.push_str(&format!("$ cat {name}\n{text}{}", folder.refuse(line)));
    };
    let train = "train --data bad.csv --target y --out a.sumout";
    case("bad.csv", "a,y\n1,no\ninf,yes\n", train);
    case("bad.csv", "a,y\n1,no\n2\n", train);
    case("bad.csv", "a,y\n", train);
    case("bad.csv", "a,y\n1,no\n2,no\nx,no\n", train);
    let predict = "predict m.sumout --data bad.csv --out a.csv";
    case("bad.csv", "width,length\n1,2\n", predict);
    case("bad.csv", "width,length,colour\n1,2,green\n", predict);
    case(
        "bad.csv",
        "width,length,colour\n1,2,red\n1,x,red\n",
        predict,
    );
    let evaluate = "evaluate m.sumout --data bad.csv";
    case(
        "bad.csv",
        "width,length,colour,species\n1,2,red,oak\n",
        evaluate,
    );
    case("bad.csv", "width,length,colour,species\n", evaluate);
    let impute = "impute m.sumout --data bad.csv --given-labels --out a.csv";
    case("bad.csv", "width,length,colour\n1,2,red\n", impute);
    folder.write("x.csv", "a\n1\n2\n");
    let train = "train --data x.csv --labels y.csv --out a.sumout";
    case("y.csv", "y\n0\n2\n", train);
    case("y.csv", "y\n0\n1\n1\n", train);
    case("y.csv", "y\n0\n1.5\n", train);
    case("y.csv", "y,z\n0,1\n1,2\n", train);
    insta::assert_snapshot!(shown);
}

#[test]
fn models() {
    let folder = folder();
    let mut shown = String::new();
    folder.write("text.sumout", "this is no model");
    shown.push_str(&folder.refuse("predict text.sumout --data flowers.csv"));
    shown.push_str(&folder.refuse("predict none.sumout --data flowers.csv"));
    shown.push_str(&folder.refuse("predict . --data flowers.csv"));
    shown.push_str(&folder.refuse("train --resume text.sumout --data flowers.csv --out a.sumout"));
    let bytes = fs::read(folder.path("m.sumout")).unwrap();
    fs::write(folder.path("cut.sumout"), &bytes[..bytes.len() / 2]).unwrap();
    shown.push_str(&folder.refuse("inspect cut.sumout"));
    shown.push_str(&folder.refuse("train --resume m.sumout --data flowers.csv --out a.sumout"));
    shown.push_str(&folder.refuse("predict m.sumout --data digits"));
    folder.write("other.csv", "width,length,kind\n1,2,a\n2,1,b\n");
    assert_eq!(
        folder
            .run("train --data other.csv --target kind --steps 5 --out other.sumout")
            .code,
        0
    );
    shown.push_str(&folder.refuse("evaluate m.sumout other.sumout --data flowers.csv"));
    insta::assert_snapshot!(shown);
}

#[test]
fn places_that_cannot_be_written() {
    let folder = folder();
    let mut shown = String::new();
    let train = "train --data flowers.csv --target species --steps 5 --out";
    shown.push_str(&folder.refuse(&format!("{train} none/")));
    shown.push_str(&folder.refuse(&format!("{train} none/a.sumout")));
    shown.push_str(&folder.refuse(&format!("{train} .")));
    shown.push_str(&folder.refuse("predict m.sumout --data flowers.csv --out none/a.csv"));
    insta::assert_snapshot!(shown);
}

/// A disk without space is nobody's mistake: code 1, and what was there before is still there.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let folder = folder();
    for (link, target) in [("full.csv", "/dev/full"), ("full.sumout", "/dev/full")] {
        std::os::unix::fs::symlink(target, folder.path(link)).unwrap();
    }
    let lines = [
        "predict m.sumout --data flowers.csv --out full.csv",
        "train --data flowers.csv --target species --steps 5 --out full.sumout",
    ];
    insta::assert_snapshot!(lines.map(|line| folder.show(line)).concat());
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let run: program::Run = folder
        .command("predict m.sumout --data flowers.csv")
        .stdout(full)
        .output()
        .unwrap()
        .into();
    let message = "error: cannot write standard output: No space left on device\n";
    assert_eq!((run.code, run.stderr.as_str()), (1, message));
}

/// A checkpoint that cannot be written does not end the training, and a file that is no model is not replaced by one.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_at_a_checkpoint() {
    let folder = folder();
    let link = folder.path("a.checkpoint.sumout");
    std::os::unix::fs::symlink("/dev/full", link).unwrap();
    let train =
        "train --data flowers.csv --target species --steps 5 --trees 1 --checkpoint-every 2 --out";
    let run = folder.run(&format!("{train} a.sumout"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let warned = |step| {
        format!(
            "warning: no checkpoint after step {step}: cannot write a.checkpoint.sumout: No space \
             left on device\n"
        )
    };
    let warnings: String = [2, 4, 6, 8, 10].map(warned).concat(); // 5 steps of a trial, 5 of a tree, 1 of all together
    assert_eq!(run.stderr, warnings);
    assert!(folder.path("a.sumout").exists());
}

/// Memory is asked for before the work starts, so that nobody is left with a program that was ended.
#[cfg(target_os = "linux")]
#[test]
fn a_model_that_is_too_large() {
    let folder = folder();
    folder.write("large.toml", "[columns]\nchannels = [10000000]\n");
    let sumout = env!("CARGO_BIN_EXE_sumout");
    let line = format!(
        "ulimit -v 4000000; {sumout} train large.toml --data flowers.csv --threads 1 --out a.sumout"
    );
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &line]).current_dir(folder.path("."));
    let run: program::Run = shell.output().unwrap().into();
    let expected = "error: expected a model that fits into memory, got one of ";
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    let free = run.stderr.split(" GiB are free").next().unwrap();
    let free: f64 = free.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(free > 0.5 && free < 4.0, "{}", run.stderr);
    assert_eq!(run.code, 2);
}

#[test]
fn a_file_that_is_no_model_is_not_replaced() {
    let folder = folder();
    folder.write("precious.csv", "a,b\n1,2\n");
    let train = "train --data flowers.csv --target species --steps 5 --out";
    insta::assert_snapshot!(folder.refuse(&format!("{train} precious.csv")));
    assert_eq!(folder.read("precious.csv"), "a,b\n1,2\n");
    folder.write("empty", "");
    for out in ["precious.csv --force", "m.sumout", "empty"] {
        assert_eq!(folder.run(&format!("{train} {out}")).code, 0, "{out}");
    }
}

#[test]
fn a_pipe_that_closes_is_no_error() {
    let folder = folder();
    let mut child = folder
        .command("sample m.sumout --count 100000")
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap(); // and the pipe is dropped
    let run: program::Run = child.wait_with_output().unwrap().into();
    assert_eq!(
        (line.trim(), run.code, run.stderr.as_str()),
        ("width,length,colour,species", 0, "")
    );
}

/// Ctrl-C keeps a checkpoint, says how to go on, and going on gives the same bits as never stopping.
#[cfg(unix)]
#[test]
fn ctrl_c_and_resume() {
    let folder = folder();
    folder.write(
        "small.toml",
        "[columns]\ncomponents = 2\nchannels = [2]\n[settings]\nsteps = 20000\nbatch = 8\n",
    );
    let train = "train small.toml --data flowers.csv --target species --out";
    let mut child = folder
        .command(&format!("{train} a.sumout"))
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    out.find(|line| line.as_ref().unwrap().starts_with("step"))
        .unwrap()
        .unwrap();
    // Twice at once, nearly as `timeout` does it: that is one request.
    let twice = format!("kill -TERM {0}; kill -INT {0}", child.id());
    let killed = Command::new("sh").args(["-c", &twice]).status().unwrap();
    assert!(killed.success());
    out.for_each(drop);
    let stopped: program::Run = child.wait_with_output().unwrap().into();
    assert_eq!(stopped.code, 130, "{}", stopped.stderr);
    let words =
        "stopping after this step, with a checkpoint; Ctrl-C again stops at once, without one\n";
    let rest = stopped.stderr.strip_prefix(words);
    assert!(
        rest.is_some_and(|rest| rest.starts_with("stopped after step ")),
        "{}",
        stopped.stderr
    );
    assert!(
        folder.names().contains(&"a.checkpoint.sumout".to_owned())
            && !folder.path("a.sumout").exists()
    );
    let command = stopped
        .stderr
        .lines()
        .last()
        .unwrap()
        .trim()
        .strip_prefix("sumout ")
        .unwrap();
    assert_eq!(
        command,
        "train --resume a.checkpoint.sumout --data flowers.csv --out a.sumout"
    );
    folder.write("others.csv", &program::flowers(61));
    insta::assert_snapshot!(folder.refuse(&command.replace("flowers.csv", "others.csv")));
    insta::assert_snapshot!(folder.refuse(&command.replace("a.sumout", "a.checkpoint.sumout")));
    insta::assert_snapshot!(folder.refuse(&format!("{command} --validation 0.1")));
    assert_eq!(folder.run(command).code, 0);
    assert_eq!(folder.run(&format!("{train} b.sumout")).code, 0);
    assert!(
        fs::read(folder.path("a.sumout")).unwrap() == fs::read(folder.path("b.sumout")).unwrap()
    );
    assert!(!folder.path("a.checkpoint.sumout").exists());
}

/// After SIGKILL, the next run says how to go on; the validation data need not be named again.
#[cfg(unix)]
#[test]
fn kill_and_resume() {
    let folder = folder();
    folder.write(
        "small.toml",
        "[columns]\ncomponents = 2\nchannels = [2]\n[settings]\nsteps = 20000\nbatch = 8\n",
    );
    let train = "train small.toml --data flowers.csv --target species --validation 0.2 --checkpoint-every 100 --out";
    let mut child = folder
        .command(&format!("{train} a.sumout"))
        .spawn()
        .unwrap();
    let checkpoint = folder.path("a.checkpoint.sumout");
    for _ in 0..1000 {
        if checkpoint.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = fs::read(&checkpoint).unwrap();
    let again = folder.run(&format!("{train} a.sumout"));
    assert_eq!(again.code, 0, "{}", again.stderr);
    let command = "train --resume a.checkpoint.sumout --data flowers.csv --out a.sumout";
    assert!(
        again
            .stderr
            .starts_with("a.checkpoint.sumout is of a run that stopped after step ")
            && again
                .stderr
                .contains(&format!("continue it with\n  sumout {command}\n")),
        "{}",
        again.stderr
    );
    let whole = fs::read(folder.path("a.sumout")).unwrap();
    fs::write(&checkpoint, kept).unwrap();
    let resumed = folder.run(command);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stdout.contains("validation "), "{}", resumed.stdout);
    assert!(whole == fs::read(folder.path("a.sumout")).unwrap());
    let shown = folder.run("inspect a.sumout").stdout;
    assert!(
        !shown.contains("validation_from"),
        "a path is nobody's business: {shown}"
    );
}
