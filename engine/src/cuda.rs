//! An NVIDIA GPU. Kernels are CUDA C, compiled on the machine that runs them.

mod args;
mod card;
mod circuit;
mod codes;
mod first;
mod gradients;
mod guarding;
mod layout;
mod learning;
mod scoring;
mod training;

pub use card::{compile_kernels, count, first_usable, kernels, kernels_name, offer_kernels};
pub use scoring::Scoring;
pub use training::{Placing, Training};
