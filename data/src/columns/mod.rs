//! From cells to numbers: what the columns of a table mean, found in the table itself or taken from a model.
//!
//! Uses: `error`, `files`, `rows`, `formats`.

pub mod infer_columns;
pub mod match_columns;
mod codes_of_names;
pub mod encode;
pub mod table_source;
pub(crate) mod fit_to_model;
