//! What is missing, given what is observed: exact means, variances and probabilities.
//!
//! ```text
//! responsibility   r_i(d) = P(d_i = d | x_o) = ∂ log P(x_o) / ∂ log φ⁰_i(d)          one pass up, one down
//! mean             E[x_m | x_o]   = Σ_d r_i(d) μ_d
//! variance         Var[x_m | x_o] = Σ_d r_i(d) (σ_d² + (μ_d − mean)²)
//! probability      P(x_m = v | x_o) = Σ_d r_i(d) p(v|d)
//! ```
//!
//! With several trees, the responsibilities of one tree sum to that tree's posterior weight, and the sums above run
//! over all trees. Given a class, everything is given that class too.
//!
//! ```
//! use sumout::structure::{Sharing, Structure};
//! use sumout::{Model, Predictor, Rows};
//! let sequence = Structure::sequence(4).components(3).classes(3);
//! let structure = sequence.level(2, 5, Sharing::Own).level(2, 6, Sharing::Own).build()?;
//! let mut predictor = Predictor::new(Model::random(structure, 1.0, 7))?;
//! let imputed = predictor.impute_mean(Rows::new(&[0.5, f32::NAN, -1.0, 2.0], 4)?, None)?;
//! assert_eq!((imputed.mean[(0, 0)], imputed.variance[(0, 0)]), (0.5, 0.0)); // observed: kept
//! let (mean, variance) = (imputed.mean[(0, 1)], imputed.variance[(0, 1)]); // leaves are standard normals
//! assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-5);
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::layers::leaf::values_of;
use crate::matrix::{Matrix, Rows};
use crate::model::column_range::ColumnRange;
use crate::queries::beliefs::{Beliefs, first_values};
use crate::queries::distinct_rows::DistinctRows;
use crate::queries::predictor::Predictor;
use crate::structure::Kind;
use rayon::prelude::*;

/// Rows with their holes filled; both (n, width), in the units of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Imputed {
    /// The observed number. Where it is missing: the mean of a real number, the probability that a Bernoulli is 1, and
    /// the most probable category of a categorical, which has no mean.
    pub mean: Matrix<f32>,
    /// 0 where observed. Where it is missing: the variance of a real number or of a Bernoulli, and the probability that
    /// a categorical is another than the most probable.
    pub variance: Matrix<f32>,
}

/// What leads from the beliefs about a column to its mean in the units of the data.
struct MeanColumns {
    kinds: Vec<Kind>,         // (width)
    first: Vec<usize>,        // (width + 1), of `Beliefs::probability`
    units: Vec<(f64, f64)>,   // (width): offset and factor
    ranges: Vec<ColumnRange>, // (width), or empty
}

impl MeanColumns {
    /// Means and variances of a row, (2, width).
    fn write_moments(&self, row: &[f32], beliefs: &Beliefs, to: &mut [f32]) {
        let (mean, variance) = to.split_at_mut(row.len());
        for column in 0..row.len() {
            if !row[column].is_nan() {
                (mean[column], variance[column]) = (row[column], 0.0);
                continue;
            }
            let values = &beliefs.probability[self.first[column]..self.first[column + 1]];
            let (z, z_variance) = beliefs.moments(column, self.kinds[column], values);
            let (offset, factor) = self.units[column];
            let x = z * factor + offset;
            let range = self.ranges.get(column);
            mean[column] = range.map_or(x as f32, |range| range.tidy(x));
            variance[column] = (z_variance * factor * factor) as f32;
        }
    }
}

impl Predictor {
    /// Fills holes with the exact mean given what is observed, and says how sure it is.
    ///
    /// The mean of a column with one bound is that of a mixture of log-normals, exactly; with two bounds it is a numeric
    /// integral of six digits. It is rounded where the column is whole.
    ///
    /// A hole stays NaN only where the model gives what is observed probability zero.
    pub fn impute_mean(&mut self, rows: Rows<'_>, class: Option<usize>) -> Result<Imputed> {
        let (width, columns) = (self.model.structure.width(), self.mean_columns());
        let both = self.complete(rows, class, 2 * width, |row, beliefs, to| {
            columns.write_moments(row, beliefs, to)
        })?;
        let half = |part: usize| {
            let rows = both.chunks_exact(width).skip(part).step_by(2);
            Matrix::new(rows.flatten().copied().collect(), width)
        };
        Ok(Imputed {
            mean: half(0),
            variance: half(1),
        })
    }

    fn mean_columns(&self) -> MeanColumns {
        let units = |column: usize| match self.model.scaling.is_bent(column) {
            true => (0.0, 1.0), // beliefs are in the units of the data
            false => self.units(column),
        };
        MeanColumns {
            kinds: self.columns.kinds.clone(),
            first: first_values(&self.columns),
            units: (0..self.columns.kinds.len()).map(units).collect(),
            ranges: self.model.scaling.ranges.clone(),
        }
    }

    /// P(x_m = v | x_o) for the discrete columns named, as (n, V) for each; one and zeros where it is observed.
    pub fn impute_probabilities(
        &mut self,
        rows: Rows<'_>,
        columns: &[usize],
        class: Option<usize>,
    ) -> Result<Vec<Matrix<f32>>> {
        let mut counts = Vec::with_capacity(columns.len());
        for &column in columns {
            match self.columns.kinds.get(column).map(|&kind| values_of(kind)) {
                Some(Some(values)) => counts.push(values),
                Some(None) => {
                    return Err(Error::shape(
                        format!("column {column}"),
                        "a discrete column",
                        "real numbers",
                    ));
                }
                None => {
                    let width = self.model.structure.width();
                    return Err(Error::shape(
                        "column",
                        format!("a number from 0 to {}", width - 1),
                        column,
                    ));
                }
            }
        }
        let first = first_values(&self.columns);
        let stride = counts.iter().sum();
        let values = |column: usize| first[column]..first[column + 1];
        let all = self.complete(rows, class, stride, |row, beliefs, to| {
            let cell = |&c: &usize| (row[c], &beliefs.probability[values(c)]);
            write_probabilities(columns.iter().map(cell), to);
        })?;
        let mut left = 0;
        let mut split = Vec::with_capacity(counts.len());
        for count in counts {
            let rows = all.chunks_exact(stride);
            let part = rows.flat_map(|row| &row[left..left + count]).copied();
            split.push(Matrix::new(part.collect(), count));
            left += count;
        }
        Ok(split)
    }

    /// Offset and factor from the model's units back to those of a column; (0, 1) for a discrete one.
    pub(crate) fn units(&self, column: usize) -> (f64, f64) {
        match values_of(self.columns.kinds[column]) {
            None => {
                let scaling = &self.model.scaling;
                (
                    scaling.invert(column, 0.0).into(),
                    1.0 / f64::from(scaling.scale_of(column)),
                )
            }
            Some(_) => (0.0, 1.0),
        }
    }

    /// Collects beliefs about the missing numbers of every row and lets `report` write `stride` numbers of each.
    fn complete(
        &mut self,
        rows: Rows<'_>,
        class: Option<usize>,
        stride: usize,
        report: impl Fn(&[f32], &Beliefs, &mut [f32]) + Sync,
    ) -> Result<Vec<f32>> {
        let n = self.check_rows(rows)?;
        self.check_class(class)?;
        let (width, first) = (self.model.structure.width(), first_values(&self.columns));
        let mut all = vec![0.0; n * stride];
        let piece = self.piece();
        for (rows, out) in rows
            .as_slice()
            .chunks(piece * width)
            .zip(all.chunks_mut(piece * stride.max(1)))
        {
            let distinct = DistinctRows::new(rows, width);
            let flows = self.flows(&distinct.values, class)?;
            let by_row = out
                .par_chunks_mut(stride)
                .zip(rows.par_chunks(width))
                .enumerate();
            by_row.for_each_init(
                <(Beliefs, Vec<f64>)>::default,
                |(beliefs, flow), (b, (out, row))| {
                    flows.beliefs(distinct.of_row[b], row, &first, beliefs, flow);
                    report(row, beliefs, out);
                },
            );
        }
        Ok(all)
    }
}

/// The probabilities of the values of some cells side by side; one and zeros where a cell is observed.
fn write_probabilities<'a>(cells: impl Iterator<Item = (f32, &'a [f64])>, mut to: &mut [f32]) {
    for (cell, values) in cells {
        let total: f64 = values.iter().sum();
        let (part, rest) = to.split_at_mut(values.len());
        for (v, to) in part.iter_mut().enumerate() {
            let seen = if cell == v as f32 { 1.0 } else { 0.0 };
            *to = if cell.is_nan() {
                (values[v] / total) as f32
            } else {
                seen
            };
        }
        to = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::structure::Structure;

    /// P(x_m = v | x_o) is P(x_m = v, x_o) divided by the sum over v.
    #[test]
    fn probabilities_of_values_are_shares_of_rows() {
        let kinds = [Kind::Categorical(3), Kind::Gaussian, Kind::Categorical(4)];
        let structure = Structure::table(&kinds).components(3).channels([4]);
        let mut model = Model::random(structure.build().unwrap(), 1.0, 3);
        for family in &mut model.weights.trees[0].families {
            for (i, x) in family.coordinates[0].free_mut().into_iter().enumerate() {
                *x = (i as f32).sin();
            }
        }
        let mut predictor = Predictor::new(model).unwrap();
        let row = [f32::NAN, 0.5, f32::NAN];
        let rows = Rows::new(&row, 3).unwrap();
        let ours = predictor.impute_probabilities(rows, &[2, 0], None).unwrap();
        for (column, ours) in [2, 0].into_iter().zip(&ours) {
            let shares: Vec<f64> = (0..ours.columns())
                .map(|v| {
                    let mut row = row;
                    row[column] = v as f32;
                    predictor.log_marginal(Rows::new(&row, 3).unwrap()).unwrap()[0].exp()
                })
                .collect();
            let whole: f64 = shares.iter().sum();
            for (share, &ours) in shares.iter().zip(ours.row(0)) {
                assert!(
                    (share / whole - f64::from(ours)).abs() < 1e-5,
                    "{column}: {ours}"
                );
            }
        }
        let given = Rows::new(&[2.0, 0.5, f32::NAN], 3).unwrap();
        let seen = predictor.impute_probabilities(given, &[0], None).unwrap();
        assert_eq!(seen[0].row(0), [0.0, 0.0, 1.0]);
    }
}
