//! Models as a service over HTTP, with a page to try them on.
//!
//! ```text
//! connection ─ listening ─ access ─ endpoints ─┬─ bodies, formats: rows in ─► models: a worker ─► answers: rows out
//!                                              └─ page
//! ```
//!
//! Without the feature `server` there is no HTTP: [`local`] answers the page's requests in the same process, which
//! in a browser is WebAssembly (`web/`).
//!
//! Folders stand in the order in which they use each other, and each says in its first lines what it may use.

#![cfg_attr(
    not(feature = "server"),
    allow(dead_code, reason = "parts that only the service uses")
)]

#[cfg(test)]
mod fixtures;
mod problem;
#[cfg(feature = "server")]
mod problem_response;
mod limits;
#[cfg(feature = "server")]
mod monitoring;
#[cfg(feature = "server")]
mod bodies;
mod formats;
mod answers;
mod models;
#[cfg(feature = "server")]
mod page;
#[cfg(feature = "server")]
mod access;
mod endpoints;
pub mod local;
#[cfg(feature = "server")]
mod listening;
#[cfg(feature = "server")]
mod heap;
#[cfg(feature = "server")]
mod service;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod internals;

#[cfg(feature = "server")]
pub use limits::Limits;
#[cfg(feature = "server")]
pub use monitoring::log::LogLevel;
#[cfg(feature = "server")]
pub use service::{ServeOptions, run};
