//! Bytes of files: where they come from, their encoding, and files that appear whole or not at all.
//!
//! Uses: `error`.

pub mod lines;
pub mod source;
pub mod encoding;
pub mod unfinished_files;
pub mod atomic_file;
