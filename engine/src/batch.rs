//! Rows of data laid in the frame, and which nodes each of them needs.
//!
//! A subtree that is wholly missing for a sample is exactly 1 in every channel, because rows of W sum to one; so is
//! a node that training sums out. Neither is computed: [`Rows`] lists, for every node, the samples that need it, and
//! the circuit keeps activations of those rows only.

use crate::kernel::arch;
use crate::structure::{OUTSIDE, Structure, Tree};
use rayon::prelude::*;

/// Samples of one task, and bits of one word of a mask.
pub const CHUNK: usize = 64;

/// B rows of D numbers in the frame; NaN is missing.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// B.
    pub rows: usize,
    /// D.
    pub width: usize,
    values: Vec<f32>, // (B, stride)
}

impl Batch {
    /// Makes room for `rows` rows of the structure's frame, all missing.
    pub fn clear(&mut self, structure: &Structure, rows: usize) {
        self.fit(structure, rows);
        self.values.fill(f32::NAN);
    }

    /// The same, with whatever the rows held before.
    pub(crate) fn fit(&mut self, structure: &Structure, rows: usize) {
        self.rows = rows;
        self.width = structure.frame_len();
        self.values.resize(rows * self.stride(), f32::NAN);
    }

    /// These rows of the frame.
    #[cfg(test)]
    pub(crate) fn of_rows(width: usize, values: &[f32]) -> Self {
        let mut batch = Self { rows: values.len() / width, width, values: Vec::new() };
        batch.values.resize(batch.rows * batch.stride(), f32::NAN);
        values.chunks(width).enumerate().for_each(|(b, row)| batch.row_mut(b).copy_from_slice(row));
        batch
    }

    /// Numbers from one row to the next: an odd number of cache lines, so that a column of rows does not fall on the
    /// same few places of the cache.
    fn stride(&self) -> usize {
        const LINE: usize = 16;
        (self.width.div_ceil(LINE) | 1) * LINE
    }

    /// One row of the frame.
    pub fn row(&self, b: usize) -> &[f32] {
        &self.values[b * self.stride()..][..self.width]
    }

    /// The same, to be changed.
    pub fn row_mut(&mut self, b: usize) -> &mut [f32] {
        let start = b * self.stride();
        &mut self.values[start..][..self.width]
    }

    /// Which samples see each place of the frame, (words, D).
    fn seen(&self) -> Vec<Vec<u64>> {
        let mut all = vec![vec![0u64; self.width]; words(self.rows)];
        let tasks: Vec<_> = all.iter_mut().enumerate().collect();
        for_each_task(self.values.len() * PUT, tasks, |(w, seen)| {
            arch().dispatch(
                #[inline(always)]
                || {
                    for b in w * CHUNK..self.rows.min((w + 1) * CHUNK) {
                        let bits = self.row(b).iter().map(|x| u64::from(!x.is_nan()) << (b % CHUNK));
                        seen.iter_mut().zip(bits).for_each(|(seen, bit)| *seen |= bit);
                    }
                },
            );
        });
        all
    }

    /// Calls `fill` with every row, all missing, and its number.
    pub(crate) fn fill_rows(&mut self, fill: impl Fn(usize, &mut [f32]) + Send + Sync) {
        let (width, stride, work) = (self.width, self.stride(), self.values.len() * PUT);
        let rows: Vec<_> = self.values.chunks_mut(CHUNK / 4 * stride).enumerate().collect();
        for_each_task(work, rows, |(index, rows)| {
            for (b, row) in (index * (CHUNK / 4)..).zip(rows.chunks_exact_mut(stride)) {
                row.fill(f32::NAN);
                fill(b, &mut row[..width]);
            }
        });
    }
}

/// Words that hold one bit a sample.
pub fn words(rows: usize) -> usize {
    rows.div_ceil(CHUNK)
}

/// The samples of a word, from its lowest bit up.
pub fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < CHUNK).then_some(bit)
    })
}

/// What laying one number in the frame costs, in multiply-adds.
const PUT: usize = 16;

/// Multiply-adds below which handing tasks to other threads costs more than it saves.
const SMALL: usize = 1 << 21;

/// Runs tasks, on all threads if their `work` (in multiply-adds) is worth it. Tasks must not depend on their order.
pub fn for_each_task<T: Send>(work: usize, tasks: Vec<T>, run: impl Fn(T) + Send + Sync) {
    if work < SMALL {
        tasks.into_iter().for_each(run);
    } else {
        tasks.into_par_iter().for_each(run);
    }
}

/// Runs `work` multiply-adds of tasks on a thread of the pool, if they are many: from outside, every parallel part would
/// wait for one to wake up.
pub(crate) fn in_pool<R: Send>(work: usize, run: impl FnOnce() -> R + Send) -> R {
    if work < SMALL { run() } else { rayon::scope(|_| run()) }
}

/// The rows of one layer: those (node, sample) pairs that are computed.
///
/// Rows are numbered by parent, chunk of samples, child, sample, so that all a task reads from its children is one
/// stretch of memory.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// (nodes, words): which samples need the node.
    pub mask: Vec<u64>,
    /// (nodes, words): the first row of the node's samples of that word.
    pub first: Vec<usize>,
    /// (parents · words + 1): the first row of each task of the level above.
    pub tasks: Vec<usize>,
    /// (nodes · words): nodes' words in the order in which their rows are stored.
    pub order: Vec<usize>,
}

impl Layer {
    /// Rows of the layer.
    pub fn rows(&self) -> usize {
        *self.tasks.last().unwrap_or(&0)
    }

    /// Rows of one node and word.
    pub fn count(&self, key: usize) -> usize {
        self.mask[key].count_ones() as usize
    }
}

/// The rows of every layer of one tree for one batch.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Words of a mask.
    pub words: usize,
    /// Layer 0 to L.
    pub layers: Vec<Layer>,
}

/// Which nodes of a layer are summed out for which samples: a mask of (nodes, words), or empty for none.
pub type Dropped = Vec<u64>;

impl Rows {
    /// Every node for every sample: what questions about missing inputs need.
    pub fn dense(&mut self, tree: &Tree, rows: usize) {
        self.prepare(tree, rows);
        for layer in &mut self.layers {
            for (key, mask) in layer.mask.iter_mut().enumerate() {
                let left = rows - (key % self.words) * CHUNK;
                *mask = if left >= CHUNK { u64::MAX } else { (1 << left) - 1 };
            }
        }
        self.number(tree);
    }

    /// Only nodes with something observed below them, less those that training sums out (`dropped[l]` for layer l).
    pub fn needed(&mut self, tree: &Tree, batch: &Batch, dropped: &[Dropped]) {
        self.prepare(tree, batch.rows);
        let words = self.words;
        for (w, seen) in batch.seen().iter().enumerate() {
            for (position, mask) in tree.positions.iter().zip(self.layers[0].mask.chunks_exact_mut(words)) {
                let inputs = position.inputs.iter().filter(|input| **input != OUTSIDE);
                mask[w] = inputs.fold(0, |any, &input| any | seen[input as usize]);
            }
        }
        for l in 0..=tree.levels.len() {
            if l > 0 {
                let (below, above) = self.layers.split_at_mut(l);
                for (p, children) in tree.levels[l - 1].children.iter().enumerate() {
                    for w in 0..words {
                        let masks = children.iter().map(|&j| below[l - 1].mask[j as usize * words + w]);
                        above[0].mask[p * words + w] = masks.fold(0, |any, mask| any | mask);
                    }
                }
            }
            let drops = dropped.get(l).map_or(&[][..], Vec::as_slice);
            self.layers[l].mask.iter_mut().zip(drops).for_each(|(mask, drop)| *mask &= !drop);
        }
        for l in (1..=tree.levels.len()).rev() {
            let (below, above) = self.layers.split_at_mut(l);
            for (p, children) in tree.levels[l - 1].children.iter().enumerate() {
                for (w, &j) in (0..words).flat_map(|w| children.iter().map(move |j| (w, j))) {
                    below[l - 1].mask[j as usize * words + w] &= above[0].mask[p * words + w];
                }
            }
        }
        self.number(tree);
    }

    fn prepare(&mut self, tree: &Tree, rows: usize) {
        self.words = words(rows);
        self.layers.resize_with(tree.levels.len() + 1, Layer::default);
        for (l, layer) in self.layers.iter_mut().enumerate() {
            layer.mask.clear();
            layer.mask.resize(tree.nodes(l) * self.words, 0);
            layer.first.resize(tree.nodes(l) * self.words, 0);
        }
    }

    fn number(&mut self, tree: &Tree) {
        let top = tree.levels.len();
        for (l, layer) in self.layers.iter_mut().enumerate() {
            layer.tasks.clear();
            layer.order.clear();
            let mut next = 0;
            let single = [vec![0]];
            let parents = if l == top { &single[..] } else { &tree.levels[l].children };
            for children in parents {
                for w in 0..self.words {
                    layer.tasks.push(next);
                    for &j in children {
                        let key = j as usize * self.words + w;
                        layer.first[key] = next;
                        layer.order.push(key);
                        next += layer.mask[key].count_ones() as usize;
                    }
                }
            }
            layer.tasks.push(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::{ImageSpec, LevelSpec, Sharing};

    #[test]
    fn rows_follow_what_is_observed_and_dropped() {
        let spec = ImageSpec {
            levels: vec![LevelSpec::square(2, 3, Sharing::Own), LevelSpec::all(4, Sharing::Own)],
            ..ImageSpec::new(4, 4, 1, (1, 1), 2)
        };
        let structure = Structure::image(&spec, 2).unwrap();
        let mut batch = Batch::default();
        batch.clear(&structure, 70);
        batch.row_mut(0)[0] = 1.0; // sample 0 sees the first pixel, sample 69 the last
        batch.row_mut(69)[15] = 1.0;
        let mut rows = Rows::default();
        rows.needed(&structure.trees[0], &batch, &[]);
        assert_eq!(rows.layers.iter().map(Layer::rows).collect::<Vec<_>>(), [2, 2, 2]);
        assert_eq!(rows.layers[2].mask, [1, 1 << 5]);
        let mut drop = vec![0; 4 * 2];
        drop[0] = 1; // the first node of level 1, for sample 0
        rows.needed(&structure.trees[0], &batch, &[vec![], drop]);
        assert_eq!(rows.layers.iter().map(Layer::rows).collect::<Vec<_>>(), [1, 1, 1]);
        rows.dense(&structure.trees[0], 70);
        assert_eq!(rows.layers.iter().map(Layer::rows).collect::<Vec<_>>(), [16 * 70, 4 * 70, 70]);
    }

    #[test]
    fn bits_of_a_word() {
        assert_eq!(bits(0b1010_0001).collect::<Vec<_>>(), [0, 5, 7]);
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(u64::MAX).count(), 64);
    }
}
