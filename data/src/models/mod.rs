//! What a trained model needs beside its data: its file, the device it runs on, and memory.
//!
//! Uses: `error`, `files`, `rows`.

pub mod model_files;
pub mod devices;
pub mod memory;
