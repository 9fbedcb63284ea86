//! The parts of `sumout demo`: its model, its training, its comparison with baselines, and the tour of a table.

pub mod recipe;
pub mod training;
pub mod comparison;
pub mod table;
