//! Connections, and the way of a request to its endpoint.
//!
//! Uses: all folders before it.

pub mod routes;
pub mod listen;
