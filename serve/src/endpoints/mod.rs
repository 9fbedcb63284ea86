//! What a client can ask for: each endpoint reads its request, asks a model, and writes the answer.
//!
//! Uses: all folders before it; only `listening` and `local` use it.

pub mod asked;
pub mod queries;
#[cfg(feature = "server")]
pub mod app;
#[cfg(feature = "server")]
pub mod openapi;
#[cfg(feature = "server")]
mod rows_request;
#[cfg(feature = "server")]
pub mod rows;
#[cfg(feature = "server")]
pub mod generate;
