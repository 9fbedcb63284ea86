//! Data in files: rows of numbers with holes in, results out, and model files.
//!
//! ```no_run
//! use sumout_data::layout::Request;
//! let request = Request { target: Some("species".into()), ..Request::default() };
//! let table = sumout_data::read("penguins.csv", &request)?; // all of it, to learn from
//! println!("{} rows of {}", table.rows(), table.layout.width);
//! let request = Request { model: Some(table.layout), ..Request::default() };
//! for chunk in sumout_data::open("-", &request)? { // a little at a time, to answer questions
//!     println!("{} numbers", chunk?.values.len());
//! }
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! Modules stand in the order in which they use each other.

pub mod error;
pub mod unfinished;
pub mod atomic_file;
pub mod source;
pub mod cells;
pub mod layout;
pub mod formats;
pub mod infer_columns;
pub mod encode;
pub mod output;
pub mod digits;
pub mod catalog;
mod open;
pub mod model_files;
pub mod devices;
pub mod table_checks;
pub mod plan;

pub use open::{open, open_digits, read};
