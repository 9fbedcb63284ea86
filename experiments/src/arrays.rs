//! Arrays of numbers in NPY files.

use anyhow::Result;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use sumout_data::formats::npy::NpyWriter;

/// Writes rows of this many numbers, of 32 bits each.
pub fn write(path: &Path, width: usize, numbers: impl IntoIterator<Item = f32>) -> Result<()> {
    let out = BufWriter::new(File::create(path)?);
    let mut writer = NpyWriter::new(out, false, width, None)?;
    for number in numbers {
        writer.push(f64::from(number))?;
    }
    writer.finish()?;
    Ok(())
}
