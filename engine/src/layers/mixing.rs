//! Mixing, the paper's 1×1 convolution: `ψ(c) = Σ_a W[c,a] φ(a)`, rows of W on the simplex.
//!
//! [`Mixing`] holds the free parameters, `W = softmax_a(logits)`; `Simplex` (`simplex.rs`) holds W as the kernel reads it.
//! Both keep a matrix in panels: [`PANEL`] rows c side by side, one line of them for each column a. A softmax over a
//! is then vertical work, and the kernel reads weights in the order in which they lie:
//!
//! ```text
//! panel of c₀:   W[c₀,0] W[c₀+1,0] … W[c₀+31,0] │ W[c₀,1] W[c₀+1,1] … │ …        (A, 32)
//! ```

use crate::arithmetic::matmul::{PANEL, padded};
use crate::random::{Purpose, Stream};

/// Several C × A matrices by their free parameters. A logit of −∞ is a weight that is and stays zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    /// How many matrices.
    pub matrices: usize,
    /// C: channels out.
    pub rows: usize,
    /// A: channels in.
    pub columns: usize,
    /// In panels, (matrices, A · padded C).
    pub logits: Vec<f32>,
}

impl Mixing {
    /// All rows uniform.
    pub fn new(matrices: usize, rows: usize, columns: usize) -> Self {
        Self {
            matrices,
            rows,
            columns,
            logits: vec![0.0; matrices * columns * padded(rows)],
        }
    }

    /// The identity, which no gradient moves.
    pub fn identity(size: usize) -> Self {
        let one = |c: usize, a: usize| if c == a { 0.0 } else { f32::NEG_INFINITY };
        Self::from_logits(1, size, size, |_, c, a| one(c, a))
    }

    /// Logits sampled from a normal distribution.
    pub fn random(
        matrices: usize,
        rows: usize,
        columns: usize,
        spread: f64,
        stream: (u64, u32),
    ) -> Self {
        let mut random = Stream::new(stream.0, Purpose::Weights, 0, stream.1);
        Self::from_logits(matrices, rows, columns, |_, _, _| {
            (spread * random.normal()) as f32
        })
    }

    /// From a function of (matrix, c, a), called in that order.
    pub fn from_logits(
        matrices: usize,
        rows: usize,
        columns: usize,
        mut logit: impl FnMut(usize, usize, usize) -> f32,
    ) -> Self {
        let mut mixing = Self::new(matrices, rows, columns);
        for matrix in 0..matrices {
            for c in 0..rows {
                for a in 0..columns {
                    let place = mixing.place(matrix, c, a);
                    mixing.logits[place] = logit(matrix, c, a);
                }
            }
        }
        mixing
    }

    /// From weights, (matrices, C, A) in rows; they are normalised, and zeros are kept.
    pub fn from_weights(matrices: usize, rows: usize, columns: usize, weights: &[f64]) -> Self {
        Self::from_logits(matrices, rows, columns, |matrix, c, a| {
            weights[(matrix * rows + c) * columns + a].ln() as f32
        })
    }

    /// Numbers of one matrix in panels.
    pub fn matrix_len(&self) -> usize {
        self.columns * padded(self.rows)
    }

    /// Where `W[c,a]` of a matrix lies.
    pub fn place(&self, matrix: usize, c: usize, a: usize) -> usize {
        matrix * self.matrix_len() + panel_place(self.rows, self.columns, c, a)
    }

    /// The logit of `W[c,a]`.
    pub fn logit(&self, matrix: usize, c: usize, a: usize) -> f32 {
        self.logits[self.place(matrix, c, a)]
    }

    /// `log W[c, ·]` in f64, straight from the definition.
    pub fn log_row(&self, matrix: usize, c: usize) -> Vec<f64> {
        let logits: Vec<f64> = (0..self.columns)
            .map(|a| f64::from(self.logit(matrix, c, a)))
            .collect();
        let norm = crate::arithmetic::math::log_sum_exp(&logits);
        logits.into_iter().map(|logit| logit - norm).collect()
    }
}

pub(super) fn panel_place(rows: usize, columns: usize, c: usize, a: usize) -> usize {
    let first = c / PANEL * PANEL;
    let width = PANEL.min(padded(rows) - first);
    first * columns + a * width + (c - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_lie_in_rows_of_matrices() {
        let weights = [1.0, 1.0, 2.0, 3.0, 2.0, 5.0, 1.0, 6.0, 3.0, 2.0, 5.0, 9.0];
        let mixing = Mixing::from_weights(2, 2, 3, &weights);
        for (row, given) in weights.chunks(3).enumerate() {
            let whole: f64 = given.iter().sum();
            for (log, weight) in mixing.log_row(row / 2, row % 2).iter().zip(given) {
                assert!((log.exp() - weight / whole).abs() < 1e-6, "row {row}");
            }
        }
    }
}
