//! Parquet; without the feature `parquet`, a stand-in whose error says so.

#[cfg(feature = "parquet")]
mod caught;
#[cfg(feature = "parquet")]
mod dictionaries;
#[cfg(not(feature = "parquet"))]
mod disabled;
#[cfg(feature = "parquet")]
mod enabled;

#[cfg(not(feature = "parquet"))]
pub use disabled::*;
#[cfg(feature = "parquet")]
pub use enabled::*;
