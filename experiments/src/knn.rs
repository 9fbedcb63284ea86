//! The five nearest training images by the pixels that are seen, as the demo has them: no weights, so a seed is one of
//! holes only, and nothing is learned.

use crate::columns::{accuracy, with_holes};
use crate::mnist::{Mnist, PIXELS};
use crate::plan::Plan;
use crate::results::{Book, Run, machine, seconds};
use anyhow::Result;
use std::time::Instant;
use sumout_cli::report::rivals::Neighbours;

/// Asks about all columns with the holes of one seed.
pub fn run(plan: &Plan, seed: u64, mnist: &Mnist, book: &Book) -> Result<()> {
    if book.has("", seed) {
        return Ok(());
    }
    let start = Instant::now();
    let neighbours = Neighbours::new(&mnist.train.values, &mnist.train.labels, PIXELS);
    let mut accuracies = Vec::new();
    for missing in plan.missing()? {
        let rows = with_holes(missing, &mnist.test.values, seed)?;
        accuracies.push(accuracy(&neighbours.by_seen_pixels(&rows), &mnist.test.labels));
        eprintln!("{}, seed {seed}: {missing} done after {} s", plan.name, start.elapsed().as_secs());
    }
    book.add(Run {
        row: String::new(),
        seed,
        mask_seed: seed,
        train: mnist.train.labels.len(),
        test: mnist.test.labels.len(),
        train_seconds: 0.0,
        test_seconds: seconds(start.elapsed()),
        machine: machine(),
        accuracies,
    })
}
