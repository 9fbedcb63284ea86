//! Data sets by name: the digits and penguins that come with this crate, and others with how to get them.
//!
//! Uses: `error`, `files`.

pub mod digits;
pub mod penguins;
pub mod sets;
pub mod npm;
mod http;
pub mod download;
