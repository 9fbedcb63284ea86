//! Do the tests notice? Changes source files one small thing at a time, and says which change no test noticed.
//!
//! ```sh
//! git worktree add ../mutated && cd ../mutated
//! cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- engine engine/src/training/loss.rs -- lib training
//! ```
//!
//! All mutants are in one build, each behind a switch that an environment variable sets, so a mutant costs a run of the
//! tests and no build. Files are changed where they are: use a worktree of its own. Tests are given in the order in which
//! a mutant meets them; one that fails, or takes more than ten times its usual time, has caught it.

mod rewrite;
mod tests;

use anyhow::{Context, Result, ensure};
use rewrite::{Mutant, Rewritten};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tests::{Test, build, build_errors};

/// How many mutants run at the same time.
const AT_ONCE: usize = 2;

fn main() -> Result<()> {
    let mut given: Vec<String> = std::env::args().skip(1).collect();
    let every = take_number(&mut given, "--every")?.unwrap_or(1);
    let end = given.iter().position(|word| word == "--");
    let end = end.context("usage: [--every N] PACKAGE FILES -- TESTS")?;
    ensure!(
        end > 1 && end + 1 < given.len(),
        "name a package, files and tests"
    );
    let (package, files, names) = (&given[0], &given[1..end], &given[end + 1..]);
    let sources = read(files)?;
    let library = Path::new(package).join("src/lib.rs");
    let library_text = fs::read_to_string(&library)?;
    let mutants = compiled(package, &sources, names)?;
    let built = build(package, names)?;
    for test in &built {
        println!("{}: {:.1} s", test.name, test.usual.as_secs_f64());
    }
    let some: Vec<&Mutant> = mutants.iter().step_by(every).collect();
    let missed = run_all(&some, &built);
    for mutant in &missed {
        println!("missed {mutant}");
    }
    println!(
        "{} of {} caught, of {}",
        some.len() - missed.len(),
        some.len(),
        mutants.len()
    );
    for (path, text) in &sources {
        fs::write(path, text)?;
    }
    fs::write(library, library_text)?;
    Ok(())
}

/// Takes `--name N` out of the arguments.
fn take_number(given: &mut Vec<String>, name: &str) -> Result<Option<usize>> {
    let Some(at) = given.iter().position(|word| word == name) else {
        return Ok(None);
    };
    given.remove(at);
    ensure!(at < given.len(), "{name} needs a number");
    Ok(Some(given.remove(at).parse()?))
}

fn read(files: &[String]) -> Result<Vec<(PathBuf, String)>> {
    let one = |name: &String| {
        Ok((
            PathBuf::from(name),
            fs::read_to_string(name).with_context(|| name.clone())?,
        ))
    };
    files.iter().map(one).collect()
}

/// Writes the files with switches, without those that do not compile; returns the mutants that do.
fn compiled(package: &str, sources: &[(PathBuf, String)], names: &[String]) -> Result<Vec<Mutant>> {
    let mut refused = Vec::new();
    loop {
        let mut mutants = Vec::new();
        for (path, text) in sources {
            let Rewritten { code, found } = rewrite::file(path, text, mutants.len(), &refused)?;
            fs::write(path, code)?;
            mutants.extend(found);
        }
        let library = Path::new(package).join("src/lib.rs");
        rewrite::add_switch(&library)?;
        let wrong = build_errors(package, names)?;
        if wrong.is_empty() {
            println!(
                "{} mutants, {} more do not compile",
                mutants.len(),
                refused.len()
            );
            return Ok(mutants);
        }
        let before = refused.len();
        for mutant in &mutants {
            if wrong.contains(&mutant.id) {
                refused.push(mutant.key());
            }
        }
        ensure!(
            refused.len() > before,
            "the build fails, and not for a mutant"
        );
    }
}

/// Runs the tests with each mutant; returns those that none has noticed.
fn run_all<'a>(mutants: &[&'a Mutant], built: &[Test]) -> Vec<&'a Mutant> {
    let (next, missed, begun) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Instant::now());
    let work = || {
        while let Some(&mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
            let caught = built.iter().find(|test| test.notices(mutant.id));
            match caught {
                Some(test) => println!("caught by {} {mutant}", test.name),
                None => missed.lock().expect("no thread panics").push(mutant),
            }
            eprint!(
                "\r{} of {}, {} s ",
                next.load(Ordering::Relaxed),
                mutants.len(),
                begun.elapsed().as_secs()
            );
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    missed.into_inner().expect("no thread panics")
}
