//! What a client can ask for.

mod rows_request;
pub mod rows;
pub mod generate;
