//! Training: settings, the objective, the optimizer, the run.
//!
//! Uses: `model`, `circuit`, `gpu` and all below them; `queries` in tests.

pub(crate) mod stop;
pub(crate) mod memory;
pub(crate) mod optimizer;
mod leaf_update;
pub(crate) mod leaf_init;
pub(crate) mod settings;
pub(crate) mod room;
pub(crate) mod data;
pub(crate) mod loss;
pub(crate) mod class_clusters;
mod factor_analysis;
pub(crate) mod correlated_clusters;
mod augment;
mod step_randomness;
pub(crate) mod backward_and_step;
mod underflow;
mod gpu;
pub(crate) mod trainer;
mod trainer_step;
mod trainer_on_gpu;
pub(crate) mod checkpoint;
mod rounds;

pub use checkpoint::Checkpoint;
pub use class_clusters::class_clusters;
pub use data::{Data, labels};
pub use leaf_init::LeafStart;
pub use loss::Loss;
pub use optimizer::{Rule, Schedule};
pub use room::check_memory;
pub use rounds::{Contribution, Partitions, Round};
pub use settings::{Prior, Settings};
pub use stop::Stop;
pub use trainer::{Progress, Trainer};
