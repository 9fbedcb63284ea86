//! The same products on the tile registers of recent Intel processors (AMX): faster, and as exact.
//!
//! Tiles multiply bf16, numbers of 8 bits. An f32 has 24, so it is cut into parts, `x = h + m + l`, and a product is a
//! sum of products of parts. [`Parts::Three`] takes all that matters to f32, `hh + hm + mh + mm + hl + lh`, and errs less
//! than a loop over f32 does; [`Parts::Two`] takes `hh + hm + mh`, to 2⁻¹⁷ of each term, for derivatives in training.
//! Sums are f32. Tiles know no subnormal numbers, so what is to be cut is scaled first, by a power of two.
//!
//! ```text
//! left tile    16 rows r × 32 terms k            right tile    16 pairs of terms × 16 columns × (k, k + 1)
//! ```
//!
//! A tile instruction takes 16 cycles, and the vector units are free meanwhile: they cut the next panel of the right
//! side while the tiles multiply this one.

use crate::kernel::{HALF, PANEL, Then, fetch};
use crate::transpose::turn_in_registers;
use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::OnceLock;

/// How exact a product is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// 2⁻¹⁷ of each term.
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
    *AVAILABLE.get_or_init(|| {
        let vectors = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let edx = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).edx } else { 0 }; // bit 24: tiles, 22: of bf16
        vectors && edx >> 24 & 1 == 1 && edx >> 22 & 1 == 1 && permitted()
    })
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

/// One part of 16 numbers in their high halves (the low ones are of no meaning), and what is left. Two parts are rounded;
/// three need not be.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn part<const P: usize>(x: __m512) -> (__m512i, __m512) {
    let bits = _mm512_castps_si512(x);
    let bits = if P == 2 { _mm512_add_epi32(bits, _mm512_set1_epi32(0x8000)) } else { bits };
    let high = _mm512_and_si512(bits, _mm512_set1_epi32(0xffff_0000_u32 as i32));
    (bits, _mm512_sub_ps(x, _mm512_castsi512_ps(high)))
}

/// 32 numbers side by side, in parts.
///
/// # Safety
/// `from` must point to 32 numbers, or 16 if only half are there; every part's place to a line.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn cut_line<const P: usize>(from: *const f32, whole: bool, scale: f32, to: impl Fn(usize) -> *mut Line) {
    static HIGH: [u16; 32] = {
        let mut index = [0; 32];
        let mut i = 0;
        while i < 32 {
            index[i] = 2 * i as u16 + 1;
            i += 1;
        }
        index
    };
    let scale = _mm512_set1_ps(scale);
    // SAFETY: by this function's contract.
    unsafe {
        let high = _mm512_loadu_si512(HIGH.as_ptr().cast());
        let mut x = _mm512_mul_ps(_mm512_loadu_ps(from), scale);
        let mut y = if whole { _mm512_mul_ps(_mm512_loadu_ps(from.add(HALF)), scale) } else { _mm512_setzero_ps() };
        for p in 0..P {
            let ((a, x_left), (b, y_left)) = (part::<P>(x), part::<P>(y));
            _mm512_store_si512(to(p).cast(), _mm512_permutex2var_epi16(a, high, b));
            (x, y) = (x_left, y_left);
        }
    }
}

/// Two terms of 16 columns, side by side, in parts; the second may not be there, and is zero then.
///
/// # Safety
/// A term must point to 16 numbers, every part's place to a line.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn cut_pair<const P: usize>(
    even: *const f32,
    odd: Option<*const f32>,
    scale: __m512,
    to: impl Fn(usize) -> *mut Line,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let mut x = _mm512_mul_ps(_mm512_loadu_ps(even), scale);
        let mut y = odd.map_or(_mm512_setzero_ps(), |odd| _mm512_mul_ps(_mm512_loadu_ps(odd), scale));
        for p in 0..P {
            let ((a, x_left), (b, y_left)) = (part::<P>(x), part::<P>(y));
            let pair = _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32(a, 16), b);
            _mm512_store_si512(to(p).cast(), pair);
            (x, y) = (x_left, y_left);
        }
    }
}

/// Pairs of terms from..to of `columns` (16 or 32) columns, in parts: tiles by (step, part, half); zero beyond the depth.
///
/// # Safety
/// Terms below the depth must point to that many numbers, and `tiles` to a place for all steps.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn cut_pairs<const P: usize, const H: usize>(
    pairs: Range<usize>,
    depth: usize,
    term: impl Fn(usize) -> *const f32,
    scale: f32,
    tiles: *mut Line,
) {
    let scale = _mm512_set1_ps(scale);
    for pair in pairs {
        let to = tiles.wrapping_add(pair / LINES * H * P * LINES + pair % LINES);
        for half in 0..H {
            let to = |p: usize| to.wrapping_add((H * p + half) * LINES);
            // SAFETY: by this function's contract.
            unsafe {
                let at = |k: usize| term(k).add(half * HALF);
                match 2 * pair {
                    k if k + 1 < depth => cut_pair::<P>(at(k), Some(at(k + 1)), scale, to),
                    k if k < depth => cut_pair::<P>(at(k), None, scale, to),
                    _ => (0..P).for_each(|p| *to(p) = EMPTY),
                }
            }
        }
    }
}

/// Turns pairs by columns into columns by pairs, or back: a pair is 32 bits, so it moves like an f32.
///
/// # Safety
/// Both must point to 16 lines.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn turn(from: *const Line, to: *mut Line) {
    // SAFETY: 16 lines are 16 rows of 16 numbers of 32 bits.
    unsafe { turn_in_registers(from.cast(), HALF, to.cast(), HALF) };
}

/// One row of the left side: its line in the tiles of each step and part.
///
/// # Safety
/// The row must be a multiple of [`HALF`] long, and `to` must hold its steps.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn cut_row<const P: usize>(row: &[f32], scale: f32, to: &mut [Line]) {
    for (step, from) in row.chunks(STEP).enumerate() {
        let to = to.as_mut_ptr().wrapping_add(step * P * LINES);
        // SAFETY: by this function's contract.
        unsafe { cut_line::<P>(from.as_ptr(), from.len() == STEP, scale, |p| to.add(p * LINES)) };
    }
}

/// The left side of products, in parts: tiles by (block of 16 rows, step of 32 terms, part).
#[derive(Default)]
pub(crate) struct Left {
    rows: usize,
    steps: usize,
    parts: usize,
    scale: f32,
    lines: Vec<Line>,
}

impl Left {
    fn resize(&mut self, parts: Parts, rows: usize, depth: usize, scale: f32) {
        self.rows = rows;
        self.steps = depth.div_ceil(STEP);
        self.parts = if parts == Parts::Two { 2 } else { 3 };
        self.scale = scale;
        let lines = rows.next_multiple_of(LINES) * self.steps * self.parts;
        if self.lines.len() < lines {
            self.lines.resize(lines, EMPTY);
        }
    }

    /// Rows with their terms side by side, `a(r, k) = rows[r][k]`; the depth is a multiple of [`HALF`].
    pub fn rows<'a>(&mut self, parts: Parts, depth: usize, rows: impl ExactSizeIterator<Item = &'a [f32]>, scale: f32) {
        assert!(depth.is_multiple_of(HALF) && available());
        self.resize(parts, rows.len(), depth, scale);
        let steps = self.steps;
        for (r, row) in rows.enumerate() {
            assert!(row.len() >= depth);
            let to = &mut self.lines[(r / LINES * steps * self.parts) * LINES + r % LINES..];
            // SAFETY: the instructions are there, the row is long enough, and `resize` has made room.
            unsafe {
                match parts {
                    Parts::Two => cut_row::<2>(&row[..depth], scale, to),
                    Parts::Three => cut_row::<3>(&row[..depth], scale, to),
                }
            }
        }
    }

    /// Columns of rows, `a(r, k) = rows[k][r]`; their number is a multiple of [`HALF`].
    pub fn columns(&mut self, parts: Parts, columns: usize, rows: &[&[f32]], scale: f32) {
        assert!(columns.is_multiple_of(HALF) && available() && rows.iter().all(|row| row.len() >= columns));
        self.resize(parts, columns, rows.len(), scale);
        // SAFETY: the instructions are there, every row is long enough, and `resize` has made room.
        unsafe {
            match parts {
                Parts::Two => self.cut_columns::<2>(rows),
                Parts::Three => self.cut_columns::<3>(rows),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn cut_columns<const P: usize>(&mut self, rows: &[&[f32]]) {
        let mut pairs = [[EMPTY; LINES]; P];
        let place = pairs.as_mut_ptr().cast::<Line>();
        for (block, step) in (0..self.rows / LINES).flat_map(|block| (0..self.steps).map(move |step| (block, step))) {
            // SAFETY: every row holds 16 numbers from here; there are 16 lines for each part here and there.
            unsafe {
                let term = |k: usize| rows[step * STEP + k].as_ptr().add(block * LINES);
                cut_pairs::<P, 1>(0..LINES, rows.len() - step * STEP, term, self.scale, place);
                let to = self.lines.as_mut_ptr().add((block * self.steps + step) * P * LINES);
                for p in 0..P {
                    turn(place.add(p * LINES), to.add(p * LINES));
                }
            }
        }
    }
}

/// The right side of a product, `b(k, ·)` by panels of [`PANEL`] columns.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a> {
    /// Panels one after the other, each with its terms one after the other.
    Panels {
        /// Terms of each panel.
        depth: usize,
        /// (panels, depth, 32).
        numbers: &'a [f32],
    },
    /// One panel: 32 numbers of each row from a column on.
    Rows {
        /// A row for each term.
        rows: &'a [&'a [f32]],
        /// The first column.
        column: usize,
    },
    /// Terms are the columns of panels: of the (C, A) matrix that they make, columns become rows.
    Turned {
        /// A.
        columns: usize,
        /// (A, 32) each, or (A, 16) the last.
        panels: &'a [&'a [f32]],
    },
}

impl Right<'_> {
    /// Cuts some of the pairs of terms of a panel, counted through its steps.
    ///
    /// # Safety
    /// `tiles` must have a place for all steps.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn cut<const P: usize>(&self, panel: usize, pairs: Range<usize>, scale: f32, tiles: *mut Line) {
        match *self {
            Right::Panels { depth, numbers } => {
                // The same pairs of the panel after this one are fetched meanwhile.
                let after = ((panel + 1) * depth * PANEL + 2 * pairs.start * PANEL).min(numbers.len());
                fetch(&numbers[after..(after + 2 * pairs.len() * PANEL).min(numbers.len())]);
                let numbers = numbers[panel * depth * PANEL..][..depth * PANEL].as_ptr();
                // SAFETY: terms lie inside the panel.
                unsafe { cut_pairs::<P, 2>(pairs, depth, |k| numbers.add(k * PANEL), scale, tiles) };
            }
            Right::Rows { rows, column } => {
                let term = |k: usize| rows[k][column..column + PANEL].as_ptr();
                // SAFETY: the columns lie inside the row.
                unsafe { cut_pairs::<P, 2>(pairs, rows.len(), term, scale, tiles) };
            }
            Right::Turned { columns, panels } => {
                // Whole halves of a step at once, when their first pair is asked for.
                for (step, half) in pairs.filter(|pair| pair % HALF < 2).map(|pair| (pair / HALF, pair % HALF)) {
                    let (wide, first) = (panels[step].len() / columns, panel * PANEL + half * HALF);
                    let after = ((first + PANEL) * wide).min(panels[step].len());
                    fetch(&panels[step][after..(after + HALF * wide).min(panels[step].len())]);
                    let mut lines = [[EMPTY; LINES]; P];
                    let place = lines.as_mut_ptr().cast::<Line>();
                    for i in 0..LINES.min(columns.saturating_sub(first)) {
                        let line = panels[step][(first + i) * wide..][..wide].as_ptr();
                        // SAFETY: the line has 32 or 16 numbers.
                        unsafe { cut_line::<P>(line, wide == PANEL, scale, |p| place.add(p * LINES + i)) };
                    }
                    for p in 0..P {
                        // SAFETY: both are tiles.
                        unsafe { turn(place.add(p * LINES), tiles.add((2 * P * step + 2 * p + half) * LINES)) };
                    }
                }
            }
        }
    }
}

/// Buffers of products.
#[derive(Default)]
struct Room {
    right: Vec<Line>, // two panels, each by (step, part, half) of tiles
    sums: Vec<Line>,  // what the tiles leave: twice (32, 32) of f32
}

// One for each thread.
thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
    static LEFT: RefCell<Left> = RefCell::default();
}

/// Lends a left side whose room is used again.
pub(crate) fn with_left(work: impl FnOnce(&mut Left)) {
    let mut left = LEFT.take(); // the work may wait for other tasks of this thread, which take one too
    work(&mut left);
    LEFT.set(left);
}

/// `out[r] = Σ_k a(r, k) · b(k, ·)` for as many panels of b as told. What is needed next is fetched meanwhile.
pub(crate) fn multiply(
    left: &Left,
    (panels, right, scale): (usize, Right<'_>, f32),
    (out, then): (&mut [&mut [f32]], Then),
    next: [&[f32]; 2],
) {
    assert!(left.rows == out.len() && available());
    assert!(out.iter().all(|row| row.len() >= panels * PANEL));
    if left.rows > 0 && left.steps > 0 && panels > 0 {
        // SAFETY: the instructions are there, and every row of `out` is long enough.
        ROOM.with_borrow_mut(|room| unsafe {
            match left.parts {
                2 => multiply_parts::<2>(left, (panels, right, scale), (out, then), next, room),
                _ => multiply_parts::<3>(left, (panels, right, scale), (out, then), next, room),
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

/// (part of the left side, part of the right side) of each group of products; each shares one with the last.
const TWO: [(usize, usize); 3] = [(0, 1), (0, 0), (1, 0)];
const THREE: [(usize, usize); 6] = [(0, 2), (0, 0), (2, 0), (1, 0), (1, 1), (0, 1)];

/// # Safety
/// The machine must have tiles, and every row of `out` must hold all panels.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn multiply_parts<const P: usize>(
    left: &Left,
    (panels, right, scale): (usize, Right<'_>, f32),
    (out, then): (&mut [&mut [f32]], Then),
    next: [&[f32]; 2],
    room: &mut Room,
) {
    let groups: &[(usize, usize)] = if P == 2 { &TWO } else { &THREE };
    let steps = left.steps;
    let step_lines = 2 * P * LINES; // of the right side
    room.right.resize(2 * steps * step_lines, EMPTY);
    room.sums.resize(2 * 4 * LINES, EMPTY);
    let (cut, sums) = (room.right.as_mut_ptr(), room.sums.as_mut_ptr().cast::<f32>());
    // Cuts pairs of a panel; panels take turns in the two places.
    let prepare = |panel: usize, pairs: Range<usize>| {
        // SAFETY: there is a place for all steps.
        unsafe { right.cut::<P>(panel, pairs, scale, cut.add(panel % 2 * steps * step_lines)) };
    };
    // What a block of rows has left is put in its place while the next block is multiplied.
    let factor = 1.0 / (left.scale * scale);
    let mut put = |block: usize| {
        let blocks = left.rows.div_ceil(2 * LINES);
        let (panel, first) = (block / blocks, block % blocks * 2 * LINES);
        for (r, row) in out[first..].iter_mut().take(2 * LINES).enumerate() {
            // SAFETY: the row holds this panel.
            unsafe {
                let from = sums.add((block % 2 * 2 * LINES + r) * PANEL);
                put_row(from, factor, row.as_mut_ptr().add(panel * PANEL), then);
            }
        }
    };
    let rounds = left.rows.div_ceil(2 * LINES) * steps * groups.len(); // of a panel
    let (share, fetched) =
        ((steps * LINES).div_ceil(rounds), (next[0].len() + next[1].len()).div_ceil(rounds * panels));
    let [mut soon, mut later] = next;
    let mut block = 0;
    prepare(0, 0..steps * LINES);
    // SAFETY: whole tiles are loaded from the two buffers and stored into `sums`. Nothing but these lines uses tiles.
    unsafe {
        asm!("ldtilecfg [{}]", in(reg) &SHAPE, options(nostack, readonly));
        for panel in 0..panels {
            let here = cut.add(panel % 2 * steps * step_lines);
            let mut prepared = if panel + 1 < panels { 0 } else { steps * LINES };
            for first in (0..left.rows).step_by(2 * LINES) {
                let both = left.rows - first > LINES; // two tiles of rows
                let upper = left.lines.as_ptr().add(first / LINES * steps * P * LINES);
                let lower = if both { upper.add(steps * P * LINES) } else { upper };
                asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3", options(nostack, nomem));
                for step in 0..steps {
                    let (upper, lower) = (upper.add(step * P * LINES), lower.add(step * P * LINES));
                    let right = here.add(step * step_lines);
                    for (g, &(a, b)) in groups.iter().enumerate() {
                        if g == 0 || groups[g - 1].1 != b {
                            asm!("tileloadd tmm6, [{b} + {s}]", "tileloadd tmm7, [{b} + {s} + 1024]",
                                b = in(reg) right.add(2 * b * LINES), s = in(reg) 64usize, options(nostack, readonly));
                        }
                        if g == 0 || groups[g - 1].0 != a {
                            asm!("tileloadd tmm4, [{a} + {s}]", "tileloadd tmm5, [{b} + {s}]",
                                a = in(reg) upper.add(a * LINES), b = in(reg) lower.add(a * LINES), s = in(reg) 64usize,
                                options(nostack, readonly));
                        }
                        asm!("tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7", options(nostack, nomem));
                        if both {
                            asm!("tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7", options(nostack, nomem));
                        }
                        if g == 0 && step == 0 && block > 0 {
                            put(block - 1);
                        }
                        if prepared < steps * LINES {
                            let until = (prepared + share).min(steps * LINES);
                            prepare(panel + 1, prepared..until);
                            prepared = until;
                        }
                        if soon.is_empty() {
                            soon = std::mem::take(&mut later);
                        }
                        let (now, rest) = soon.split_at(fetched.min(soon.len()));
                        fetch(now);
                        soon = rest;
                    }
                }
                let to = sums.add(block % 2 * 2 * LINES * PANEL);
                asm!("tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 64], tmm1",
                    "tilestored [{d} + {s}], tmm2", "tilestored [{d} + {s} + 64], tmm3",
                    c = in(reg) to, d = in(reg) to.add(LINES * PANEL), s = in(reg) 4 * PANEL, options(nostack));
                block += 1;
            }
        }
        put(block - 1);
        asm!("tilerelease", options(nostack, nomem));
    }
}

/// What the tiles have left of one row of a panel, times a factor.
///
/// # Safety
/// Both must point to [`PANEL`] numbers.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn put_row(sums: *const f32, factor: f32, out: *mut f32, then: Then) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn products_of_parts_equal_the_plain_sum() {
        if !available() {
            return; // what stands in is tested in `kernel.rs`
        }
        let mut random = Stream::new(1, Purpose::Weights, 0, 0);
        let mut draw = |n: usize, unit: f32| (0..n).map(|_| unit * random.uniform() as f32).collect::<Vec<f32>>();
        for (rows, depth, panels, unit) in
            [(1usize, 16usize, 1, 1.0), (40, 48, 2, 1e-37), (64, 80, 3, 1.0), (17, 130, 1, 1e-30)]
        {
            let wide = panels * PANEL;
            let a_wide = depth.next_multiple_of(HALF);
            let left_numbers = draw(rows * a_wide, unit);
            let right_numbers = draw(panels * depth * PANEL, 1.0);
            let right_of = |k: usize, c: usize| right_numbers[(c / PANEL * depth + k) * PANEL + c % PANEL];
            let exact = |r: usize, c: usize| -> f64 {
                let term = |k: usize| f64::from(left_numbers[r * a_wide + k]) * f64::from(right_of(k, c));
                (0..depth).map(term).sum()
            };
            let lines: Vec<Vec<f32>> = (0..depth).map(|k| (0..wide).map(|c| right_of(k, c)).collect()).collect();
            let turned: Vec<Vec<f32>> = (0..depth.next_multiple_of(HALF))
                .step_by(PANEL)
                .map(|k| {
                    let high = PANEL.min(depth.next_multiple_of(HALF) - k);
                    let number = |i: usize| if k + i % high < depth { right_of(k + i % high, i / high) } else { 0.0 };
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
                by_rows.rows(parts, a_wide, left_numbers.chunks_exact(a_wide), scale);
                let mut by_columns = Left::default();
                by_columns.columns(parts, rows.next_multiple_of(HALF), &columns, scale);
                let rights = [
                    (&by_rows, 0, panels, Right::Panels { depth, numbers: &right_numbers }),
                    (&by_rows, 0, panels, Right::Turned { columns: wide, panels: &turned }),
                    (&by_columns, wide - PANEL, 1, Right::Rows { rows: &lines, column: wide - PANEL }),
                ];
                for ((left, first, panels, right), then) in
                    rights.into_iter().zip([Then::Replace, Then::Multiply, Then::Add])
                {
                    let mut out = vec![vec![2.0; panels * PANEL + 1]; left.rows];
                    let mut places: Vec<&mut [f32]> = out.iter_mut().map(|row| &mut row[..]).collect();
                    multiply(left, (panels, right, 1.0), (&mut places, then), [&[], &[]]);
                    for (r, row) in out.iter().take(rows).enumerate() {
                        for (c, &ours) in row[..panels * PANEL].iter().enumerate() {
                            let exact = match then {
                                Then::Replace => exact(r, first + c),
                                Then::Multiply => 2.0 * exact(r, first + c),
                                Then::Add => 2.0 + exact(r, first + c),
                            };
                            assert!((f64::from(ours) / exact - 1.0).abs() < error, "{parts:?} {r} {c} {ours} {exact}");
                        }
                        assert_eq!(row[panels * PANEL], 2.0, "nothing is written beside the panels");
                    }
                }
            }
        }
    }

    fn slices(rows: &[Vec<f32>]) -> Vec<&[f32]> {
        rows.iter().map(|row| &row[..]).collect()
    }
}
