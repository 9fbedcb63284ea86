//! The whole circuit on a batch: forward to the class scores, backward to the leaves, and what is computed again
//! where f32 underflows.
//!
//! Uses: `structure`, `arithmetic`, `rows`, `layers`.

pub mod outputs;
pub mod activations;
pub mod forward;
pub mod scaled_f64;
pub mod log_space;
pub mod log_flows;
pub mod class_root;
pub mod underflow;
pub mod backward;
