//! Partitions of the rows, and which of them a step takes: a function of (seed, step, partition).

use crate::error::{Error, Result};
use crate::random::{Purpose, Stream};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Where the rows lie, and how many of them a step takes: of every partition in proportion to its rows, or all rows of
/// some partitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partitions {
    pub(super) sizes: Vec<u64>,
    rows: u64,              // of a step
    pub(super) whole: bool, // whether a step takes whole partitions
}

impl Partitions {
    /// Partitions of these numbers of rows, and the rows of a step.
    pub fn new(sizes: &[u64], rows: u64) -> Result<Self> {
        let partitions = Self {
            sizes: sizes.to_vec(),
            rows,
            whole: false,
        };
        partitions.check()?;
        Ok(partitions)
    }

    /// The same, but a step takes all rows of as many partitions as have about that many rows: where partitions are
    /// pieces of a file, few are read. They take turns in a shuffled order.
    pub fn whole(self) -> Self {
        Self {
            whole: true,
            ..self
        }
    }

    /// The partitions that a step takes rows of, in the order in which they are in its batch.
    pub(super) fn taken(&self, seed: u64, step: usize) -> Vec<usize> {
        let count = self.sizes.len();
        if !self.whole {
            return (0..count).collect();
        }
        let share = u128::from(self.rows) * count as u128 / u128::from(self.total());
        let share = usize::try_from(share).unwrap_or(count).clamp(1, count);
        let (mut order, mut taken) = (Vec::new(), Vec::with_capacity(share));
        for place in step * share..(step + 1) * share {
            if order.is_empty() || place.is_multiple_of(count) {
                let epoch = (place / count) as u32;
                order = Stream::new(seed, Purpose::Shuffle, epoch, 0).permutation(count);
            }
            taken.push(order[place % count] as usize);
        }
        taken
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.total() == 0 {
            return Err(Error::Empty { what: "row" });
        }
        let most = u64::from(u32::MAX);
        if let Some((partition, size)) = self.sizes.iter().enumerate().find(|(_, n)| **n > most) {
            let what = format!("rows of partition {partition}");
            return Err(Error::shape(what, format!("at most {most}"), size));
        }
        if !(1..=most).contains(&self.rows) {
            return Err(Error::shape(
                "rows of a step",
                format!("1 to {most}"),
                self.rows,
            ));
        }
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// Rows of all partitions.
    pub fn total(&self) -> u64 {
        self.sizes
            .iter()
            .fold(0, |sum, &size| sum.saturating_add(size))
    }

    /// The stretch of a partition's endless shuffled sequence that a step takes. Steps follow each other without a gap;
    /// where a step takes less than a row of each, partitions take turns.
    fn stretch(&self, partition: usize, step: usize) -> Range<u64> {
        let (total, count) = (u128::from(self.total()), self.sizes.len() as u128);
        let own = u128::from(self.sizes[partition]) * u128::from(self.rows) * count;
        let turn = partition as u128 * total;
        let at = |step: u128| ((step * own + turn) / (total * count)) as u64;
        at(step as u128)..at(step as u128 + 1)
    }

    /// The place of a partition's first row in the batch of a step that takes rows of all.
    pub(super) fn first_place(&self, partition: usize, step: usize) -> usize {
        let lengths = (0..partition).map(|p| self.stretch(p, step));
        lengths
            .map(|stretch| (stretch.end - stretch.start) as usize)
            .sum()
    }

    /// The rows of a partition that a step takes: every epoch is a permutation of its own.
    pub(super) fn picked(&self, seed: u64, partition: usize, step: usize) -> Vec<usize> {
        let (stretch, size) = (self.stretch(partition, step), self.sizes[partition]);
        let mut picked = Vec::with_capacity((stretch.end - stretch.start) as usize);
        let mut place = stretch.start;
        while place < stretch.end {
            let (epoch, from) = (place / size, (place % size) as usize);
            let to = (stretch.end - epoch * size).min(size) as usize;
            let item = partition as u32 + 1;
            let mut random = Stream::new(seed, Purpose::Shuffle, epoch as u32, item);
            let order = random.permutation(size as usize);
            picked.extend(order[from..to].iter().map(|&row| row as usize));
            place += (to - from) as u64;
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_takes_every_row_once() {
        let partitions = Partitions::new(&[5, 0, 3, 11], 4).unwrap();
        let mut taken = vec![Vec::new(); 4];
        let mut most = 0;
        for step in 0..19 {
            let picked = (0..4).map(|p| partitions.picked(1, p, step));
            let picked: Vec<Vec<usize>> = picked.collect();
            let lengths: Vec<usize> = picked.iter().map(Vec::len).collect();
            assert_eq!(
                partitions.first_place(3, step),
                lengths[..3].iter().sum::<usize>()
            );
            most = most.max(lengths.iter().sum::<usize>());
            let both = taken.iter_mut().zip(picked);
            both.for_each(|(taken, rows)| taken.extend(rows));
        }
        assert!(most <= 4 + 3, "{most}");
        for (taken, size) in taken.iter().zip([5, 0, 3, 11]) {
            assert_eq!(taken.len(), 4 * size); // 19 steps of 4 rows are four epochs of 19
            for epoch in taken.chunks(size.max(1)) {
                let mut epoch = epoch.to_vec();
                epoch.sort_unstable();
                assert_eq!(epoch, (0..size).collect::<Vec<_>>());
            }
        }
        assert!(taken[3][..11] != taken[3][11..22]);
    }

    #[test]
    fn whole_partitions_take_turns() {
        let partitions = Partitions::new(&[5, 5, 5, 5, 5, 3], 10).unwrap().whole();
        let steps: Vec<Vec<usize>> = (0..6).map(|step| partitions.taken(1, step)).collect();
        assert!(steps.iter().all(|taken| taken.len() == 2));
        for epoch in steps.concat().chunks(6) {
            let mut epoch = epoch.to_vec();
            epoch.sort_unstable();
            assert_eq!(epoch, [0, 1, 2, 3, 4, 5]);
        }
        assert_ne!(steps[..3], steps[3..]);
        let all = Partitions::new(&[5, 3], 8).unwrap().whole();
        assert_eq!(all.taken(1, 7).len(), 2);
        let few = Partitions::new(&[5, 3], 1).unwrap().whole();
        assert_eq!(few.taken(1, 7).len(), 1);
    }

    #[test]
    fn steps_smaller_than_the_number_of_partitions_have_rows() {
        let partitions = Partitions::new(&[100; 10], 3).unwrap();
        for step in 0..50 {
            let rows: usize = (0..10).map(|p| partitions.picked(1, p, step).len()).sum();
            assert!((2..=4).contains(&rows), "step {step}: {rows}");
        }
        assert!(Partitions::new(&[0, 0], 3).is_err());
        assert!(Partitions::new(&[1], 0).is_err());
        assert!(Partitions::new(&[1 << 40], 1).is_err());
    }
}
