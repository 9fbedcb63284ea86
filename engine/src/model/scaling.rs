//! From the units of the data to those of the leaves.

use crate::error::{Error, Result};
use crate::model::column_range::{ColumnRange, MeanVariance, check_ranges};
use crate::model::curve::Curve;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How a number of the data becomes a number of the model: `z = (w(x) − offset) · scale`, where w is the identity for a
/// column without bounds or curve. Densities are reported in the units of the data: `log p(x) = log p(z) + log scale + log w'(x)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// One for each column, or a single one for all.
    pub offset: Vec<f32>,
    /// As many; positive.
    pub scale: Vec<f32>,
    /// What the numbers of each column can be, which gives w; empty where any column can hold any number. Training
    /// takes rows to which w was applied already ([`Fit`](crate::recipes::Fit) does so).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<ColumnRange>,
    /// The curve w of each column without bounds; empty where none has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
}

impl Default for Scaling {
    fn default() -> Self {
        Self::uniform(0.0, 1.0)
    }
}

impl Scaling {
    /// The same for every column.
    pub fn uniform(offset: f32, scale: f32) -> Self {
        Self {
            offset: vec![offset],
            scale: vec![scale],
            ranges: Vec::new(),
            curves: Vec::new(),
        }
    }

    pub(super) fn of(&self, column: usize) -> (f32, f32) {
        let at = |values: &[f32]| match values {
            [all] => *all,
            values => values[column],
        };
        (at(&self.offset), at(&self.scale))
    }

    /// What the numbers of a column can be.
    pub fn range_of(&self, column: usize) -> ColumnRange {
        self.ranges.get(column).copied().unwrap_or_default()
    }

    /// The curve of a column, if it has one.
    pub fn curve_of(&self, column: usize) -> Option<&Curve> {
        let curve = self.curves.get(column);
        curve.filter(|curve| !curve.is_identity())
    }

    /// Whether w of a column is not the identity.
    pub(crate) fn is_bent(&self, column: usize) -> bool {
        self.curve_of(column).is_some() || self.range_of(column).is_bounded()
    }

    /// w(x).
    pub(crate) fn bend(&self, column: usize, x: f32) -> f32 {
        match self.curve_of(column) {
            Some(curve) => curve.to_model(x),
            None => self.range_of(column).to_model(x),
        }
    }

    /// Rows (n, width) of the data with w applied; none where w is the identity.
    pub(crate) fn bent(&self, rows: &[f32], width: usize) -> Option<Vec<f32>> {
        if !(0..width).any(|column| self.is_bent(column)) {
            return None;
        }
        let mut rows = rows.to_vec();
        rows.par_chunks_mut(width).for_each(|row| {
            let cells = row.iter_mut().enumerate();
            cells.for_each(|(column, x)| *x = self.bend(column, *x));
        });
        Some(rows)
    }

    /// log w'(x).
    pub(crate) fn log_slope(&self, column: usize, x: f32) -> f64 {
        match self.curve_of(column) {
            Some(curve) => curve.log_slope(x),
            None => self.range_of(column).log_slope(x),
        }
    }

    /// The number of the data that stands for w: one that the column can hold.
    pub fn to_data(&self, column: usize, w: f64) -> f32 {
        match self.curve_of(column) {
            Some(curve) => self.range_of(column).tidy(curve.to_data(w)),
            None => self.range_of(column).from_model(w),
        }
    }

    /// Mean and variance of x where w is normal.
    pub(crate) fn moments(&self, column: usize, mean: f64, sigma: f64) -> MeanVariance {
        match self.curve_of(column) {
            Some(curve) => curve.moments(mean, sigma),
            None => self.range_of(column).moments(mean, sigma),
        }
    }

    /// w(x) to model.
    pub fn apply(&self, column: usize, x: f32) -> f32 {
        let (offset, scale) = self.of(column);
        scaled(x, offset, scale)
    }

    /// Model to w(x).
    pub fn invert(&self, column: usize, z: f32) -> f32 {
        let (offset, scale) = self.of(column);
        z / scale + offset
    }

    /// The factor of a column; its logarithm is what one observed number adds to a log-density.
    pub fn scale_of(&self, column: usize) -> f32 {
        self.of(column).1
    }

    /// Checks lengths and signs against a row's width.
    pub fn check(&self, width: usize) -> Result<()> {
        check_ranges(&self.ranges, width)?;
        self.check_curves(width)?;
        for (what, values) in [
            ("scaling offsets", &self.offset),
            ("scaling factors", &self.scale),
        ] {
            if values.len() != 1 && values.len() != width {
                return Err(Error::shape(
                    what,
                    format!("1 or {width} numbers"),
                    values.len(),
                ));
            }
        }
        let wrong = self
            .offset
            .iter()
            .find(|x| !x.is_finite())
            .or(self.scale.iter().find(|&&x| !(x.is_finite() && x > 0.0)));
        match wrong {
            Some(value) => Err(Error::Setting {
                name: "scaling",
                expected: "finite offsets and positive factors",
                got: value.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Curves: none or one for each column, and none where there are bounds.
    fn check_curves(&self, width: usize) -> Result<()> {
        if !self.curves.is_empty() && self.curves.len() != width {
            let expected = format!("none or {width}");
            return Err(Error::shape("curves", expected, self.curves.len()));
        }
        for (column, curve) in self.curves.iter().enumerate() {
            curve.check(column)?;
            if !curve.is_identity() && self.range_of(column).is_bounded() {
                let what = format!("column {column}");
                return Err(Error::shape(what, "bounds or a curve", "both"));
            }
        }
        Ok(())
    }
}

/// A finite number stays finite, NaN stays NaN.
pub(super) fn scaled(x: f32, offset: f32, scale: f32) -> f32 {
    ((x - offset) * scale).clamp(f32::MIN, f32::MAX)
}
