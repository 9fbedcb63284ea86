//! Data files. Each is read to learn from and for a model; what comes out are numbers, or an error of the user.

use std::cell::LazyCell;
use std::fs;
use std::path::{Path, PathBuf};
use sumout_data::layout::{ImageShape, Keep, Layout, ReadOptions, RowStream, Table};
use sumout_data::model_files::layout_of;
use sumout_data::{Result, open};
use tempfile::TempDir;

thread_local! {
    static FOLDER: LazyCell<TempDir> = LazyCell::new(|| folder().expect("a folder"));
}

/// In memory where there is such a place: a disk makes every second run wait for the one before.
fn folder() -> std::io::Result<TempDir> {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new())
}

/// A model of images of 2×2.
fn image_layout() -> Layout {
    let shape = ImageShape {
        height: 2,
        width: 2,
        channels: 1,
    };
    Layout::unnamed(4, Some(shape))
}

fn check(read: Result<RowStream>) -> Option<Table> {
    match read.and_then(RowStream::collect_table) {
        Ok(table) => {
            assert!(table.values.iter().all(|x| !x.is_infinite()));
            Some(table)
        }
        Err(error) => {
            assert!(error.is_user_error() && !error.to_string().is_empty());
            None
        }
    }
}

thread_local! {
    /// Of numbers, of images and of named columns.
    static MODELS: LazyCell<[Layout; 3]> = LazyCell::new(|| {
        [Layout::unnamed(4, None), image_layout(), layout_of(&crate::models::pets())]
    });
}

/// Reads a file to learn from it, for one of three models, and once more: the same bytes are the same numbers.
fn read(path: &Path, model: usize, options: &ReadOptions) {
    let name = path.to_str().expect("a name");
    let opened = || open(name, options);
    let learned = check(opened().and_then(|data| data.rows()));
    MODELS.with(|models| check(opened().and_then(|data| data.fitted_to(&models[model]))));
    if let Some(table) = learned {
        let plain = ReadOptions {
            keep: Keep::Nothing, // what is kept may be an error of its own
            ..options.clone()
        };
        let again = check(open(name, &plain).and_then(|data| data.fitted_to(&table.layout)));
        let again = again.expect("what was learned from can be read for the model of it");
        let bits =
            |table: &Table| -> Vec<u32> { table.values.iter().map(|x| x.to_bits()).collect() };
        assert_eq!(bits(&again), bits(&table), "read twice");
    }
}

/// Reads these bytes as a file of that name.
pub(crate) fn file(name: &str, bytes: &[u8], options: &ReadOptions) {
    let path = write_or_remove(name, Some(bytes));
    read(&path, bytes.len() % 3, options);
}

/// A file of these bytes, or none.
pub(crate) fn write_or_remove(name: &str, bytes: Option<&[u8]>) -> PathBuf {
    let path = FOLDER.with(|folder| folder.path().join(name));
    match bytes {
        Some(bytes) => fs::write(&path, bytes).expect("a file"),
        None if path.exists() => fs::remove_file(&path).expect("no file"),
        None => (),
    }
    path
}
