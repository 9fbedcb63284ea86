//! Pictures, charts and the page of the demo's report, and the baselines that it compares with.
//!
//! Modules stand in the order in which they use each other.

pub mod classification;
pub mod style;
pub mod picture;
pub mod baselines;
pub mod accuracy;
pub mod chart;
pub mod gallery;
pub mod neuron_states;
pub mod readme_picture;
pub mod page;
