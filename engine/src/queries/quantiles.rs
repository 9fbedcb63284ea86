//! Holes filled with quantiles of P(x_m | x_o), such as the median: one pass up and one down for all columns of a row.

use crate::error::Result;
use crate::matrix::{Matrix, Rows};
use crate::queries::mixture_parts::Parts;
use crate::queries::mixtures::Normal;
use crate::queries::predictor::{Columns, Predictor};
use crate::queries::responsibilities::Flows;
use crate::structure::Kind;
use rayon::prelude::*;

/// A column of real numbers with holes.
struct HoledColumn {
    column: usize,
    parts: Parts,
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    flow: Vec<f64>,
    weights: Vec<f64>,
    normals: Vec<Normal>,
}

/// One row, and what is asked of its holes.
struct HoledRow<'a> {
    flows: &'a Flows<'a>,
    b: usize, // among the rows that `flows` is of
    cells: &'a [f32],
    probabilities: &'a [f64],
}

impl HoledRow<'_> {
    /// Quantiles of its holes in these columns, (columns, probabilities).
    fn quantiles(&self, columns: &[HoledColumn], scratch: &mut Scratch, to: &mut [f32]) {
        let Scratch {
            flow,
            weights,
            normals,
        } = scratch;
        let by_column = to.chunks_exact_mut(self.probabilities.len());
        for (HoledColumn { column, parts }, to) in columns.iter().zip(by_column) {
            if !self.cells[*column].is_nan() {
                continue;
            }
            weights.resize(parts.normals.len(), 0.0);
            parts.weigh(self.flows, self.b, flow, weights);
            let mixture = parts.mixture(self.flows, self.b, weights, normals);
            for (to, &p) in to.iter_mut().zip(self.probabilities) {
                *to = mixture.quantile(p) as f32;
            }
        }
    }
}

impl Predictor {
    /// Fills holes with quantiles given what is observed, a table for each of these probabilities; 0.5 is the median. A
    /// category has no quantiles: it is the most probable one.
    pub fn impute_quantiles(
        &mut self,
        rows: Rows<'_>,
        probabilities: &[f64],
        class: Option<usize>,
    ) -> Result<Vec<Matrix<f32>>> {
        let width = rows.width();
        let mut filled = self.impute_mean(rows, class)?.mean.into_vec();
        self.columns.round_bernoullis(rows.as_slice(), &mut filled);
        let mut all = vec![filled; probabilities.len()];
        let columns = self.holed_columns(rows);
        let (piece, count) = (self.piece(), probabilities.len());
        let stride = columns.len() * count;
        if stride == 0 {
            return Ok(shaped(all, width));
        }
        for (at, rows) in rows.as_slice().chunks(piece * width).enumerate() {
            let flows = self.flows(rows, class)?;
            let row = |(b, cells)| HoledRow {
                flows: &flows,
                b,
                cells,
                probabilities,
            };
            let rows_of_piece = rows.par_chunks(width).enumerate().map(row);
            let mut quantiles = vec![f32::NAN; rows.len() / width * stride]; // (rows, columns, probabilities)
            rows_of_piece
                .zip(quantiles.par_chunks_mut(stride))
                .for_each_init(Scratch::default, |scratch, (row, to)| {
                    row.quantiles(&columns, scratch, to)
                });
            for (i, of_hole) in quantiles.chunks_exact(count).enumerate() {
                let (b, column) = (i / columns.len(), columns[i % columns.len()].column);
                if rows[b * width + column].is_nan() {
                    let cell = (at * piece + b) * width + column;
                    let tables = all.iter_mut().zip(of_hole);
                    tables.for_each(|(table, &x)| table[cell] = x);
                }
            }
        }
        Ok(shaped(all, width))
    }

    /// The columns of real numbers that have a hole.
    fn holed_columns(&self, rows: Rows<'_>) -> Vec<HoledColumn> {
        let is_holed = |&column: &usize| {
            let mut cells = rows.as_slice().iter().skip(column).step_by(rows.width());
            self.check_real(column).is_ok() && cells.any(|x| x.is_nan())
        };
        let holed = |column| HoledColumn {
            column,
            parts: self.parts_of(column),
        };
        (0..rows.width()).filter(is_holed).map(holed).collect()
    }
}

fn shaped(tables: Vec<Vec<f32>>, width: usize) -> Vec<Matrix<f32>> {
    let tables = tables.into_iter();
    tables.map(|table| Matrix::new(table, width)).collect()
}

impl Columns {
    /// Missing zeros and ones: from their probabilities to the more probable one.
    fn round_bernoullis(&self, rows: &[f32], filled: &mut [f32]) {
        let kinds = self.kinds.iter().cycle();
        for ((x, filled), kind) in rows.iter().zip(filled).zip(kinds) {
            if x.is_nan() && *kind == Kind::Bernoulli {
                *filled = filled.round();
            }
        }
    }
}
