//! Rows of data in the frame.

use crate::arithmetic::instructions::arch;
use crate::arithmetic::tasks::for_each_task;
use crate::structure::Structure;

/// Samples of one task, and bits of one word of a mask.
pub const CHUNK: usize = 64;

/// B rows of D numbers in the frame; NaN is missing.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// B.
    pub rows: usize,
    /// D.
    pub width: usize,
    values: Vec<f32>, // (B, stride)
}

impl Batch {
    /// Makes space for `rows` rows of the structure's frame, all missing.
    pub fn clear(&mut self, structure: &Structure, rows: usize) {
        self.fit(structure, rows);
        self.values.fill(f32::NAN);
    }

    /// The same, with whatever the rows held before.
    pub(crate) fn fit(&mut self, structure: &Structure, rows: usize) {
        self.rows = rows;
        self.width = structure.frame_len();
        self.values.resize(rows * self.stride(), f32::NAN);
    }

    /// These rows of the frame.
    #[cfg(test)]
    pub(crate) fn of_rows(width: usize, values: &[f32]) -> Self {
        let mut batch = Self {
            rows: values.len() / width,
            width,
            values: Vec::new(),
        };
        batch.values.resize(batch.rows * batch.stride(), f32::NAN);
        values
            .chunks(width)
            .enumerate()
            .for_each(|(b, row)| batch.row_mut(b).copy_from_slice(row));
        batch
    }

    /// Numbers from one row to the next: an odd number of cache lines, so that a column of rows does not fall on the
    /// same few places of the cache.
    fn stride(&self) -> usize {
        const LINE: usize = 16;
        (self.width.div_ceil(LINE) | 1) * LINE
    }

    /// One row of the frame.
    pub fn row(&self, b: usize) -> &[f32] {
        &self.values[b * self.stride()..][..self.width]
    }

    /// The same, to be changed.
    pub fn row_mut(&mut self, b: usize) -> &mut [f32] {
        let start = b * self.stride();
        &mut self.values[start..][..self.width]
    }

    /// Which samples see each place of the frame, (words, D).
    pub(crate) fn seen(&self) -> Vec<Vec<u64>> {
        let mut all = vec![vec![0u64; self.width]; words(self.rows)];
        let tasks: Vec<_> = all.iter_mut().enumerate().collect();
        for_each_task(self.values.len() * PUT, tasks, |(w, seen)| {
            self.seen_of_word(w, seen);
        });
        all
    }

    /// The same for the samples of one word.
    fn seen_of_word(&self, w: usize, seen: &mut [u64]) {
        for b in w * CHUNK..self.rows.min((w + 1) * CHUNK) {
            arch().dispatch(
                #[inline(always)]
                || add_seen(self.row(b), 1 << (b % CHUNK), seen),
            );
        }
    }

    /// Calls `fill` with every row, all missing, and its number.
    pub(crate) fn fill_rows(&mut self, fill: impl Fn(usize, &mut [f32]) + Send + Sync) {
        const PIECE: usize = CHUNK / 4;
        let (width, stride, work) = (self.width, self.stride(), self.values.len() * PUT);
        let fill_row = |b: usize, row: &mut [f32]| {
            row.fill(f32::NAN);
            fill(b, &mut row[..width]);
        };
        let pieces = self.values.chunks_mut(PIECE * stride).enumerate().collect();
        for_each_task(work, pieces, |(index, rows): (usize, &mut [f32])| {
            let numbered = (index * PIECE..).zip(rows.chunks_exact_mut(stride));
            numbered.for_each(|(b, row)| fill_row(b, row));
        });
    }
}

/// Sets the bit of a sample at every place that it sees.
#[inline(always)]
fn add_seen(row: &[f32], bit: u64, seen: &mut [u64]) {
    for (seen, x) in seen.iter_mut().zip(row) {
        *seen |= if x.is_nan() { 0 } else { bit };
    }
}

/// Words that hold one bit per sample.
pub fn words(rows: usize) -> usize {
    rows.div_ceil(CHUNK)
}

/// The samples of a word, from its lowest bit up.
pub fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < CHUNK).then_some(bit)
    })
}

/// What laying one number in the frame costs, in multiply-adds.
const PUT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_a_word() {
        assert_eq!(bits(0b1010_0001).collect::<Vec<_>>(), [0, 5, 7]);
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(u64::MAX).count(), 64);
    }
}
