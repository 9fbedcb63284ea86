//! A training run on an NVIDIA GPU: data, gradients, the step, and what underflow spoilt.

mod byte_codes;
mod data_rows;
mod gradients;
mod leaf_step;
mod underflow;
mod dropping;
mod steps;
mod host_copy;

pub use steps::{GpuTraining, Placing};
