//! What is made of the result files: the tables of the README files, and the figures.

pub mod markdown;
pub mod svg;
pub mod paper;
pub mod cross_trained;
pub mod paired_seeds;
pub mod compared;
mod chart;
pub mod curves;
pub mod image_sets;
pub mod speech;
pub mod few_labels;
pub mod readme_tables;
pub mod heat_map;
pub mod completions;
pub mod pictures;
