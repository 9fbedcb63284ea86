//! The circuit on an NVIDIA GPU. Kernels are CUDA C (`kernels/`), compiled on the machine that runs them.

pub(crate) mod args;
pub(crate) mod device_buffers;
pub(crate) mod layout;
pub(crate) mod circuit;
pub(crate) mod leaf_level;
mod scoring;

pub use device_buffers::{
    compile_kernels, count, first_usable, kernels, kernels_name, offer_kernels,
};
pub use scoring::Scoring;
