//! Exact Tensorial Mixture Models: classify, complete, sample and score data with holes in it.
//! What is missing is summed out, not filled in.
//!
//! Modules stand in the order in which data flows; a file uses only those above it.

pub mod error;
pub mod device;
pub mod random;
pub mod tree;
pub mod layout;
pub mod structure;
pub mod kernel;
mod transpose;
pub mod batch;
#[cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), path = "amx_disabled.rs")]
mod amx;
pub mod product;
pub mod leaves;
pub mod statistics;
pub mod mixing;
pub mod lowering;
pub mod gradient;
pub mod weights;
pub mod reference;
pub mod wide;
pub mod circuit;
pub mod root;
pub mod descent;
pub mod model;
pub mod start;
pub mod loss;
pub mod optim;
pub mod learning;
pub mod settings;
pub mod clusters;
pub mod augment;
mod draws;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "cuda_disabled.rs"]
pub mod cuda;
pub mod log_circuit;
pub mod queries;
pub mod ensemble;
pub mod completion;
pub mod modes;
pub mod sampling;
pub mod dependence;
mod guard;
pub mod train;
mod train_on_card;
pub mod presets;
pub mod tables;
pub mod images;
pub mod missing;
pub mod tensor_file;
pub mod model_file;
pub mod checkpoint;

pub use error::{Error, Result};
pub use model::Model;

/// The README's example runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
