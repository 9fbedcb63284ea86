//! Labelled rows, and how they are divided into those that train and those that test.

use crate::inputs::test_masks;
use anyhow::Result;
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;
use sumout::masks::Missing;
use sumout_data::layout::ImageShape;

/// Rows and labels.
#[derive(Clone, Debug)]
pub struct Examples {
    /// What a row is; sequences are images of one row.
    pub shape: ImageShape,
    /// (n, numbers of the shape); NaN is missing.
    pub values: Vec<f32>,
    /// (n), from 0 on; −1 is missing.
    pub labels: Vec<i64>,
}

impl Examples {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.shape.numbers()
    }

    /// At most `count` rows, from `first` on.
    pub fn range(&self, first: usize, count: usize) -> Self {
        let (last, width) = (first.saturating_add(count).min(self.len()), self.width());
        Self {
            shape: self.shape,
            values: self.values[first * width..last * width].to_vec(),
            labels: self.labels[first..last].to_vec(),
        }
    }

    /// The rows with these numbers.
    pub fn picked(&self, rows: &[usize]) -> Self {
        let width = self.width();
        let numbers = |&row: &usize| &self.values[row * width..][..width];
        Self {
            shape: self.shape,
            values: rows.iter().flat_map(numbers).copied().collect(),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
        }
    }

    /// The share of answers that equal the labels, in percent.
    pub fn accuracy_of(&self, answers: &[usize]) -> f64 {
        let pairs = answers.iter().zip(&self.labels);
        let right = pairs.filter(|(answer, label)| **answer as i64 == **label);
        100.0 * right.count() as f64 / self.len() as f64
    }

    /// The rows with holes. The same seed gives the same holes to every method.
    pub fn with_holes(&self, missing: Missing, seed: u64) -> Result<Vec<f32>> {
        let mut rows = self.values.clone();
        let grid = test_masks::grid(self.shape);
        missing.apply(&grid, &mut rows, 0, seed)?;
        Ok(rows)
    }
}

/// What trains and what tests.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// To train on.
    pub train: Examples,
    /// To test with.
    pub test: Examples,
    /// How many classes there are.
    pub classes: usize,
}

impl DataSet {
    /// Tests on the last `count` training rows, which are then not trained on: for choosing
    /// settings without the test rows.
    pub fn held_out(&self, count: usize) -> Self {
        let kept = self.train.len().saturating_sub(count);
        Self {
            train: self.train.range(0, kept),
            test: self.train.range(kept, count),
            classes: self.classes,
        }
    }
}

/// All rows of a data set.
#[derive(Clone, Debug)]
pub struct Collection {
    /// The rows.
    pub examples: Examples,
    /// (n): the fold that a row tests in; none for a row that always trains.
    pub folds: Vec<Option<usize>>,
    /// What labels stand for.
    pub classes: Vec<String>,
    /// SHA-256 of rows and labels.
    pub checksum: String,
}

impl Collection {
    /// One fold: what trains, then what tests.
    pub fn of_halves(train: Examples, test: Examples, classes: Vec<String>) -> Self {
        let checksum = checksum_of_bytes(&[&train, &test]);
        let folds = [vec![None; train.len()], vec![Some(0); test.len()]].concat();
        let mut examples = train;
        examples.values.extend(test.values);
        examples.labels.extend(test.labels);
        Self {
            examples,
            folds,
            classes,
            checksum,
        }
    }

    /// How many folds there are.
    pub fn fold_count(&self) -> NonZeroUsize {
        let last = self.folds.iter().flatten().max().copied().unwrap_or(0);
        NonZeroUsize::MIN.saturating_add(last)
    }

    /// The division of a seed: one fold tests, all other rows train.
    pub fn for_seed(&self, seed: u64) -> DataSet {
        let tested = (seed % self.fold_count().get() as u64) as usize;
        let all = 0..self.examples.len();
        let (test, train): (Vec<usize>, Vec<usize>) =
            all.partition(|&row| self.folds[row] == Some(tested));
        DataSet {
            train: self.examples.picked(&train),
            test: self.examples.picked(&test),
            classes: self.classes.len(),
        }
    }
}

/// SHA-256 of rows of bytes and of labels, part by part.
pub fn checksum_of_bytes(parts: &[&Examples]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let pixels: Vec<u8> = part.values.iter().map(|&x| x as u8).collect();
        let labels: Vec<u8> = part.labels.iter().map(|&label| label as u8).collect();
        hash.update(pixels);
        hash.update(labels);
    }
    in_hex(hash)
}

/// SHA-256 of rows of numbers and of labels.
pub fn checksum_of_numbers(examples: &Examples) -> String {
    let mut hash = Sha256::new();
    for row in examples.values.chunks(examples.width()) {
        let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
        hash.update(bytes);
    }
    let labels: Vec<u8> = examples.labels.iter().map(|&label| label as u8).collect();
    hash.update(labels);
    in_hex(hash)
}

fn in_hex(hash: Sha256) -> String {
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of one number, which is their number.
    fn numbered(rows: usize) -> Examples {
        let shape = ImageShape {
            height: 1,
            width: 1,
            channels: 1,
        };
        Examples {
            shape,
            values: (0..rows).map(|row| row as f32).collect(),
            labels: vec![0; rows],
        }
    }

    #[test]
    fn every_seed_tests_one_fold() {
        let folds = [None, Some(0), Some(1), Some(2), Some(1)];
        let collection = Collection {
            examples: numbered(5),
            folds: folds.to_vec(),
            classes: vec!["a".into()],
            checksum: String::new(),
        };
        let rows_of = |seed| {
            let data = collection.for_seed(seed);
            (data.train.values, data.test.values)
        };
        assert_eq!(rows_of(1), (vec![0.0, 1.0, 3.0], vec![2.0, 4.0]));
        assert_eq!(rows_of(3), (vec![0.0, 2.0, 3.0, 4.0], vec![1.0]));
        let halves = Collection::of_halves(numbered(3), numbered(2), vec!["a".into()]);
        let data = halves.for_seed(7);
        assert_eq!((data.train.len(), data.test.len()), (3, 2));
    }
}
