//! What a user at a terminal sees: progress, warnings, Ctrl-C, errors and exit codes.

pub mod interrupt;
pub mod hints;
pub mod user_error;
pub mod far_rows;
pub mod progress;
pub mod download_progress;
