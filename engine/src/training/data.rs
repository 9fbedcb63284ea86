//! The rows a model learns from or is validated on.

use crate::error::{Error, Result};
use crate::matrix::Rows;
use crate::model::{Model, check_rows};

/// Rows with labels and weights, to learn from or to validate on.
#[derive(Clone, Debug)]
pub struct Data<'a> {
    pub(crate) values: &'a [f32],  // (n, width), NaN is missing
    pub(crate) labels: Vec<i64>,   // (n): a class, or −1 where missing; empty: all missing
    pub(crate) weights: &'a [f32], // (n), or empty for all one
    width: usize,
}

/// Labels from numbers as files and arrays hold them: a negative number is a missing label.
pub fn labels(numbers: &[i64]) -> Vec<Option<usize>> {
    numbers.iter().map(|&n| usize::try_from(n).ok()).collect()
}

impl<'a> Data<'a> {
    /// Rows with a label each, `None` where it is missing; no labels at all: all are missing.
    pub fn new(rows: Rows<'a>, labels: &[Option<usize>]) -> Self {
        let number = |label: &Option<usize>| match label {
            Some(class) => i64::try_from(*class).unwrap_or(i64::MAX),
            None => -1,
        };
        Self {
            values: rows.as_slice(),
            labels: labels.iter().map(number).collect(),
            weights: &[],
            width: rows.width(),
        }
    }

    /// The same rows with weights that are not negative, one for each.
    pub fn weighted(self, weights: &'a [f32]) -> Self {
        Self { weights, ..self }
    }

    /// The rows.
    pub(crate) fn rows(&self) -> Result<Rows<'a>> {
        Rows::new(self.values, self.width)
    }

    pub(crate) fn label(&self, row: usize) -> i64 {
        self.labels.get(row).copied().unwrap_or(-1)
    }

    /// How many rows there are, or what is wrong with them.
    pub(crate) fn check(&self, model: &Model) -> Result<usize> {
        let rows = check_rows(&model.structure, self.rows()?)?;
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
        self.check_labels(model.structure.classes - 1)?;
        self.check_weights()?;
        Ok(rows)
    }

    fn check_labels(&self, last: usize) -> Result<()> {
        let wrong = |&(_, &label): &(usize, &i64)| label > last as i64;
        match self.labels.iter().enumerate().find(wrong) {
            Some((row, &label)) => Err(Error::Label {
                row,
                label: label as usize,
                last,
            }),
            None => Ok(()),
        }
    }

    fn check_weights(&self) -> Result<()> {
        let total: f64 = self.weights.iter().map(|&w| f64::from(w)).sum();
        let wrong = self.weights.iter().any(|w| !(w.is_finite() && *w >= 0.0));
        if wrong || (!self.weights.is_empty() && total == 0.0) {
            return Err(Error::Setting {
                name: "row weights",
                expected: "finite numbers from 0, not all 0",
                got: format!("a sum of {total}"),
            });
        }
        Ok(())
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
