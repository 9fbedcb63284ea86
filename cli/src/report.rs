//! What the demo shows: the table, and one self-contained page about it.
//!
//! Modules stand in the order in which they use each other: rivals and the table, pictures and charts, what the model is
//! asked, and the page.

pub mod rivals;
pub mod accuracy;
pub mod picture;
pub mod chart;
pub mod gallery;
pub mod neurons;
pub mod strip;
pub mod page;
