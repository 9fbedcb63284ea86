//! MNIST: 60,000 training images and 10,000 test images, bytes from 0 to 255.

use crate::inputs::examples::{Collection, Examples};
use anyhow::{Context, Result, ensure};
use sumout_data::layout::{ImageShape, ReadOptions, Split, Table};

/// Rows and columns of an image.
pub const SIDE: usize = 28;

/// Pixels of an image.
pub const PIXELS: usize = SIDE * SIDE;

/// Classes.
pub const DIGITS: usize = 10;

/// The shape of an image.
pub const SHAPE: ImageShape = ImageShape {
    height: SIDE,
    width: SIDE,
    channels: 1,
};

/// Reads a folder, or a data set that `sumout data get` knows by name.
pub fn read(data: &str) -> Result<Collection> {
    let (train, test) = (half(data, Split::Train)?, half(data, Split::Test)?);
    let classes = (0..DIGITS).map(|digit| digit.to_string()).collect();
    Ok(Collection::of_halves(train, test, classes))
}

/// One half of a data set.
pub fn half(data: &str, split: Split) -> Result<Examples> {
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
    Ok(Examples {
        shape: SHAPE,
        values: table.values,
        labels: labels.with_context(|| format!("{data}: expected labels, got none"))?,
    })
}
