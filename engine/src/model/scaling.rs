//! From the units of the data to those of the leaves.

use crate::error::{Error, Result};
use crate::model::column_range::{ColumnRange, check_ranges};
use serde::{Deserialize, Serialize};

/// How a number of the data becomes a number of the model: `z = (w(x) − offset) · scale`, where w is the identity for a
/// column without bounds. Densities are reported in the units of the data: `log p(x) = log p(z) + log scale + log w'(x)`.
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
        }
    }

    pub(super) fn of(&self, column: usize) -> (f32, f32) {
        let at = |values: &[f32]| {
            if values.len() == 1 {
                values[0]
            } else {
                values[column]
            }
        };
        (at(&self.offset), at(&self.scale))
    }

    /// What the numbers of a column can be.
    pub fn range_of(&self, column: usize) -> ColumnRange {
        self.ranges.get(column).copied().unwrap_or_default()
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
}

/// A finite number stays finite, NaN stays NaN.
pub(super) fn scaled(x: f32, offset: f32, scale: f32) -> f32 {
    ((x - offset) * scale).clamp(f32::MIN, f32::MAX)
}
