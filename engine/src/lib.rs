//! Exact Tensorial Mixture Models: classify, complete, sample and score data with holes in it.
//! What is missing is summed out, not filled in.
//!
//! Folders stand in the order in which data flows; a folder uses only those above it (`tests/one_way.rs`).

pub mod error;
pub mod random;
pub mod device;
pub mod masks;
pub mod structure;
pub mod arithmetic;
pub mod rows;
pub mod layers;
pub mod reference;
pub mod circuit;
pub mod model;
pub mod gpu;
pub mod queries;
pub mod training;
pub mod recipes;

pub use error::{Error, Result};
pub use model::Model;

/// The README's example runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
