//! What data are made of: cells, numbers as people write them, columns, rows with holes, and what is suspicious about them.
//!
//! Uses: `error`, `files`.

pub mod findings;
pub mod notation;
pub mod dates;
pub mod cells;
pub mod layout;
pub mod data_digest;
pub mod spool;
