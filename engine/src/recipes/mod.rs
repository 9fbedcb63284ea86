//! Models that suit the data: [`fit`](crate::fit) and its builder [`Fit`], presets by name, and what they are made of.
//!
//! Uses: `training` and all below it.

mod column_order;
mod chow_liu;
mod presets;
pub mod tables;
mod densities;
mod regressions;
pub mod images;
pub mod sequences;
mod shares;
mod beside;
mod search;
mod fit_options;
mod fit_progress;
mod fit_in_progress;
mod fit_choice;
mod fit_steps;
mod fit_columns;
mod fit;
mod more_rows;
mod fit_checkpoint;
mod rounds;

pub use column_order::order_columns;
pub use fit::fit;
pub use fit_in_progress::Fitting;
pub use fit_options::Fit;
pub use fit_progress::{FitProgress, Part};
pub use presets::{PRESETS, Preset, preset};
pub use rounds::{RoundOptions, Rounds};
