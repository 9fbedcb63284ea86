//! Exact Tensorial Mixture Models: classify, complete, sample and score data with holes in it.
//! What is missing is summed out, not filled in.
//!
//! ```
//! use sumout::{Predictor, Rows};
//!
//! fn main() -> sumout::Result<()> {
//!     let hole = f32::NAN; // a missing value
//!     let values = [0.9, 1.1, 1.2, hole, hole, 0.8, -1.0, -0.9, -1.2, hole, hole, -1.1];
//!     let rows = Rows::new(&values, 2)?; // 6 rows of 2 numbers
//!     let labels = [0, 0, 0, 1, 1, 1].map(Some); // None: the label is missing
//!     let model = sumout::fit(rows, &labels)?;
//!     let mut predictor = Predictor::new(model)?;
//!     let scores = predictor.score(Rows::new(&[1.0, hole, hole, -1.0], 2)?)?;
//!     assert_eq!(scores.classes(), [0, 1]);
//!     Ok(())
//! }
//! ```
//!
//! # What to look at
//!
//! | | |
//! |---|---|
//! | [`fit`], [`recipes::Fit`] | from rows and labels to a [`Model`], with choices that suit the data |
//! | [`Predictor`] | questions: classes, likelihoods, missing values, samples, what a neuron stands for |
//! | [`Structure`], [`Trainer`], [`Settings`] | a model of your own, and how it is trained |
//! | [`Model::to_bytes`], [`Model::from_bytes`] | model files, also those of the command line and of Python |
//! | [`Rows`], [`Matrix`] | what goes in (NaN is missing) and what comes out |
//! | [`masks`], [`random`] | holes of every kind for tests, and random numbers that are the same everywhere |
//! | [`mod@reference`] | the model straight from its equations, slowly: read this first to understand the rest |
//!
//! # Features
//!
//! - `cuda` computes on an NVIDIA GPU ([`Device::Cuda`]). It needs no CUDA toolkit to build, and no GPU to run what does
//!   not ask for one.
//! - `ndarray` makes [`Rows`] from a view of an array, and an array from a [`Matrix`].
//!
//! # More
//!
//! The [repository](https://github.com/sumout/sumout) has the command line, the HTTP service, the Python package and the
//! documents: the model and its equations, the questions and their formulas, the model file. The paper is
//! [Tensorial Mixture Models](https://arxiv.org/abs/1610.04167) by Sharir, Tamari, Cohen and Shashua.

// Modules stand in the order in which data flows; each uses only those above it (`tests/one_way.rs`).
mod error;
mod matrix;
pub mod random;
mod device;
pub mod masks;
pub mod structure;
mod arithmetic;
mod rows;
mod layers;
pub mod reference;
mod circuit;
pub mod model;
mod gpu;
pub mod queries;
pub mod training;
pub mod recipes;
#[doc(hidden)]
pub mod internals;

pub use device::{Device, Precision};
pub use error::{Error, Result};
pub use matrix::{Matrix, Rows};
#[doc(inline)]
pub use model::Model;
#[doc(inline)]
pub use queries::Predictor;
#[doc(inline)]
pub use recipes::fit;
#[doc(inline)]
pub use structure::{Kind, Structure};
#[doc(inline)]
pub use training::{Settings, Trainer};

/// The README's example runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
