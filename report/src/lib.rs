//! Pictures, charts, the page of the demo with its baselines, and the page of `sumout report`.
//!
//! Modules stand in the order in which they use each other.

pub mod classification;
pub mod number_errors;
pub mod text;
pub mod style;
pub mod plot;
pub mod curve;
pub mod picture;
pub mod baselines;
pub mod accuracy;
pub mod chart;
pub mod gallery;
pub mod neuron_states;
pub mod readme_picture;
pub mod page;
pub mod model_page;
