//! One step of a run on the CPU, and validation.
//!
//! A step loads rows with random holes, goes forward, takes the objective and its gradients at the
//! outputs, goes backward and moves weights and leaves. Samples that underflow may have spoilt are
//! computed again in between.

use crate::circuit::activations::Keep;
use crate::circuit::log_flows::LogFlows;
use crate::circuit::underflow::UnderflowFallback;
use crate::error::{Error, Result};
use crate::layers::leaf_kernel::LeafKernel;
use crate::layers::leaf_statistics::Statistics;
use crate::structure::{ClassRows, Position, Tree};
use crate::training::backward_and_step::Learned;
use crate::training::data::Data;
use crate::training::leaf_update::update_family;
use crate::training::loss::{Loss, Target, loss_and_gradients};
use crate::training::optimizer::{Rule, Step, update_mixing};
use crate::training::settings::Settings;
use crate::training::step_randomness::{BatchPart, drop_nodes, load_rows, pick};
use crate::training::trainer::{Best, Measure, Trainer};
use crate::training::underflow::{Counts, Given, add_leaf_flows, recompute};
use std::borrow::Cow;

impl Trainer<'_> {
    pub(crate) fn step(&mut self, data: &Data<'_>) -> Result<Loss> {
        let picked = self.picked(data);
        let part = BatchPart {
            step: self.step,
            first: 0,
            rows: picked.len(),
        };
        let (loss, exact) = self.scored(data, &picked, part)?;
        let (step, to_leaves) = (self.rule(), self.settings.leaf_rate > 0.0);
        self.backward(&step, &exact, to_leaves);
        if to_leaves {
            let sums = self.leaf_sums(&exact);
            self.move_leaves(&sums);
        }
        self.step += 1;
        Ok(loss)
    }

    /// Loads rows, goes forward and takes the objective and its gradients at the outputs, with the flows of samples
    /// that had to be computed again.
    pub(super) fn scored(
        &mut self,
        data: &Data<'_>,
        picked: &[usize],
        part: BatchPart,
    ) -> Result<(Loss, Vec<(usize, LogFlows)>)> {
        self.load(data, picked, part);
        let structure = &self.model.structure;
        let dropped = drop_nodes(structure, &self.settings, part);
        self.activations.forward(
            structure,
            &self.prepared,
            &self.batch,
            &dropped,
            Keep::Everything,
        );
        let target = self.optimised();
        let scores = self.activations.log_likelihood();
        let mut loss = loss_and_gradients(
            scores,
            &self.model.log_prior,
            &self.labels,
            &self.weights,
            target,
            &mut self.output_gradients,
        );
        let recheck = self
            .activations
            .gradients_to_recheck(structure.classes, &self.output_gradients);
        let mut exact = Vec::new();
        if !recheck.is_empty() {
            let (model, batch, dropped) = (&self.model(), &self.batch, &dropped[..]);
            let given = Given {
                model,
                batch,
                labels: &self.labels,
                weights: &self.weights,
                dropped,
                target,
            };
            (loss, exact) = recompute(
                &given,
                &recheck,
                self.activations.log_likelihood(),
                &mut self.output_gradients,
            );
            self.recomputed += recheck.len();
        }
        let objective = loss.objective(self.settings.generative);
        if !objective.is_finite() {
            return Err(Error::Diverged {
                step: self.step,
                loss: objective,
            });
        }
        Ok((loss, exact))
    }

    /// What the settings say is optimised.
    fn optimised(&self) -> Target {
        let beta = self.settings.generative;
        match (self.settings.rule, self.settings.target) {
            (_, Some(_)) => Target::Column(beta),
            (Rule::Em, None) => Target::Likelihood,
            _ => Target::Objective(beta),
        }
    }

    /// Scores a set without touching the training, and keeps the model if it is the best so far.
    pub(crate) fn validate(&mut self, set: &Data<'_>) -> Loss {
        const ROWS: usize = 256;
        let width = self.model.structure.width();
        let weights = self.current();
        let guard = UnderflowFallback::default();
        let mut total = Loss::default();
        for (index, rows) in set.values.chunks(ROWS * width).enumerate() {
            let count = rows.len() / width;
            let labels = (0..count).map(|b| set.label(index * ROWS + b));
            let (rows, labels) = self.validated(rows, labels.collect());
            self.model.fill(&rows, (0, 0), &mut self.batch);
            self.activations.forward(
                &self.model.structure,
                &self.prepared,
                &self.batch,
                &[],
                Keep::Scores,
            );
            self.activations
                .recheck_scores(&self.model.structure, &weights, &guard, &self.batch);
            let row_weights = set
                .weights
                .get(index * ROWS..index * ROWS + count)
                .unwrap_or_default();
            let scores = self.activations.log_likelihood();
            let beta = self.settings.generative;
            let target = match self.settings.target {
                Some(_) => Target::Column(beta),
                None => Target::Objective(beta),
            };
            total.add(&loss_and_gradients(
                scores,
                &self.model.log_prior,
                &labels,
                row_weights,
                target,
                &mut self.output_gradients,
            ));
        }
        let by_label = -total.discriminative / total.weight;
        let score = match self.best_by {
            _ if self.settings.target.is_some() => by_label,
            _ if self.model.structure.classes == 1 => -total.generative / total.weight,
            Measure::Accuracy => total.accuracy(),
            Measure::LogLoss => by_label,
        };
        if self.best.as_ref().is_none_or(|best| score > best.score) {
            self.best = Some(Best {
                step: self.step,
                score,
                weights: self.current(),
            });
        }
        total
    }

    /// Rows and labels as the loss takes them: in pairs, where a column is to be predicted.
    fn validated<'r>(&self, rows: &'r [f32], labels: Vec<i64>) -> (Cow<'r, [f32]>, Vec<i64>) {
        let Some(target) = self.settings.target else {
            return (Cow::Borrowed(rows), labels);
        };
        let width = self.model.structure.width();
        let mut pairs = [rows, rows].concat();
        let alone = pairs[rows.len()..].iter_mut().skip(target).step_by(width);
        alone.for_each(|y| *y = f32::NAN);
        let known = known_numbers(rows.chunks(width).map(|row| row[target]));
        (Cow::Owned(pairs), known)
    }

    /// The rows of this step, shuffled.
    fn picked(&mut self, data: &Data<'_>) -> Vec<usize> {
        let (size, seed) = (self.settings.batch, self.settings.seed);
        let rows = data.values.len() / self.model.structure.width();
        (0..size)
            .map(|b| pick(&mut self.order, seed, self.step * size + b, rows))
            .collect()
    }

    /// Rows into the batch: shifted, with random holes.
    fn load(&mut self, data: &Data<'_>, picked: &[usize], part: BatchPart) {
        let structure = &self.model.structure;
        let width = structure.width();
        self.labels.clear();
        self.labels
            .extend(picked.iter().map(|&row| data.label(row)));
        self.weights.clear();
        self.weights
            .extend(picked.iter().filter_map(|&row| data.weights.get(row)));
        let mut rows_of_batch = picked.len();
        if let Some(target) = self.settings.target {
            let numbers = picked.iter().map(|&row| data.values[row * width + target]);
            self.labels = known_numbers(numbers);
            rows_of_batch *= 2;
        }
        self.batch.fit(structure, rows_of_batch);
        load_rows(
            &mut self.batch,
            structure,
            &self.placements,
            &self.settings,
            part,
            |b| &data.values[picked[b] * width..(picked[b] + 1) * width],
        );
    }

    /// Goes down, and moves each level as soon as its derivative is known, while that is still in the cache. Exact
    /// flows of recheck samples are added.
    pub(super) fn backward(&mut self, step: &Step, exact: &[(usize, LogFlows)], to_leaves: bool) {
        let counts = Counts::new(&self.model, exact);
        let s = &self.model.structure;
        self.activations
            .root_backward(s, &self.prepared, &self.output_gradients);
        if s.class_rows == ClassRows::Mixing {
            let classes = (
                &mut self.prepared.classes,
                &mut self.memory.classes,
                &counts.classes[..],
            );
            let activations = &self.activations;
            update_mixing(step, classes, 0, |scratch, step| {
                activations.class_gradient(scratch, s, step.panel.rows);
            });
        }
        for (t, tree) in s.trees.iter().enumerate() {
            for l in (1..=tree.levels.len()).rev() {
                let learned = Learned {
                    simplex: &mut self.prepared.levels[t][l - 1],
                    moments: &mut self.memory.levels[t][l - 1],
                    counts: counts.level(t, l - 1),
                };
                self.activations
                    .learn_level(t, l, tree, learned, step, to_leaves);
            }
        }
    }

    /// The learning rate of this step.
    fn rate(&self) -> f64 {
        let settings = &self.settings;
        settings.rate * settings.schedule.factor(self.step, settings.steps)
    }

    /// How this step moves the weights.
    pub(super) fn rule(&self) -> Step {
        let settings = &self.settings;
        Step::new(settings.rule, self.rate(), settings.penalty, self.step)
    }

    /// What the leaves learn from, by tree and family, after a backward pass to them.
    pub(super) fn leaf_sums(&self, exact: &[(usize, LogFlows)]) -> Vec<Vec<Statistics>> {
        let (s, prepared) = (&self.model.structure, &self.prepared);
        let mut sums = self.activations.leaf_statistics(s, prepared, &self.batch);
        add_leaf_flows(&self.model, prepared, &self.batch, exact, &mut sums);
        sums
    }

    pub(super) fn move_leaves(&mut self, sums: &[Vec<Statistics>]) {
        let rate = self.rate() * self.settings.leaf_rate;
        let step = Step::new(self.settings.rule, rate, 0.0, self.step);
        for (t, tree) in self.model.weights.trees.iter_mut().enumerate() {
            let of_target = target_family(&self.model.structure.trees[t], &self.settings);
            for (f, family) in tree.families.iter_mut().enumerate() {
                let floor = match (of_target == Some(f), self.settings.target_floor) {
                    (true, Some(floor)) => floor,
                    _ => self.settings.leaves.floor,
                };
                let moments = &mut self.memory.families[t][f];
                update_family(&step, family, moments, &sums[t][f], floor);
                self.prepared.leaves[t][f] = LeafKernel::new(family);
            }
        }
    }
}

/// The family that describes the column to predict, where there is one.
fn target_family(tree: &Tree, settings: &Settings) -> Option<usize> {
    let target = settings.target? as u32;
    let has_target = |position: &&Position| position.inputs.contains(&target);
    let position = tree.positions.iter().find(has_target)?;
    Some(position.family as usize)
}

/// The labels of pairs of rows: 0 where the number to predict is known, −1 where it is missing.
fn known_numbers(numbers: impl Iterator<Item = f32>) -> Vec<i64> {
    let known: Vec<i64> = numbers.map(|y| -i64::from(y.is_nan())).collect();
    known.repeat(2)
}
