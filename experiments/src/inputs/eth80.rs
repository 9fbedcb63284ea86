//! ETH-80: things of eight kinds, ten instances of each, 41 views of an instance, as one NPZ file of grey images of 64×64
//! (`images`), their kind (`category`) and instance (`instance`).
//!
//! As small NORB, it is divided by instance: a fold tests two instances of every kind.

use crate::inputs::examples::{Collection, Examples, checksum_of_bytes};
use crate::inputs::norb::shrunk;
use anyhow::{Result, ensure};
use std::path::Path;
use sumout_data::formats::npz;
use sumout_data::layout::ImageShape;

const CLASSES: usize = 8;
const TESTED: usize = 2; // instances

/// Reads the file.
pub fn read(path: &Path) -> Result<Collection> {
    let images = npz::named(path, "images")?;
    let (kinds, instances) = (npz::named(path, "category")?, npz::named(path, "instance")?);
    let place = path.display();
    let [rows, height, width] = images.dims[..] else {
        anyhow::bail!("{place}: expected images in three dimensions");
    };
    ensure!(
        kinds.values.len() == rows && instances.values.len() == rows,
        "{place}: expected a category and an instance for each of {rows} images"
    );
    let shape = ImageShape {
        height,
        width,
        channels: 1,
    };
    let (values, shape) = shrunk(&images.values, shape)?;
    let examples = Examples {
        shape,
        values,
        labels: kinds.values.iter().map(|&kind| kind as i64).collect(),
    };
    Ok(Collection {
        checksum: checksum_of_bytes(&[&examples]),
        folds: instances
            .values
            .iter()
            .map(|&instance| Some(instance as usize / TESTED))
            .collect(),
        classes: (0..CLASSES).map(|kind| kind.to_string()).collect(),
        examples,
    })
}
