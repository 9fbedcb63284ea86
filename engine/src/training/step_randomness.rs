//! What a step of training draws: which rows, how they are moved, which numbers and which nodes are summed out.
//!
//! Every draw is a function of (seed, step, row of the batch), in whatever order and on whatever thread it is made.

use crate::model::Column;
use crate::random::{Purpose, Stream};
use crate::rows::active_nodes::Dropped;
use crate::rows::batch::{Batch, CHUNK, words};
use crate::structure::Structure;
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

/// Lays the rows of a step in the frame: shifted, turned and stretched, with random holes. `placements` are by shift.
pub(crate) fn lay_rows<'a>(
    batch: &mut Batch,
    structure: &Structure,
    placements: &[Vec<Column>],
    settings: &Settings,
    step: usize,
    row_of: impl Fn(usize) -> &'a [f32] + Send + Sync,
) {
    let (kinds, width) = (structure.row_kinds(), structure.width());
    let &Settings {
        seed,
        rotate,
        stretch,
        drop_inputs,
        drop_varied,
        ..
    } = settings;
    let frame = structure.frame.as_ref().filter(|_| settings.turns());
    let turn = frame.map(|frame| (frame, &kinds[..]));
    batch.fill_rows(|b, frame| {
        let mut holes = Stream::new(seed, Purpose::Inputs, step as u32, b as u32);
        let mut random = Stream::new(seed, Purpose::Augment, step as u32, b as u32);
        let columns = match placements.len() {
            1 => &placements[0],
            count => &placements[random.below(count)],
        };
        let drop = if drop_varied {
            (2.0 * drop_inputs * holes.uniform()).min(1.0)
        } else {
            drop_inputs
        };
        let threshold = (drop * 4_294_967_296.0) as u64;
        let row = row_of(b);
        let turned = turn.map(|(frame, kinds)| {
            let mut turned = vec![0.0; width];
            Turn::draw(rotate, stretch, &mut random).apply(
                frame,
                |channel| kinds[channel],
                row,
                &mut turned,
            );
            turned
        });
        let numbers = turned.as_deref().unwrap_or(row).iter().zip(columns);
        match threshold {
            0 => numbers.for_each(|(&x, column)| column.put(x, frame)),
            _ => numbers.for_each(|(&x, column)| {
                if u64::from(holes.next_u32()) >= threshold {
                    column.put(x, frame);
                }
            }),
        }
    });
}

/// Nodes to sum out at a step, by tree and layer.
pub(crate) fn drop_nodes(
    structure: &Structure,
    settings: &Settings,
    step: usize,
) -> Vec<Vec<Dropped>> {
    let (rows, trees) = (settings.batch, &structure.trees);
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
        let mut random = Stream::new(settings.seed, Purpose::Nodes, step as u32, b as u32);
        for tree_masks in &mut masks {
            for (mask, &p) in tree_masks
                .iter_mut()
                .zip(&settings.drop_nodes)
                .filter(|(_, p)| **p > 0.0)
            {
                for node in mask.chunks_exact_mut(word_count) {
                    node[b / CHUNK] |= u64::from(random.chance(p)) << (b % CHUNK);
                }
            }
        }
    }
    masks
}
