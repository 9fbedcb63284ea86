//! The parts of `sumout demo`: its model, its training, and its comparison with baselines.

pub mod recipe;
pub mod training;
pub mod comparison;
