//! What the responsibilities of components say about the missing numbers of one row: sums that give means, variances
//! and probabilities (the equations are in `impute.rs`).

use crate::arithmetic::math::argmax;
use crate::layers::leaf::values_of;
use crate::layers::leaf_table::Density;
use crate::model::column_range::MeanVariance;
use crate::queries::predictor::Columns;
use crate::structure::Kind;

/// A column, and where its values start in [`Beliefs::probability`].
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub column: usize,
    pub first: usize,
}

/// What is known of the numbers of one row.
#[derive(Default)]
pub(super) struct Beliefs {
    weight: Vec<f64>, // (width): Σ of responsibilities, one but for rounding
    mean: Vec<f64>,   // (width)
    spread: Vec<f64>, // (width): weight × variance
    pub(super) probability: Vec<f64>, // (values of all discrete columns)
}

/// Where the values of each discrete column start in [`Beliefs::probability`], (width + 1).
pub(super) fn first_values(columns: &Columns) -> Vec<usize> {
    let mut first = vec![0];
    for &kind in &columns.kinds {
        first.push(first[first.len() - 1] + values_of(kind).unwrap_or(0));
    }
    first
}

impl Beliefs {
    pub(super) fn clear(&mut self, first: &[usize]) {
        for sums in [&mut self.weight, &mut self.mean, &mut self.spread] {
            sums.clear();
            sums.resize(first.len() - 1, 0.0);
        }
        self.probability.clear();
        self.probability.resize(first[first.len() - 1], 0.0);
    }

    /// Adds one coordinate with the responsibilities of its components, which have other moments in the units of the data
    /// where the column has bounds or a curve. Means and spreads are merged pairwise (Chan,
    /// Golub, LeVeque 1979), which does not cancel.
    pub(super) fn add(
        &mut self,
        Place { column, first }: Place,
        density: &Density,
        flow: &[f64],
        in_data: Option<&[MeanVariance]>,
    ) {
        match density {
            Density::Gaussian { mean, sigma, .. } => {
                for (d, &f) in flow.iter().enumerate().filter(|(_, f)| **f > 0.0) {
                    let MeanVariance { mean, variance } = match in_data {
                        Some(moments) => moments[d],
                        None => MeanVariance {
                            mean: mean[d],
                            variance: sigma[d] * sigma[d],
                        },
                    };
                    let before = self.weight[column];
                    self.weight[column] += f;
                    let (part, apart) = (f / self.weight[column], mean - self.mean[column]);
                    self.mean[column] += part * apart;
                    self.spread[column] += f * variance + part * before * apart * apart;
                }
            }
            Density::Discrete { prob, .. } => {
                for (sum, prob) in self.probability[first..]
                    .iter_mut()
                    .zip(prob.chunks_exact(flow.len()))
                {
                    *sum += flow.iter().zip(prob).map(|(f, p)| f * p).sum::<f64>();
                }
            }
        }
    }

    /// Mean and variance of a missing number as [`Imputed`] reports them, in the units of the model, or of the data for
    /// a column with bounds or a curve; NaN where nothing is possible.
    pub(super) fn moments(&self, column: usize, kind: Kind, values: &[f64]) -> (f64, f64) {
        let total = if kind == Kind::Gaussian {
            self.weight[column]
        } else {
            values.iter().sum()
        };
        match kind {
            _ if total == 0.0 => (f64::NAN, f64::NAN),
            Kind::Gaussian => (self.mean[column], self.spread[column] / total),
            Kind::Bernoulli => (values[1] / total, values[0] * values[1] / (total * total)),
            Kind::Categorical(_) => {
                let best = argmax(values);
                (best as f64, 1.0 - values[best] / total)
            }
        }
    }
}
