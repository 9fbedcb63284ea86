//! What an address answers; without the feature `download`, a stand-in whose error says so.

#[cfg(not(feature = "download"))]
mod disabled;
#[cfg(feature = "download")]
mod enabled;

#[cfg(not(feature = "download"))]
pub use disabled::*;
#[cfg(feature = "download")]
pub use enabled::*;
