//! Formats of requests and answers: JSON, JSON lines, CSV and Arrow streams.
//!
//! Uses: `problem`, `bodies`.

pub mod negotiate;
pub mod json;
pub mod csv_rows;
#[cfg(feature = "server")]
pub mod text;
pub mod arrow;
