//! From rows and labels to a model: the builder [`Fit`], the trials that choose, the trees, and what joins them in the end.

mod options;
mod progress;
mod in_progress;
mod choice;
mod steps;
mod columns;
mod run;
mod more_rows;
mod checkpoint;

pub use in_progress::Fitting;
pub use options::Fit;
pub use progress::{FitProgress, Part};
pub use run::fit;
