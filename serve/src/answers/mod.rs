//! Answers: what a row of one holds, and how the rows are written in the format that the client asked for.
//!
//! Uses: `problem`, `bodies`, `formats`.

pub mod numbers;
pub mod rows;
pub mod writer;
