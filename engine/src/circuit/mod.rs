//! The whole circuit on a batch: forward to the class scores, backward to the leaves.
//!
//! Samples that underflow in f32 are computed again: in f64 (`scaled_f64`), then in log space (`log_space`, `log_flows`).
//! `underflow` decides which, and is the only place that falls back.
//!
//! Uses: `structure`, `arithmetic`, `rows`, `layers`.

pub mod outputs;
pub mod activations;
pub mod forward;
pub mod scaled_f64;
pub mod log_space;
pub mod log_flows;
pub mod class_root;
pub(crate) mod class_root_backward;
pub mod underflow;
pub mod backward;
