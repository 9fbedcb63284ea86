//! What a trained model needs beside its data: its file and the device it runs on.
//!
//! Uses: `error`, `files`, `rows`.

pub mod model_files;
pub mod devices;
