//! Training: settings, the objective, the optimizer, the run.
//!
//! Uses: `model`, `circuit`, `gpu` and all below them; `queries` in tests.

pub mod optimizer;
mod leaf_update;
pub mod leaf_init;
pub mod settings;
pub mod data;
pub mod loss;
pub mod class_clusters;
pub mod augment;
mod step_randomness;
pub mod backward_and_step;
mod underflow;
pub mod gpu;
pub mod trainer;
mod trainer_on_gpu;
pub mod checkpoint;
