//! MNIST: 60,000 images to learn from and 10,000 to be judged by, bytes from 0 to 255.

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use sumout_data::layout::{ReadOptions, Split, Table};

/// Pixels of an image.
pub const PIXELS: usize = 28 * 28;

/// Images and labels.
#[derive(Clone, Debug)]
pub struct Images {
    /// (n, 784), from 0 to 255.
    pub values: Vec<f32>,
    /// (n), from 0 to 9.
    pub labels: Vec<i64>,
}

impl Images {
    /// Those from `first` on, at most so many.
    pub fn some(&self, first: usize, count: usize) -> Self {
        let last = (first + count).min(self.labels.len());
        Self {
            values: self.values[first * PIXELS..last * PIXELS].to_vec(),
            labels: self.labels[first..last].to_vec(),
        }
    }

    /// One half of a data set.
    pub fn read(data: &str, split: Split) -> Result<Self> {
        let Table {
            layout,
            values,
            labels,
        } = sumout_data::read(
            data,
            &ReadOptions {
                split,
                ..ReadOptions::default()
            },
        )?;
        ensure!(
            layout.width == PIXELS,
            "{data}: expected images of 28×28, got rows of {}",
            layout.width
        );
        Ok(Self {
            values,
            labels: labels.with_context(|| format!("{data}: expected labels, got none"))?,
        })
    }
}

/// The whole data set, or the part of it that a plan asks for.
#[derive(Clone, Debug)]
pub struct Mnist {
    /// To learn from.
    pub train: Images,
    /// To be judged by.
    pub test: Images,
    /// SHA-256 of all numbers and labels as bytes, first those to learn from.
    pub checksum: String,
}

impl Mnist {
    /// From a folder, or by a name that the command line of Sumout knows.
    pub fn read(data: &str) -> Result<Self> {
        let (train, test) = (
            Images::read(data, Split::Train)?,
            Images::read(data, Split::Test)?,
        );
        let mut hash = Sha256::new();
        for images in [&train, &test] {
            hash.update(images.values.iter().map(|&x| x as u8).collect::<Vec<u8>>());
            hash.update(
                images
                    .labels
                    .iter()
                    .map(|&label| label as u8)
                    .collect::<Vec<u8>>(),
            );
        }
        let checksum = hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self {
            train,
            test,
            checksum,
        })
    }

    /// Judged by the last so many training images, which are not learned from: to choose settings, blind to the test.
    pub fn held_out(&self, count: usize) -> Self {
        let kept = self.train.labels.len().saturating_sub(count);
        Self {
            train: self.train.some(0, kept),
            test: self.train.some(kept, count),
            checksum: self.checksum.clone(),
        }
    }
}
