//! The command line of Sumout, as a library for its binary and its tests.
//!
//! Folders stand in the order in which they use each other. Each command is a file.

pub mod terminal;
pub mod options;
pub mod demo;
pub mod commands;
pub mod args;
