//! Parts of the engine for its own tests and benchmarks. Not for anyone else: any version may change them.

pub use crate::arithmetic::instructions::arch;
pub use crate::arithmetic::math::log_sum_exp;
pub use crate::circuit::activations::{Activations, Keep};
pub use crate::circuit::log_flows::LogFlows;
pub use crate::circuit::log_space::{Join, LogCircuit, LogValues};
pub use crate::circuit::outputs::Outputs;
pub use crate::circuit::scaled_f64::ScaledF64;
pub use crate::circuit::underflow::UnderflowFallback;
pub use crate::gpu::{Scoring, count, first_usable};
#[cfg(feature = "cuda")]
pub use crate::gpu::{compile_kernels, kernels_name, offer_kernels};
pub use crate::layers::leaf::{Coordinate, Factors, values_of};
pub use crate::layers::mixing::Mixing;
pub use crate::layers::mixing_gradient::Scratch;
pub use crate::layers::scaled_rows::TINY;
pub use crate::layers::simplex::Simplex;
pub use crate::layers::weights::{Prepared, Weights};
pub use crate::model::model_file::{Parts, checkpoint_from_bytes, checkpoint_to_bytes};
pub use crate::rows::active_nodes::Dropped;
pub use crate::rows::batch::{Batch, CHUNK, words};
pub use crate::training::backward_and_step::Learned;
pub use crate::training::memory::Moments;
pub use crate::training::optimizer::Step;

use crate::model::Model;

/// Puts rows of data (n, width) into the frame of a model.
pub fn fill(model: &Model, values: &[f32], batch: &mut Batch) {
    model.fill(values, (0, 0), batch);
}
