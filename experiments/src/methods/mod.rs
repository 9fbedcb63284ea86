//! The methods that are compared, one file each: they train, test, and add runs to the result file.

pub mod knn;
mod votes;
mod training;
mod few_labels;
mod completed_images;
pub mod tmm;
pub mod robust_lp;
pub mod digit_pairs;
