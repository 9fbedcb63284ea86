//! What one neuron stands for, and how often it is used when nothing is observed:
//!
//! ```text
//! P(root = a)   = Σ_y P(y) W_top[y,a]
//! P(child = a)  = Σ_c P(parent = c) W[c,a]
//! ```

use crate::circuit::log_space::{Join, LogValues, descend};
use crate::error::{Error, Result};
use crate::queries::predictor::Predictor;
use crate::queries::sample::Evidence;
use crate::random::{Purpose, Stream};
use rayon::prelude::*;

/// One channel of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neuron {
    /// Which tree.
    pub tree: usize,
    /// 0 for the leaves, then one more for each level.
    pub layer: usize,
    /// Which node of the layer; a position in layer 0.
    pub node: usize,
    /// Which channel; a component in layer 0.
    pub channel: usize,
}

/// How a neuron is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// By samples of what is below it.
    Samples {
        /// How many.
        count: usize,
        /// Of the draws.
        seed: u64,
    },
    /// By the values in the most likely assignment of hidden variables and numbers below it.
    Mode,
}

impl Predictor {
    /// What one neuron stands for: samples, as (count, width), or the mode, as (1, width), of the numbers below it when
    /// it is in its state and nothing is observed. NaN for numbers that are not below it. The mode is that of the joint
    /// with the hidden variables below.
    pub fn explain(&mut self, neuron: Neuron, view: View) -> Result<Vec<f32>> {
        self.check_neuron(neuron)?;
        let Neuron {
            tree: t,
            layer,
            node,
            channel,
        } = neuron;
        let (width, this) = (self.model.structure.width(), &*self);
        let tree = &this.model.structure.trees[t];
        let View::Samples { count, seed } = view else {
            let mut row = vec![f32::NAN; width];
            let nothing = vec![f32::NAN; this.model.structure.frame_len()];
            let mut values = LogValues::default();
            let join = Join::Max {
                columns: &this.columns.of_place,
            };
            this.logs().climb(
                &this.model.structure,
                &this.leaves,
                &nothing,
                join,
                &mut values,
            );
            this.follow_mode(&values, t, (layer, node, channel), &mut row);
            return Ok(row);
        };
        let mut rows = vec![f32::NAN; count * width];
        rows.par_chunks_mut(width)
            .enumerate()
            .for_each_init(Vec::new, |weights, (b, row)| {
                let mut stream = Stream::new(seed, Purpose::Sampling, 0, b as u32);
                let mut choose = |l, j, c| {
                    this.weigh(Evidence::Nothing, (t, l, j, c), weights);
                    stream.pick(weights.iter().copied())
                };
                let states = descend(tree, (layer, node, channel), &mut choose);
                this.fill_holes(t, &states, row, |table, s, d| table.draw(s, d, &mut stream));
            });
        Ok(rows)
    }

    /// How often each channel of a node is used when nothing is observed: P(node = a), as (channels). Layer 0 are the
    /// leaves, as in [`Neuron`].
    pub fn channel_usage(&self, tree: usize, layer: usize, node: usize) -> Result<Vec<f64>> {
        let channel = 0;
        self.check_neuron(Neuron {
            tree,
            layer,
            node,
            channel,
        })?;
        Ok(self.usage(tree, layer, node))
    }

    fn usage(&self, t: usize, layer: usize, node: usize) -> Vec<f64> {
        let model = &self.model;
        let tree = &model.structure.trees[t];
        let Some(above) = tree.levels.get(layer) else {
            let prior: Vec<f64> = model.log_prior.iter().map(|log| log.exp()).collect();
            let trees_before = &model.structure.trees[..t];
            let first: usize = trees_before.iter().map(|tree| tree.top_channels()).sum();
            let tops = mixed(&prior, |y| model.weights.classes.log_row(0, y));
            return tops[first..first + tree.top_channels()].to_vec();
        };
        let is_parent = |children: &Vec<u32>| children.contains(&(node as u32));
        let parent = above.children.iter().position(is_parent).unwrap_or(0);
        let matrix = above.weight_of[node] as usize;
        let mixing = &model.weights.trees[t].levels[layer];
        mixed(&self.usage(t, layer + 1, parent), |c| {
            mixing.log_row(matrix, c)
        })
    }

    fn check_neuron(&self, neuron: Neuron) -> Result<()> {
        let below = |what: &str, got: usize, count: usize| match got < count {
            true => Ok(()),
            false => Err(Error::shape(
                format!("neuron's {what}"),
                format!("a number from 0 to {}", count - 1),
                got,
            )),
        };
        below("tree", neuron.tree, self.model.structure.trees.len())?;
        let tree = &self.model.structure.trees[neuron.tree];
        below("layer", neuron.layer, tree.levels.len() + 1)?;
        below("node", neuron.node, tree.nodes(neuron.layer))?;
        below("channel", neuron.channel, tree.channels(neuron.layer))
    }
}

/// Σ_c P(c) W[c,a] for every channel a.
fn mixed(parents: &[f64], log_row: impl Fn(usize) -> Vec<f64>) -> Vec<f64> {
    let mut sums = Vec::new();
    for (c, p) in parents.iter().enumerate() {
        let row = log_row(c);
        sums.resize(row.len(), 0.0);
        for (sum, log) in sums.iter_mut().zip(row) {
            *sum += p * log.exp();
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::structure::{Kind, Structure};

    #[test]
    fn usage_is_what_responsibilities_say_of_nothing() {
        let groups: Vec<Vec<u32>> = (0..4).map(|column| vec![column]).collect();
        let structure = Structure::columns(&[Kind::Gaussian; 4], &groups, 2, 2, &[3], 2).unwrap();
        let mut predictor = Predictor::new(Model::random(structure, 1.0, 1));
        let expected = predictor.responsibilities(&[f32::NAN; 4], None).unwrap();
        for node in 0..4 {
            let usage = predictor.channel_usage(0, 0, node).unwrap();
            let same = |(d, p): (usize, &f64)| {
                (p - f64::from(expected[0][node * usage.len() + d])).abs() < 1e-5
            };
            assert!(usage.iter().enumerate().all(same), "{node}");
        }
        for (layer, nodes) in [(1, 2), (2, 1)] {
            for node in 0..nodes {
                let usage = predictor.channel_usage(0, layer, node).unwrap();
                assert!((usage.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{usage:?}");
            }
        }
        assert!(predictor.channel_usage(0, 1, 2).is_err());
    }
}
