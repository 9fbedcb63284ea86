//! Two-digit tasks under feature deletion (paper, appendix on binary digit classification): for each of the 45 pairs,
//! learn from 300 images a digit, lose n of the pixels that are not zero (not at random!), tell the two digits apart.
//!
//! ```toml
//! columns = ["nonzero:0", "nonzero:25"]
//! [options]
//! shifts = 1                 # of the TMM
//! [options.model]            # the TMM, as in a plan of `sumout train`; without it, the linear program
//! preset = "mnist-ht"
//! ```
//!
//! A seed draws the training images and the holes. The last 1,000 training images of each digit are kept to choose by,
//! and all test images of the two digits are asked about. The TMM is one model of ten digits, asked for the likelier
//! of two. The linear program knows n: of the classifiers trained with each N and C of a grid it takes the one that is
//! best on 500 images a digit, of those kept, that have lost n pixels.

use crate::columns::with_holes;
use crate::mnist::{Images, Mnist, PIXELS};
use crate::plan::Plan;
use crate::results::{Book, Run, machine, seconds};
use crate::robust::{Linear, Robust};
use crate::side_by_side::side_by_side;
use crate::tmm;
use anyhow::Result;
use serde::Deserialize;
use std::time::Instant;
use sumout::Precision;
use sumout::queries::shifts;
use sumout::random::{Purpose, Stream};
use sumout_data::devices::DeviceChoice;

const DIGITS: i64 = 10;
const LEARNED: usize = 300; // images a digit
const KEPT: usize = 1000;
const CHOSEN_BY: usize = 500;

/// All pairs of digits, the smaller first.
fn pairs() -> Vec<(i64, i64)> {
    (0..DIGITS)
        .flat_map(|a| (a + 1..DIGITS).map(move |b| (a, b)))
        .collect()
}

impl Images {
    /// Those of these numbers.
    fn picked(&self, rows: &[usize]) -> Self {
        let values = rows
            .iter()
            .flat_map(|&row| &self.values[row * PIXELS..][..PIXELS])
            .copied()
            .collect();
        Self {
            values,
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
        }
    }

    /// Those of two digits.
    fn of_pair(&self, (a, b): (i64, i64)) -> Self {
        let rows: Vec<usize> = (0..self.labels.len())
            .filter(|&row| [a, b].contains(&self.labels[row]))
            .collect();
        self.picked(&rows)
    }
}

/// What is learned from, 300 images a digit drawn by the seed, and what is chosen by.
fn learned_and_kept(train: &Images, seed: u64) -> (Images, Images) {
    let (mut learned, mut kept) = (Vec::new(), Vec::new());
    for digit in 0..DIGITS {
        let rows: Vec<usize> = (0..train.labels.len())
            .filter(|&row| train.labels[row] == digit)
            .collect();
        let (free, last) = rows.split_at(rows.len().saturating_sub(KEPT));
        let order = Stream::new(seed, Purpose::Shuffle, 0, digit as u32).permutation(free.len());
        learned.extend(order.iter().take(LEARNED).map(|&i| free[i as usize]));
        kept.extend(&last[..CHOSEN_BY.min(last.len())]);
    }
    (train.picked(&learned), train.picked(&kept))
}

/// Options of the TMM.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TmmOptions {
    shifts: usize,
    model: toml::Table,
}

/// One seed of the TMM: the mean over all pairs.
pub fn run_tmm(
    plan: &Plan,
    seed: u64,
    mnist: &Mnist,
    book: &Book,
    chosen: &DeviceChoice,
) -> Result<()> {
    if book.has("", seed) {
        return Ok(());
    }
    let options: TmmOptions = plan.options()?;
    let (learned, _) = learned_and_kept(&mnist.train, seed);
    let start = Instant::now();
    let ready = chosen.ready(Precision::Tf32)?;
    let mut model = chosen.predictor(tmm::learn(
        plan,
        &options.model,
        seed,
        &learned,
        book,
        ready,
    )?)?;
    let train_seconds = seconds(start.elapsed());
    let start = Instant::now();
    let mut accuracies = Vec::new();
    for missing in plan.missing()? {
        let rows = with_holes(missing, &mnist.test.values, seed)?;
        accuracies.push(mean_of_pairs(
            model
                .log_joint(model.model().rows(&rows)?, &shifts(options.shifts))?
                .as_slice(),
            &mnist.test.labels,
        ));
    }
    book.add(Run {
        row: String::new(),
        seed,
        mask_seed: seed,
        train: learned.labels.len(),
        test: mnist.test.labels.len(),
        train_seconds,
        test_seconds: seconds(start.elapsed()),
        machine: machine(),
        accuracies,
    })
}

/// Accuracy by scores (n, 10), averaged over pairs, each asked about the rows of its digits alone.
fn mean_of_pairs(scores: &[f64], labels: &[i64]) -> f64 {
    let accuracy = |(a, b): (i64, i64)| {
        let rows = scores
            .chunks_exact(DIGITS as usize)
            .zip(labels)
            .filter(|(_, label)| [a, b].contains(label));
        let right = rows
            .clone()
            .filter(|(row, label)| (row[a as usize] > row[b as usize]) == (**label == a))
            .count();
        100.0 * right as f64 / rows.count() as f64
    };
    pairs().into_iter().map(accuracy).sum::<f64>() / pairs().len() as f64
}

/// The linear program's grid.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    /// N, each with C.
    expected: Vec<(usize, f64)>,
}

/// One seed of the linear program, a row for each pair.
pub fn run_robust(plan: &Plan, seed: u64, mnist: &Mnist, book: &Book, jobs: usize) -> Result<()> {
    let grid: Grid = plan.options()?;
    let (learned, kept) = learned_and_kept(&mnist.train, seed);
    let name = |(a, b): (i64, i64)| format!("{a}-{b}");
    let left = pairs()
        .into_iter()
        .filter(|&pair| !book.has(&name(pair), seed))
        .collect();
    side_by_side(jobs, left, |pair| {
        let (learned, kept, test) = (
            learned.of_pair(pair),
            kept.of_pair(pair),
            mnist.test.of_pair(pair),
        );
        let start = Instant::now();
        let rows: Vec<f32> = learned.values.iter().map(|x| x / 255.0).collect();
        let signs: Vec<f64> = learned
            .labels
            .iter()
            .map(|&label| if label == pair.0 { 1.0 } else { -1.0 })
            .collect();
        let train =
            |&(deleted, bound): &(usize, f64)| Robust { deleted, bound }.train(&rows, &signs);
        let classifiers = grid
            .expected
            .iter()
            .map(train)
            .collect::<Result<Vec<Linear>>>()?;
        let train_seconds = seconds(start.elapsed());
        let start = Instant::now();
        let mut accuracies = Vec::new();
        for missing in plan.missing()? {
            let [chosen_by, asked] =
                [&kept, &test].map(|images| with_holes(missing, &images.values, seed));
            let (chosen_by, asked) = (chosen_by?, asked?);
            let best = classifiers.iter().max_by(|one, other| {
                let [one, other] = [one, other]
                    .map(|linear| share_right(linear, &chosen_by, &kept.labels, pair.0));
                one.total_cmp(&other)
            });
            accuracies.push(share_right(
                best.expect("a grid"),
                &asked,
                &test.labels,
                pair.0,
            ));
        }
        eprintln!(
            "{}, seed {seed}: {} after {train_seconds} s",
            plan.name,
            name(pair)
        );
        book.add(Run {
            row: name(pair),
            seed,
            mask_seed: seed,
            train: learned.labels.len(),
            test: test.labels.len(),
            train_seconds,
            test_seconds: seconds(start.elapsed()),
            machine: format!("one of {}", machine()),
            accuracies,
        })
    })
}

/// One run for each seed, and how many pairs it has seen: the mean of the pairs where each has a run of its own.
/// Seeds that are not complete are left out, unless there is no other.
pub fn by_seed(runs: &[Run]) -> Vec<(Run, usize)> {
    let mut seeds: Vec<u64> = runs.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let mean = |seed: u64| {
        let of_seed: Vec<&Run> = runs.iter().filter(|run| run.seed == seed).collect();
        let seen = if of_seed[0].row.is_empty() {
            pairs().len()
        } else {
            of_seed.len()
        };
        let column = |i: usize| {
            of_seed.iter().map(|run| run.accuracies[i]).sum::<f64>() / of_seed.len() as f64
        };
        let accuracies = (0..of_seed[0].accuracies.len()).map(column).collect();
        (
            Run {
                row: String::new(),
                accuracies,
                ..of_seed[0].clone()
            },
            seen,
        )
    };
    let mut means: Vec<(Run, usize)> = seeds.into_iter().map(mean).collect();
    let most = means.iter().map(|(_, seen)| *seen).max();
    means.retain(|(_, seen)| Some(*seen) == most);
    means
}

/// Percent of rows from 0 to 255 whose digit is found.
fn share_right(linear: &Linear, rows: &[f32], labels: &[i64], positive: i64) -> f64 {
    let score = |row: &[f32]| linear.score(&row.iter().map(|x| x / 255.0).collect::<Vec<f32>>());
    let right = rows
        .chunks_exact(PIXELS)
        .zip(labels)
        .filter(|(row, label)| (score(row) > 0.0) == (**label == positive));
    100.0 * right.count() as f64 / labels.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout_data::layout::Split;

    #[test]
    fn draws() {
        let train = Images::read(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits"),
            Split::Train,
        )
        .unwrap();
        // 5,000 images have about 500 of a digit: 1,000 kept would leave none, so each is there four times.
        let train = train.picked(
            &(0..4 * train.labels.len())
                .map(|i| i / 4)
                .collect::<Vec<_>>(),
        );
        let (learned, kept) = learned_and_kept(&train, 1);
        for digit in 0..DIGITS {
            let count = |images: &Images| {
                images
                    .labels
                    .iter()
                    .filter(|&&label| label == digit)
                    .count()
            };
            assert_eq!((count(&learned), count(&kept)), (LEARNED, CHOSEN_BY));
        }
        assert_eq!(learned.values, learned_and_kept(&train, 1).0.values);
        let (other, same_kept) = learned_and_kept(&train, 2);
        assert!(learned.values != other.values && kept.values == same_kept.values);
        let pair = learned.of_pair((3, 7));
        assert_eq!(pair.labels.len(), 2 * LEARNED);
        assert!(pair.labels.iter().all(|label| [3, 7].contains(label)));
    }

    /// A digit that is always told from the others, and nine that are guessed to be the smaller of two: each of the 9
    /// pairs with 0 is 100, each of the 36 others 50.
    #[test]
    fn averaged_over_pairs() {
        assert_eq!(pairs().len(), 45);
        let labels: Vec<i64> = (0..10).collect();
        let score = |row: i64, class: i64| match (row, class) {
            (0, 0) => 100.0,
            (_, 0) => -100.0,
            _ => -class as f64,
        };
        let scores: Vec<f64> = (0..10)
            .flat_map(|row| (0..10).map(move |class| score(row, class)))
            .collect();
        assert_eq!(
            mean_of_pairs(&scores, &labels),
            (9.0 * 100.0 + 36.0 * 50.0) / 45.0
        );
    }

    #[test]
    fn a_seed_without_all_its_pairs_is_left_out() {
        let run = |row: &str, seed: u64, accuracy: f64| Run {
            row: row.into(),
            seed,
            mask_seed: seed,
            train: 600,
            test: 2000,
            train_seconds: 1.0,
            test_seconds: 1.0,
            machine: "an abacus".into(),
            accuracies: vec![accuracy, 50.0],
        };
        let mut runs: Vec<Run> = (0..45)
            .map(|i| run(&format!("{i}"), 1, f64::from(i)))
            .collect();
        runs.push(run("0", 2, 99.0));
        let seeds = by_seed(&runs);
        assert_eq!(
            (seeds.len(), &seeds[0].0.accuracies[..], seeds[0].1),
            (1, &[22.0, 50.0][..], 45)
        );
        assert_eq!(by_seed(&[run("", 3, 98.0), run("", 4, 97.0)]).len(), 2);
        assert_eq!(by_seed(&runs[..3])[0].1, 3, "nothing else is there");
    }

    #[test]
    fn deleted_pixels_count_as_zero() {
        let mut linear = Linear {
            weights: vec![0.0; PIXELS],
            bias: -0.5,
        };
        linear.weights[3] = 1.0;
        let mut rows = vec![0.0; 2 * PIXELS];
        (rows[3], rows[PIXELS + 3]) = (255.0, f32::NAN);
        assert_eq!(share_right(&linear, &rows, &[4, 9], 4), 100.0);
        assert_eq!(share_right(&linear, &rows, &[4, 4], 4), 50.0);
    }
}
