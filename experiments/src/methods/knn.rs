//! The five nearest training images, by the observed pixels.
//!
//! Nothing is trained, so a seed is a seed of holes only. If two classes have equally many votes,
//! the smaller class wins, as in scikit-learn, which the paper used. On MNIST that costs 0.05
//! points, compared with the class of the nearest image.

use crate::experiment::Experiment;
use crate::inputs::examples::DataSet;
use crate::results::{ResultFile, Run, machine, seconds};
use anyhow::Result;
use std::time::Instant;
use sumout_report::baselines::Neighbours;

/// Tests on all columns, with the holes of one seed.
pub fn run(experiment: &Experiment, seed: u64, data: &DataSet, file: &ResultFile) -> Result<()> {
    if file.has("", seed) {
        return Ok(());
    }
    let start = Instant::now();
    let (train, test) = (&data.train, &data.test);
    let neighbours = Neighbours::new(&train.values, &train.labels, train.width());
    let mut accuracies = Vec::new();
    for missing in experiment.missing()? {
        let rows = test.with_holes(missing, seed)?;
        let classes = neighbours.classes_by_seen_pixels(&rows);
        let answers: Vec<usize> = classes.iter().map(|classes| vote(classes)).collect();
        accuracies.push(test.accuracy_of(&answers));
        let (name, time) = (&experiment.name, start.elapsed().as_secs());
        eprintln!("{name}, seed {seed}: {missing} done after {time} s");
    }
    file.add(Run {
        row: String::new(),
        seed,
        mask_seed: seed,
        train: train.len(),
        test: test.len(),
        train_seconds: 0.0,
        test_seconds: seconds(start.elapsed()),
        machine: machine(),
        accuracies,
    })
}

/// The most frequent class; the smallest of equally frequent ones.
fn vote(classes: &[usize]) -> usize {
    let votes = |class: usize| classes.iter().filter(|&&other| other == class).count();
    let largest = classes.iter().max().copied().unwrap_or(0);
    let largest_first = (0..=largest).rev(); // the last maximum wins
    largest_first.max_by_key(|&class| votes(class)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::examples::Examples;
    use crate::inputs::mnist::{PIXELS, SHAPE};
    use sumout::masks::Missing;
    use sumout::random::{Purpose, Stream};

    /// Images of few values, so that distances tie.
    fn images(n: usize, item: u32) -> Examples {
        let mut stream = Stream::new(5, Purpose::Masks, 0, item);
        Examples {
            shape: SHAPE,
            values: (0..n * PIXELS)
                .map(|_| 51.0 * stream.below(6) as f32)
                .collect(),
            labels: (0..n as i64).map(|i| i * 7 % 10).collect(),
        }
    }

    /// All distances in f64, sorted; votes counted in a table.
    #[test]
    fn answers_with_holes_are_those_of_a_naive_search() {
        let Examples {
            values: train,
            labels,
            ..
        } = images(200, 1);
        let neighbours = Neighbours::new(&train, &labels, PIXELS);
        for missing in [
            Missing::None,
            Missing::Iid(0.99),
            Missing::Squares {
                count: 3,
                width: 15,
            },
        ] {
            let rows = images(20, 2).with_holes(missing, 3).unwrap();
            for (row, classes) in rows
                .chunks(PIXELS)
                .zip(neighbours.classes_by_seen_pixels(&rows))
            {
                let distance = |image: &[f32]| {
                    let seen = row.iter().zip(image).filter(|(x, _)| !x.is_nan());
                    seen.map(|(x, t)| f64::from(x - t).powi(2)).sum::<f64>()
                };
                let mut all: Vec<(f64, i64)> = train
                    .chunks(PIXELS)
                    .map(distance)
                    .zip(labels.clone())
                    .collect();
                all.sort_by(|a, b| a.0.total_cmp(&b.0)); // keeps the order of equals
                let mut votes = [0; 10];
                all[..5]
                    .iter()
                    .for_each(|&(_, label)| votes[label as usize] += 1);
                let max = *votes.iter().max().unwrap();
                assert_eq!(
                    vote(&classes),
                    votes.iter().position(|&count| count == max).unwrap(),
                    "{missing}"
                );
            }
        }
    }

    #[test]
    fn the_smallest_of_equals_wins() {
        assert_eq!(vote(&[7, 2, 7, 2, 9]), 2);
        assert_eq!(vote(&[7, 2, 7, 7, 2]), 7);
    }
}
