//! Runs experiments: one job for each seed of each, so many at a time.

use crate::mnist::Mnist;
use crate::plan::{Method, Plan};
use crate::results::Book;
use crate::{Run, knn, lenet, pairs, tmm};
use anyhow::Result;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Runs what is asked for; a job that fails does not stop the others.
pub fn run(folder: &Path, args: &Run) -> Result<()> {
    let plans = args
        .names
        .iter()
        .map(|name| Plan::read(folder, name))
        .collect::<Result<Vec<Plan>>>()?;
    let mnist = Mnist::read(&args.data)?;
    let mut books = Vec::new();
    for plan in &plans {
        books.push(Book::open(
            folder,
            plan,
            &mnist.checksum,
            command(folder, plan),
            args.again,
        )?);
    }
    let jobs = plans
        .iter()
        .zip(&books)
        .flat_map(|(plan, book)| plan.seeds.iter().map(move |&seed| (plan, seed, book)));
    let jobs = Mutex::new(jobs.collect::<Vec<_>>().into_iter());
    let failures = Mutex::new(Vec::new());
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                while let Some((plan, seed, book)) = next() {
                    if let Err(error) = one(plan, seed, &mnist, book, args) {
                        eprintln!("{}, seed {seed}: {error:#}", plan.name);
                        failures
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(plan.name.clone());
                    }
                }
            });
        }
    });
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    anyhow::ensure!(failures.is_empty(), "failed: {}", failures.join(", "));
    Ok(())
}

/// One seed. Here is where a method is chosen.
fn one(plan: &Plan, seed: u64, mnist: &Mnist, book: &Book, args: &Run) -> Result<()> {
    let mnist = &plan.data(mnist);
    match plan.method {
        Method::Knn => knn::run(plan, seed, mnist, book),
        Method::Tmm => tmm::run(plan, seed, mnist, book, &args.choice()),
        Method::Lenet => lenet::run(plan, seed, mnist, book, args.jobs),
        Method::PairsTmm => pairs::run_tmm(plan, seed, mnist, book, &args.choice()),
        Method::PairsRobust => pairs::run_robust(plan, seed, mnist, book, args.jobs),
    }
}

/// What to type to run it again.
fn command(folder: &Path, plan: &Plan) -> String {
    let words: Vec<String> = std::env::args().skip_while(|word| word != "run").collect();
    let device = words
        .iter()
        .position(|word| word == "--device")
        .and_then(|at| words.get(at + 1));
    let feature = match plan.method {
        Method::Lenet => " --features networks",
        _ if device.is_some_and(|device| device != "cpu") => " --features cuda",
        _ => "",
    };
    let options = device.map_or_else(String::new, |device| format!(" --device {device}"));
    let usual = folder == Path::new("experiments");
    let place = if usual {
        String::new()
    } else {
        format!("--folder {} ", folder.display())
    };
    format!(
        "cargo run --release -p experiments{feature} -- {place}run {}{options}",
        plan.name
    )
}
