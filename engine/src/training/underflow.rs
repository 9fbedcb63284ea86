//! Samples of a training step that underflow: their scores and flows are computed again in f64 log space.

use crate::circuit::log_flows::LogFlows;
use crate::circuit::log_space::{LogCircuit, LogValues};
use crate::layers::leaf_statistics::Statistics;
use crate::layers::mixing::Mixing;
use crate::layers::weights::Prepared;
use crate::model::Model;
use crate::rows::active_nodes::Dropped;
use crate::rows::batch::{Batch, CHUNK, words};
use crate::structure::Level;
use crate::training::loss::{Loss, Target, loss_and_gradients};
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

impl Given<'_> {
    /// Whether training sums a node out for sample b.
    fn is_dropped(&self, b: usize, t: usize, l: usize, node: usize) -> bool {
        let place = node * words(self.batch.rows) + b / CHUNK;
        let mask = self.dropped[t].get(l).and_then(|mask| mask.get(place));
        mask.is_some_and(|mask| mask >> (b % CHUNK) & 1 == 1)
    }

    /// The forward pass of sample b in log space.
    fn log_forward(&self, circuit: &LogCircuit, b: usize) -> LogValues {
        let s = &self.model.structure;
        let mut values = LogValues::default();
        let is_dropped = |t, l, node| self.is_dropped(b, t, l, node);
        circuit.forward_dropping(s, self.batch.row(b), &is_dropped, &mut values);
        values
    }
}

/// Flows of samples that need a recheck, in f64 log space. Corrects their scores, and with them the loss and all output
/// gradients; those of the rechecked samples become zero, so that the fast backward pass leaves them out.
pub(crate) fn recompute(
    given: &Given<'_>,
    samples: &[usize],
    scores: &[f64],
    output_gradients: &mut Vec<f32>,
) -> (Loss, Vec<(usize, LogFlows)>) {
    let s = &given.model.structure;
    let k = s.classes;
    let circuit = LogCircuit::new(s, &given.model.weights);
    let forward = |&b: &usize| given.log_forward(&circuit, b);
    let passes: Vec<LogValues> = samples.par_iter().map(forward).collect();
    let mut scores = scores.to_vec();
    for (&b, values) in samples.iter().zip(&passes) {
        scores[b * k..(b + 1) * k].copy_from_slice(&circuit.scores(s, values));
    }
    let loss = loss_and_gradients(
        &scores,
        &given.model.log_prior,
        given.labels,
        given.weights,
        given.target,
        output_gradients,
    );
    let flows = |(&b, values): (&usize, &LogValues)| {
        let own = output_gradients[b * k..(b + 1) * k].iter();
        let own: Vec<f64> = own.map(|&gradient| gradient.into()).collect();
        (b, circuit.flows(s, values, &own))
    };
    let flows = samples.par_iter().zip(&passes).map(flows).collect();
    for b in samples {
        output_gradients[b * k..(b + 1) * k].fill(0.0);
    }
    (loss, flows)
}

/// Pair flows of the rechecked samples, in panels; empty where there are none.
pub(crate) struct Counts {
    levels: Vec<Vec<Vec<f32>>>, // by tree, level
    pub classes: Vec<f32>,
}

impl Counts {
    pub fn new(model: &Model, exact: &[(usize, LogFlows)]) -> Self {
        let zeros = |mixing: &Mixing| match exact {
            [] => Vec::new(),
            _ => vec![0.0; mixing.logits.len()],
        };
        let trees = model.weights.trees.iter();
        let mut counts = Self {
            levels: trees
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

    fn add(&mut self, model: &Model, flows: &LogFlows) {
        for (t, tree) in model.structure.trees.iter().enumerate() {
            for (l, level) in tree.levels.iter().enumerate() {
                let mixing = &model.weights.trees[t].levels[l];
                add_pairs(level, mixing, &flows.pairs[t][l], &mut self.levels[t][l]);
            }
        }
        let classes = &model.weights.classes;
        for (i, &flow) in flows.classes.iter().enumerate() {
            self.classes[classes.place(0, i / classes.columns, i % classes.columns)] += flow as f32;
        }
    }
}

/// Adds pairs (children, A, C) to the counts of one level.
fn add_pairs(level: &Level, mixing: &Mixing, pairs: &[f64], counts: &mut [f32]) {
    let children = pairs.chunks_exact(mixing.columns * mixing.rows);
    for (pairs, &matrix) in children.zip(&level.weight_of) {
        for (i, &pair) in pairs.iter().enumerate() {
            let (a, c) = (i / mixing.rows, i % mixing.rows);
            counts[mixing.place(matrix as usize, c, a)] += pair as f32;
        }
    }
}

/// Adds the leaf flows of the rechecked samples.
pub(crate) fn add_leaf_flows(
    model: &Model,
    prepared: &Prepared,
    batch: &Batch,
    exact: &[(usize, LogFlows)],
    sums: &mut [Vec<Statistics>],
) {
    for (b, flows) in exact {
        for (t, tree) in model.structure.trees.iter().enumerate() {
            let flows = flows.leaves[t].chunks_exact(tree.components);
            for (position, flow) in tree.positions.iter().zip(flows) {
                let f = position.family as usize;
                let table = &prepared.leaves[t][f];
                let flow: Vec<f32> = flow.iter().map(|&flow| flow as f32).collect();
                sums[t][f].add(table, &position.inputs, batch.row(*b), &flow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::log_space::Join;
    use crate::structure::{Kind, Sharing, Structure};

    const CLASSES: usize = 3;

    /// Only rechecked samples lose their output gradients, and a wrong score of theirs does not matter.
    #[test]
    fn the_other_samples_keep_their_gradients() {
        let table = Structure::table(&[Kind::Gaussian; 2])
            .components(2)
            .channels([2]);
        let structure = table.classes(CLASSES).build().unwrap();
        let model = Model::random(structure, 1.0, 5);
        let batch = Batch::of_rows(2, &[0.5, -1.0, 2.0, 0.1, -0.3, 1.0, 0.7, 0.2]);
        let given = Given {
            model: &model,
            batch: &batch,
            labels: &[0, 1, 2, 0],
            weights: &[1.0; 4],
            dropped: &[Vec::new()],
            target: Target::Objective(0.1),
        };
        let circuit = LogCircuit::new(&model.structure, &model.weights);
        let score = |b| circuit.scores(&model.structure, &given.log_forward(&circuit, b));
        let right: Vec<f64> = (0..4).flat_map(score).collect();
        let mut wanted = Vec::new();
        let loss_of = |scores: &[f64], gradients: &mut Vec<f32>| {
            let (prior, target) = (&model.log_prior, given.target);
            loss_and_gradients(
                scores,
                prior,
                given.labels,
                given.weights,
                target,
                gradients,
            )
        };
        let loss = loss_of(&right, &mut wanted);
        assert!(
            wanted[..4 * CLASSES]
                .iter()
                .all(|&gradient| gradient != 0.0)
        );
        for b in 0..4 {
            let (mut lost, mut gradients) = (right.clone(), wanted.clone());
            lost[b * CLASSES..][..CLASSES].fill(f64::NEG_INFINITY);
            let (again, flows) = recompute(&given, &[b], &lost, &mut gradients);
            assert_eq!(again.discriminative, loss.discriminative);
            assert_eq!((flows.len(), flows[0].0), (1, b));
            let mut expected = wanted.clone();
            expected[b * CLASSES..][..CLASSES].fill(0.0);
            assert_eq!(gradients, expected, "sample {b}");
        }
    }

    /// Matrices that are not square, shared by two children each.
    #[test]
    fn pairs_are_counted_at_their_place() {
        let sequence = Structure::sequence(8).components(3).classes(2);
        let sequence = sequence
            .level(2, 5, Sharing::Shared)
            .level(4, 7, Sharing::Own);
        let structure = sequence.build().unwrap();
        let model = Model::random(structure, 1.0, 5);
        for (l, mixing) in model.weights.trees[0].levels.iter().enumerate() {
            let level = &model.structure.trees[0].levels[l];
            let (a, c) = (mixing.columns, mixing.rows);
            let pairs: Vec<f64> = (0..level.weight_of.len() * a * c)
                .map(|i| i as f64)
                .collect();
            let mut counts = vec![1.0; mixing.logits.len()];
            add_pairs(level, mixing, &pairs, &mut counts);
            let mut expected = vec![1.0; counts.len()];
            for (j, &matrix) in level.weight_of.iter().enumerate() {
                for (from, to) in (0..a).flat_map(|from| (0..c).map(move |to| (from, to))) {
                    let pair = pairs[(j * a + from) * c + to] as f32;
                    expected[mixing.place(matrix as usize, to, from)] += pair;
                }
            }
            assert_eq!(counts, expected, "level {l}");
        }
    }

    #[test]
    fn classes_are_counted_at_their_place() {
        let table = Structure::table(&[Kind::Gaussian; 2]).components(2);
        let structure = table.channels([5]).classes(CLASSES).build().unwrap();
        let model = Model::random(structure, 1.0, 5);
        let circuit = LogCircuit::new(&model.structure, &model.weights);
        let mut values = LogValues::default();
        circuit.forward(&model.structure, &[0.5, -1.0], Join::Sum, &mut values);
        let flows = circuit.flows(&model.structure, &values, &[0.2, 0.5, 0.3]);
        let counts = Counts::new(&model, &[(0, flows.clone()), (1, flows.clone())]);
        for (y, a) in (0..CLASSES).flat_map(|y| (0..5).map(move |a| (y, a))) {
            let flow = 2.0 * flows.classes[y * 5 + a] as f32;
            assert!(flow > 0.0);
            assert_eq!(counts.classes[model.weights.classes.place(0, y, a)], flow);
        }
    }

    #[test]
    fn what_is_dropped_is_read_by_sample_and_node() {
        let table = Structure::table(&[Kind::Gaussian; 2]).components(2);
        let model = Model::random(table.channels([2]).build().unwrap(), 1.0, 5);
        let batch = Batch::of_rows(2, &[0.5; 2 * 150]);
        let masks: Dropped = vec![0, 1 << 7, 0, 1 << 63, 0, 1 << 2];
        let dropped = [vec![masks]];
        let given = Given {
            model: &model,
            batch: &batch,
            labels: &[],
            weights: &[],
            dropped: &dropped,
            target: Target::Likelihood,
        };
        let both = (0..2).flat_map(|node| (0..150).map(move |b| (node, b)));
        let found: Vec<_> = both
            .filter(|&(node, b)| given.is_dropped(b, 0, 0, node))
            .collect();
        assert_eq!(found, [(0, 64 + 7), (1, 63), (1, 128 + 2)]);
        assert!(!given.is_dropped(71, 0, 1, 0), "no layer above has any");
    }
}
