//! The rows a model learns from or is validated on.

use crate::error::{Error, Result};
use crate::matrix::Rows;
use crate::model::column_range::check_inside;
use crate::model::{Scaling, check_rows};
use crate::random::{Purpose, Stream};
use crate::structure::Structure;
use crate::training::stop::Stop;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Rows with labels and weights, to learn from or to validate on.
#[derive(Clone, Debug)]
pub struct Data<'a> {
    pub(crate) values: Cow<'a, [f32]>,  // (n, width), NaN is missing
    pub(crate) labels: Vec<i64>,        // (n): a class, or −1 where missing; empty: all missing
    pub(crate) weights: Cow<'a, [f32]>, // (n), or empty for all one
    width: usize,
    pub(crate) stop: Stop,
}

/// Rows to learn from, and rows that were taken out of them.
pub(crate) struct Split<'a> {
    pub train: Data<'a>,
    pub held_out: Data<'a>,
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
            values: Cow::Borrowed(rows.as_slice()),
            labels: labels.iter().map(number).collect(),
            weights: Cow::Borrowed(&[]),
            width: rows.width(),
            stop: Stop::default(),
        }
    }

    /// The same rows with weights that are not negative, one for each.
    pub fn weighted(self, weights: &'a [f32]) -> Self {
        let weights = Cow::Borrowed(weights);
        Self { weights, ..self }
    }

    /// The same rows; a fit of them can be stopped before its first step.
    pub fn stopped_by(self, stop: &Stop) -> Self {
        let stop = stop.clone();
        Self { stop, ..self }
    }

    /// The same rows, followed by copies of them in which each share of the cells is taken away at random.
    pub(crate) fn with_holes(&self, shares: &[f64], seed: u64) -> Data<'static> {
        let mut values = self.values.to_vec();
        for (copy, &share) in shares.iter().enumerate() {
            let mut random = Stream::new(seed, Purpose::Masks, copy as u32, 0);
            let with_hole = |&x: &f32| if random.chance(share) { f32::NAN } else { x };
            values.extend(self.values.iter().map(with_hole));
        }
        let copies = 1 + shares.len();
        Data {
            values: values.into(),
            labels: self.labels.repeat(copies),
            weights: self.weights.repeat(copies).into(),
            width: self.width,
            stop: self.stop.clone(),
        }
    }

    /// The same rows with w of this scaling applied; an error for a number that cannot occur.
    pub(crate) fn bent(self, scaling: &Scaling) -> Result<Self> {
        scaling.check(self.width)?;
        check_inside(&scaling.ranges, &self.values)?;
        Ok(match scaling.bent(&self.values, self.width) {
            Some(values) => Self {
                values: Cow::Owned(values),
                ..self
            },
            None => self,
        })
    }

    /// The rows.
    pub(crate) fn rows(&self) -> Result<Rows<'_>> {
        Rows::new(&self.values, self.width)
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    /// The same rows in an order that depends on nothing but what they hold, so that a model does not depend on the
    /// order in which its rows came.
    pub(crate) fn sorted(self) -> Self {
        let content = |row: usize| self.content(row);
        let is_sorted = (1..self.len()).all(|row| content(row - 1).le(content(row)));
        if is_sorted {
            return self;
        }
        let mut rows: Vec<usize> = (0..self.len()).collect();
        rows.par_sort_by(|&a, &b| content(a).cmp(content(b)));
        self.picked(&rows)
    }

    /// What a row is sorted by: its numbers, its label, its weight.
    fn content(&self, row: usize) -> impl Iterator<Item = u32> {
        let numbers = &self.values[row * self.width..(row + 1) * self.width];
        let weight = self.weights.get(row).map_or(0, |weight| weight.to_bits());
        let numbers = numbers.iter().map(|&x| sort_key(x));
        numbers.chain([self.label(row) as u32, weight])
    }

    /// These rows, in this order.
    pub(crate) fn picked(&self, rows: &[usize]) -> Self {
        let numbers = |&row: &usize| &self.values[row * self.width..(row + 1) * self.width];
        let labels = rows.iter().filter_map(|&row| self.labels.get(row));
        let weights = rows.iter().filter_map(|&row| self.weights.get(row));
        Self {
            values: rows.iter().flat_map(numbers).copied().collect(),
            labels: labels.copied().collect(),
            weights: weights.copied().collect(),
            width: self.width,
            stop: self.stop.clone(),
        }
    }

    /// Takes this share of every class out at random, of all rows where there are no labels.
    pub(crate) fn split(&self, share: f64, seed: u64) -> Split<'static> {
        let mut rows_of = BTreeMap::<i64, Vec<usize>>::new();
        for row in Stream::new(seed, Purpose::Shuffle, u32::MAX, 0).permutation(self.len()) {
            let row = row as usize;
            rows_of.entry(self.label(row)).or_default().push(row);
        }
        let (mut train, mut held_out) = (Vec::new(), Vec::new());
        for rows in rows_of.values() {
            let (out, kept) = rows.split_at((share * rows.len() as f64) as usize);
            train.extend_from_slice(kept);
            held_out.extend_from_slice(out);
        }
        train.sort_unstable();
        held_out.sort_unstable();
        Split {
            train: self.picked(&train).into_owned(),
            held_out: self.picked(&held_out).into_owned(),
        }
    }

    /// Whether all rows count for nothing, so that neither training nor a score says anything.
    pub(crate) fn is_weightless(&self) -> bool {
        !self.weights.is_empty() && self.weights.iter().all(|&weight| weight == 0.0)
    }

    fn into_owned(self) -> Data<'static> {
        Data {
            values: Cow::Owned(self.values.into_owned()),
            labels: self.labels,
            weights: Cow::Owned(self.weights.into_owned()),
            width: self.width,
            stop: self.stop,
        }
    }

    pub(crate) fn label(&self, row: usize) -> i64 {
        self.labels.get(row).copied().unwrap_or(-1)
    }

    /// How many rows there are, or what is wrong with them.
    pub(crate) fn check(&self, structure: &Structure) -> Result<usize> {
        let rows = check_rows(structure, self.rows()?)?;
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
        self.check_labels(structure.classes - 1)?;
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

/// All NaNs are one hole, and −0 is 0.
fn sort_key(x: f32) -> u32 {
    if x.is_nan() {
        u32::MAX
    } else {
        (x + 0.0).to_bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_rows_does_not_matter_once_they_are_sorted() {
        let first = [3.0, f32::NAN, 1.0, 2.0, 1.0, 0.0];
        let second = [1.0, -0.0, 3.0, f32::NAN, 1.0, 2.0];
        let of = |values: &[f32], labels: [usize; 3], weights: &[f32]| {
            let labels = labels.map(Some);
            let data = Data::new(Rows::new(values, 2).unwrap(), &labels);
            let data = data.weighted(weights).sorted();
            let keys: Vec<u32> = data.values.iter().map(|&x| sort_key(x)).collect();
            (keys, data.labels.clone(), data.weights.to_vec())
        };
        let sorted = of(&first, [0, 1, 2], &[0.5, 1.5, 2.5]);
        assert_eq!(of(&second, [2, 0, 1], &[2.5, 0.5, 1.5]), sorted);
        assert_eq!(sorted.1, [2, 1, 0]);
        assert_eq!(sorted.2, [2.5, 1.5, 0.5]);
    }

    #[test]
    fn a_split_keeps_every_class_and_loses_no_row() {
        let values: Vec<f32> = (0..100).map(|row| row as f32).collect();
        let labels: Vec<Option<usize>> = (0..100).map(|row| Some(usize::from(row >= 95))).collect();
        let data = Data::new(Rows::new(&values, 1).unwrap(), &labels);
        let Split { train, held_out } = data.split(0.2, 1);
        assert_eq!((train.len(), held_out.len()), (80, 20));
        let rare = |data: &Data<'_>| data.labels.iter().filter(|&&label| label == 1).count();
        assert_eq!((rare(&train), rare(&held_out)), (4, 1));
        let mut all: Vec<f32> = [train.values.to_vec(), held_out.values.to_vec()].concat();
        all.sort_by(f32::total_cmp);
        assert_eq!(all, values);
        assert_ne!(data.split(0.2, 2).held_out.values, held_out.values);
    }
}
