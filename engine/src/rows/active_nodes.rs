//! Which nodes each sample needs.
//!
//! A subtree that is wholly missing for a sample is exactly 1 in every channel, because rows of W sum to one; so is
//! a node that training sums out. Neither is computed: [`ActiveNodes`] lists, for every node, the samples that need it, and
//! the circuit keeps activations of those rows only.

use crate::rows::batch::{Batch, CHUNK, words};
use crate::structure::{OUTSIDE, Tree};

/// The rows of one layer: those (node, sample) pairs that are computed.
///
/// ActiveNodes are numbered by parent, chunk of samples, child, sample, so that all a task reads from its children is one
/// stretch of memory.
#[derive(Clone, Debug, Default)]
pub struct ActiveLayer {
    /// (nodes, words): which samples need the node.
    pub mask: Vec<u64>,
    /// (nodes, words): the first row of the node's samples of that word.
    pub first: Vec<usize>,
    /// (parents · words + 1): the first row of each task of the level above.
    pub tasks: Vec<usize>,
    /// (nodes · words): nodes' words in the order in which their rows are stored.
    pub order: Vec<usize>,
}

impl ActiveLayer {
    /// ActiveNodes of the layer.
    pub fn rows(&self) -> usize {
        *self.tasks.last().unwrap_or(&0)
    }

    /// ActiveNodes of one node and word.
    pub fn count(&self, key: usize) -> usize {
        self.mask[key].count_ones() as usize
    }
}

/// The rows of every layer of one tree for one batch.
#[derive(Clone, Debug, Default)]
pub struct ActiveNodes {
    /// Words of a mask.
    pub words: usize,
    /// ActiveLayer 0 to L.
    pub layers: Vec<ActiveLayer>,
}

/// Which nodes are summed out for one sample, as `is_dropped(tree, layer, node)`.
pub type IsDropped<'a> = &'a dyn Fn(usize, usize, usize) -> bool;

/// Which nodes of a layer are summed out for which samples: a mask of (nodes, words), or empty for none.
pub type Dropped = Vec<u64>;

impl ActiveNodes {
    /// Every node for every sample: what questions about missing inputs need.
    pub fn dense(&mut self, tree: &Tree, rows: usize) {
        self.prepare(tree, rows);
        for layer in &mut self.layers {
            for (key, mask) in layer.mask.iter_mut().enumerate() {
                let left = rows - (key % self.words) * CHUNK;
                *mask = if left >= CHUNK {
                    u64::MAX
                } else {
                    (1 << left) - 1
                };
            }
        }
        self.number(tree);
    }

    /// Only nodes with something observed below them, less those that training sums out (`dropped[l]` for layer l).
    pub fn needed(&mut self, tree: &Tree, batch: &Batch, dropped: &[Dropped]) {
        self.prepare(tree, batch.rows);
        let words = self.words;
        for (w, seen) in batch.seen().iter().enumerate() {
            for (position, mask) in tree
                .positions
                .iter()
                .zip(self.layers[0].mask.chunks_exact_mut(words))
            {
                let inputs = position.inputs.iter().filter(|input| **input != OUTSIDE);
                mask[w] = inputs.fold(0, |any, &input| any | seen[input as usize]);
            }
        }
        for l in 0..=tree.levels.len() {
            if l > 0 {
                let (below, above) = self.layers.split_at_mut(l);
                for (p, children) in tree.levels[l - 1].children.iter().enumerate() {
                    for w in 0..words {
                        let masks = children
                            .iter()
                            .map(|&j| below[l - 1].mask[j as usize * words + w]);
                        above[0].mask[p * words + w] = masks.fold(0, |any, mask| any | mask);
                    }
                }
            }
            let drops = dropped.get(l).map_or(&[][..], Vec::as_slice);
            self.layers[l]
                .mask
                .iter_mut()
                .zip(drops)
                .for_each(|(mask, drop)| *mask &= !drop);
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
        self.layers
            .resize_with(tree.levels.len() + 1, ActiveLayer::default);
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
            let parents = if l == top {
                &single[..]
            } else {
                &tree.levels[l].children
            };
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
            levels: vec![
                LevelSpec::square(2, 3, Sharing::Own),
                LevelSpec::all(4, Sharing::Own),
            ],
            patch: (1, 1),
            components: 2,
            ..ImageSpec::new(4, 4)
        };
        let structure = spec.structure(2).unwrap();
        let mut batch = Batch::default();
        batch.clear(&structure, 70);
        batch.row_mut(0)[0] = 1.0; // sample 0 sees the first pixel, sample 69 the last
        batch.row_mut(69)[15] = 1.0;
        let mut rows = ActiveNodes::default();
        rows.needed(&structure.trees[0], &batch, &[]);
        assert_eq!(
            rows.layers
                .iter()
                .map(ActiveLayer::rows)
                .collect::<Vec<_>>(),
            [2, 2, 2]
        );
        assert_eq!(rows.layers[2].mask, [1, 1 << 5]);
        let mut drop = vec![0; 4 * 2];
        drop[0] = 1; // the first node of level 1, for sample 0
        rows.needed(&structure.trees[0], &batch, &[vec![], drop]);
        assert_eq!(
            rows.layers
                .iter()
                .map(ActiveLayer::rows)
                .collect::<Vec<_>>(),
            [1, 1, 1]
        );
        rows.dense(&structure.trees[0], 70);
        assert_eq!(
            rows.layers
                .iter()
                .map(ActiveLayer::rows)
                .collect::<Vec<_>>(),
            [16 * 70, 4 * 70, 70]
        );
    }
}
