//! Rows of data in the frame, and which nodes of a tree each of them needs.
//!
//! Uses: `structure`, `arithmetic`.

pub mod batch;
pub mod active_nodes;
