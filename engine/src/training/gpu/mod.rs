//! A training run on an NVIDIA GPU; without the feature `cuda`, a stand-in that is never made.

#[cfg(not(feature = "cuda"))]
mod disabled;
#[cfg(feature = "cuda")]
mod enabled;

#[cfg(not(feature = "cuda"))]
pub use disabled::*;
#[cfg(feature = "cuda")]
pub use enabled::{GpuTraining, Placing};
