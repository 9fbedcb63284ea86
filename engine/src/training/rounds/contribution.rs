//! What the rows of one partition add to a step, and sums of it: computed anywhere, added in any order, to the same bits.
//!
//! ```text
//! flows    N = W ∘ dW        of every mixing matrix, summed over rows: the gradient by the logits is N − W ΣₐN,
//!                            and where the objective is log P(X, y), N are EM's expected counts
//! leaves   Σ f, Σ f z, Σ f z², or Σ f [x = v]       of every leaf family (`Statistics`)
//! loss     of these rows
//! ```
//!
//! Floating-point sums depend on their order, so partitions are always added in the same one: neighbours first, as in a
//! tournament. 0+1 and 2+3, then 01+23, and so on; what has no neighbour waits. A contribution holds the sums of the
//! subtrees it knows, and two of them become one as soon as they are neighbours in that tree.

use crate::error::{Error, Result};
use crate::model::tensor_file::{self, Tensor, Tensors};
use crate::training::loss::Loss;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

const VERSION: u32 = 1;

/// Numbers of a [`Loss`] in bytes.
const LOSS: usize = 6;

/// The sums of some partitions of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    pub(crate) round: RoundId,
    pub(crate) partitions: usize, // in all
    pieces: Vec<Piece>,           // by their first partition; neighbours in the tree are one
}

/// Which step of which model: contributions to another are not added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoundId {
    pub step: usize,
    pub fingerprint: u64, // of weights and settings
}

/// A subtree.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    range: Range<usize>, // of partitions
    sums: Sums,
}

/// What adds up. No numbers at all stand for zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub flows: Vec<f32>,  // level after level of every tree, then the classes
    pub leaves: Vec<f64>, // family after family of every tree
    pub loss: Loss,
}

impl Sums {
    pub fn add(&mut self, other: &Self) {
        add_all(&mut self.flows, &other.flows);
        add_all(&mut self.leaves, &other.leaves);
        self.loss.add(&other.loss);
    }
}

fn add_all<T: Copy + std::ops::AddAssign>(to: &mut Vec<T>, from: &[T]) {
    if to.is_empty() {
        to.extend_from_slice(from);
    } else {
        to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
    }
}

/// The text of the bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    contribution: u32, // the format's version
    round: RoundId,
    partitions: usize,
    pieces: Vec<(usize, usize)>,
}

fn wrong(text: impl ToString) -> Error {
    Error::Contribution(text.to_string())
}

/// Errors of the container, about a contribution.
fn of_container(error: Error) -> Error {
    match error {
        Error::ModelFile(text) => Error::Contribution(text),
        other => other,
    }
}

impl Contribution {
    /// Of one partition.
    pub(crate) fn of(partition: usize, partitions: usize, round: RoundId, sums: Sums) -> Self {
        let range = partition..partition + 1;
        Self {
            round,
            partitions,
            pieces: vec![Piece { range, sums }],
        }
    }

    /// Adds what other partitions contribute to the same step. Neither the order nor the grouping of such sums changes
    /// a bit of the result.
    pub fn add(&mut self, other: Self) -> Result<()> {
        if (self.round, self.partitions) != (other.round, other.partitions) {
            return Err(wrong(format!(
                "expected step {} of {} partitions, got step {} of {}, or of another model",
                self.round.step, self.partitions, other.round.step, other.partitions
            )));
        }
        let mut both: Vec<&Piece> = self.pieces.iter().chain(&other.pieces).collect();
        both.sort_by_key(|piece| piece.range.start);
        check_pieces(&both, self.partitions)?;
        self.pieces.extend(other.pieces);
        self.pieces.sort_by_key(|piece| piece.range.start);
        self.join_neighbours();
        Ok(())
    }

    /// Joins subtrees until no two are the halves of one.
    fn join_neighbours(&mut self) {
        let mut joined: Vec<Piece> = Vec::with_capacity(self.pieces.len());
        for mut piece in std::mem::take(&mut self.pieces) {
            while let Some(mut left) = joined.pop_if(|left| self.are_halves(left, &piece)) {
                left.sums.add(&piece.sums);
                left.range.end = piece.range.end;
                piece = left;
            }
            joined.push(piece);
        }
        self.pieces = joined;
    }

    /// Whether two pieces are the halves of a subtree; the right half of the last one may be smaller.
    fn are_halves(&self, left: &Piece, right: &Piece) -> bool {
        let (start, size) = (left.range.start, left.range.len());
        let is_left = size.is_power_of_two() && start.is_multiple_of(2 * size);
        let end = start.saturating_add(2 * size).min(self.partitions);
        is_left && right.range == (left.range.end..end)
    }

    /// The loss of all rows so far, pieces from the left.
    pub fn loss(&self) -> Loss {
        let mut loss = Loss::default();
        self.pieces
            .iter()
            .for_each(|piece| loss.add(&piece.sums.loss));
        loss
    }

    /// The sums of all partitions; an error that names the first one that is missing.
    pub(crate) fn whole(&self) -> Result<&Sums> {
        let missing = self.first_missing();
        match (&self.pieces[..], missing) {
            ([piece], None) => Ok(&piece.sums),
            (_, missing) => Err(wrong(format!(
                "expected all {} partitions, got none of partition {}",
                self.partitions,
                missing.unwrap_or(0)
            ))),
        }
    }

    fn first_missing(&self) -> Option<usize> {
        let mut next = 0;
        for piece in &self.pieces {
            if piece.range.start > next {
                return Some(next);
            }
            next = piece.range.end;
        }
        (next < self.partitions).then_some(next)
    }

    /// As bytes: the same for the same sums.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut tensors = BTreeMap::new();
        let mut losses = Vec::new();
        for (index, Piece { sums, .. }) in self.pieces.iter().enumerate() {
            let flows = Tensor::floats(&[sums.flows.len()], sums.flows.iter().copied());
            tensors.insert(format!("flows.{index}"), flows);
            tensors.insert(format!("leaves.{index}"), Tensor::doubles(&sums.leaves));
            losses.extend(numbers_of(&sums.loss));
        }
        tensors.insert("losses".into(), Tensor::doubles(&losses));
        let range = |piece: &Piece| (piece.range.start, piece.range.end);
        let header = Header {
            contribution: VERSION,
            round: self.round,
            partitions: self.partitions,
            pieces: self.pieces.iter().map(range).collect(),
        };
        let text = serde_json::to_string(&header).map_err(wrong)?;
        tensor_file::write(tensors, &text).map_err(of_container)
    }

    /// From bytes, which may come from anywhere: everything is checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).map_err(of_container)
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let mut tensors = Tensors::open(bytes)?;
        if tensors.damaged {
            return Err(wrong("its checksum does not fit: it is damaged"));
        }
        let header: Header = serde_json::from_str(&tensors.text).map_err(wrong)?;
        if header.contribution != VERSION {
            let got = header.contribution;
            return Err(wrong(format!(
                "expected format version {VERSION}, got {got}"
            )));
        }
        let losses = tensors.doubles("losses", None)?;
        if losses.len() != LOSS * header.pieces.len() {
            let (expected, got) = (LOSS * header.pieces.len(), losses.len());
            return Err(wrong(format!(
                "losses: expected {expected} numbers, got {got}"
            )));
        }
        let mut pieces = Vec::new();
        for (index, &(start, end)) in header.pieces.iter().enumerate() {
            let sums = Sums {
                flows: tensors.floats(&format!("flows.{index}"), None)?,
                leaves: tensors.doubles(&format!("leaves.{index}"), None)?,
                loss: loss_of(&losses[index * LOSS..][..LOSS])?,
            };
            let range = start..end;
            pieces.push(Piece { range, sums });
        }
        if let Some((name, _)) = tensors.left().next() {
            return Err(wrong(format!("tensor '{name}' has no place in it")));
        }
        check_pieces(&pieces.iter().collect::<Vec<_>>(), header.partitions)?;
        check_finite(&pieces)?;
        let mut contribution = Self {
            round: header.round,
            partitions: header.partitions,
            pieces,
        };
        contribution.join_neighbours();
        Ok(contribution)
    }
}

/// Pieces must be subtrees that stand one after the other, of one shape.
fn check_pieces(pieces: &[&Piece], partitions: usize) -> Result<()> {
    if pieces.is_empty() {
        return Err(wrong("expected at least one partition, got none"));
    }
    let (mut next, mut shape) = (0, None);
    for Piece { range, sums } in pieces {
        let (start, end) = (range.start, range.end);
        if start < next || start >= end || end > partitions || !is_subtree(range, partitions) {
            return Err(wrong(format!(
                "expected other partitions of {partitions} from {next} on, got {start} to {end}"
            )));
        }
        next = end;
        let own = (sums.flows.len(), sums.leaves.len());
        if own != (0, 0) && *shape.get_or_insert(own) != own {
            return Err(wrong(format!(
                "expected sums of shape {shape:?}, got {own:?}"
            )));
        }
    }
    Ok(())
}

fn check_finite(pieces: &[Piece]) -> Result<()> {
    let is_finite = |Piece { sums, .. }: &&Piece| {
        let flows = sums.flows.iter().all(|x| x.is_finite());
        flows && sums.leaves.iter().all(|x| x.is_finite())
    };
    match pieces.iter().find(|piece| !is_finite(piece)) {
        None => Ok(()),
        Some(Piece { range, .. }) => {
            let (start, end) = (range.start, range.end);
            Err(wrong(format!(
                "partitions {start} to {end}: expected finite sums"
            )))
        }
    }
}

fn is_subtree(range: &Range<usize>, partitions: usize) -> bool {
    let Some(size) = range.len().checked_next_power_of_two() else {
        return false;
    };
    range.start.is_multiple_of(size) && (range.len() == size || range.end == partitions)
}

fn numbers_of(loss: &Loss) -> [f64; LOSS] {
    let counts = [loss.correct, loss.labelled, loss.rows].map(|count| count as f64);
    let [correct, labelled, rows] = counts;
    [
        loss.discriminative,
        loss.generative,
        correct,
        labelled,
        rows,
        loss.weight,
    ]
}

fn loss_of(numbers: &[f64]) -> Result<Loss> {
    let count = |x: f64| x >= 0.0 && x.fract() == 0.0 && x < 9e15;
    let are_counts = numbers[2..5].iter().all(|&x| count(x));
    let is_fine = numbers.iter().all(|x| x.is_finite()) && are_counts && numbers[5] >= 0.0;
    if !is_fine {
        return Err(wrong(format!("expected a loss, got {numbers:?}")));
    }
    Ok(Loss {
        discriminative: numbers[0],
        generative: numbers[1],
        correct: numbers[2] as usize,
        labelled: numbers[3] as usize,
        rows: numbers[4] as usize,
        weight: numbers[5],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    fn id(step: usize) -> RoundId {
        let fingerprint = u64::MAX;
        RoundId { step, fingerprint }
    }

    fn leaf(partition: usize, partitions: usize) -> Contribution {
        let mut random = Stream::new(3, Purpose::Sampling, 0, partition as u32);
        let mut number = || random.normal() * 10f64.powi(random.below(9) as i32 - 4);
        let sums = Sums {
            flows: (0..5).map(|_| number() as f32).collect(),
            leaves: (0..3).map(|_| number()).collect(),
            loss: Loss {
                generative: number(),
                rows: 2,
                weight: 2.0,
                ..Loss::default()
            },
        };
        Contribution::of(partition, partitions, id(7), sums)
    }

    /// The tree by its definition.
    fn tournament(range: Range<usize>, partitions: usize) -> Sums {
        let half = range.len().next_power_of_two() / 2;
        if half == 0 {
            return leaf(range.start, partitions).pieces[0].sums.clone();
        }
        let middle = range.start + half;
        let mut sums = tournament(range.start..middle, partitions);
        sums.add(&tournament(middle..range.end, partitions));
        sums
    }

    #[test]
    fn any_order_and_any_grouping_gives_the_same_bits() {
        for partitions in [1, 2, 3, 5, 8, 13, 31] {
            let expected = tournament(0..partitions, partitions);
            for seed in 0..20 {
                let mut random = Stream::new(seed, Purpose::Shuffle, 0, 0);
                let mut left: Vec<_> = (0..partitions).map(|p| leaf(p, partitions)).collect();
                while left.len() > 1 {
                    let other = left.swap_remove(random.below(left.len()));
                    let place = random.below(left.len());
                    let read = Contribution::from_bytes(&other.to_bytes().unwrap()).unwrap();
                    assert_eq!(read, other);
                    left[place].add(read).unwrap();
                }
                assert_eq!(left[0].whole().unwrap(), &expected);
                assert_eq!(left[0].loss().rows, 2 * partitions);
            }
        }
        // The order matters for this: a plain sum from left to right is another number.
        let mut plain = leaf(0, 13).pieces[0].sums.clone();
        (1..13).for_each(|p| plain.add(&leaf(p, 13).pieces[0].sums));
        assert_ne!(plain.leaves, tournament(0..13, 13).leaves);
    }

    #[test]
    fn what_does_not_belong_together_is_an_error() {
        let mut sum = leaf(0, 4);
        let message = |result: Result<()>| result.unwrap_err().to_string();
        assert!(message(sum.add(leaf(0, 4))).contains("from 1 on, got 0 to 1"));
        assert!(message(sum.add(leaf(1, 5))).contains("got step 7 of 5"));
        let other = Contribution {
            round: id(8),
            ..leaf(1, 4)
        };
        assert!(message(sum.add(other)).contains("got step 8 of 4"));
        let mut short = leaf(1, 4);
        short.pieces[0].sums.flows.pop();
        assert!(message(sum.add(short)).contains("shape"));
        sum.add(leaf(3, 4)).unwrap();
        let missing = sum.whole().unwrap_err().to_string();
        assert!(missing.ends_with("got none of partition 1"), "{missing}");
    }

    #[test]
    fn damaged_bytes_are_errors() {
        let mut sum = leaf(0, 9);
        [1, 5, 8]
            .into_iter()
            .for_each(|p| sum.add(leaf(p, 9)).unwrap());
        let bytes = sum.to_bytes().unwrap();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            if let Ok(read) = Contribution::from_bytes(&damaged) {
                assert_eq!(read, sum, "byte {place}"); // only where it means nothing
            }
            assert!(Contribution::from_bytes(&bytes[..place]).is_err());
        }
    }

    /// Bytes that were written so, with a checksum that fits.
    #[test]
    fn hostile_sums_are_errors() {
        let piece = |range: Range<usize>, flow: f32, weight: f64| {
            let loss = Loss {
                weight,
                ..Loss::default()
            };
            let flows = vec![flow];
            let leaves = vec![0.0];
            Piece {
                range,
                sums: Sums {
                    flows,
                    leaves,
                    loss,
                },
            }
        };
        let good = piece(0..1, 1.0, 1.0);
        let hostile = [
            vec![],
            vec![piece(0..1, f32::NAN, 1.0)],
            vec![piece(0..1, 1.0, f64::INFINITY)],
            vec![piece(0..1, 1.0, -1.0)],
            vec![piece(0..0, 1.0, 1.0)],
            vec![piece(1..3, 1.0, 1.0)],
            vec![piece(0..7, 1.0, 1.0)],
            vec![piece(4..5, 1.0, 1.0)],
            vec![good.clone(), good.clone()],
            vec![piece(0..usize::MAX, 1.0, 1.0)],
        ];
        for pieces in hostile {
            let bytes = Contribution {
                round: id(0),
                partitions: 4,
                pieces,
            };
            let read = Contribution::from_bytes(&bytes.to_bytes().unwrap());
            assert!(matches!(read, Err(Error::Contribution(_))), "{read:?}");
        }
    }
}
