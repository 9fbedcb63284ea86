//! Matrix products on AMX tile registers; without them, a stand-in that suits no shape.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod disabled;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod enabled;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) use disabled::*;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use enabled::*;
