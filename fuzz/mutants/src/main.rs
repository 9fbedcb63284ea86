//! Do the tests notice? Changes source files one small thing at a time, and says which change no test noticed.
//!
//! ```sh
//! git worktree add --detach ../mutated && cd ../mutated
//! cargo run --release --manifest-path fuzz/mutants/Cargo.toml -- --results ../mutants.txt engine engine/src/training/loss.rs -- lib training
//! ```
//!
//! All mutants are in one build, each behind a switch that an environment variable sets. First every test runs alone and
//! without a mutant, which says how long it takes and which mutants it reaches. Then a mutant meets the tests that reach
//! it, the quickest first; one that fails, or takes more than ten times its usual time, has caught it.
//!
//! Each result is a line of the file at once. Mutants that are in the file are not tried again, so a run that was stopped
//! goes on; to try the missed ones again after a change of the tests, take out their lines (`sed -i '/^caught/!d'`).
//! The order is drawn by lot and always the same, so that a run that was stopped is a fair sample.
//!
//! Files are changed where they are while they are built: use a worktree of its own. `--at-once N` runs N mutants at the
//! same time; `--longest SECONDS` leaves out tests that take longer, whose time is mostly spent on what changes nothing.

mod results;
mod rewrite;
mod tests;

use anyhow::{Context, Result, ensure};
use results::Results;
use rewrite::{Mutant, Rewritten};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tests::{Outcome, Program, Test};

fn main() -> Result<()> {
    let mut given: Vec<String> = std::env::args().skip(1).collect();
    let at_once = take(&mut given, "--at-once")?.map_or(Ok(1), |text| text.parse())?;
    let longest = take(&mut given, "--longest")?.map_or(Ok(f64::INFINITY), |text| text.parse())?;
    let results = take(&mut given, "--results")?.context("--results FILE is missing")?;
    let end = given.iter().position(|word| word == "--");
    let usage = "usage: --results FILE [--at-once N] [--longest SECONDS] PACKAGE FILES -- TESTS";
    let end = end.context(usage)?;
    ensure!(
        end > 1 && end + 1 < given.len(),
        "name a package, files and tests"
    );
    let (package, files, names) = (&given[0], &given[1..end], &given[end + 1..]);
    let results = Results::open(Path::new(&results))?;
    let (mutants, programs) = changed(package, files, names)?;
    let tests = tests::measured(&programs, longest)?;
    let mut left: Vec<&Mutant> = mutants
        .iter()
        .filter(|mutant| !results.has(mutant))
        .collect();
    left.sort_by_key(|mutant| lot(mutant));
    run_all(&left, &tests, &results, at_once)?;
    println!("{}", results.summary(&mutants)?);
    Ok(())
}

/// Takes `--name VALUE` out of the arguments.
fn take(given: &mut Vec<String>, name: &str) -> Result<Option<String>> {
    let Some(at) = given.iter().position(|word| word == name) else {
        return Ok(None);
    };
    given.remove(at);
    ensure!(at < given.len(), "{name} needs a value");
    Ok(Some(given.remove(at)))
}

/// A mutant's place in the order.
fn lot(mutant: &Mutant) -> u64 {
    let mut hasher = DefaultHasher::new();
    mutant.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Builds the tests with all mutants, and puts the files back.
fn changed(
    package: &str,
    files: &[String],
    names: &[String],
) -> Result<(Vec<Mutant>, Vec<Program>)> {
    let library = Path::new(package).join("src/lib.rs");
    let library_text = fs::read_to_string(&library)?;
    ensure!(
        !library_text.contains(rewrite::SWITCH),
        "files have mutants from a build that was stopped: git checkout {package}"
    );
    let sources = read(files)?;
    fs::write(&library, library_text.clone() + rewrite::SWITCH)?;
    let built = compiled(package, &sources, names);
    for (path, text) in &sources {
        fs::write(path, text)?;
    }
    fs::write(&library, library_text)?;
    built
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
fn compiled(
    package: &str,
    sources: &[(PathBuf, String)],
    names: &[String],
) -> Result<(Vec<Mutant>, Vec<Program>)> {
    let mut refused = Vec::new();
    loop {
        let mut mutants = Vec::new();
        for (path, text) in sources {
            let Rewritten { code, found } = rewrite::file(path, text, mutants.len(), &refused)?;
            fs::write(path, code)?;
            mutants.extend(found);
        }
        let wrong = tests::build_errors(package, names)?;
        if wrong.is_empty() {
            println!(
                "{} mutants, {} more do not compile",
                mutants.len(),
                refused.len()
            );
            return Ok((mutants, tests::build(package, names)?));
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

/// Runs each mutant with the tests that reach it.
fn run_all(mutants: &[&Mutant], tests: &[Test], results: &Results, at_once: usize) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(&mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.add(mutant, &verdict(mutant, tests)?)?;
            let done = next.load(Ordering::Relaxed).min(mutants.len());
            eprint!("\r{done} of {} ", mutants.len());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let mut ends = threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"));
        ends.find(Result::is_err).unwrap_or(Ok(()))
    })
}

/// What became of a mutant, and by which test.
fn verdict(mutant: &Mutant, tests: &[Test]) -> Result<String> {
    let mut met = tests.iter().filter(|test| test.reaches(mutant)).peekable();
    if met.peek().is_none() {
        return Ok("unreached -".to_owned());
    }
    for test in met {
        match test.run(mutant)? {
            Outcome::Passed => {}
            Outcome::Failed => return Ok(format!("caught {}", test.name)),
            Outcome::Late => return Ok(format!("late {}", test.name)),
        }
    }
    Ok("missed -".to_owned())
}
