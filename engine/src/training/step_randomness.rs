//! What is random in a step of training: which rows, how they are moved, which numbers and which nodes are summed out.
//!
//! Every sample is a function of (seed, step, row of the batch), in whatever order and on whatever thread it is made.

use crate::model::Column;
use crate::random::{Purpose, Stream};
use crate::rows::active_nodes::Dropped;
use crate::rows::batch::{Batch, CHUNK, words};
use crate::structure::{Frame, Kind, Structure};
use crate::training::augment::Turn;
use crate::training::settings::Settings;

/// Row `place` of the endless shuffled sequence: every epoch is a permutation of its own.
pub(crate) fn pick(
    order: &mut Vec<(usize, Vec<u32>)>,
    seed: u64,
    place: usize,
    rows: usize,
) -> usize {
    let epoch = place / rows;
    if !order.iter().any(|(known, _)| *known == epoch) {
        order.retain(|(known, _)| known + 1 == epoch);
        order.push((
            epoch,
            Stream::new(seed, Purpose::Shuffle, epoch as u32, 0).permutation(rows),
        ));
    }
    let permutation = order
        .iter()
        .find(|(known, _)| *known == epoch)
        .map(|(_, permutation)| permutation);
    permutation.map_or(0, |permutation| permutation[place % rows] as usize)
}

/// All moves by up to `most` steps down and right, either way; a sequence, which is an image of one row, moves along it.
pub(crate) fn training_shifts(structure: &Structure, most: usize) -> Vec<(isize, isize)> {
    let side = |length: Option<usize>| if length == Some(1) { 0 } else { most as isize };
    let frame = structure.frame;
    let (down, right) = (
        side(frame.map(|frame| frame.height)),
        side(frame.map(|frame| frame.width)),
    );
    let across = |y| (-right..=right).map(move |x| (y, x));
    (-down..=down).flat_map(across).collect()
}

/// Which rows of a step's batch are looked at: all of them, or those that a worker has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchPart {
    pub step: usize,
    pub first: usize, // of the batch's rows
    pub rows: usize,
}

/// Puts the rows of a step into the frame: shifted, turned and stretched, with random holes. `placements` are by shift.
///
/// Where a column is to be predicted, each of n rows is there twice with the same holes: first with that column, then
/// without it.
pub(crate) fn load_rows<'a>(
    batch: &mut Batch,
    structure: &Structure,
    placements: &[Vec<Column>],
    settings: &Settings,
    part: BatchPart,
    row_of: impl Fn(usize) -> &'a [f32] + Send + Sync,
) {
    let rows = StepRows {
        kinds: structure.row_kinds(),
        frame: structure.frame.as_ref().filter(|_| settings.turns()),
        placements,
        settings,
        part,
    };
    let Some(target) = settings.target else {
        return batch.fill_rows(|b, frame| rows.load(b, row_of(b), frame));
    };
    let (n, column) = (part.rows, &placements[0][target]);
    batch.fill_rows(|b, frame| {
        rows.load(b % n, row_of(b % n), frame);
        let seen = if b < n { row_of(b)[target] } else { f32::NAN };
        column.put(seen, frame);
    });
}

/// What the rows of a step have in common.
struct StepRows<'a> {
    kinds: Vec<Kind>,
    frame: Option<&'a Frame>, // where images are turned or stretched
    placements: &'a [Vec<Column>],
    settings: &'a Settings,
    part: BatchPart,
}

impl StepRows<'_> {
    /// Puts row b of the batch into the frame.
    fn load(&self, b: usize, row: &[f32], frame: &mut [f32]) {
        let (seed, step) = (self.settings.seed, self.part.step as u32);
        let item = (self.part.first + b) as u32;
        let mut holes = Stream::new(seed, Purpose::Inputs, step, item);
        let mut random = Stream::new(seed, Purpose::Augment, step, item);
        let columns = match self.placements.len() {
            1 => &self.placements[0],
            count => &self.placements[random.below(count)],
        };
        let threshold = (self.share_of_holes(&mut holes) * 4_294_967_296.0) as u64;
        let turned = self.frame.map(|frame| self.turned(frame, row, &mut random));
        let numbers = turned.as_deref().unwrap_or(row).iter().zip(columns);
        if threshold == 0 {
            numbers.for_each(|(&x, column)| column.put(x, frame));
            return;
        }
        for (&x, column) in numbers {
            if u64::from(holes.next_u32()) >= threshold {
                column.put(x, frame);
            }
        }
    }

    /// The probability with which each number of a row is summed out.
    fn share_of_holes(&self, holes: &mut Stream) -> f64 {
        if self.settings.drop_varied {
            (2.0 * self.settings.drop_inputs * holes.uniform()).min(1.0)
        } else {
            self.settings.drop_inputs
        }
    }

    /// A row of an image, turned and stretched at random.
    fn turned(&self, frame: &Frame, row: &[f32], random: &mut Stream) -> Vec<f32> {
        let mut turned = vec![0.0; row.len()];
        let turn = Turn::draw(self.settings.rotate, self.settings.stretch, random);
        turn.apply(frame, |channel| self.kinds[channel], row, &mut turned);
        turned
    }
}

/// Nodes to sum out at a step, by tree and layer.
pub(crate) fn drop_nodes(
    structure: &Structure,
    settings: &Settings,
    part: BatchPart,
) -> Vec<Vec<Dropped>> {
    let (rows, trees) = (part.rows, &structure.trees);
    let word_count = words(rows);
    let layers = |t: usize| settings.drop_nodes.len().min(trees[t].levels.len() + 1);
    let empty = |t: usize| {
        (0..layers(t))
            .map(|l| vec![0; trees[t].nodes(l) * word_count])
            .collect()
    };
    let mut masks: Vec<Vec<Dropped>> = (0..trees.len()).map(empty).collect();
    if settings.drop_nodes.iter().all(|&p| p == 0.0) {
        return masks;
    }
    for b in 0..rows {
        let item = (part.first + b) as u32;
        let mut random = Stream::new(settings.seed, Purpose::Nodes, part.step as u32, item);
        for tree_masks in &mut masks {
            let layers = tree_masks.iter_mut().zip(&settings.drop_nodes);
            for (mask, &p) in layers.filter(|(_, p)| **p > 0.0) {
                for node in mask.chunks_exact_mut(word_count) {
                    node[b / CHUNK] |= u64::from(random.chance(p)) << (b % CHUNK);
                }
            }
        }
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::Sharing;

    #[test]
    fn a_sequence_moves_along_its_row() {
        let shifts = |structure: Structure| training_shifts(&structure, 1);
        let sequence = Structure::sequence(4).level(4, 2, Sharing::Own).build();
        assert_eq!(shifts(sequence.unwrap()), [(0, -1), (0, 0), (0, 1)]);
        let image = Structure::image(4, 4).level(2, 2, Sharing::Own).build();
        assert_eq!(shifts(image.unwrap()).len(), 9);
    }
}
