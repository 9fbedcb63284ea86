//! Data in files: rows of numbers with holes in, results out, model files, and data sets by name.
//!
//! ```text
//! open(input, &options) ──► DataSet: raw rows ─┬─ .rows() ────────────► RowStream   to learn from: columns are found
//!   formats/*  cells │ numbers │ image files   └─ .fitted_to(&layout) ► RowStream   for a model: columns/fit_to_model.rs
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
mod files;
mod rows;
pub mod formats;
mod columns;
pub mod output;
pub mod catalog;
mod open;
mod models;
pub mod plan;

pub use catalog::{digits, penguins};
pub use columns::{encode, infer_columns, match_columns, table_source};
pub use error::{Error, ErrorKind, Result};
pub use files::{atomic_file, encoding, source, unfinished_files};
pub use models::{devices, model_files};
pub use open::{DataSet, is_data_name, open, open_digits, read, read_fitted};
pub use plan::table_checks;
pub use rows::{cells, data_digest, dates, findings, layout, notation, spool};
