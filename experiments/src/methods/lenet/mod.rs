//! LeNet, a discriminative baseline. It needs the feature `networks`.

#[cfg(not(feature = "networks"))]
mod disabled;
#[cfg(feature = "networks")]
mod enabled;

#[cfg(not(feature = "networks"))]
pub use disabled::run;
#[cfg(feature = "networks")]
pub use enabled::run;
