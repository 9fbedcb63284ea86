//! small NORB: toys of five kinds, five instances of each to train on and five others to test with, seen by two cameras.
//!
//! The folder holds the published files `smallnorb-…-training-dat.mat` and `…-cat.mat`, and the same of `…-testing-…`,
//! gzipped or not. Images of 96×96 become images of 32×32, of which each pixel is the mean of 3×3.

use crate::inputs::examples::{Collection, Examples};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use sumout_data::formats::norb;
use sumout_data::layout::ImageShape;

/// Rows and columns of an image here.
const SIDE: usize = 32;

/// Reads a folder.
pub fn read(folder: &Path) -> Result<Collection> {
    let (train, classes) = half(folder, "training")?;
    let (test, _) = half(folder, "testing")?;
    Ok(Collection::of_halves(train, test, classes))
}

/// One half, and the names of the classes.
fn half(folder: &Path, word: &str) -> Result<(Examples, Vec<String>)> {
    let table = norb::open_file(&images_of(folder, word)?)?.collect_table()?;
    let place = || format!("{}: {word}", folder.display());
    let shape = table.layout.shape.with_context(place)?;
    let labels = table
        .labels
        .with_context(|| format!("{}: expected -cat.mat beside -dat.mat", place()))?;
    let (values, shape) = shrunk(&table.values, shape).with_context(place)?;
    let examples = Examples {
        shape,
        values,
        labels,
    };
    Ok((examples, table.layout.classes))
}

/// The file of images of one half.
fn images_of(folder: &Path, word: &str) -> Result<PathBuf> {
    let cannot_read = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot_read)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.contains(word) && name.trim_end_matches(".gz").ends_with("-dat.mat") {
            return Ok(path);
        }
    }
    let place = folder.display();
    anyhow::bail!("{place}: expected a file …-{word}-dat.mat of small NORB, got none")
}

/// Images of [`SIDE`] × [`SIDE`] pixels, whole numbers as before: means of squares of pixels.
pub fn shrunk(values: &[f32], shape: ImageShape) -> Result<(Vec<f32>, ImageShape)> {
    let ImageShape {
        height,
        width,
        channels,
    } = shape;
    ensure!(
        height == width && height > 0 && height.is_multiple_of(SIDE),
        "expected square images of a multiple of {SIDE} pixels, got {shape}"
    );
    let by = height / SIDE;
    let small = ImageShape {
        height: SIDE,
        width: SIDE,
        channels,
    };
    let mut shrunk = Vec::with_capacity(values.len() / (by * by));
    for image in values.chunks(shape.numbers()) {
        for at in 0..small.numbers() {
            let (y, x) = (at / channels / SIDE * by, at / channels % SIDE * by);
            let square = (0..by * by).map(|i| (y + i / by) * width + x + i % by);
            let sum: f32 = square
                .map(|pixel| image[pixel * channels + at % channels])
                .sum();
            shrunk.push((sum / (by * by) as f32).round());
        }
    }
    Ok((shrunk, small))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A file in the published format: its magic number, its dimensions, its bytes.
    fn matrix(magic: u32, dims: &[u32], numbers: &[u8]) -> Vec<u8> {
        let mut file = magic.to_le_bytes().to_vec();
        file.extend((dims.len() as u32).to_le_bytes());
        let padding = 3usize.saturating_sub(dims.len());
        let padded = dims.iter().copied().chain(std::iter::repeat_n(1, padding));
        padded.for_each(|dim| file.extend(dim.to_le_bytes()));
        file.extend(numbers);
        file
    }

    /// Writes both halves as published: pairs of images of 96×96, one kind of stripes for each class.
    pub fn write_folder(folder: &Path, rows: u32) {
        for (half, first) in [("training", 0), ("testing", 100)] {
            let (mut pixels, mut classes) = (Vec::new(), Vec::new());
            for row in 0..rows {
                let class = row % 5;
                classes.extend(class.to_le_bytes());
                pixels.extend((0..2 * 96 * 96).map(|i| pixel(class, row + first, i)));
            }
            let name = |part: &str| folder.join(format!("smallnorb-5x1-{half}-{part}.mat"));
            let images = matrix(0x1e3d_4c55, &[rows, 2, 96, 96], &pixels);
            fs::write(name("dat"), images).unwrap();
            fs::write(name("cat"), matrix(0x1e3d_4c54, &[rows], &classes)).unwrap();
        }
    }

    /// Stripes whose width is the class, moved from row to row.
    fn pixel(class: u32, row: u32, i: u32) -> u8 {
        let (y, x) = (i / 96 % 96, i % 96 + 7 * row);
        let lit = (x / (3 * (class + 1)) + y / (3 * (5 - class))) % 2;
        (40 + 160 * lit + (31 * i + 17 * row) % 23) as u8
    }

    #[test]
    fn published_files_become_small_pairs() {
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), 6);
        let set = read(folder.path()).unwrap();
        assert_eq!(set.examples.shape.to_string(), "32×32×2");
        assert_eq!((set.examples.len(), set.classes.len()), (12, 5));
        assert_eq!(set.examples.labels[..6], [0, 1, 2, 3, 4, 0]);
        let sum: u32 = (0..9)
            .map(|i| u32::from(pixel(0, 0, 96 * 96 + i / 3 * 96 + i % 3)))
            .sum();
        let expected = (sum as f32 / 9.0).round();
        assert_eq!(set.examples.values[1], expected, "the second camera");
        fs::remove_file(folder.path().join("smallnorb-5x1-testing-dat.mat")).unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("expected a file …-testing-dat.mat of small NORB, got none"),
            "{error}"
        );
    }
}
