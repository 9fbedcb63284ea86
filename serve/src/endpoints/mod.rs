//! What a client can ask for.

pub mod rows;
pub mod generate;
