//! The command line of Sumout, as a library for its binary, its tests and its tools.
//!
//! Modules stand in the order in which they use each other; commands come last, one file each.

pub mod interrupt;
pub mod mistake;
pub mod staged;
pub mod digits;
pub mod datasets;
pub mod models;
pub mod input;
pub mod tables;
pub mod plan;
pub mod progress;
pub mod train;
pub mod devices;
pub mod evaluate;
pub mod predict;
pub mod impute;
pub mod sample;
pub mod explain;
pub mod inspect;
pub mod serve;
pub mod bench;
pub mod data;
pub mod report;
pub mod demo;
pub mod completions;
pub mod args;
