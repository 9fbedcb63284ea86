//! The questions of `docs/queries.md`.
//!
//! Uses: `model`, `circuit`, `gpu` and all below them.

pub mod predictor;
pub mod ensemble;
pub mod impute;
pub mod mode;
pub mod sample;
pub mod explain;
