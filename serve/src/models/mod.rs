//! The models that are served: a worker answers the questions of all clients to one model, a registry has all models.
//!
//! Uses: `problem`, `limits`, `monitoring`, `answers` (the rows that a worker returns).

pub mod nodes;
pub mod questions;
#[cfg(feature = "server")]
pub mod queue;
#[cfg(feature = "server")]
pub mod worker;
pub mod summary;
pub mod examples;
#[cfg(feature = "server")]
pub mod registry;

/// The locks of the queue; a test takes others.
#[cfg(feature = "server")]
mod sync {
    pub use std::sync::{Condvar, Mutex, MutexGuard};
}
