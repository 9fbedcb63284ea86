//! The circuit on an NVIDIA GPU; without the feature `cuda`, a stand-in that reports that there is none.
//!
//! Uses: `device`, `structure`, `rows`, `layers`, `circuit`.

#[cfg(not(feature = "cuda"))]
mod disabled;
#[cfg(feature = "cuda")]
pub(crate) mod enabled;

#[cfg(not(feature = "cuda"))]
pub use disabled::*;
#[cfg(feature = "cuda")]
pub use enabled::{
    Returning, Scoring, compile_kernels, count, first_usable, kernels_name, offer_kernels,
};
