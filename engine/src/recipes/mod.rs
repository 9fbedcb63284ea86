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
mod fit;
mod rounds;

pub use column_order::order_columns;
pub use fit::{Fit, FitProgress, Fitting, Part, fit};
pub use presets::{PRESETS, Preset, preset};
pub use rounds::{RoundOptions, Rounds};
