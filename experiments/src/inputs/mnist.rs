//! MNIST: 60,000 training images and 10,000 test images, bytes from 0 to 255.

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use sumout_data::layout::{ReadOptions, Split, Table};

/// Rows and columns of an image.
pub const SIDE: usize = 28;

/// Pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;

/// Classes.
pub const DIGITS: usize = 10;

/// Images and labels.
#[derive(Clone, Debug)]
pub struct Images {
    /// (n, 784), from 0 to 255.
    pub values: Vec<f32>,
    /// (n), from 0 to 9.
    pub labels: Vec<i64>,
}

impl Images {
    /// At most `count` images, from `first` on.
    pub fn range(&self, first: usize, count: usize) -> Self {
        let last = first.saturating_add(count).min(self.labels.len());
        Self {
            values: self.values[first * PIXELS..last * PIXELS].to_vec(),
            labels: self.labels[first..last].to_vec(),
        }
    }

    /// The images with these row numbers.
    pub fn picked(&self, rows: &[usize]) -> Self {
        let pixels = |&row: &usize| &self.values[row * PIXELS..][..PIXELS];
        Self {
            values: rows.iter().flat_map(pixels).copied().collect(),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
        }
    }

    /// One half of a data set.
    pub fn read(data: &str, split: Split) -> Result<Self> {
        let request = ReadOptions {
            split,
            ..ReadOptions::default()
        };
        let table: Table = sumout_data::read(data, &request)?;
        let width = table.layout.width;
        ensure!(
            width == PIXELS,
            "{data}: expected images of 28×28, got rows of {width}"
        );
        let labels = table.labels;
        Ok(Self {
            values: table.values,
            labels: labels.with_context(|| format!("{data}: expected labels, got none"))?,
        })
    }

    /// The share of answers that equal the labels, in percent.
    pub fn accuracy_of(&self, answers: &[usize]) -> f64 {
        let pairs = answers.iter().zip(&self.labels);
        let right = pairs.filter(|(answer, label)| **answer as i64 == **label);
        100.0 * right.count() as f64 / self.labels.len() as f64
    }
}

/// The whole data set, or a part of it.
#[derive(Clone, Debug)]
pub struct Mnist {
    /// Training images.
    pub train: Images,
    /// Test images.
    pub test: Images,
    /// SHA-256 of all numbers and labels as bytes, training images first.
    pub checksum: String,
}

impl Mnist {
    /// Reads a folder, or a data set that `sumout data get` knows by name.
    pub fn read(data: &str) -> Result<Self> {
        let train = Images::read(data, Split::Train)?;
        let test = Images::read(data, Split::Test)?;
        Ok(Self {
            checksum: checksum(&[&train, &test]),
            train,
            test,
        })
    }

    /// Tests on the last `count` training images, which are then not trained on: for choosing
    /// settings without the test images.
    pub fn held_out(&self, count: usize) -> Self {
        let kept = self.train.labels.len().saturating_sub(count);
        Self {
            train: self.train.range(0, kept),
            test: self.train.range(kept, count),
            checksum: self.checksum.clone(),
        }
    }
}

fn checksum(parts: &[&Images]) -> String {
    let mut hash = Sha256::new();
    for images in parts {
        let pixels: Vec<u8> = images.values.iter().map(|&x| x as u8).collect();
        let labels: Vec<u8> = images.labels.iter().map(|&label| label as u8).collect();
        hash.update(pixels);
        hash.update(labels);
    }
    let digest = hash.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
