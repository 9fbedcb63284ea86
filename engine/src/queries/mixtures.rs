//! The whole distribution of a missing number given what is observed: a finite mixture of normals, exactly.
//!
//! ```text
//! P(x_m | x_o) = Σ_d w_d N(μ_d, σ_d²)        w_d = r_i(d), the responsibilities of `impute.rs`, over all trees
//! mean         = Σ_d w_d μ_d
//! variance     = Σ_d w_d (σ_d² + (μ_d − mean)²)
//! quantile(p)  : Σ_d w_d Φ((q − μ_d)/σ_d) = p
//! ```
//!
//! The normals of a column are the same for all rows, and only the weights differ; but not where leaves have factors. What a number's density at one
//! point is, [`Predictor::log_conditional`] says.
//!
//! ```
//! use sumout::{Kind, Model, Predictor, Rows, Structure};
//! let structure = Structure::table(&[Kind::Gaussian; 3]).components(4).channels([8]).build()?;
//! let mut predictor = Predictor::new(Model::random(structure, 1.0, 1))?;
//! let rows = Rows::new(&[0.5, -1.0, f32::NAN], 3)?;
//! let mixtures = predictor.mixtures(rows, 2, None)?;
//! let mixture = mixtures.row(0); // leaves are standard normals
//! assert!(mixture.mean().abs() < 1e-6 && (mixture.variance() - 1.0).abs() < 1e-6);
//! assert!((mixture.quantile(0.975) - 1.959964).abs() < 1e-5);
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::normal::{normal_cdf, normal_density};
use crate::matrix::Matrix;
use crate::model::Scaling;
use crate::model::column_range::MeanVariance;
use crate::random::Stream;
use rayon::prelude::*;
use std::sync::Arc;

/// Distributions of one column in n rows, in the units of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixtures {
    pub(super) normals: Vec<Normal>, // the same for all rows, or those of row after row
    pub(super) bend: Option<Bend>,
    pub(super) weights: Matrix<f64>, // (n, normals); rows sum to one, or are zero where what is observed is impossible
}

/// A column with bounds, a curve or whole numbers: w of its numbers is normal ([`Scaling`](crate::model::Scaling)).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bend {
    pub(super) scaling: Arc<Scaling>,
    pub(super) column: usize,
    pub(super) moments: Vec<MeanVariance>, // of the normals, in the units of the data; none where these differ between rows
}

/// One normal of a mixture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    /// μ.
    pub mean: f64,
    /// σ.
    pub sigma: f64,
}

/// The distribution of a number in one row. All it says is NaN where the model gives what is observed probability zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture<'a> {
    pub(super) normals: &'a [Normal],
    pub(super) bend: Option<&'a Bend>,
    pub(super) weights: &'a [f64],
}

impl Mixtures {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.weights.rows()
    }

    /// The distribution in one row.
    pub fn row(&self, row: usize) -> Mixture<'_> {
        let weights = self.weights.row(row);
        let is_shared = self.normals.len() == weights.len();
        let first = if is_shared { 0 } else { row * weights.len() };
        Mixture {
            normals: &self.normals[first..first + weights.len()],
            bend: self.bend.as_ref(),
            weights,
        }
    }

    /// Some numbers of every row's distribution, computed on all threads, (n, columns).
    pub fn map(
        &self,
        columns: usize,
        report: impl Fn(usize, Mixture<'_>, &mut [f64]) + Sync,
    ) -> Matrix<f64> {
        let mut all = vec![0.0; self.rows() * columns];
        let rows = all.par_chunks_mut(columns.max(1)).enumerate();
        rows.for_each(|(row, to)| report(row, self.row(row), to));
        Matrix::new(all, columns)
    }
}

impl Bend {
    /// Mean and variance of normal d in the units of the data.
    fn moments_of(&self, d: usize, normal: Normal) -> MeanVariance {
        let known = self.moments.get(d).copied();
        known.unwrap_or_else(|| self.scaling.moments(self.column, normal.mean, normal.sigma))
    }
}

impl<'a> Mixture<'a> {
    /// The normals that have a weight, with it; of w(x) where the column has bounds or a curve.
    pub fn parts(&self) -> impl Iterator<Item = (f64, Normal)> + Clone + use<'a> {
        let both = self.weights.iter().copied().zip(self.normals);
        both.filter(|(weight, _)| *weight > 0.0)
            .map(|(weight, normal)| (weight, *normal))
    }

    fn is_impossible(&self) -> bool {
        self.parts().next().is_none()
    }

    /// The mean and variance of a mixture of parts with these.
    fn mixed(&self, of_part: impl Fn(usize) -> MeanVariance) -> MeanVariance {
        if self.is_impossible() {
            let (mean, variance) = (f64::NAN, f64::NAN);
            return MeanVariance { mean, variance };
        }
        let weights = self.weights.iter().copied().enumerate();
        let weights = weights.filter(|(_, w)| *w > 0.0);
        let parts: Vec<(f64, MeanVariance)> = weights.map(|(d, w)| (w, of_part(d))).collect();
        let mean: f64 = parts.iter().map(|(w, part)| w * part.mean).sum();
        let around =
            |(w, part): &(f64, MeanVariance)| w * (part.variance + (part.mean - mean).powi(2));
        let variance = parts.iter().map(around).sum();
        MeanVariance { mean, variance }
    }

    /// Those of w.
    fn bent_moments(&self) -> MeanVariance {
        self.mixed(|d| MeanVariance {
            mean: self.normals[d].mean,
            variance: self.normals[d].sigma.powi(2),
        })
    }

    fn moments(&self) -> MeanVariance {
        match self.bend {
            Some(bend) => self.mixed(|d| bend.moments_of(d, self.normals[d])),
            None => self.bent_moments(),
        }
    }

    /// From w to the units of the data.
    fn unbend(&self, w: f64) -> f64 {
        match self.bend {
            Some(bend) => bend.scaling.to_data(bend.column, w).into(),
            None => w,
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.moments().mean
    }

    /// The variance.
    pub fn variance(&self) -> f64 {
        self.moments().variance
    }

    /// P(x_m ≤ x | x_o).
    pub fn cdf(&self, x: f64) -> f64 {
        match self.bend {
            Some(bend) => self.bent_cdf(bend.scaling.bend(bend.column, x as f32).into()),
            None => self.bent_cdf(x),
        }
    }

    /// The same of w.
    fn bent_cdf(&self, x: f64) -> f64 {
        if self.is_impossible() {
            return f64::NAN;
        }
        let part = |(w, normal): (f64, Normal)| w * normal_cdf((x - normal.mean) / normal.sigma);
        self.parts().map(part).sum()
    }

    fn density(&self, x: f64) -> f64 {
        let part = |(w, normal): (f64, Normal)| {
            w * normal_density((x - normal.mean) / normal.sigma) / normal.sigma
        };
        self.parts().map(part).sum()
    }

    /// The number below which x_m lies with probability p, which must be between 0 and 1, to a millionth of the
    /// standard deviation: Newton's steps, or halves of the interval where those leave it.
    pub fn quantile(&self, p: f64) -> f64 {
        const STEPS: usize = 200;
        let MeanVariance { mean, variance } = self.bent_moments();
        let sigma = variance.sqrt();
        // Cantelli's inequality: the quantile lies in between.
        let mut low = mean - sigma * ((1.0 - p) / p).sqrt();
        let mut high = mean + sigma * (p / (1.0 - p)).sqrt();
        let mut x = mean;
        for _ in 0..STEPS {
            let miss = self.bent_cdf(x) - p;
            if miss > 0.0 {
                high = x;
            } else {
                low = x;
            }
            let newton = x - miss / self.density(x);
            let is_inside = newton > low && newton < high; // not if NaN
            let next = if is_inside {
                newton
            } else {
                (low + high) / 2.0
            };
            let moved = (next - x).abs();
            x = next;
            if moved <= 1e-9 * sigma || !moved.is_finite() {
                break;
            }
        }
        self.unbend(x)
    }

    /// A number drawn from it.
    pub fn sample(&self, stream: &mut Stream) -> f64 {
        if self.is_impossible() {
            return f64::NAN;
        }
        let chosen = self.normals[stream.pick(self.weights.iter().copied())];
        self.unbend(chosen.mean + chosen.sigma * stream.normal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    /// Two normals far from each other, with these weights.
    fn mixture(weights: &[f64; 2]) -> Mixture<'_> {
        const NORMALS: [Normal; 2] = [
            Normal {
                mean: -1.0,
                sigma: 0.5,
            },
            Normal {
                mean: 4.0,
                sigma: 2.0,
            },
        ];
        Mixture {
            normals: &NORMALS,
            bend: None,
            weights,
        }
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        for weights in [[1.0, 0.0], [0.5, 0.5], [0.9, 0.1], [0.01, 0.99]] {
            let mixture = mixture(&weights);
            for p in [1e-6, 0.025, 0.3, 0.5, 0.8, 0.975, 1.0 - 1e-6] {
                let at = mixture.cdf(mixture.quantile(p));
                assert!((at - p).abs() < 1e-8, "{weights:?} {p}: {at}");
            }
        }
        assert!((mixture(&[1.0, 0.0]).quantile(0.025) + 1.0 + 0.5 * 1.959964).abs() < 1e-6);
    }

    #[test]
    fn what_is_impossible_has_no_numbers() {
        let none = mixture(&[0.0; 2]);
        let stream = &mut Stream::new(1, Purpose::Sampling, 0, 0);
        let all = [
            none.mean(),
            none.variance(),
            none.cdf(0.5),
            none.quantile(0.5),
            none.sample(stream),
        ];
        assert!(all.iter().all(|number| number.is_nan()), "{all:?}");
    }

    /// A normal that has no weight has no say, even where its own moments are too large for a number.
    #[test]
    fn what_has_no_weight_has_no_say() {
        let moments = [(2.0, 3.0), (f64::INFINITY, f64::INFINITY)];
        let bend = Bend {
            scaling: Arc::new(Scaling::uniform(0.0, 1.0)),
            column: 0,
            moments: moments
                .map(|(mean, variance)| MeanVariance { mean, variance })
                .to_vec(),
        };
        let mixture = Mixture {
            bend: Some(&bend),
            ..mixture(&[1.0, 0.0])
        };
        assert_eq!((mixture.mean(), mixture.variance()), (2.0, 3.0));
    }

    #[test]
    fn samples_are_the_mean_and_as_many_deviations() {
        for (weights, mean, sigma) in [([1.0, 0.0], -1.0, 0.5), ([0.0, 1.0], 4.0, 2.0)] {
            let stream = || Stream::new(7, Purpose::Sampling, 0, 0);
            let mut same = stream();
            same.pick(weights.into_iter());
            let expected = mean + sigma * same.normal();
            assert_eq!(mixture(&weights).sample(&mut stream()), expected);
        }
    }

    #[test]
    fn moments_are_those_of_the_parts() {
        let half = mixture(&[0.5, 0.5]);
        assert_eq!(half.mean(), 1.5);
        assert_eq!(half.variance(), 0.5 * (0.25 + 4.0) + 2.5 * 2.5);
    }

    /// Two points, nearly: as far from the mean as a quantile can be.
    #[test]
    fn quantiles_far_from_the_mean_are_found() {
        let normals = [0.0, -1000.0, 1000.0].map(|mean| Normal { mean, sigma: 1e-3 });
        for (weights, p, exact) in [
            ([0.9, 0.1, 0.0], 0.05, -1000.0),
            ([0.9, 0.0, 0.1], 0.95, 1000.0),
        ] {
            let mixture = Mixture {
                normals: &normals,
                bend: None,
                weights: &weights,
            };
            let ours = mixture.quantile(p);
            assert!((ours - exact).abs() < 0.01, "{ours} {exact}");
        }
    }
}
