//! Two-digit tasks with deleted pixels (paper, appendix on binary digit classification).
//!
//! For each of the 45 pairs of digits: train on 300 images per digit, delete n of the pixels that
//! are not zero (so holes are not random), and tell the two digits apart.
//!
//! ```toml
//! columns = ["nonzero:0", "nonzero:25"]
//! [options]
//! shifts = 1                 # of the TMM
//! [options.model]            # the TMM, as in a plan of `sumout train`; without it, the linear program
//! preset = "mnist-ht"
//! ```
//!
//! A seed draws the training images and the holes. The last 1,000 training images of each digit are
//! kept apart, to choose settings. All test images of the two digits are tested. The TMM is one
//! model of ten digits, asked for the likelier of two. The linear program knows n: it is trained
//! with each N and C of a grid, and for each n the classifier is chosen that is best on 500 of the
//! kept images per digit, with n pixels deleted.

use crate::experiment::Experiment;
use crate::inputs::examples::{DataSet, Examples};
use crate::inputs::mnist::{DIGITS, PIXELS};
use crate::methods::robust_lp::{Linear, Robust};
use crate::methods::training::Training;
use crate::parallel;
use crate::results::{ResultFile, Run, machine, seconds, seeds};
use anyhow::Result;
use serde::Deserialize;
use std::fmt;
use std::time::Instant;
use sumout::Precision;
use sumout::masks::Missing;
use sumout::queries::shifts;
use sumout::random::{Purpose, Stream};
use sumout_data::devices::DeviceChoice;

const TRAINED_ON: usize = 300; // images per digit
const KEPT: usize = 1000;
const CHOSEN_BY: usize = 500;

/// The number of pairs.
pub const PAIRS: usize = DIGITS * (DIGITS - 1) / 2;

/// Two digits, the smaller first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    first: i64,
    second: i64,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.second)
    }
}

impl Pair {
    fn all() -> Vec<Self> {
        let pairs_with =
            |first| (first + 1..DIGITS as i64).map(move |second| Self { first, second });
        (0..DIGITS as i64).flat_map(pairs_with).collect()
    }

    fn has(self, label: i64) -> bool {
        label == self.first || label == self.second
    }

    /// The images of these two digits.
    fn of(self, images: &Examples) -> Examples {
        let rows: Vec<usize> = (0..images.labels.len())
            .filter(|&row| self.has(images.labels[row]))
            .collect();
        images.picked(&rows)
    }

    /// Percent of rows whose score (n, 10) is higher for their own digit than for the other one.
    fn accuracy(self, scores: &[f64], labels: &[i64]) -> f64 {
        let (mut rows, mut right) = (0, 0);
        for (row, &label) in scores.chunks_exact(DIGITS).zip(labels) {
            if self.has(label) {
                let first_wins = row[self.first as usize] > row[self.second as usize];
                rows += 1;
                right += usize::from(first_wins == (label == self.first));
            }
        }
        100.0 * right as f64 / rows as f64
    }
}

/// The training images, drawn by the seed, and the images to choose by.
struct TaskImages {
    train: Examples,
    chosen_by: Examples,
}

impl TaskImages {
    fn new(images: &Examples, seed: u64) -> Self {
        let (mut train, mut chosen_by) = (Vec::new(), Vec::new());
        for digit in 0..DIGITS {
            let rows: Vec<usize> = (0..images.labels.len())
                .filter(|&row| images.labels[row] == digit as i64)
                .collect();
            let (free, kept) = rows.split_at(rows.len().saturating_sub(KEPT));
            let mut random = Stream::new(seed, Purpose::Shuffle, 0, digit as u32);
            let order = random.permutation(free.len());
            train.extend(order.iter().take(TRAINED_ON).map(|&i| free[i as usize]));
            chosen_by.extend(&kept[..CHOSEN_BY.min(kept.len())]);
        }
        Self {
            train: images.picked(&train),
            chosen_by: images.picked(&chosen_by),
        }
    }
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
    experiment: &Experiment,
    seed: u64,
    mnist: &DataSet,
    file: &ResultFile,
    choice: &DeviceChoice,
) -> Result<()> {
    if file.has("", seed) {
        return Ok(());
    }
    let options: TmmOptions = experiment.options()?;
    let images = &TaskImages::new(&mnist.train, seed).train;
    let start = Instant::now();
    let training = Training {
        experiment,
        model: &options.model,
        seed,
        examples: images,
        classes: DIGITS,
        file,
    };
    let model = training.run(choice.ready(Precision::Tf32)?)?;
    let mut predictor = choice.predictor(model)?;
    let train_seconds = seconds(start.elapsed());
    let start = Instant::now();
    let mut accuracies = Vec::new();
    for missing in experiment.missing()? {
        let rows = mnist.test.with_holes(missing, seed)?;
        let scores =
            predictor.log_joint(predictor.model().rows(&rows)?, &shifts(options.shifts))?;
        accuracies.push(mean_over_pairs(scores.as_slice(), &mnist.test.labels));
    }
    file.add(Run {
        row: String::new(),
        seed,
        mask_seed: seed,
        train: images.labels.len(),
        test: mnist.test.labels.len(),
        train_seconds,
        test_seconds: seconds(start.elapsed()),
        machine: machine(),
        accuracies,
    })
}

/// Accuracy by scores (n, 10), averaged over pairs; each pair is tested on the rows of its two
/// digits.
fn mean_over_pairs(scores: &[f64], labels: &[i64]) -> f64 {
    let pairs = Pair::all();
    let sum: f64 = pairs.iter().map(|pair| pair.accuracy(scores, labels)).sum();
    sum / pairs.len() as f64
}

/// The linear program's grid.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    /// N, each with C.
    expected: Vec<(usize, f64)>,
}

/// One seed of the linear program, with a row for each pair.
pub fn run_robust(
    experiment: &Experiment,
    seed: u64,
    mnist: &DataSet,
    file: &ResultFile,
    jobs: usize,
) -> Result<()> {
    let grid: Grid = experiment.options()?;
    let images = TaskImages::new(&mnist.train, seed);
    let missing = experiment.missing()?;
    let new = |pair: &Pair| !file.has(&pair.to_string(), seed);
    let pairs = Pair::all().into_iter().filter(new).collect();
    parallel::for_each(jobs, pairs, |pair: Pair| {
        let task = RobustTask::new(pair, &images, &mnist.test);
        let run = task.run(&grid, &missing, seed)?;
        report_and_add(experiment, run, file)
    })
}

fn report_and_add(experiment: &Experiment, run: Run, file: &ResultFile) -> Result<()> {
    let (name, seed) = (&experiment.name, run.seed);
    let (pair, time) = (&run.row, run.train_seconds);
    eprintln!("{name}, seed {seed}: {pair} after {time} s");
    file.add(run)
}

/// The images of one pair, for the linear program.
struct RobustTask {
    pair: Pair,
    train: Examples,
    chosen_by: Examples,
    test: Examples,
}

impl RobustTask {
    fn new(pair: Pair, images: &TaskImages, test: &Examples) -> Self {
        Self {
            pair,
            train: pair.of(&images.train),
            chosen_by: pair.of(&images.chosen_by),
            test: pair.of(test),
        }
    }

    fn run(&self, grid: &Grid, missing: &[Missing], seed: u64) -> Result<Run> {
        let start = Instant::now();
        let classifiers = self.train(grid)?;
        let train_seconds = seconds(start.elapsed());
        let start = Instant::now();
        let mut accuracies = Vec::new();
        for &missing in missing {
            accuracies.push(self.accuracy(&classifiers, missing, seed)?);
        }
        Ok(Run {
            row: self.pair.to_string(),
            seed,
            mask_seed: seed,
            train: self.train.labels.len(),
            test: self.test.labels.len(),
            train_seconds,
            test_seconds: seconds(start.elapsed()),
            machine: format!("one of {}", machine()),
            accuracies,
        })
    }

    /// One classifier for each N and C.
    fn train(&self, grid: &Grid) -> Result<Vec<Linear>> {
        let rows: Vec<f32> = self.train.values.iter().map(|x| x / 255.0).collect();
        let sign = |&label: &i64| if label == self.pair.first { 1.0 } else { -1.0 };
        let signs: Vec<f64> = self.train.labels.iter().map(sign).collect();
        let train =
            |&(deleted, bound): &(usize, f64)| Robust { deleted, bound }.train(&rows, &signs);
        grid.expected.iter().map(train).collect()
    }

    /// The accuracy of the classifier that is best on the images to choose by.
    fn accuracy(&self, classifiers: &[Linear], missing: Missing, seed: u64) -> Result<f64> {
        let chosen_by = self.chosen_by.with_holes(missing, seed)?;
        let tested = self.test.with_holes(missing, seed)?;
        let positive = self.pair.first;
        let share =
            |linear: &Linear| share_right(linear, &chosen_by, &self.chosen_by.labels, positive);
        let best = classifiers
            .iter()
            .max_by(|a, b| share(a).total_cmp(&share(b)));
        let best = best.expect("a grid");
        Ok(share_right(best, &tested, &self.test.labels, positive))
    }
}

/// Percent of rows, from 0 to 255, whose digit is found.
fn share_right(linear: &Linear, rows: &[f32], labels: &[i64], positive: i64) -> f64 {
    let mut right = 0;
    for (row, &label) in rows.chunks_exact(PIXELS).zip(labels) {
        let scaled: Vec<f32> = row.iter().map(|x| x / 255.0).collect();
        right += usize::from((linear.score(&scaled) > 0.0) == (label == positive));
    }
    100.0 * right as f64 / labels.len() as f64
}

/// The mean over pairs of one seed.
#[derive(Clone, Debug)]
pub struct SeedMean {
    /// The accuracies are means.
    pub run: Run,
    /// How many pairs it has.
    pub pairs: usize,
}

/// The mean over pairs for each seed. Seeds without all pairs are left out, unless no seed is
/// complete.
pub fn means_by_seed(runs: &[Run]) -> Vec<SeedMean> {
    let mut means: Vec<SeedMean> = seeds(runs)
        .into_iter()
        .map(|seed| seed_mean(runs, seed))
        .collect();
    let max = means.iter().map(|mean| mean.pairs).max();
    means.retain(|mean| Some(mean.pairs) == max);
    means
}

/// Either one run is the mean already, or each pair has a run.
fn seed_mean(runs: &[Run], seed: u64) -> SeedMean {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.seed == seed).collect();
    let first = runs[0];
    let pairs = if first.row.is_empty() {
        PAIRS
    } else {
        runs.len()
    };
    let column = |i: usize| runs.iter().map(|run| run.accuracies[i]).sum::<f64>();
    let accuracies = (0..first.accuracies.len())
        .map(|i| column(i) / runs.len() as f64)
        .collect();
    let run = Run {
        row: String::new(),
        accuracies,
        ..first.clone()
    };
    SeedMean { run, pairs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::mnist;
    use sumout_data::layout::Split;

    #[test]
    fn training_images_differ_by_seed() {
        let train = mnist::half(sumout_data::digits::NAME, Split::Train).unwrap();
        // 5,000 images have about 500 of a digit: 1,000 kept would leave none, so each is there
        // four times.
        let train = train.picked(
            &(0..4 * train.labels.len())
                .map(|i| i / 4)
                .collect::<Vec<_>>(),
        );
        let TaskImages {
            train: drawn,
            chosen_by,
        } = TaskImages::new(&train, 1);
        for digit in 0..DIGITS {
            let count = |images: &Examples| {
                images
                    .labels
                    .iter()
                    .filter(|&&label| label == digit as i64)
                    .count()
            };
            assert_eq!((count(&drawn), count(&chosen_by)), (TRAINED_ON, CHOSEN_BY));
        }
        assert_eq!(drawn.values, TaskImages::new(&train, 1).train.values);
        let other = TaskImages::new(&train, 2);
        assert_ne!(drawn.values, other.train.values);
        assert_eq!(chosen_by.values, other.chosen_by.values);
        let pair = Pair {
            first: 3,
            second: 7,
        }
        .of(&drawn);
        assert_eq!(pair.labels.len(), 2 * TRAINED_ON);
        assert!(pair.labels.iter().all(|label| [3, 7].contains(label)));
    }

    /// A digit that is always recognized, and nine that are guessed to be the smaller of
    /// two: each of the 9 pairs with 0 is 100, each of the 36 others 50.
    #[test]
    fn averaged_over_pairs() {
        assert_eq!((Pair::all().len(), PAIRS), (45, 45));
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
            mean_over_pairs(scores.as_slice(), &labels),
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
        let means = means_by_seed(&runs);
        assert_eq!((means.len(), means[0].pairs), (1, 45));
        assert_eq!(means[0].run.accuracies, [22.0, 50.0]);
        let whole = [run("", 3, 98.0), run("", 4, 97.0)];
        assert_eq!(means_by_seed(&whole).len(), 2);
        assert_eq!(means_by_seed(&runs[..3])[0].pairs, 3, "no seed is complete");
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
