//! The one hot loop: a product of small matrices, `out(r, ·) = Σ_k a(r, k) · b(k, ·)`, on a panel of columns.
//!
//! All three products of a level have this shape, and W need not be packed, because it is kept in panels
//! ([`PANEL`] columns wide, see `mixing.rs`):
//!
//! ```text
//! forward    ψ(b, c)  = Σ_a φ(b, a) · W(a, c)       rows are samples
//! backward   dφ(b, a) = Σ_c dψ(b, c) · Wᵀ(c, a)     rows are samples
//! weights    dW(a, c) = Σ_b φ(b, a) · dψ(b, c)      rows are channels
//! ```
//!
//! Tried: the crate `gemm` 0.19 on the same shapes (batch 128, one core with AVX-512; 183 GFLOP/s at 2048³): 124, 81,
//! 95 GFLOP/s for the three products of 32→64, ours 133, 130, 105; 167, 132, 167 for 256→512, ours 165, 170, 157.
//! Ours takes 64 gathered rows at a time at that speed, so mixing and product stay in the cache together.
//! Tiles of 12 rows × 2 registers of 16 lanes keep 24 sums in 32 registers, and the loop has no spill.

use pulp::{Simd, WithSimd};

/// Columns of a full panel. A last panel of [`HALF`] columns closes a matrix whose width does not fill one.
pub const PANEL: usize = 32;
/// Columns of a half panel; every row of activations is padded to a multiple of it.
pub const HALF: usize = 16;

/// Rounds a number of channels up to the padded width of a row.
pub fn padded(channels: usize) -> usize {
    channels.next_multiple_of(HALF)
}

/// One panel of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Its first column.
    pub first: usize,
    /// Its columns: [`PANEL`] or [`HALF`].
    pub width: usize,
}

/// The panels of a padded width.
pub fn panels(width: usize) -> impl Iterator<Item = Panel> {
    let panel = move |first| Panel {
        first,
        width: PANEL.min(width - first),
    };
    (0..width).step_by(PANEL).map(panel)
}

/// One product on one panel.
pub struct Product<'a> {
    /// Rows of `out`.
    pub rows: usize,
    /// Terms of each sum.
    pub depth: usize,
    /// `a(r, k) = a[r·a_row + k·a_step]`.
    pub a: &'a [f32],
    /// Distance between rows of `a`.
    pub a_row: usize,
    /// Distance between terms of `a`.
    pub a_step: usize,
    /// `b(k, ·) = b[k·b_step ..][..columns]`.
    pub b: &'a [f32],
    /// Distance between rows of `b`.
    pub b_step: usize,
    /// `out(r, ·) = out[r·out_row ..][..columns]`.
    pub out: &'a mut [f32],
    /// Distance between rows of `out`.
    pub out_row: usize,
    /// [`PANEL`] or [`HALF`].
    pub columns: usize,
    /// What becomes of the numbers that `out` holds.
    pub then: Then,
    /// Numbers that are needed next: fetched from memory meanwhile.
    pub next: &'a [f32],
}

/// What a product does to the numbers that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Replaces them.
    Replace,
    /// Adds to them.
    Add,
    /// Multiplies them: mixing and the product over children in one.
    Multiply,
}

/// Pointers and strides of one tile, inside slices that [`Product::check`] has measured.
#[derive(Clone, Copy)]
struct Tile {
    depth: usize,
    a: *const f32,
    a_row: usize,
    a_step: usize,
    b: *const f32,
    b_step: usize,
    out: *mut f32,
    out_row: usize,
    then: Then,
}

impl Product<'_> {
    fn check(&self) {
        assert!(self.columns == PANEL || self.columns == HALF);
        assert!(self.rows > 0 && self.depth > 0);
        assert!(self.a.len() > (self.rows - 1) * self.a_row + (self.depth - 1) * self.a_step);
        assert!(self.b.len() >= (self.depth - 1) * self.b_step + self.columns);
        assert!(self.out.len() >= (self.rows - 1) * self.out_row + self.columns);
    }
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.rows == 0 {
            return;
        }
        self.check();
        // 12 × 2 registers where there are 32 of 16 lanes, 6 × 2 where there are 16 of 8 lanes.
        let (max_rows, width) = if S::F32_LANES == 16 {
            (12, self.columns)
        } else {
            (6, HALF)
        };
        let tiles = self.rows.div_ceil(max_rows);
        for left in (0..self.columns).step_by(width) {
            for t in 0..tiles {
                let (first, end) = (self.rows * t / tiles, self.rows * (t + 1) / tiles);
                if left == 0 {
                    fetch(
                        &self.next[self.next.len() * t / tiles..self.next.len() * (t + 1) / tiles],
                    );
                }
                // SAFETY: `check` has shown that rows first..end, all terms and `width` columns from `left` lie inside
                // the slices.
                unsafe {
                    let tile = Tile {
                        depth: self.depth,
                        a: self.a.as_ptr().add(first * self.a_row),
                        a_row: self.a_row,
                        a_step: self.a_step,
                        b: self.b.as_ptr().add(left),
                        b_step: self.b_step,
                        out: self.out.as_mut_ptr().add(first * self.out_row + left),
                        out_row: self.out_row,
                        then: self.then,
                    };
                    match (width / S::F32_LANES, S::F32_LANES) {
                        (2, 16 | 8) => tile_rows::<S, 2>(simd, end - first, tile),
                        (1, 16) => tile_rows::<S, 1>(simd, end - first, tile),
                        (4, 4) => tile_rows::<S, 4>(simd, end - first, tile),
                        _ => tile_scalar(end - first, width, tile),
                    }
                }
            }
        }
    }
}

/// Chooses the tile with exactly `rows` rows, so that its sums have fixed registers.
///
/// # Safety
/// The tile's pointers must be good for `rows` rows, `depth` terms and V registers of columns.
#[inline(always)]
unsafe fn tile_rows<S: Simd, const V: usize>(simd: S, rows: usize, tile: Tile) {
    // SAFETY: as for this function.
    unsafe {
        match rows {
            1 => tile_of::<S, 1, V>(simd, tile),
            2 => tile_of::<S, 2, V>(simd, tile),
            3 => tile_of::<S, 3, V>(simd, tile),
            4 => tile_of::<S, 4, V>(simd, tile),
            5 => tile_of::<S, 5, V>(simd, tile),
            6 => tile_of::<S, 6, V>(simd, tile),
            7 => tile_of::<S, 7, V>(simd, tile),
            8 => tile_of::<S, 8, V>(simd, tile),
            9 => tile_of::<S, 9, V>(simd, tile),
            10 => tile_of::<S, 10, V>(simd, tile),
            11 => tile_of::<S, 11, V>(simd, tile),
            _ => tile_of::<S, 12, V>(simd, tile),
        }
    }
}

/// R × V registers of sums.
///
/// # Safety
/// The tile's pointers must be good for R rows, `depth` terms and V registers of columns.
#[inline(always)]
unsafe fn tile_of<S: Simd, const R: usize, const V: usize>(simd: S, tile: Tile) {
    let lanes = S::F32_LANES;
    let mut sums = [[simd.splat_f32s(0.0); V]; R];
    for k in 0..tile.depth {
        let mut b = [simd.splat_f32s(0.0); V];
        for v in 0..V {
            // SAFETY: term k and register v lie inside `b` by this function's contract.
            b[v] = unsafe {
                tile.b
                    .add(k * tile.b_step + v * lanes)
                    .cast::<S::f32s>()
                    .read_unaligned()
            };
        }
        for r in 0..R {
            // SAFETY: row r and term k lie inside `a` by this function's contract.
            let a = simd.splat_f32s(unsafe { *tile.a.add(r * tile.a_row + k * tile.a_step) });
            for v in 0..V {
                sums[r][v] = simd.mul_add_e_f32s(a, b[v], sums[r][v]);
            }
        }
    }
    // SAFETY: row r and register v lie inside `out` by this function's contract.
    let place = |r: usize, v: usize| unsafe {
        tile.out.add(r * tile.out_row + v * lanes).cast::<S::f32s>()
    };
    // One loop for each case: with the choice inside, the compiler keeps the sums in memory instead of registers.
    // SAFETY: as above.
    unsafe {
        match tile.then {
            Then::Replace => {
                for r in 0..R {
                    for v in 0..V {
                        place(r, v).write_unaligned(sums[r][v]);
                    }
                }
            }
            Then::Add => {
                for r in 0..R {
                    for v in 0..V {
                        place(r, v).write_unaligned(
                            simd.add_f32s(place(r, v).read_unaligned(), sums[r][v]),
                        );
                    }
                }
            }
            Then::Multiply => {
                for r in 0..R {
                    for v in 0..V {
                        place(r, v).write_unaligned(
                            simd.mul_f32s(place(r, v).read_unaligned(), sums[r][v]),
                        );
                    }
                }
            }
        }
    }
}

/// Asks for numbers that will be read soon, so that they are in the second-level cache by then.
#[inline(always)]
pub(crate) fn fetch(numbers: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint; it reads nothing, and the instruction is part of every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers; // left to the processor
}

/// The same for machines without vectors.
///
/// # Safety
/// The tile's pointers must be good for `rows` rows, `depth` terms and `columns` columns.
#[inline(always)]
unsafe fn tile_scalar(rows: usize, columns: usize, tile: Tile) {
    for r in 0..rows {
        for c in 0..columns {
            // SAFETY: row r, column c and every term lie inside the slices by this function's contract.
            unsafe {
                let place = tile.out.add(r * tile.out_row + c);
                let mut sum = 0.0;
                for k in 0..tile.depth {
                    sum += *tile.a.add(r * tile.a_row + k * tile.a_step)
                        * *tile.b.add(k * tile.b_step + c);
                }
                *place = match tile.then {
                    Then::Replace => sum,
                    Then::Add => *place + sum,
                    Then::Multiply => *place * sum,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::instructions::arch;
    use crate::random::{Purpose, Stream};

    #[test]
    fn every_tile_equals_the_plain_sum() {
        let mut random = Stream::new(1, Purpose::Weights, 0, 0);
        for rows in (1..40).step_by(if cfg!(miri) { 13 } else { 1 }) {
            let cases = [
                (1, 32, Then::Replace),
                (7, 16, Then::Add),
                (33, 32, Then::Multiply),
                (20, 16, Then::Multiply),
                (9, 32, Then::Add),
            ];
            for (depth, columns, then) in cases {
                let (a_row, b_step, out_row) = (depth + 3, columns + 16, columns + 5);
                let mut draw = |n: usize| {
                    (0..n)
                        .map(|_| random.uniform() as f32)
                        .collect::<Vec<f32>>()
                };
                let (a, b, before) = (
                    draw(rows * a_row),
                    draw(depth * b_step),
                    draw(rows * out_row),
                );
                let mut out = before.clone();
                arch().dispatch(Product {
                    rows,
                    depth,
                    a: &a,
                    a_row,
                    a_step: 1,
                    b: &b,
                    b_step,
                    out: &mut out,
                    out_row,
                    columns,
                    then,
                    next: &[],
                });
                for r in 0..rows {
                    for c in 0..out_row {
                        let sum: f32 = (0..depth)
                            .map(|k| a[r * a_row + k] * b.get(k * b_step + c).unwrap_or(&0.0))
                            .sum();
                        let old = before[r * out_row + c];
                        let expected = match then {
                            _ if c >= columns => old,
                            Then::Replace => sum,
                            Then::Add => old + sum,
                            Then::Multiply => old * sum,
                        };
                        assert!(
                            (out[r * out_row + c] - expected).abs() < 1e-4,
                            "{rows} {depth} {columns} {r} {c}"
                        );
                    }
                }
            }
        }
    }
}
