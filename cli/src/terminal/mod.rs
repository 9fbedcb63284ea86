//! What a user at a terminal meets: progress, Ctrl-C, errors and exit codes.

pub mod interrupt;
pub mod hints;
pub mod user_error;
pub mod progress;
pub mod download_progress;
