//! The parts of `sumout demo`: its model, its training, and its comparison with baselines.

pub mod model;
pub mod training;
pub mod comparison;
