//! What the operator of the service sees: one line of log for each request, and counters.
//!
//! Uses: nothing of this crate.

pub mod log;
pub mod metrics;
