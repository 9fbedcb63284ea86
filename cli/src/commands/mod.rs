//! The commands, one file each. None uses another.

pub mod train;
pub mod evaluate;
pub mod report;
pub mod predict;
pub mod impute;
pub mod sample;
pub mod explain;
pub mod inspect;
pub mod compress;
pub mod serve;
pub mod bench;
pub mod data;
pub mod demo;
pub mod completions;
pub mod man;
