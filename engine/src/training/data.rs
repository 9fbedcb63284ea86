//! The rows a model learns from or is validated on.

use crate::error::{Error, Result};
use crate::model::{Model, check_rows};

/// Rows to learn from or to be judged by.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// (n, width), NaN is missing.
    pub values: &'a [f32],
    /// (n): a class, or −1 where missing. Empty: all missing.
    pub labels: &'a [i64],
    /// (n) weights of rows that are not negative, or empty for all one.
    pub weights: &'a [f32],
}

impl<'a> Data<'a> {
    /// Rows with labels.
    pub fn new(values: &'a [f32], labels: &'a [i64]) -> Self {
        Self {
            values,
            labels,
            weights: &[],
        }
    }

    pub(crate) fn label(&self, row: usize) -> i64 {
        self.labels.get(row).copied().unwrap_or(-1)
    }

    /// How many rows there are, or what is wrong with them.
    pub fn check(&self, model: &Model) -> Result<usize> {
        let rows = check_rows(&model.structure, self.values)?;
        if rows == 0 {
            return Err(Error::Empty { what: "row" });
        }
        for (what, length) in [
            ("labels", self.labels.len()),
            ("row weights", self.weights.len()),
        ] {
            if length != 0 && length != rows {
                return Err(Error::shape(what, rows, length));
            }
        }
        let last = model.structure.classes - 1;
        if let Some(row) = self
            .labels
            .iter()
            .position(|&label| !(-1..=last as i64).contains(&label))
        {
            return Err(Error::Label {
                row,
                label: self.labels[row],
                last,
            });
        }
        let total: f64 = self.weights.iter().map(|&w| f64::from(w)).sum();
        let wrong = self.weights.iter().any(|w| !(w.is_finite() && *w >= 0.0))
            || (!self.weights.is_empty() && total == 0.0);
        if wrong {
            let expected = "finite numbers from 0, not all 0";
            return Err(Error::Setting {
                name: "row weights",
                expected,
                got: format!("a sum of {total}"),
            });
        }
        Ok(rows)
    }

    /// Labels' counts; an error for a class that has none.
    pub(crate) fn class_counts(&self, classes: usize) -> Result<Vec<f64>> {
        let mut counts = vec![0.0; classes];
        self.labels
            .iter()
            .filter(|&&l| l >= 0)
            .for_each(|&label| counts[label as usize] += 1.0);
        match counts.iter().position(|&count| count == 0.0) {
            Some(class) if classes > 1 => Err(Error::ClassWithoutExamples { class }),
            _ => Ok(counts),
        }
    }
}
