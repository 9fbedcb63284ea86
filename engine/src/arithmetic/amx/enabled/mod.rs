//! The same products on the tile registers of recent Intel processors (AMX): faster, and as exact.
//!
//! Tiles multiply bf16, numbers of 8 bits. An f32 has 24, so it is cut into parts, `x = h + m + l`, and a product is a
//! sum of products of parts. [`Parts::Three`] takes all that matters to f32, `hh + hm + mh + mm + hl + lh`, and errs less
//! than a loop over f32 does; [`Parts::Two`] takes `hh + hm + mh`, to 2⁻¹⁵ of each term, for derivatives in training.
//! Sums are f32. Tiles know no subnormal numbers, so what is to be cut is scaled first, by a power of two.
//!
//! ```text
//! left tile    16 rows r × 16 pairs of terms (k, k + 16)      right tile    16 pairs of terms × 16 columns
//! ```
//!
//! A tile instruction takes 16 cycles, and the vector units are free meanwhile: they cut the next panel of the right
//! side while the tiles multiply this one.

mod bf16_parts;
mod tiles;

pub(crate) use bf16_parts::{Left, Right};

use self::tiles::{load_left, load_right, multiply_tiles, put_row};
use crate::arithmetic::amx::{RightSide, Target};
use crate::arithmetic::instructions::{Instructions, allowed};
use crate::arithmetic::matmul::{PANEL, Then, fetch};
use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::OnceLock;

/// Derivatives reach [`TINY`](crate::layers::scaled_rows::TINY)'s inverse: scaled down so far that their sums stay in f32 though
/// what they are multiplied by is scaled up.
pub(crate) const DERIVATIVE: f32 = 1.0 / 4096.0;

/// How exact a product is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// 2⁻¹⁵ of each term, at worst.
    Two,
    /// As f32.
    Three,
}

/// Terms that a tile holds.
const STEP: usize = 32;
/// Lines of a tile.
const LINES: usize = 16;

/// 32 numbers of bf16.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u16; 32]);

const EMPTY: Line = Line([0; 32]);

/// Whether this machine has tiles, and lets us use them.
pub(crate) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(detect)
}

fn detect() -> bool {
    let vectors = allowed() == Instructions::All
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw");
    let edx = if __cpuid(0).eax >= 7 {
        __cpuid_count(7, 0).edx
    } else {
        0
    }; // bit 24: tiles, 22: of bf16
    vectors && edx >> 24 & 1 == 1 && edx >> 22 & 1 == 1 && permitted()
}

/// Whether tiles are faster than vectors for a matrix of this shape: cutting must not take longer than multiplying.
/// Never a question of how many rows there are, so that a row's numbers do not depend on its neighbours.
pub(crate) fn suits(depth: usize, width: usize) -> bool {
    depth.min(width) >= 64 && depth * width >= 64 * 128 && available()
}

/// Asks Linux to keep the contents of tiles for this process.
fn permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST_PERMISSION: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let mut answer = ARCH_PRCTL;
    // SAFETY: a system call that reads no memory of ours; it may change rcx and r11.
    unsafe {
        asm!("syscall", inout("rax") answer, in("rdi") REQUEST_PERMISSION, in("rsi") TILE_DATA,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer == 0
}

/// Buffers of products.
#[derive(Default)]
struct Buffers {
    right: Vec<Line>, // two panels, each by (step, part, half) of tiles
    sums: Vec<Line>,  // what the tiles leave: twice (32, 32) of f32
}

// One for each thread.
thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
    static LEFT: RefCell<Left> = RefCell::default();
}

/// Lends a left side whose memory is used again.
pub(crate) fn with_left(work: impl FnOnce(&mut Left)) {
    let mut left = LEFT.take(); // the work may wait for other tasks of this thread, which take one too
    work(&mut left);
    LEFT.set(left);
}

/// `target[r] = Σ_k left(r, k) · right(k, ·)` for all panels of the right side. What is needed next is fetched meanwhile.
pub(crate) fn multiply(left: &Left, right: RightSide<'_>, target: Target<'_, '_>) {
    assert!(left.rows == target.rows.len() && available());
    let long_enough = |row: &&mut [f32]| row.len() >= right.panels * PANEL;
    assert!(target.rows.iter().all(long_enough) && right.numbers.is_whole());
    if left.rows > 0 && left.steps > 0 && right.panels > 0 {
        // SAFETY: the instructions are there, every row of the target is long enough, and panels have 16 or 32 columns.
        BUFFERS.with_borrow_mut(|buffers| unsafe {
            match left.parts {
                2 => multiply_parts::<2>(left, right, target, buffers),
                _ => multiply_parts::<3>(left, right, target, buffers),
            }
        });
    }
}

/// Eight tiles of 16 lines of 64 bytes.
#[repr(C, align(64))]
struct Shape([u8; 64]);
static SHAPE: Shape = {
    let mut shape = [0; 64];
    shape[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        shape[16 + 2 * tile] = 64;
        shape[48 + tile] = LINES as u8;
        tile += 1;
    }
    Shape(shape)
};

/// # Safety
/// The machine must have tiles, and every row of the target must hold all panels.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn multiply_parts<const P: usize>(
    left: &Left,
    right: RightSide<'_>,
    target: Target<'_, '_>,
    buffers: &mut Buffers,
) {
    let (steps, blocks, panels) = (left.steps, left.rows.div_ceil(2 * LINES), right.panels);
    let panel_lines = steps * 2 * P * LINES;
    buffers.right.resize(2 * panel_lines, EMPTY);
    buffers.sums.resize(2 * 4 * LINES, EMPTY);
    let places = buffers.right.as_mut_ptr();
    let sums = buffers.sums.as_mut_ptr().cast::<f32>();
    let mut beside = Beside::new::<P>(left, right, target, places, sums);
    // SAFETY: whole tiles are loaded from `left` and the two places of panels, and stored into the two of `sums`.
    // Nothing but these lines uses tiles.
    unsafe {
        beside.cut::<P>(steps * LINES);
        asm!("ldtilecfg [{}]", in(reg) &SHAPE, out("tmm0") _, out("tmm1") _, out("tmm2") _,
            out("tmm3") _, out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, readonly));
        for panel in 0..panels {
            let here = places.add(panel % 2 * panel_lines);
            beside.panel = panel + 1;
            let more = panel + 1 < panels;
            beside.pairs = 0..if more { steps * LINES } else { 0 };
            beside.place = places.add((panel + 1) % 2 * panel_lines);
            for block in 0..blocks {
                let to = sums.add((panel * blocks + block) % 2 * 2 * LINES * PANEL);
                multiply_block::<P>(left, block, here, to, &mut beside);
                beside.rows = 2 * block * LINES..left.rows.min(2 * (block + 1) * LINES);
                (beside.column, beside.sums) = (panel * PANEL, to);
            }
        }
        beside.put(2 * LINES);
        asm!("tilerelease", out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack, nomem));
    }
}

/// The sums of 32 rows and one panel, into `to`.
///
/// # Safety
/// Tiles must be set up, `panel` must hold all parts of a panel, and `to` must be good for (32, 32) numbers.
#[inline(always)]
unsafe fn multiply_block<const P: usize>(
    left: &Left,
    block: usize,
    panel: *const Line,
    to: *mut f32,
    beside: &mut Beside<'_, '_>,
) {
    let steps = left.steps;
    // SAFETY: by this function's contract; `left` holds whole tiles of all its rows.
    unsafe {
        let both = left.rows - block * 2 * LINES > LINES; // two tiles of rows
        let upper = left.lines.as_ptr().add(2 * block * steps * P * LINES);
        let lower = if both {
            upper.add(steps * P * LINES)
        } else {
            upper
        };
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            out("tmm0") _,
            out("tmm1") _,
            out("tmm2") _,
            out("tmm3") _,
            options(nostack, nomem)
        );
        for step in 0..steps {
            let rows = (upper.add(step * P * LINES), lower.add(step * P * LINES));
            multiply_step::<P>(rows, both, panel.add(step * 2 * P * LINES), beside);
        }
        asm!("tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 64], tmm1",
            "tilestored [{d} + {s}], tmm2", "tilestored [{d} + {s} + 64], tmm3",
            c = in(reg) to, d = in(reg) to.add(LINES * PANEL), s = in(reg) 4 * PANEL, options(nostack));
    }
}

/// What vector units do while tiles multiply, a little at a time: cut the next panel, put the sums of the block before
/// in their place, fetch what is needed next.
struct Beside<'a, 'b> {
    right: Right<'a>,
    scale: f32,
    panel: usize,
    pairs: Range<usize>, // to be cut
    share: usize,        // of them at a time
    place: *mut Line,
    out: &'a mut [&'b mut [f32]],
    then: Then,
    factor: f32,
    rows: Range<usize>, // to be put
    each: usize,        // of them at a time
    column: usize,
    sums: *const f32, // of the next row
    next: [&'a [f32]; 2],
    fetched: usize, // numbers at a time
}

impl<'a, 'b> Beside<'a, 'b> {
    /// Before the first panel is cut. `place` and `sums` are the first of two places each.
    fn new<const P: usize>(
        left: &Left,
        right: RightSide<'a>,
        target: Target<'a, 'b>,
        place: *mut Line,
        sums: *const f32,
    ) -> Self {
        let (steps, blocks) = (left.steps, left.rows.div_ceil(2 * LINES));
        let (cuts, puts) = (2 * steps, (P - 1) * steps); // of a block: how often something is done beside its products
        let next = right.next;
        Self {
            right: right.numbers,
            scale: right.scale,
            panel: 0,
            pairs: 0..steps * LINES,
            share: (steps * LINES).div_ceil(cuts * blocks),
            place,
            out: target.rows,
            then: target.then,
            factor: 1.0 / (left.scale * right.scale),
            rows: 0..0,
            each: (2 * LINES).div_ceil(puts),
            column: 0,
            sums,
            next,
            fetched: (next[0].len() + next[1].len()).div_ceil(cuts * blocks * right.panels),
        }
    }

    /// # Safety
    /// The machine must have AVX-512, and `place` must hold all pairs.
    #[inline(always)]
    unsafe fn cut<const P: usize>(&mut self, share: usize) {
        let now = self.pairs.start..(self.pairs.start + share).min(self.pairs.end);
        self.pairs.start = now.end;
        if !now.is_empty() {
            // SAFETY: by this function's contract.
            unsafe { self.right.cut::<P>(self.panel, now, self.scale, self.place) };
        }
        if self.fetched > 0 {
            let [soon, later] = self.next;
            let (now, rest) = soon.split_at(self.fetched.min(soon.len()));
            fetch(now);
            self.next = if rest.is_empty() {
                [later, &[]]
            } else {
                [rest, later]
            };
        }
    }

    /// # Safety
    /// The machine must have AVX-512; a panel of every row of `out` lies at `column`, and the sums of all `rows` at `sums`.
    #[inline(always)]
    unsafe fn put(&mut self, each: usize) {
        let until = (self.rows.start + each).min(self.rows.end);
        for row in &mut self.out[self.rows.start..until] {
            // SAFETY: by this function's contract.
            unsafe {
                put_row(
                    self.sums,
                    self.factor,
                    row.as_mut_ptr().add(self.column),
                    self.then,
                );
                self.sums = self.sums.add(PANEL);
            }
        }
        self.rows.start = until;
    }
}

/// Adds the products of a step to tiles 0 to 3: all pairs of parts that matter, in an order in which each shares one
/// with the last. Sums of the block before are not asked for at once: they may not have arrived.
///
/// # Safety
/// Tiles must be set up, and all pointers good for the tiles of all parts of a step.
#[inline(always)]
unsafe fn multiply_step<const P: usize>(
    rows: (*const Line, *const Line),
    both: bool,
    right: *const Line,
    beside: &mut Beside<'_, '_>,
) {
    // SAFETY: by this function's contract.
    unsafe {
        load_left(rows, 0);
        load_right(right, P - 1);
        multiply_tiles(both);
        if P == 2 {
            beside.cut::<P>(beside.share);
        }
        load_right(right, 0);
        multiply_tiles(both);
        beside.put(beside.each);
        if P == 3 {
            load_left(rows, 2);
            multiply_tiles(both);
            beside.cut::<P>(beside.share);
        }
        load_left(rows, 1);
        multiply_tiles(both);
        if P == 3 {
            beside.put(beside.each);
            load_right(right, 1);
            multiply_tiles(both);
        }
        beside.cut::<P>(beside.share);
        if P == 3 {
            load_left(rows, 0);
            multiply_tiles(both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::matmul::HALF;
    use crate::random::{Purpose, Stream};

    #[test]
    fn products_of_parts_equal_the_plain_sum() {
        if !available() {
            return; // what stands in is tested in `matmul.rs`
        }
        let mut random = Stream::new(1, Purpose::Weights, 0, 0);
        let mut draw = |n: usize, unit: f32| {
            (0..n)
                .map(|_| unit * random.uniform() as f32)
                .collect::<Vec<f32>>()
        };
        for (rows, depth, panels, unit) in [
            (1usize, 16usize, 1, 1.0),
            (40, 48, 2, 1e-37),
            (64, 80, 3, 1.0),
            (17, 130, 1, 1e-30),
        ] {
            let wide = panels * PANEL;
            let a_wide = depth.next_multiple_of(HALF);
            let left_numbers = draw(rows * a_wide, unit);
            let right_numbers = draw(panels * depth * PANEL, 1.0);
            let right_of =
                |k: usize, c: usize| right_numbers[(c / PANEL * depth + k) * PANEL + c % PANEL];
            let exact = |r: usize, c: usize| -> f64 {
                let term =
                    |k: usize| f64::from(left_numbers[r * a_wide + k]) * f64::from(right_of(k, c));
                (0..depth).map(term).sum()
            };
            let lines: Vec<Vec<f32>> = (0..depth)
                .map(|k| (0..wide).map(|c| right_of(k, c)).collect())
                .collect();
            let turned: Vec<Vec<f32>> = (0..depth.next_multiple_of(HALF))
                .step_by(PANEL)
                .map(|k| {
                    let high = PANEL.min(depth.next_multiple_of(HALF) - k);
                    let number = |i: usize| {
                        if k + i % high < depth {
                            right_of(k + i % high, i / high)
                        } else {
                            0.0
                        }
                    };
                    (0..wide * high).map(number).collect()
                })
                .collect();
            let columns: Vec<Vec<f32>> = (0..depth)
                .map(|k| {
                    (0..rows.next_multiple_of(HALF))
                        .map(|r| left_numbers.get(r * a_wide + k).copied().unwrap_or(0.0))
                        .collect()
                })
                .collect();
            let (lines, turned, columns) = (slices(&lines), slices(&turned), slices(&columns));
            for (parts, error) in [(Parts::Two, 1e-5), (Parts::Three, 1e-6)] {
                let scale = (1u64 << 60) as f32;
                let mut by_rows = Left::default();
                by_rows.rows(
                    parts,
                    a_wide,
                    &left_numbers.chunks_exact(a_wide).collect::<Vec<_>>(),
                    scale,
                );
                let mut by_columns = Left::default();
                by_columns.columns(parts, rows.next_multiple_of(HALF), &columns, scale);
                let rights = [
                    (
                        &by_rows,
                        0,
                        panels,
                        Right::Panels {
                            depth,
                            numbers: &right_numbers,
                        },
                    ),
                    (
                        &by_rows,
                        0,
                        panels,
                        Right::Turned {
                            columns: wide,
                            panels: &turned,
                        },
                    ),
                    (
                        &by_columns,
                        wide - PANEL,
                        1,
                        Right::Rows {
                            rows: &lines,
                            column: wide - PANEL,
                        },
                    ),
                ];
                for ((left, first, panels, right), then) in
                    rights
                        .into_iter()
                        .zip([Then::Replace, Then::Multiply, Then::Add])
                {
                    let mut out = vec![vec![2.0; panels * PANEL + 1]; left.rows];
                    let mut places: Vec<&mut [f32]> =
                        out.iter_mut().map(|row| &mut row[..]).collect();
                    let right = RightSide {
                        panels,
                        numbers: right,
                        scale: 1.0,
                        next: [&[], &[]],
                    };
                    let target = Target {
                        rows: &mut places,
                        then,
                    };
                    multiply(left, right, target);
                    for (r, row) in out.iter().take(rows).enumerate() {
                        for (c, &ours) in row[..panels * PANEL].iter().enumerate() {
                            let exact = match then {
                                Then::Replace => exact(r, first + c),
                                Then::Multiply => 2.0 * exact(r, first + c),
                                Then::Add => 2.0 + exact(r, first + c),
                            };
                            assert!(
                                (f64::from(ours) / exact - 1.0).abs() < error,
                                "{parts:?} {r} {c} {ours} {exact}"
                            );
                        }
                        assert_eq!(
                            row[panels * PANEL],
                            2.0,
                            "nothing is written beside the panels"
                        );
                    }
                }
            }
        }
    }

    /// Derivatives as large as any that is trusted, times weights of one, stay finite.
    #[test]
    fn the_largest_derivatives_fit() {
        if !available() {
            return;
        }
        let (largest, up) = (1.0 / crate::layers::scaled_rows::TINY, (1u64 << 24) as f32);
        let (row, ones) = ([largest; STEP], [1.0; STEP * PANEL]);
        let mut left = Left::default();
        left.rows(Parts::Two, STEP, &[&row], DERIVATIVE);
        let mut out = [0.0; PANEL];
        let right = RightSide {
            panels: 1,
            numbers: Right::Panels {
                depth: 1,
                numbers: &ones[..PANEL],
            },
            scale: up,
            next: [&[], &[]],
        };
        let target = Target {
            rows: &mut [&mut out],
            then: Then::Replace,
        };
        multiply(&left, right, target);
        assert!(
            out.iter().all(|&sum| (sum / largest - 1.0).abs() < 1e-4),
            "{out:?}"
        );
    }

    #[test]
    fn narrow_panels_are_not_whole() {
        for (wide, whole) in [(1, false), (HALF, true), (PANEL, true), (PANEL + 1, false)] {
            let numbers = vec![1.0; 64 * wide];
            assert_eq!(
                Right::Turned {
                    columns: 64,
                    panels: &[&numbers]
                }
                .is_whole(),
                whole,
                "{wide}"
            );
        }
    }

    fn slices(rows: &[Vec<f32>]) -> Vec<&[f32]> {
        rows.iter().map(|row| &row[..]).collect()
    }
}
