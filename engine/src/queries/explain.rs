//! What one neuron stands for.

use crate::circuit::log_space::{Join, LogValues, trace_states};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
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
    pub fn explain(&mut self, neuron: Neuron, view: View) -> Result<Matrix<f32>> {
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
            this.logs()
                .forward(&this.model.structure, &nothing, join, &mut values);
            this.follow_mode(&values, t, (layer, node, channel), &mut row);
            return Ok(Matrix::new(row, width));
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
                let states = trace_states(tree, (layer, node, channel), &mut choose);
                this.fill_holes(t, &states, row, |table, s, d| {
                    table.sample(s, d, &mut stream)
                });
            });
        Ok(Matrix::new(rows, width))
    }

    fn check_neuron(&self, neuron: Neuron) -> Result<()> {
        let below = |what: &str, got: usize, count: usize| {
            let what = format!("neuron's {what}");
            let expected = format!("a number from 0 to {}", count - 1);
            let wrong = || Error::shape(what, expected, got);
            (got < count).then_some(()).ok_or_else(wrong)
        };
        below("tree", neuron.tree, self.model.structure.trees.len())?;
        let tree = &self.model.structure.trees[neuron.tree];
        below("layer", neuron.layer, tree.levels.len() + 1)?;
        below("node", neuron.node, tree.nodes(neuron.layer))?;
        below("channel", neuron.channel, tree.channels(neuron.layer))
    }
}
