//! What a client can ask for: each endpoint reads its request, asks a model, and writes the answer.
//!
//! Uses: all folders before it; only `listening` uses it.

pub mod app;
pub mod openapi;
mod rows_request;
pub mod rows;
pub mod generate;
