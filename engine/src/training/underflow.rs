//! The guard in training: samples that underflow may have spoilt get their score and derivative from the reference.

use crate::layers::leaf_statistics::Statistics;
use crate::layers::mixing::Mixing;
use crate::layers::weights::Prepared;
use crate::model::Model;
use crate::reference::{self, LogWeights};
use crate::rows::active_nodes::Dropped;
use crate::rows::batch::{Batch, CHUNK, words};
use crate::training::loss::{Loss, Target, loss_and_seeds};
use rayon::prelude::*;

/// A batch as the trainer has it.
pub(crate) struct Given<'a> {
    pub model: &'a Model,
    pub batch: &'a Batch,
    pub labels: &'a [i64],
    pub weights: &'a [f32],
    pub dropped: &'a [Vec<Dropped>],
    pub target: Target,
}

/// Flows of the doubtful samples in f64 log space. Puts their scores right, and with them loss and seeds; the seeds
/// of the doubtful become zero, so that the fast way down leaves them out.
pub(crate) fn recompute(
    given: &Given<'_>,
    doubtful: &[usize],
    scores: &[f64],
    seeds: &mut Vec<f32>,
) -> (Loss, Vec<(usize, reference::Flows)>) {
    let Given {
        model,
        batch,
        labels,
        weights,
        dropped,
        target,
    } = *given;
    let structure = &model.structure;
    let k = structure.classes;
    let logs = LogWeights::new(structure, &model.weights);
    let word_count = words(batch.rows);
    let upward = |&b: &usize| {
        reference::upward(
            structure,
            &model.weights,
            &logs,
            batch.row(b),
            &is_dropped(dropped, word_count, b),
        )
    };
    let passes: Vec<reference::Upward> = doubtful.par_iter().map(upward).collect();
    let mut scores = scores.to_vec();
    for (&b, pass) in doubtful.iter().zip(&passes) {
        scores[b * k..(b + 1) * k].copy_from_slice(&pass.log_likelihood);
    }
    let loss = loss_and_seeds(&scores, &model.log_prior, labels, weights, target, seeds);
    let exact = doubtful.par_iter().zip(&passes).map(|(&b, pass)| {
        let seeds: Vec<f64> = seeds[b * k..(b + 1) * k]
            .iter()
            .map(|&seed| seed.into())
            .collect();
        (
            b,
            reference::flows(
                structure,
                &logs,
                pass,
                &seeds,
                &is_dropped(dropped, word_count, b),
            ),
        )
    });
    let exact = exact.collect();
    doubtful
        .iter()
        .for_each(|&b| seeds[b * k..(b + 1) * k].fill(0.0));
    (loss, exact)
}

fn is_dropped(
    dropped: &[Vec<Dropped>],
    word_count: usize,
    b: usize,
) -> impl Fn(usize, usize, usize) -> bool {
    move |t, l, node| {
        let mask = dropped[t]
            .get(l)
            .and_then(|mask| mask.get(node * word_count + b / CHUNK));
        mask.is_some_and(|mask| mask >> (b % CHUNK) & 1 == 1)
    }
}

/// Pair flows of the samples that the guard computed again, in panels; empty where there are none.
pub(crate) struct Counts {
    levels: Vec<Vec<Vec<f32>>>, // by tree, level
    pub classes: Vec<f32>,
}

impl Counts {
    pub fn new(model: &Model, exact: &[(usize, reference::Flows)]) -> Self {
        let zeros = |mixing: &Mixing| {
            vec![
                0.0;
                if exact.is_empty() {
                    0
                } else {
                    mixing.logits.len()
                }
            ]
        };
        let mut counts = Self {
            levels: model
                .weights
                .trees
                .iter()
                .map(|t| t.levels.iter().map(zeros).collect())
                .collect(),
            classes: zeros(&model.weights.classes),
        };
        exact.iter().for_each(|(_, flows)| counts.add(model, flows));
        counts
    }

    pub fn level(&self, t: usize, l: usize) -> &[f32] {
        &self.levels[t][l]
    }

    fn add(&mut self, model: &Model, flows: &reference::Flows) {
        for (t, tree) in model.structure.trees.iter().enumerate() {
            for (l, level) in tree.levels.iter().enumerate() {
                let mixing = &model.weights.trees[t].levels[l];
                for (j, pairs) in flows.pairs[t][l].iter().enumerate() {
                    for (i, &pair) in pairs.iter().enumerate() {
                        let (c, a) = (i / mixing.columns, i % mixing.columns);
                        self.levels[t][l][mixing.place(level.weight_of[j] as usize, c, a)] +=
                            pair as f32;
                    }
                }
            }
        }
        let classes = &model.weights.classes;
        for (i, &flow) in flows.classes.iter().enumerate() {
            self.classes[classes.place(0, i / classes.columns, i % classes.columns)] += flow as f32;
        }
    }
}

/// Adds the leaf flows of the samples computed again.
pub(crate) fn add_leaf_flows(
    model: &Model,
    prepared: &Prepared,
    batch: &Batch,
    exact: &[(usize, reference::Flows)],
    sums: &mut [Vec<Statistics>],
) {
    for (b, flows) in exact {
        for (t, tree) in model.structure.trees.iter().enumerate() {
            for (position, flow) in tree.positions.iter().zip(&flows.leaves[t]) {
                let f = position.family as usize;
                sums[t][f].add(
                    &prepared.tables[t][f],
                    &position.inputs,
                    batch.row(*b),
                    |d| flow[d] as f32,
                );
            }
        }
    }
}
