//! What one neuron stands for, and how often it is used.

use crate::circuit::log_space::{Join, LogValues, NodeState, trace_states};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::queries::correlated::Filling;
use crate::queries::predictor::Predictor;
use crate::queries::sample::Evidence;
use crate::random::{Purpose, Stream};
use crate::structure::Tree;
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
    pub fn explain(&mut self, neuron: Neuron, view: View) -> Result<Matrix<f32>> {
        self.check_neuron(neuron)?;
        let Neuron {
            tree: t,
            layer,
            node,
            channel,
        } = neuron;
        let (width, this) = (self.model.structure.width(), &*self);
        let from = NodeState {
            layer,
            node,
            state: channel,
        };
        let View::Samples { count, seed } = view else {
            let mut row = vec![f32::NAN; width];
            let nothing = vec![f32::NAN; this.model.structure.frame_len()];
            let mut values = LogValues::default();
            let join = Join::Max {
                columns: &this.columns.of_place,
            };
            this.logs()
                .forward(&this.model.structure, &nothing, join, &mut values);
            this.follow_mode(&values, t, from, &mut row);
            return Ok(Matrix::new(row, width));
        };
        let mut rows = vec![f32::NAN; count * width];
        rows.par_chunks_mut(width)
            .enumerate()
            .for_each_init(Vec::new, |weights, (b, row)| {
                let mut stream = Stream::new(seed, Purpose::Sampling, 0, b as u32);
                this.sample_below(t, from, &mut stream, weights, row);
            });
        Ok(Matrix::new(rows, width))
    }

    /// A sample of what is below a node of tree t in one of its states; `weights` is scratch.
    fn sample_below(
        &self,
        t: usize,
        from: NodeState,
        stream: &mut Stream,
        weights: &mut Vec<f64>,
        row: &mut [f32],
    ) {
        let mut choose = |of| {
            self.weigh(Evidence::Nothing, t, of, weights);
            stream.pick(weights.iter().copied())
        };
        let states = trace_states(&self.model.structure.trees[t], from, &mut choose);
        self.fill_holes(t, &states, row, Filling::Sample(stream));
    }

    /// How often each channel of a neuron's node is used when nothing is observed, whatever the neuron's own channel:
    ///
    /// ```text
    /// P(root = a)   = Σ_y P(y) W_top[y,a]
    /// P(child = a)  = Σ_c P(parent = c) W[c,a]
    /// ```
    ///
    /// Those of the top of one tree sum to that tree's share of the model.
    pub fn channel_usage(&self, neuron: Neuron) -> Result<Vec<f64>> {
        self.check_neuron(Neuron {
            channel: 0,
            ..neuron
        })?;
        Ok(self.usage(neuron.tree, neuron.layer, neuron.node))
    }

    fn usage(&self, t: usize, layer: usize, node: usize) -> Vec<f64> {
        let (trees, weights) = (&self.model.structure.trees, &self.model.weights);
        let tree = &trees[t];
        if layer == tree.levels.len() {
            let prior: Vec<f64> = self.model.log_prior.iter().map(|log| log.exp()).collect();
            let tops = mixed(&prior, |y| weights.classes.log_row(0, y));
            let before: usize = trees[..t].iter().map(Tree::top_channels).sum();
            return tops[before..][..tree.top_channels()].to_vec();
        }
        let above = &tree.levels[layer];
        let has = |children: &Vec<u32>| children.contains(&(node as u32));
        let parent = above.children.iter().position(has).unwrap_or(0);
        let matrix = above.weight_of[node] as usize;
        let mixing = &weights.trees[t].levels[layer];
        mixed(&self.usage(t, layer + 1, parent), |c| {
            mixing.log_row(matrix, c)
        })
    }

    fn check_neuron(&self, neuron: Neuron) -> Result<()> {
        check_below("tree", neuron.tree, self.model.structure.trees.len())?;
        let tree = &self.model.structure.trees[neuron.tree];
        let top = tree.levels.len();
        if neuron.layer > top {
            let expected = match top {
                0 => "0 (the leaves)".to_owned(),
                _ => format!("0 (the leaves) to {top} (the root)"),
            };
            return Err(Error::shape("level", expected, neuron.layer));
        }
        check_below("node", neuron.node, tree.nodes(neuron.layer))?;
        check_below("channel", neuron.channel, tree.channels(neuron.layer))
    }
}

fn check_below(what: &str, got: usize, count: usize) -> Result<()> {
    if got < count {
        return Ok(());
    }
    let expected = format!("a number from 0 to {}", count - 1);
    Err(Error::shape(what, expected, got))
}

/// Σ_c p(c) W[c,a] for all a, from the logarithms of the rows of W.
fn mixed(parents: &[f64], log_row: impl Fn(usize) -> Vec<f64>) -> Vec<f64> {
    let mut sums = Vec::new();
    for (c, p) in parents.iter().enumerate() {
        let row = log_row(c);
        sums.resize(row.len(), 0.0);
        let pairs = sums.iter_mut().zip(row);
        pairs.for_each(|(sum, log)| *sum += p * log.exp());
    }
    sums
}
