//! A training run on an NVIDIA GPU: rows of data, gradients, samples that underflow, the step, and the host's copy.
//!
//! Uses: `gpu::enabled`, and of `training` the settings, the data, the loss and the optimizer.

mod byte_codes;
mod data_rows;
mod gradients;
mod leaf_step;
mod underflow;
mod dropping;
mod gpu_training;
mod steps;
mod host_copy;

pub use gpu_training::{GpuTraining, Placing};
