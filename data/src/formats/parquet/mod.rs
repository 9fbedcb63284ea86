//! Parquet; without the feature `parquet`, a stand-in that says how to build it in.

#[cfg(not(feature = "parquet"))]
mod disabled;
#[cfg(feature = "parquet")]
mod enabled;

#[cfg(not(feature = "parquet"))]
pub use disabled::*;
#[cfg(feature = "parquet")]
pub use enabled::*;
