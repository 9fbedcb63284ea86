//! A monotone curve of straight pieces, by which the numbers of a column become almost normal.
//!
//! ```text
//! w(x) = y_k + (x − x_k) s_k       for x_k ≤ x < x_k+1,  s_k = (y_k+1 − y_k)/(x_k+1 − x_k)
//! before the first knot and after the last, s is the mean slope of the whole curve
//! log p(x) = log p(w) + log s
//! ```
//!
//! Boosted trees see only the order of numbers; a Gaussian leaf sees their distances, and long tails spoil it. The curve
//! leads the quantiles of the training rows to those of a normal. All that is asked of a column stays exact: with w
//! normal, x is normal on every piece, and mean and variance are finite sums.
//!
//! ```
//! use sumout::model::Curve;
//! let incomes: Vec<f32> = (1..=1000).map(|i| (i as f32).powi(3)).collect();
//! let curve = Curve::through_quantiles(&incomes);
//! assert!(curve.to_model(500f32.powi(3)).abs() < 0.01); // the median
//! assert!((curve.to_data(curve.to_model(8000.0).into()) - 8000.0).abs() < 1.0);
//! ```

use crate::arithmetic::normal::{normal_cdf, normal_density, normal_quantile};
use crate::error::{Error, Result};
use crate::model::column_range::MeanVariance;
use serde::{Deserialize, Serialize};

/// Knots of a curve at most: as many quantiles, from the smallest number to the largest.
const MOST_KNOTS: usize = 129;

/// A curve with fewer knots than this would say nothing about a column: it is left out.
const LEAST_KNOTS: usize = 8;

/// So many deviations from the mean, a normal has nothing left that would count, however large the numbers are there.
const FAR: f64 = 20.0;

/// A curve through knots; the identity without any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Numbers of the data, rising.
    pub x: Vec<f32>,
    /// What they become, rising.
    pub y: Vec<f32>,
}

/// One piece of a curve.
#[derive(Clone, Copy, Debug)]
struct Piece {
    x: f64,
    y: f64,
    slope: f64,
}

impl Curve {
    /// The curve that leads quantiles of these numbers to those of a normal; the identity where few numbers differ.
    pub fn through_quantiles(numbers: &[f32]) -> Self {
        let mut sorted: Vec<f32> = numbers.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        let (count, mut curve) = (sorted.len(), Self::default());
        for knot in 0..MOST_KNOTS.min(count) {
            let x = sorted[knot * (count - 1) / (MOST_KNOTS.min(count) - 1).max(1)];
            if curve.x.last().is_some_and(|&last| last >= x) {
                continue;
            }
            let below = sorted.partition_point(|&other| other < x);
            let with = sorted.partition_point(|&other| other <= x);
            let share = (below + with) as f64 / (2 * count) as f64; // the middle of equal numbers
            curve.x.push(x);
            curve.y.push(normal_quantile(share) as f32);
        }
        if curve.x.len() < LEAST_KNOTS || curve.check(0).is_err() {
            return Self::default();
        }
        curve
    }

    /// Whether it is the identity.
    pub fn is_identity(&self) -> bool {
        self.x.is_empty()
    }

    /// The mean slope.
    fn mean_slope(&self) -> f64 {
        let rise = |ends: &[f32]| f64::from(ends[ends.len() - 1]) - f64::from(ends[0]);
        rise(&self.y) / rise(&self.x)
    }

    /// The piece after this many knots.
    fn piece(&self, knots: usize) -> Piece {
        let at = knots.saturating_sub(1);
        let (x, y) = (f64::from(self.x[at]), f64::from(self.y[at]));
        let slope = if knots == 0 || knots == self.x.len() {
            self.mean_slope()
        } else {
            (f64::from(self.y[knots]) - y) / (f64::from(self.x[knots]) - x)
        };
        Piece { x, y, slope }
    }

    /// w(x); NaN stays NaN.
    pub fn to_model(&self, x: f32) -> f32 {
        if self.is_identity() || x.is_nan() {
            return x;
        }
        let piece = self.piece(self.x.partition_point(|&knot| knot <= x));
        (piece.y + (f64::from(x) - piece.x) * piece.slope) as f32
    }

    /// log w'(x).
    pub(crate) fn log_slope(&self, x: f32) -> f64 {
        if self.is_identity() {
            return 0.0;
        }
        let knots = self.x.partition_point(|&knot| knot <= x);
        self.piece(knots).slope.ln()
    }

    /// The x of w(x).
    pub fn to_data(&self, w: f64) -> f64 {
        if self.is_identity() || w.is_nan() {
            return w;
        }
        let piece = self.piece(self.y.partition_point(|&knot| f64::from(knot) <= w));
        piece.x + (w - piece.y) / piece.slope
    }

    /// Mean and variance of x where w is normal: sums over the pieces.
    ///
    /// ```text
    /// on a piece   x = A + B t, t standard normal from a to b
    /// Σ ∫ (A + B t) φ(t) dt  = Σ A ΔΦ + B (φ(a) − φ(b))
    /// Σ ∫ (A + B t)² φ(t) dt = Σ A² ΔΦ + 2AB (φ(a) − φ(b)) + B² (ΔΦ + aφ(a) − bφ(b))
    /// ```
    pub(crate) fn moments(&self, mean: f64, sigma: f64) -> MeanVariance {
        let middle = self.to_data(mean); // squares are taken from here, so that nothing cancels
        let (mut first, mut second) = (0.0, 0.0);
        let (mut from, mut below) = (f64::NEG_INFINITY, 0.0); // Φ(from)
        for knots in 0..=self.x.len() {
            let to = self.y.get(knots);
            let to = to.map_or(f64::INFINITY, |&y| (f64::from(y) - mean) / sigma);
            if to < -FAR {
                from = to;
                continue;
            }
            let piece = self.piece(knots);
            let (at, by) = (
                piece.x + (mean - piece.y) / piece.slope - middle,
                sigma / piece.slope,
            );
            let with = normal_cdf(to);
            let share = with - below;
            let edges = normal_density(from) - normal_density(to);
            let times = |t: f64| match t.is_finite() {
                true => t * normal_density(t),
                false => 0.0,
            };
            first += at * share + by * edges;
            second += at * at * share
                + 2.0 * at * by * edges
                + by * by * (share + times(from) - times(to));
            if to > FAR {
                break;
            }
            (from, below) = (to, with);
        }
        MeanVariance {
            mean: middle + first,
            variance: (second - first * first).max(0.0),
        }
    }

    /// Says what is wrong with a curve.
    pub(crate) fn check(&self, column: usize) -> Result<()> {
        let rises = |knots: &[f32]| {
            knots.iter().all(|knot| knot.is_finite()) && knots.windows(2).all(|w| w[0] < w[1])
        };
        let count = self.x.len();
        if count == self.y.len() && count != 1 && rises(&self.x) && rises(&self.y) {
            return Ok(());
        }
        Err(Error::shape(
            format!("curve of column {column}"),
            "as many x as y, two or more, finite and rising",
            format!("{count} x and {} y", self.y.len()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves() -> [Curve; 3] {
        let skewed: Vec<f32> = (0..500).map(|i| (0.02 * i as f32).exp()).collect();
        let lumpy: Vec<f32> = (0..400).map(|i| (i % 40).max(9) as f32).collect();
        let steep = Curve {
            x: vec![-1.0, 0.0, 0.1, 4.0],
            y: vec![-2.0, -1.9, 1.0, 1.5],
        };
        [
            Curve::through_quantiles(&skewed),
            Curve::through_quantiles(&lumpy),
            steep,
        ]
    }

    #[test]
    fn the_inverse_and_the_slope_are_those_of_the_curve() {
        for curve in curves() {
            curve.check(0).unwrap();
            let last = curve.x[curve.x.len() - 1];
            for x in [-30.0f32, 0.05, 0.5, 11.3, 0.97 * last, last + 7.0] {
                let (w, slope) = (f64::from(curve.to_model(x)), curve.log_slope(x).exp());
                let back = |by: f64| curve.to_data(w + by * slope);
                let rounding = 1e-6 * (1.0 + w.abs()) / slope; // of w to f32
                assert!((back(0.0) - f64::from(x)).abs() < rounding, "{x}");
                let step = 1e-4 * f64::from(x.abs());
                assert!(
                    (back(step) - back(0.0) - step).abs() < 1e-2 * step + 1e-12,
                    "{x}"
                );
            }
            assert!(curve.to_model(f32::NAN).is_nan() && curve.to_data(f64::NAN).is_nan());
        }
    }

    /// Against sums over a fine grid.
    #[test]
    fn moments_are_those_of_the_density() {
        for curve in curves() {
            for (mean, sigma) in [(0.0, 1.0), (-1.5, 0.3), (2.0, 0.02), (4.0, 1.0)] {
                let (mut weight, mut sum, mut squares) = (0.0, 0.0, 0.0);
                for k in -90_000..=90_000 {
                    let t = f64::from(k) * 1e-4;
                    let (p, x) = ((-0.5 * t * t).exp(), curve.to_data(mean + sigma * t));
                    (weight, sum, squares) = (weight + p, sum + p * x, squares + p * x * x);
                }
                let exact = sum / weight;
                let variance = squares / weight - exact * exact;
                let ours = curve.moments(mean, sigma);
                let scale = variance.sqrt();
                assert!((ours.mean - exact).abs() < 1e-4 * scale, "{ours:?} {exact}");
                assert!(
                    (ours.variance / variance - 1.0).abs() < 1e-3,
                    "{ours:?} {variance}"
                );
            }
        }
    }

    #[test]
    fn quantiles_become_those_of_a_normal() {
        let numbers: Vec<f32> = (0..2000).map(|i| (0.005 * i as f32).exp()).collect();
        let curve = Curve::through_quantiles(&numbers);
        let z: Vec<f64> = numbers.iter().map(|&x| curve.to_model(x).into()).collect();
        let mean = z.iter().sum::<f64>() / 2000.0;
        let variance = z.iter().map(|z| z * z).sum::<f64>() / 2000.0;
        assert!(
            mean.abs() < 1e-3 && (variance - 1.0).abs() < 0.03,
            "{mean} {variance}"
        );
        for few in [&[][..], &[1.0], &[1.0, 2.0, 1.0, 2.0], &[f32::NAN; 9]] {
            assert!(Curve::through_quantiles(few).is_identity());
        }
    }
}
