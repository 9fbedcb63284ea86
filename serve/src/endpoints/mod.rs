//! What a client can ask.

pub mod neurons;
pub mod rows;
pub mod generate;
