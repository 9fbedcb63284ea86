//! Matrix products on AMX tile registers; without them, a stand-in that suits no shape.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod disabled;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod enabled;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) use disabled::*;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use enabled::*;

use crate::arithmetic::matmul::Then;

/// The right side of products.
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "nothing reads it there")
)]
pub(crate) struct RightSide<'a> {
    /// Panels to multiply.
    pub panels: usize,
    /// Where its numbers lie.
    pub numbers: Right<'a>,
    /// A power of two that they are multiplied by, so that none of their parts is too small for a tile.
    pub scale: f32,
    /// Numbers that are needed after this product: fetched from memory meanwhile.
    pub next: [&'a [f32]; 2],
}

/// Where products go.
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    expect(dead_code, reason = "nothing reads it there")
)]
pub(crate) struct Target<'a, 'b> {
    /// One for each row of the left side, as long as all panels.
    pub rows: &'a mut [&'b mut [f32]],
    /// What becomes of the numbers that are there.
    pub then: Then,
}
