//! Programs that are killed, disks that are full, folders that are read-only and files that change while they are read:
//! what is on disk is the old file or the new one, never half of one.

#![cfg(target_os = "linux")]

mod program;

use program::{Folder, Run};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use sumout::random::{Purpose, Stream};
use sumout_data::model_files;

const TRAIN: &str =
    "train small.toml --data flowers.csv --target species --checkpoint-every 5 --out a.sumout";
const RESUME: &str =
    "train --resume a.checkpoint.sumout --data flowers.csv --checkpoint-every 5 --out a.sumout";

/// Flowers, and a model that trains for about a second with the writing of its checkpoints.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("flowers.csv", &program::flowers(60));
    folder.write(
        "small.toml",
        "[columns]\ncomponents = 2\nchannels = [2]\n[settings]\nsteps = 500\nbatch = 8\n",
    );
    folder
}

/// How many times a run is killed: few in the tests, as many as one likes by hand.
fn kills() -> usize {
    std::env::var("SUMOUT_KILLS").map_or(10, |kills| kills.parse().unwrap())
}

/// Files that a killed program had begun and nobody will finish.
fn is_unfinished(name: &str) -> bool {
    name.ends_with(".part")
}

/// Starts training or goes on with it, and kills it after a while. Whether it was killed, and not done before.
fn killed_after(folder: &Folder, pause: Duration) -> bool {
    let goes_on = folder.path("a.checkpoint.sumout").exists();
    let mut child = folder
        .command(if goes_on { RESUME } else { TRAIN })
        .spawn()
        .unwrap();
    std::thread::sleep(pause);
    child.kill().unwrap();
    let ended = child.wait_with_output().unwrap();
    let is_killed = ended.status.signal() == Some(9);
    assert!(
        is_killed || ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    is_killed
}

/// Whatever moment a run is killed at, the files that are there are whole, and it goes on to the same bits.
#[test]
#[allow(clippy::print_stdout, reason = "how many kills were inside a write")]
fn killed_at_any_moment_training_resumes_to_the_same_bits() {
    let folder = folder();
    assert_eq!(folder.run(TRAIN).code, 0);
    let whole = fs::read(folder.path("a.sumout")).unwrap();
    fs::remove_file(folder.path("a.sumout")).unwrap();
    let mut random = Stream::new(23, Purpose::Sampling, 0, 0);
    let (mut done, mut inside, mut runs) = (0, 0, 0);
    while done < kills() {
        // From the first instruction to long after the first checkpoints.
        let pause = Duration::from_micros((random.uniform() * 250_000.0) as u64);
        done += usize::from(killed_after(&folder, pause));
        let names = folder.names();
        inside += names.iter().filter(|name| is_unfinished(name)).count();
        for name in names {
            let path = folder.path(&name);
            if name.ends_with(".sumout") {
                model_files::load(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            } else if is_unfinished(&name) {
                fs::remove_file(path).unwrap();
            }
        }
        if folder.path("a.sumout").exists() {
            assert!(fs::read(folder.path("a.sumout")).unwrap() == whole);
            let _ = fs::remove_file(folder.path("a.checkpoint.sumout")); // killed between the two
            fs::remove_file(folder.path("a.sumout")).unwrap();
            runs += 1;
        }
    }
    let goes_on = folder.path("a.checkpoint.sumout").exists();
    let last = folder.run(if goes_on { RESUME } else { TRAIN });
    assert_eq!(last.code, 0, "{}", last.stderr);
    assert!(fs::read(folder.path("a.sumout")).unwrap() == whole);
    println!(
        "{done} kills, {inside} of them inside a write, {} runs to the same bits",
        runs + 1
    );
}

/// Before the first step there is nothing to keep: Ctrl-C ends the program, whatever the start of leaves would take.
#[test]
fn ctrl_c_before_the_first_step_ends_at_once() {
    let folder = folder();
    let forever = "[columns]\n[settings.leaves]\nrounds = 1000000000000\n";
    folder.write("small.toml", forever);
    let mut child = folder.command(TRAIN).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.lines().any(|line| line.unwrap().starts_with("model ")));
    std::thread::sleep(Duration::from_millis(200));
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let ended = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().unwrap()
    });
    let _ = child.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(130));
}

/// Most of this run is the start of leaves, tree after tree. Ctrl-C in it is heard, and the run goes on to the same bits.
#[test]
fn ctrl_c_before_the_steps_of_a_later_tree_loses_nothing() {
    let folder = folder();
    let plan = "[columns]\n[settings]\nsteps = 1\n[settings.leaves]\nrounds = 3000\n";
    folder.write("small.toml", plan);
    let trees = TRAIN.replace("every 5", "every 1 --trees 6");
    assert_eq!(folder.run(&trees).code, 0);
    let whole = fs::read(folder.path("a.sumout")).unwrap();
    fs::remove_file(folder.path("a.sumout")).unwrap();
    let mut child = folder.command(&trees).spawn().unwrap();
    let first = folder.path("a.checkpoint.sumout");
    while !first.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(50)); // the step of the second tree takes less
    let pid = child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!(run.code, 130, "{}", run.stderr);
    assert!(run.stderr.contains("stopped after step "), "{}", run.stderr);
    assert_eq!(folder.run(RESUME).code, 0);
    assert!(fs::read(folder.path("a.sumout")).unwrap() == whole);
}

/// The program in a shell after some commands of the shell.
fn after(commands: &str, folder: &Folder, line: &str) -> Run {
    let sumout = env!("CARGO_BIN_EXE_sumout");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{commands}; exec {sumout} {line}")]);
    shell.current_dir(folder.path(".")).output().unwrap().into()
}

/// A limit on the size of files stands for a disk that gets full in the middle of a file.
#[test]
fn a_disk_that_gets_full_leaves_the_old_file() {
    let folder = folder();
    folder.write("many.csv", &program::flowers(3000));
    assert_eq!(folder.run(TRAIN).code, 0);
    let impute = "impute a.sumout --data many.csv --out filled.csv";
    assert_eq!(folder.run(impute).code, 0);
    let (names, filled) = (folder.names(), folder.read("filled.csv"));
    let model = fs::read(folder.path("a.sumout")).unwrap();
    // A model has some kilobytes; a block of the limit has 512 bytes.
    let full = "trap '' XFSZ; ulimit -f 2";
    for line in [
        TRAIN,
        impute,
        "sample a.sumout --count 1000 --out filled.csv",
    ] {
        let run = after(full, &folder, line);
        assert_eq!(run.code, 1, "{line}: {}", run.stderr);
        assert!(
            run.stderr.contains("error: cannot write "),
            "{}",
            run.stderr
        );
        assert_eq!(folder.names(), names, "{line}");
    }
    // The same where the system ends the program: the file that it had begun is all that is left.
    let run = after("ulimit -f 2", &folder, TRAIN);
    assert_eq!(run.code, -1, "{}", run.stderr);
    assert!(fs::read(folder.path("a.sumout")).unwrap() == model);
    assert_eq!(folder.read("filled.csv"), filled);
}

/// A copy of the program as a user who may not write where it is told to: root may write everywhere.
fn as_nobody(folder: &Folder, line: &str) -> Run {
    let sumout = folder.path("sumout");
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let who = if is_root {
        "setpriv --reuid=65534 --regid=65534 --clear-groups "
    } else {
        ""
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {who}{} {line}", sumout.display())]);
    shell.current_dir(folder.path(".")).output().unwrap().into()
}

#[test]
fn a_folder_that_is_read_only() {
    let folder = folder();
    assert_eq!(folder.run(TRAIN).code, 0);
    let model = fs::read(folder.path("a.sumout")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_sumout"), folder.path("sumout")).unwrap();
    let mode = |mode| fs::set_permissions(folder.path("."), fs::Permissions::from_mode(mode));
    mode(0o555).unwrap();
    for line in [
        TRAIN,
        "predict a.sumout --data flowers.csv --out classes.csv",
    ] {
        let run = as_nobody(&folder, line);
        assert_eq!(run.code, 2, "{line}: {}", run.stderr);
        assert!(run.stderr.contains("ermission denied"), "{}", run.stderr);
    }
    let shown = as_nobody(&folder, "predict a.sumout --data flowers.csv");
    assert_eq!((shown.code, shown.stdout.lines().count()), (0, 61));
    mode(0o755).unwrap();
    assert!(fs::read(folder.path("a.sumout")).unwrap() == model);
}

/// A table that is shortened, that grows or that goes away while it is read is not half read.
#[test]
fn a_file_that_changes_while_it_is_read() {
    let folder = folder();
    assert_eq!(folder.run(TRAIN).code, 0);
    let large = program::flowers(200_000);
    let change: [fn(&Path); 3] = [
        |path| {
            fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(1000)
                .unwrap()
        },
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, program::flowers(10)).unwrap(),
    ];
    for (number, change) in change.iter().enumerate() {
        folder.write("large.csv", &large);
        let line = "predict a.sumout --data large.csv --out classes.csv";
        let child = folder.command(line).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(40));
        change(&folder.path("large.csv"));
        let run: Run = child.wait_with_output().unwrap().into();
        match run.code {
            // It had all of the old file, by its name or by the open file.
            0 => assert_eq!(folder.read("classes.csv").lines().count(), 200_001),
            _ => {
                assert!(
                    run.stderr.starts_with("error: "),
                    "{number}: {}",
                    run.stderr
                );
                assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
                assert!(!folder.path("classes.csv").exists());
            }
        }
        let _ = fs::remove_file(folder.path("classes.csv"));
    }
}
