//! Formats of files, one module each: readers of rows, and writers.
//!
//! Uses: `error`, `files`, `rows`.

pub mod array;
pub mod idx;
pub mod norb;
pub mod npy;
pub mod npz;
pub mod class_files;
pub mod png;
pub mod png_grid;
pub mod png_folder;
pub mod sound;
pub mod sound_files;
pub mod csv;
pub mod json_row;
pub mod json_lines;
pub mod parquet;
pub mod parquet_folder;
