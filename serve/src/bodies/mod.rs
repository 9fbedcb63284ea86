//! Bytes in and out: bodies of requests as they arrive, and answers that wait for their last row.
//!
//! Uses: `problem`, `limits`.

pub mod arrivals;
pub mod incoming;
pub mod rest;
pub mod spool;
