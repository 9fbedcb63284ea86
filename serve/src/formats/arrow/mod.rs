//! Arrow streams in and out, as far as rows of numbers, truth values and text need them.
//!
//! ```text
//! stream   = schema, (dictionary | batch)*, end          each a message:
//! message  = FFFFFFFF, length of the head, head (flatbuffer), body (buffers that the head describes)
//! ```
//!
//! Written here because the `arrow-ipc` crates take 87 s of two cores to build, more than all the rest of the service,
//! and take lengths that a client claims for memory to allocate. Here every length is compared with the bytes that are
//! there; `serve/web/test/api.py` exchanges streams with pyarrow.

pub mod flat;
mod schema;
mod values;
#[cfg(feature = "server")]
mod cursor;
#[cfg(feature = "server")]
pub mod read;
pub mod write;
