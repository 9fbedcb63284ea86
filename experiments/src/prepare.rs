//! `prepare`: a data set as arrays that the scripts in `rivals` read.

use crate::inputs::examples::Collection;
use crate::inputs::sets::Set;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use sumout_data::formats::npy::NpyWriter;

/// What is read, and where it is written.
#[derive(Debug, clap::Args)]
pub struct PrepareArgs {
    /// The data set
    set: Set,
    /// Its file or folder
    #[arg(long)]
    data: Option<String>,
    /// A folder for rows.npy (n, width), labels.npy, folds.npy (−1: always trains) and about.json
    #[arg(long)]
    out: PathBuf,
}

/// Reads a data set and writes its arrays.
pub fn run(args: &PrepareArgs) -> Result<()> {
    let collection = args.set.read(args.data.as_deref())?;
    fs::create_dir_all(&args.out)?;
    write(&args.out, &collection).with_context(|| args.out.display().to_string())?;
    let (rows, classes) = (collection.examples.len(), collection.classes.len());
    println!(
        "{rows} rows of {}, {classes} classes, {} folds: {}",
        collection.examples.shape,
        collection.fold_count(),
        args.out.display()
    );
    Ok(())
}

fn write(folder: &Path, collection: &Collection) -> Result<()> {
    let examples = &collection.examples;
    let numbers = examples.values.iter().map(|&x| f64::from(x));
    array(&folder.join("rows.npy"), examples.width(), numbers)?;
    let labels = examples.labels.iter().map(|&label| label as f64);
    array(&folder.join("labels.npy"), 1, labels)?;
    let fold = |fold: &Option<usize>| fold.map_or(-1.0, |fold| fold as f64);
    array(
        &folder.join("folds.npy"),
        1,
        collection.folds.iter().map(fold),
    )?;
    let shape = examples.shape;
    let about = json!({
        "shape": [shape.height, shape.width, shape.channels],
        "classes": collection.classes,
        "checksum": collection.checksum,
    });
    Ok(fs::write(folder.join("about.json"), about.to_string())?)
}

fn array(path: &Path, width: usize, numbers: impl Iterator<Item = f64>) -> Result<()> {
    let out = BufWriter::new(File::create(path)?);
    let mut writer = NpyWriter::new(out, false, width, None)?;
    for number in numbers {
        writer.push(number)?;
    }
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::norb::tests::write_folder;
    use sumout_data::layout::ReadOptions;

    #[test]
    fn arrays_hold_all_rows() {
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), 6);
        let out = folder.path().join("arrays");
        let args = PrepareArgs {
            set: Set::Norb,
            data: Some(folder.path().display().to_string()),
            out: out.clone(),
        };
        run(&args).unwrap();
        let array = |name: &str| {
            let path = out.join(name).display().to_string();
            sumout_data::read(&path, &ReadOptions::default()).unwrap()
        };
        assert_eq!(
            (array("rows.npy").rows(), array("rows.npy").layout.width),
            (12, 2048)
        );
        assert_eq!(array("folds.npy").values[5..7], [-1.0, 0.0]);
        assert_eq!(array("labels.npy").values[..3], [0.0, 1.0, 2.0]);
        let about = fs::read_to_string(out.join("about.json")).unwrap();
        assert!(about.contains("\"shape\":[32,32,2]"), "{about}");
    }
}
