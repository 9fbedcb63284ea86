//! Formats of requests and answers.

pub mod negotiate;
pub mod json;
pub mod text;
pub mod arrow;
