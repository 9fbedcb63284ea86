//! Data in files: rows of numbers with holes in, results out, model files, and data sets by name.
//!
//! ```text
//! open(input, &options) ──► DataSet: raw rows ─┬─ .rows() ────────────► RowStream   to learn from: columns are found
//!   formats/*  cells │ numbers │ image files   └─ .fitted_to(&layout) ► RowStream   for a model: fit.rs, one place
//!
//! RowStream ──► Chunk, Chunk, …      (rows, width) numbers, NaN is missing, with labels
//! ```
//!
//! ```no_run
//! use sumout_data::layout::ReadOptions;
//! let options = ReadOptions { target: Some("species".into()), ..ReadOptions::default() };
//! let table = sumout_data::read("penguins.csv", &options)?; // all of it, to learn from
//! println!("{} rows of {}", table.rows(), table.layout.width);
//! for chunk in sumout_data::open("-", &options)?.fitted_to(&table.layout)? { // a few rows at a time
//!     println!("{} numbers", chunk?.values.len());
//! }
//! # Ok::<(), sumout_data::Error>(())
//! ```
//!
//! Nothing here prints: errors are typed ([`Error`]), and so is what is worth a warning ([`findings::Finding`]).
//! Modules stand in the order in which they use each other.

pub mod error;
pub mod findings;
pub mod notation;
pub mod dates;
pub mod unfinished_files;
pub mod atomic_file;
pub mod data_digest;
pub mod source;
pub mod encoding;
pub mod cells;
pub mod layout;
pub mod formats;
pub mod infer_columns;
pub mod match_columns;
pub mod encode;
pub mod table_source;
mod fit_to_model;
pub mod output;
pub mod digits;
pub mod catalog;
mod open;
pub mod model_files;
pub mod devices;
pub mod table_checks;
mod sequence_plan;
pub mod plan;
pub mod memory;

pub use error::{Error, ErrorKind, Result};
pub use open::{DataSet, is_data_name, open, open_digits, read, read_fitted};
