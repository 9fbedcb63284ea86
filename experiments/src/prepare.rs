//! `prepare`: a data set as arrays that the scripts in `rivals` read.

use crate::arrays;
use crate::inputs::examples::Collection;
use crate::inputs::sets::Set;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

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
    write(&args.out, args.set, &collection).with_context(|| args.out.display().to_string())?;
    let (rows, classes) = (collection.examples.len(), collection.classes.len());
    println!(
        "{rows} rows of {}, {classes} classes, {} folds: {}",
        collection.examples.shape,
        collection.fold_count(),
        args.out.display()
    );
    Ok(())
}

fn write(folder: &Path, set: Set, collection: &Collection) -> Result<()> {
    let examples = &collection.examples;
    let (rows, labels) = (examples.values.iter().copied(), examples.labels.iter());
    arrays::write(&folder.join("rows.npy"), examples.width(), rows)?;
    let labels = labels.map(|&label| label as f32);
    arrays::write(&folder.join("labels.npy"), 1, labels)?;
    let fold = |fold: &Option<usize>| fold.map_or(-1.0, |fold| fold as f32);
    let folds = collection.folds.iter().map(fold);
    arrays::write(&folder.join("folds.npy"), 1, folds)?;
    let shape = examples.shape;
    let about = json!({
        "set": set,
        "shape": [shape.height, shape.width, shape.channels],
        "classes": collection.classes,
        "checksum": collection.checksum,
    });
    Ok(fs::write(folder.join("about.json"), about.to_string())?)
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
        assert!(about.contains("\"set\":\"norb\""), "{about}");
    }
}
