//! Cutting f32 into parts of bf16, in the order in which tiles want them.

use super::{EMPTY, LINES, Line, Parts, STEP, available};
use crate::arithmetic::matmul::{HALF, PANEL, fetch};
use crate::arithmetic::transpose::turn_in_registers;
use std::arch::x86_64::*;
use std::ops::Range;

/// Two terms of 16 rows or columns, side by side, in parts; the second may not be there, and is zero then. Two parts are
/// rounded; three need not be.
///
/// # Safety
/// The machine must have AVX-512. A term must point to 16 numbers, every part's place to a line.
#[inline(always)]
unsafe fn cut_pair<const P: usize>(
    even: *const f32,
    odd: Option<*const f32>,
    scale: f32,
    to: impl Fn(usize) -> *mut Line,
) {
    // SAFETY: by this function's contract.
    unsafe {
        let (scale, half) = (_mm512_set1_ps(scale), _mm512_set1_epi32(0x8000));
        let mut x = _mm512_mul_ps(_mm512_loadu_ps(even), scale);
        let mut y = odd.map_or(_mm512_setzero_ps(), |odd| {
            _mm512_mul_ps(_mm512_loadu_ps(odd), scale)
        });
        for p in 0..P {
            let (mut a, mut b) = (_mm512_castps_si512(x), _mm512_castps_si512(y));
            if P == 2 {
                (a, b) = (_mm512_add_epi32(a, half), _mm512_add_epi32(b, half));
            }
            // The high halves of both; what they leave is for the next part.
            _mm512_store_si512(
                to(p).cast(),
                _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32(a, 16), b),
            );
            let high = _mm512_set1_epi32(0xffff_0000_u32 as i32);
            x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(a, high)));
            y = _mm512_sub_ps(y, _mm512_castsi512_ps(_mm512_and_si512(b, high)));
        }
    }
}

/// Pairs of terms from..to of `columns` (16 or 32) columns, in parts: tiles by (step, part, half); zero beyond the depth.
///
/// # Safety
/// The machine must have AVX-512. Terms below the depth must point to that many numbers, and `tiles` to a place for all
/// steps.
#[inline(always)]
unsafe fn cut_pairs<const P: usize, const H: usize>(
    pairs: Range<usize>,
    depth: usize,
    term: impl Fn(usize) -> *const f32,
    scale: f32,
    tiles: *mut Line,
) {
    for pair in pairs {
        let to = tiles.wrapping_add(pair / LINES * H * P * LINES + pair % LINES);
        for half in 0..H {
            let to = |p: usize| to.wrapping_add((H * p + half) * LINES);
            // SAFETY: by this function's contract.
            unsafe {
                let at = |k: usize| term(k).add(half * HALF);
                match pair / LINES * STEP + pair % LINES {
                    k if k + HALF < depth => cut_pair::<P>(at(k), Some(at(k + HALF)), scale, to),
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

/// The left side of products, in parts: tiles by (block of 16 rows, step of 32 terms, part).
#[derive(Default)]
pub(crate) struct Left {
    pub(super) rows: usize,
    pub(super) steps: usize,
    pub(super) parts: usize,
    pub(super) scale: f32,
    pub(super) lines: Vec<Line>,
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
    pub fn rows(&mut self, parts: Parts, depth: usize, rows: &[&[f32]], scale: f32) {
        assert!(
            depth.is_multiple_of(HALF) && available() && rows.iter().all(|row| row.len() >= depth)
        );
        self.resize(parts, rows.len(), depth, scale);
        // SAFETY: the instructions are there, every row is long enough, and `resize` has made room.
        unsafe {
            match parts {
                Parts::Two => self.cut_rows::<2>(rows, depth),
                Parts::Three => self.cut_rows::<3>(rows, depth),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn cut_rows<const P: usize>(&mut self, rows: &[&[f32]], depth: usize) {
        for (r, row) in rows.iter().enumerate() {
            for step in 0..self.steps {
                // SAFETY: the row holds these terms, and there is a line for each part.
                unsafe {
                    let to = self
                        .lines
                        .as_mut_ptr()
                        .add((r / LINES * self.steps + step) * P * LINES + r % LINES);
                    let even = row.as_ptr().add(step * STEP);
                    let odd = (step * STEP + HALF < depth).then_some(even.wrapping_add(HALF));
                    cut_pair::<P>(even, odd, self.scale, |p| to.add(p * LINES));
                }
            }
        }
    }

    /// Columns of rows, `a(r, k) = rows[k][r]`; their number is a multiple of [`HALF`].
    pub fn columns(&mut self, parts: Parts, columns: usize, rows: &[&[f32]], scale: f32) {
        assert!(
            columns.is_multiple_of(HALF)
                && available()
                && rows.iter().all(|row| row.len() >= columns)
        );
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
        for (block, step) in
            (0..self.rows / LINES).flat_map(|block| (0..self.steps).map(move |step| (block, step)))
        {
            // SAFETY: every row holds 16 numbers from here; there are 16 lines for each part here and there.
            unsafe {
                let term = |k: usize| rows[step * STEP + k].as_ptr().add(block * LINES);
                cut_pairs::<P, 1>(0..LINES, rows.len() - step * STEP, term, self.scale, place);
                let to = self
                    .lines
                    .as_mut_ptr()
                    .add((block * self.steps + step) * P * LINES);
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
    /// Whether turned panels have as many columns as are read.
    pub(super) fn is_whole(&self) -> bool {
        match *self {
            Right::Turned { columns, panels } => panels.iter().all(|panel| {
                [PANEL, HALF]
                    .map(|width| width * columns)
                    .contains(&panel.len())
            }),
            _ => true, // their slices are measured where they are cut
        }
    }

    /// Cuts some of the pairs of terms of a panel, counted through its steps.
    ///
    /// # Safety
    /// The machine must have AVX-512, and `tiles` a place for all steps.
    #[inline(always)]
    pub(super) unsafe fn cut<const P: usize>(
        &self,
        panel: usize,
        pairs: Range<usize>,
        scale: f32,
        tiles: *mut Line,
    ) {
        match *self {
            Right::Panels { depth, numbers } => {
                // The same pairs of the panel after this one are fetched meanwhile.
                let after =
                    ((panel + 1) * depth * PANEL + 2 * pairs.start * PANEL).min(numbers.len());
                fetch(&numbers[after..(after + 2 * pairs.len() * PANEL).min(numbers.len())]);
                let numbers = numbers[panel * depth * PANEL..][..depth * PANEL].as_ptr();
                // SAFETY: terms lie inside the panel.
                unsafe {
                    cut_pairs::<P, 2>(pairs, depth, |k| numbers.add(k * PANEL), scale, tiles)
                };
            }
            Right::Rows { rows, column } => {
                let term = |k: usize| rows[k][column..column + PANEL].as_ptr();
                // SAFETY: the columns lie inside the row.
                unsafe { cut_pairs::<P, 2>(pairs, rows.len(), term, scale, tiles) };
            }
            Right::Turned { columns, panels } => {
                // Whole halves of a step at once, when their first pair is asked for.
                for (step, half) in pairs
                    .filter(|pair| pair % HALF < 2)
                    .map(|pair| (pair / HALF, pair % HALF))
                {
                    let (width, first) =
                        (panels[step].len() / columns, panel * PANEL + half * HALF);
                    let after = ((first + PANEL) * width).min(panels[step].len());
                    fetch(&panels[step][after..(after + HALF * width).min(panels[step].len())]);
                    let mut lines = [[EMPTY; LINES]; P];
                    let place = lines.as_mut_ptr().cast::<Line>();
                    for i in 0..LINES.min(columns.saturating_sub(first)) {
                        let line = panels[step][(first + i) * width..][..width].as_ptr();
                        // SAFETY: the line has 32 or 16 numbers.
                        unsafe {
                            let odd = (width == PANEL).then_some(line.add(HALF));
                            cut_pair::<P>(line, odd, scale, |p| place.add(p * LINES + i));
                        }
                    }
                    for p in 0..P {
                        // SAFETY: both are tiles.
                        unsafe {
                            turn(
                                place.add(p * LINES),
                                tiles.add((2 * P * step + 2 * p + half) * LINES),
                            )
                        };
                    }
                }
            }
        }
    }
}
