//! The instructions of tiles: load, multiply, and what becomes of their sums.

use super::{LINES, Line};
use crate::arithmetic::matmul::{HALF, Then};
use std::arch::asm;
use std::arch::x86_64::*;

/// One part of two tiles of rows, into tiles 4 and 5.
///
/// # Safety
/// Both must point to the tiles of a step.
#[inline(always)]
pub(super) unsafe fn load_left((upper, lower): (*const Line, *const Line), part: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!("tileloadd tmm4, [{a} + {s}]", "tileloadd tmm5, [{b} + {s}]",
            a = in(reg) upper.add(part * LINES), b = in(reg) lower.add(part * LINES),
            s = in(reg) 64usize, out("tmm4") _, out("tmm5") _, options(nostack, readonly));
    }
}

/// One part of both halves of a panel, into tiles 6 and 7.
///
/// # Safety
/// It must point to the tiles of a step.
#[inline(always)]
pub(super) unsafe fn load_right(right: *const Line, part: usize) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!("tileloadd tmm6, [{b} + {s}]", "tileloadd tmm7, [{b} + {s} + 1024]",
            b = in(reg) right.add(2 * part * LINES), s = in(reg) 64usize,
            out("tmm6") _, out("tmm7") _, options(nostack, readonly));
    }
}

/// Adds the products of tiles 4 and 5 (if both are there) with 6 and 7 to tiles 0 to 3.
///
/// # Safety
/// Tiles must be set up.
#[inline(always)]
pub(super) unsafe fn multiply_tiles(both: bool) {
    // SAFETY: by this function's contract.
    unsafe {
        asm!(
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            out("tmm0") _,
            out("tmm1") _,
            options(nostack, nomem)
        );
        if both {
            asm!(
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                out("tmm2") _,
                out("tmm3") _,
                options(nostack, nomem)
            );
        }
    }
}

/// What the tiles have left of one row of a panel, times a factor.
///
/// # Safety
/// The machine must have AVX-512, and both must point to [`PANEL`] numbers.
#[inline(always)]
pub(super) unsafe fn put_row(sums: *const f32, factor: f32, out: *mut f32, then: Then) {
    for half in [0, HALF] {
        // SAFETY: by this function's contract.
        unsafe {
            let sum = _mm512_mul_ps(_mm512_set1_ps(factor), _mm512_load_ps(sums.add(half)));
            let to = out.add(half);
            let value = match then {
                Then::Replace => sum,
                Then::Add => _mm512_add_ps(_mm512_loadu_ps(to), sum),
                Then::Multiply => _mm512_mul_ps(_mm512_loadu_ps(to), sum),
            };
            _mm512_storeu_ps(to, value);
        }
    }
}
