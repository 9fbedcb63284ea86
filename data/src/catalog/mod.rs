//! Data sets by name, and how to get them.

pub mod sets;
pub mod npm;
pub mod download;
