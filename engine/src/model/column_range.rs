//! The numbers that a column can hold: from a lower bound, to an upper bound, whole numbers.
//!
//! A column with a bound enters the model through a monotone function w onto all real numbers, so that a Gaussian leaf is
//! log-normal or logit-normal in the units of the data, and a log-density has w's slope in it.
//!
//! ```text
//! a = low − margin, b = high + margin
//! lower bound    w = log(x − a)                 w' = 1/(x − a)
//! upper bound    w = −log(b − x)                w' = 1/(b − x)
//! both           w = log((x − a)/(b − x))       w' = (b − a)/((x − a)(b − x))
//! log p(x) = log p(w) + log w'
//! ```
//!
//! The margin lets the bounds themselves occur, as log 0 would not: it is half the smallest step that the training rows
//! keep from a bound, and ½ for whole numbers. Numbers that come out of the model are clipped to the bounds, and rounded
//! where they are whole.
//!
//! ```
//! use sumout::model::ColumnRange;
//! let age = ColumnRange { low: Some(0.0), high: Some(120.0), margin: 0.5, ..ColumnRange::default() };
//! assert!((age.from_model(age.to_model(37.0).into()) - 37.0).abs() < 1e-4);
//! assert_eq!((age.from_model(-50.0), age.from_model(50.0)), (0.0, 120.0));
//! ```

use crate::error::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What the numbers of a column can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnRange {
    /// The smallest.
    pub low: Option<f32>,
    /// The largest.
    pub high: Option<f32>,
    /// Whole numbers only.
    pub whole: bool,
    /// How far beyond the bounds the density reaches; positive where there is a bound.
    pub margin: f32,
}

/// A mean is at most this, so that means can be joined: it is beyond all numbers of 32 bits.
const LARGEST: f64 = 1e150;

/// Mean and variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MeanVariance {
    pub mean: f64,
    pub variance: f64,
}

impl ColumnRange {
    /// Whether there is a bound: then numbers of the data are not those of the model.
    pub fn is_bounded(&self) -> bool {
        self.low.is_some() || self.high.is_some()
    }

    /// Whether a number can occur; a missing one can.
    pub fn contains(&self, x: f32) -> bool {
        !self.low.is_some_and(|low| x < low) && !self.high.is_some_and(|high| x > high)
    }

    /// The possible numbers in words.
    pub fn describe(&self) -> String {
        let what = if self.whole {
            "whole numbers"
        } else {
            "numbers"
        };
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{what} from {low} to {high}"),
            (Some(low), None) => format!("{what} from {low}"),
            (None, Some(high)) => format!("{what} up to {high}"),
            (None, None) => what.into(),
        }
    }

    /// a and b.
    fn ends(&self) -> (Option<f64>, Option<f64>) {
        let margin = f64::from(self.margin);
        let low = self.low.map(|low| f64::from(low) - margin);
        (low, self.high.map(|high| f64::from(high) + margin))
    }

    /// w(x), for a number that can occur; NaN stays NaN.
    pub fn to_model(&self, x: f32) -> f32 {
        let x64 = f64::from(x);
        match self.ends() {
            (None, None) => x,
            (Some(a), None) => (x64 - a).ln() as f32,
            (None, Some(b)) => -(b - x64).ln() as f32,
            (Some(a), Some(b)) => ((x64 - a).ln() - (b - x64).ln()) as f32,
        }
    }

    /// log w'(x), for a number that can occur.
    pub(crate) fn log_slope(&self, x: f32) -> f64 {
        let x = f64::from(x);
        match self.ends() {
            (None, None) => 0.0,
            (Some(a), None) => -(x - a).ln(),
            (None, Some(b)) => -(b - x).ln(),
            (Some(a), Some(b)) => (b - a).ln() - (x - a).ln() - (b - x).ln(),
        }
    }

    /// The x of w(x), before clipping and rounding.
    fn inverse(&self, w: f64) -> f64 {
        match self.ends() {
            (None, None) => w,
            (Some(a), None) => a + w.exp(),
            (None, Some(b)) => b - (-w).exp(),
            (Some(a), Some(b)) => a + (b - a) / (1.0 + (-w).exp()),
        }
    }

    /// The number of the data that stands for w.
    pub fn from_model(&self, w: f64) -> f32 {
        self.tidy(self.inverse(w))
    }

    /// A number that can occur: clipped to the bounds, and rounded if it is whole.
    pub(crate) fn tidy(&self, x: f64) -> f32 {
        let x = if self.whole { x.round() } else { x };
        let x = x.clamp(f32::MIN.into(), f32::MAX.into()) as f32; // NaN stays NaN
        let x = self.low.map_or(x, |low| if x < low { low } else { x });
        self.high.map_or(x, |high| if x > high { high } else { x })
    }

    /// Mean and variance of x where w is normal. With one bound x is log-normal; with two, there is no closed form, and
    /// the trapezoid rule, which converges exponentially here, gives six digits.
    pub(crate) fn moments(&self, mean: f64, sigma: f64) -> MeanVariance {
        let variance = sigma * sigma;
        let log_normal = |mean: f64| MeanVariance {
            mean: (mean + 0.5 * variance).exp().min(LARGEST),
            variance: (variance.exp_m1() * (2.0 * mean + variance).exp()).min(LARGEST * LARGEST),
        };
        match self.ends() {
            (None, None) => MeanVariance { mean, variance },
            (Some(a), None) => {
                let part = log_normal(mean);
                MeanVariance {
                    mean: a + part.mean,
                    ..part
                }
            }
            (None, Some(b)) => {
                let part = log_normal(-mean);
                MeanVariance {
                    mean: b - part.mean,
                    ..part
                }
            }
            (Some(_), Some(_)) => self.moments_by_quadrature(mean, sigma),
        }
    }

    fn moments_by_quadrature(&self, mean: f64, sigma: f64) -> MeanVariance {
        const STEP: f64 = 1.0 / 16.0;
        const REACH: i32 = 8 * 16;
        let (mut weight, mut sum, mut squares) = (0.0, 0.0, 0.0);
        let middle = self.inverse(mean); // near the mean: squares are taken from here
        for k in -REACH..=REACH {
            let t = f64::from(k) * STEP;
            let density = (-0.5 * t * t).exp();
            let apart = self.inverse(mean + sigma * t) - middle;
            weight += density;
            sum += density * apart;
            squares += density * apart * apart;
        }
        let apart = sum / weight;
        MeanVariance {
            mean: middle + apart,
            variance: (squares / weight - apart * apart).max(0.0),
        }
    }

    /// The same with a margin that suits the numbers of a column.
    fn with_margin(&self, numbers: impl Iterator<Item = f32>) -> Self {
        let gaps = |x: f32| [self.low.map(|low| x - low), self.high.map(|high| high - x)];
        let gaps = numbers.flat_map(gaps).flatten().filter(|gap| *gap > 0.0);
        let smallest = gaps.fold(f32::INFINITY, f32::min);
        let margin = match self {
            _ if !self.is_bounded() => 0.0,
            _ if self.whole => 0.5,
            _ if smallest.is_finite() => (0.5 * smallest).max(self.least_margin()),
            _ => 1.0,
        };
        Self { margin, ..*self }
    }

    /// Smaller margins would vanish beside the bounds, whose logarithms would then be infinite.
    fn least_margin(&self) -> f32 {
        const SEEN: f32 = 4.0 * f64::EPSILON as f32;
        let largest = |most: f32, end: f32| most.max(end.abs());
        let largest = [self.low, self.high]
            .into_iter()
            .flatten()
            .fold(0.0, largest);
        (SEEN * largest).max(f32::MIN_POSITIVE)
    }

    /// Says what is wrong with bounds.
    fn check(&self, column: usize) -> Result<()> {
        let ends = [self.low, self.high, Some(self.margin)];
        let is_ordered = match (self.low, self.high) {
            (Some(low), Some(high)) => low < high,
            _ => true,
        };
        let has_margin = !self.is_bounded() || self.margin > 0.0;
        if ends.iter().flatten().all(|end| end.is_finite()) && is_ordered && has_margin {
            return Ok(());
        }
        Err(Error::shape(
            format!("bounds of column {column}"),
            "finite numbers, the lower one first",
            format!("{:?} and {:?}", self.low, self.high),
        ))
    }
}

/// Checks the ranges of all columns: none, or one for each.
pub(crate) fn check_ranges(ranges: &[ColumnRange], width: usize) -> Result<()> {
    if !ranges.is_empty() && ranges.len() != width {
        let expected = format!("none or {width}");
        return Err(Error::shape("bounds of columns", expected, ranges.len()));
    }
    let mut all = ranges.iter().enumerate();
    all.try_for_each(|(column, range)| range.check(column))
}

/// An error for the first number of rows (n, width) that cannot occur.
pub(crate) fn check_inside(ranges: &[ColumnRange], values: &[f32]) -> Result<()> {
    if ranges.is_empty() {
        return Ok(());
    }
    let rows = values.par_chunks(ranges.len()).enumerate();
    let wrong = rows.find_map_first(|(row, numbers)| outside(ranges, row, numbers));
    wrong.map_or(Ok(()), Err)
}

/// The error for the first number of a row that cannot occur.
fn outside(ranges: &[ColumnRange], row: usize, numbers: &[f32]) -> Option<Error> {
    let mut pairs = numbers.iter().zip(ranges).enumerate();
    let (column, (value, range)) = pairs.find(|(_, (x, range))| !range.contains(**x))?;
    Some(Error::Outside {
        row,
        column,
        expected: range.describe(),
        value: *value,
    })
}

/// The ranges with the margins that suit rows (n, width).
pub(crate) fn with_margins(ranges: &[ColumnRange], values: &[f32]) -> Vec<ColumnRange> {
    let numbers = |column: usize| values.iter().skip(column).step_by(ranges.len()).copied();
    let of_column = |(column, range): (usize, &ColumnRange)| range.with_margin(numbers(column));
    ranges.iter().enumerate().map(of_column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges() -> [ColumnRange; 4] {
        let range = |low, high| ColumnRange {
            low,
            high,
            whole: false,
            margin: 0.25,
        };
        [
            range(None, None),
            range(Some(-1.0), None),
            range(None, Some(3.0)),
            range(Some(-1.0), Some(3.0)),
        ]
    }

    #[test]
    fn the_inverse_and_the_slope_are_those_of_the_function() {
        for range in ranges() {
            for x in [-1.0f32, -0.9, 0.0, 1.5, 2.9, 3.0] {
                let (w, step) = (range.to_model(x), 1e-3f32);
                assert!(
                    (range.from_model(w.into()) - x).abs() < 1e-5,
                    "{range:?} {x}"
                );
                let slope = f64::from(range.to_model(x + step) - range.to_model(x - step)) / 2e-3;
                assert!(
                    (slope.ln() - range.log_slope(x)).abs() < 3e-3,
                    "{range:?} {x}"
                );
            }
            assert!(range.to_model(f32::NAN).is_nan() && range.from_model(f64::NAN).is_nan());
        }
    }

    /// Against sums over a fine grid of w.
    #[test]
    fn moments_are_those_of_the_density() {
        for (range, (mean, sigma)) in ranges()
            .iter()
            .flat_map(|range| [(0.3, 0.1), (-1.0, 0.7), (0.5, 2.0)].map(|normal| (range, normal)))
        {
            let (mut weight, mut sum, mut squares) = (0.0, 0.0, 0.0);
            for k in -120_000..=120_000 {
                let t = f64::from(k) * 1e-4;
                let (p, x) = ((-0.5 * t * t).exp(), range.inverse(mean + sigma * t));
                (weight, sum, squares) = (weight + p, sum + p * x, squares + p * x * x);
            }
            let exact = sum / weight;
            let variance = squares / weight - exact * exact;
            let ours = range.moments(mean, sigma);
            assert!(
                (ours.mean - exact).abs() < 1e-6 * (1.0 + exact.abs()),
                "{range:?} {ours:?}"
            );
            assert!(
                (ours.variance / variance - 1.0).abs() < 1e-5,
                "{ours:?} {variance}"
            );
        }
    }

    /// A leaf so wide that its mean is beyond all numbers still has one.
    #[test]
    fn a_mean_is_finite() {
        let [_, lower, ..] = ranges();
        let wide = lower.moments(0.0, 1e3);
        assert!(wide.mean.is_finite() && wide.variance.is_finite());
        assert_eq!(lower.tidy(wide.mean), f32::MAX);
    }

    /// However close numbers are to one bound, the other one can occur too.
    #[test]
    fn bounds_can_occur() {
        for (low, high, near) in [
            (0.0, 1.0, 1e-20),
            (0.0, 100.0, 5.6e-17),
            (-1e30, 0.0, -1e-38),
            (3.0, 7.0, 3.000_000_2),
        ] {
            let both = ColumnRange {
                low: Some(low),
                high: Some(high),
                ..ColumnRange::default()
            };
            let range = with_margins(&[both], &[near, low, high])[0];
            for x in [low, near, high] {
                let w = range.to_model(x);
                assert!(
                    w.is_finite() && range.log_slope(x).is_finite(),
                    "{range:?} {x}: {w}"
                );
            }
        }
    }

    #[test]
    fn what_comes_out_can_occur() {
        let counts = ColumnRange {
            low: Some(0.0),
            whole: true,
            ..ColumnRange::default()
        };
        let values = [0.0, 3.0, f32::NAN, 7.0];
        let counts = with_margins(&[counts], &values)[0];
        assert_eq!(counts.margin, 0.5);
        for w in [-30.0, -0.5, 0.0, 1.0, 2.2, 90.0] {
            let x = counts.from_model(w);
            assert!(x >= 0.0 && x.fract() == 0.0, "{x}");
        }
        let prices = ColumnRange {
            whole: false,
            ..counts
        };
        assert_eq!(with_margins(&[prices], &values)[0].margin, 1.5);
        let error = check_inside(&[prices], &[1.0, -2.0]).unwrap_err();
        let expected =
            "row index 1, column index 0: expected numbers from 0 or NaN for missing, got -2";
        assert_eq!(error.to_string(), expected);
        for (low, high) in [(Some(1.0), Some(1.0)), (Some(f32::NAN), None)] {
            let wrong = ColumnRange {
                low,
                high,
                ..counts
            };
            assert!(check_ranges(&[wrong], 1).is_err());
        }
        assert!(check_ranges(&[counts], 2).is_err());
    }
}
