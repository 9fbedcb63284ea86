//! Training on rows that lie in several places: each place sums up its contribution, a round adds them and takes a step.

mod contribution;
mod partitions;
mod round;

pub use contribution::Contribution;
pub use partitions::Partitions;
pub use round::Round;
