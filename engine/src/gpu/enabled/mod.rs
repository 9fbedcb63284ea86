//! The circuit on an NVIDIA GPU. Kernels are CUDA C (`gpu/kernels/`), compiled on the machine that runs them.
//!
//! From below: kernels and their arguments, one GPU with its buffers, how a model lies on it, the circuit, its passes, questions.

pub(crate) mod args;
pub(crate) mod kernels;
pub(crate) mod device_buffers;
pub(crate) mod leaf_buffers;
pub(crate) mod layout;
pub(crate) mod leaf_level;
mod tile_choice;
pub(crate) mod circuit;
pub(crate) mod passes;
mod scoring;

pub use kernels::{compile_kernels, count, first_usable, kernels_name, offer_kernels};
pub use scoring::{Returning, Scoring};
