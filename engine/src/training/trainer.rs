//! Training: batches with random holes, the objective, a step; again. And validation, the best model, resuming.
//!
//! All randomness is a function of (seed, step, row of the batch), so a run that was stopped goes on to the same bits,
//! with any number of threads.

use crate::circuit::activations::{Activations, Keep};
use crate::circuit::log_flows::LogFlows;
use crate::circuit::underflow::UnderflowFallback;
use crate::error::{Error, Result};
use crate::layers::leaf_kernel::LeafKernel;
use crate::layers::leaf_statistics::Statistics;
use crate::layers::mixing::{Mixing, Simplex};
use crate::layers::weights::{Prepared, Weights};
use crate::model::{Column, Model};
use crate::rows::batch::Batch;
use crate::structure::ClassRows;
use crate::training::backward_and_step::Learned;
use crate::training::gpu::GpuTraining;
use crate::training::leaf_init::start_leaves;
use crate::training::leaf_update::update_family;
use crate::training::loss::{Loss, Target, loss_and_gradients};
use crate::training::optimizer::{Moments, Rule, Step, update_mixing};
use crate::training::step_randomness::{drop_nodes, load_rows, pick};
use crate::training::underflow::{Counts, Given, add_leaf_flows, recompute};

pub use crate::training::data::Data;
pub use crate::training::settings::{Prior, Settings};

/// What the caller hears after each step.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Steps done.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// The step's batch.
    pub loss: Loss,
    /// Its objective a row.
    pub objective: f64,
    /// The validation set, where it was scored after this step.
    pub validation: Option<Loss>,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proceed {
    /// The next step.
    Continue,
    /// Stop here; the trainer can be asked for a checkpoint or the model.
    Stop,
}

/// The best model on the validation set so far.
#[derive(Clone, Debug)]
pub struct Best {
    /// Steps done when it was scored.
    pub step: usize,
    /// Accuracy, or mean log P(X) where there is one class.
    pub score: f64,
    /// Its weights.
    pub weights: Weights,
}

/// Memory of the rule, in the shape of the weights.
#[derive(Clone)]
pub(crate) struct Memory {
    pub levels: Vec<Vec<Moments>>, // by tree, level
    pub classes: Moments,
    pub families: Vec<Vec<Vec<Moments>>>, // by tree, family, coordinate; empty where leaves are frozen
}

/// A training run.
pub struct Trainer {
    pub(crate) model: Model, // its mixing logits are those of the start; see `current`
    pub(crate) settings: Settings,
    pub(crate) step: usize,
    pub(crate) best: Option<Best>,
    pub(crate) memory: Memory,
    pub(crate) prepared: Prepared,
    activations: Activations,
    batch: Batch,
    labels: Vec<i64>,
    weights: Vec<f32>,
    seeds: Vec<f32>,
    pub(crate) placements: Vec<Vec<Column>>, // by shift, row-major
    pub(crate) order: Vec<(usize, Vec<u32>)>, // epoch and its permutation, the newest last
    pub(crate) recomputed: usize,
    pub(crate) gpu: Option<GpuTraining>, // where a GPU has the run, what it moves is here only after `sync_from_gpu`
    pub(crate) look_every: usize,
    pub(crate) max_gpu_bytes: usize,
}

impl Trainer {
    /// Starts leaves and weights. `model` gives structure, scaling and names; its weights are drawn anew.
    pub fn new(mut model: Model, settings: Settings, data: &Data<'_>) -> Result<Self> {
        settings.check()?;
        model.scaling.check(model.structure.width())?;
        data.check(&model)?;
        let counts = data.class_counts(model.structure.classes)?;
        model.weights = Weights::random(&model.structure, settings.spread, settings.seed);
        start_leaves(&mut model, data.values, &settings.leaves, settings.seed);
        let uniform = vec![1.0; model.structure.classes];
        model.set_prior(match &settings.prior {
            Prior::Labels if model.structure.classes > 1 => &counts,
            Prior::Given(prior) => prior,
            _ => &uniform,
        })?;
        Self::with_model(model, settings)
    }

    /// Goes on from a model as it is, with fresh memory: fine-tuning.
    pub fn with_model(model: Model, settings: Settings) -> Result<Self> {
        settings.check()?;
        let flat = model
            .structure
            .frame
            .is_none_or(|frame| frame.height == 1 || frame.width == 1);
        if settings.turns() && flat {
            let (expected, got) = (
                "0 where the data are not images",
                format!("{} and {}", settings.rotate, settings.stretch),
            );
            return Err(Error::Setting {
                name: "rotate and stretch",
                expected,
                got,
            });
        }
        let side = model
            .structure
            .frame
            .map_or(1, |frame| frame.height.max(frame.width));
        if settings.shift >= side {
            let expected = "less than the longer side of the image, and 0 where the data are none";
            return Err(Error::Setting {
                name: "shift",
                expected,
                got: settings.shift.to_string(),
            });
        }
        let moments = |mixing: &Mixing| Moments::new(mixing.logits.len());
        let of_family = |family: &crate::layers::leaf::Family| {
            Statistics::new(family)
                .gradient(family)
                .iter()
                .map(|free| Moments::new(free.len()))
                .collect::<Vec<_>>()
        };
        let trees = &model.weights.trees;
        let families =
            |t: &crate::layers::weights::TreeWeights| t.families.iter().map(of_family).collect();
        let memory = Memory {
            levels: trees
                .iter()
                .map(|t| t.levels.iter().map(moments).collect())
                .collect(),
            classes: moments(&model.weights.classes),
            families: if settings.leaf_rate > 0.0 {
                trees.iter().map(families).collect()
            } else {
                Vec::new()
            },
        };
        let reach = settings.shift as isize;
        let shifts =
            (-reach..=reach).flat_map(|down| (-reach..=reach).map(move |right| (down, right)));
        Ok(Self {
            prepared: Prepared::new(&model.weights),
            placements: shifts.map(|shift| model.columns(shift)).collect(),
            activations: Activations::new(),
            batch: Batch::default(),
            labels: Vec::new(),
            weights: Vec::new(),
            seeds: Vec::new(),
            order: Vec::new(),
            step: 0,
            best: None,
            recomputed: 0,
            gpu: None,
            look_every: usize::MAX,
            max_gpu_bytes: usize::MAX,
            model,
            settings,
            memory,
        })
    }

    /// Steps done.
    pub fn steps_done(&self) -> usize {
        self.step
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// On a GPU, `run` tells of many steps at once. Of each multiple of this it tells before it goes on, so that the
    /// trainer can be asked for a checkpoint then.
    pub fn look_every(&mut self, steps: usize) {
        self.look_every = steps.max(1);
    }

    /// Samples so far whose gradient the guard computed again in f64.
    pub fn recomputed(&self) -> usize {
        self.recomputed
    }

    /// The model as it stands; on a GPU, as it was when the last [`Trainer::run`] or [`Trainer::pull`] ended.
    pub fn model(&self) -> Model {
        Model {
            weights: self.current(),
            ..self.model.clone()
        }
    }

    /// The weights as they stand: training moves W, from which the logits follow.
    pub(crate) fn current(&self) -> Weights {
        with_simplexes(&self.model.weights, &self.prepared)
    }

    /// The best model on the validation set, or the last one where there was none.
    pub fn into_model(self) -> Model {
        match self.best {
            Some(best) => Model {
                weights: best.weights,
                ..self.model
            },
            None => self.model(),
        }
    }

    /// Trains to the last step, telling `heard` after each.
    pub fn run(
        &mut self,
        data: &Data<'_>,
        validation: Option<&Data<'_>>,
        heard: &mut dyn FnMut(&Self, &Progress) -> Proceed,
    ) -> Result<()> {
        data.check(&self.model)?;
        validation.map(|v| v.check(&self.model)).transpose()?;
        if self.gpu.is_some() {
            return self.run_on_gpu(data, validation, heard);
        }
        while self.step < self.settings.steps {
            let loss = self.advance(data)?;
            let due = self.step.is_multiple_of(self.settings.validate_every)
                || self.step == self.settings.steps;
            let judged = validation.filter(|_| due).map(|set| self.validate(set));
            let objective = loss.objective(self.settings.generative);
            let progress = Progress {
                step: self.step,
                steps: self.settings.steps,
                loss,
                objective,
                validation: judged,
            };
            if heard(self, &progress) == Proceed::Stop {
                break;
            }
        }
        Ok(())
    }

    /// One step on checked data.
    pub fn advance(&mut self, data: &Data<'_>) -> Result<Loss> {
        if self.gpu.is_some() {
            return self.advance_on_gpu(data);
        }
        // On a thread of the pool: from outside, every parallel part would wait for one to wake up.
        rayon::scope(|_| self.step(data))
    }

    fn step(&mut self, data: &Data<'_>) -> Result<Loss> {
        self.fill(data);
        let structure = &self.model.structure;
        let dropped = drop_nodes(structure, &self.settings, self.step);
        self.activations.forward(
            structure,
            &self.prepared,
            &self.batch,
            &dropped,
            Keep::Everything,
        );
        let target = match self.settings.rule {
            Rule::Em => Target::Likelihood,
            _ => Target::Objective(self.settings.generative),
        };
        let scores = self.activations.log_likelihood();
        let mut loss = loss_and_gradients(
            scores,
            &self.model.log_prior,
            &self.labels,
            &self.weights,
            target,
            &mut self.seeds,
        );
        let doubtful = self
            .activations
            .gradients_to_recheck(structure.classes, &self.seeds);
        let mut exact = Vec::new();
        if !doubtful.is_empty() {
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
                &doubtful,
                self.activations.log_likelihood(),
                &mut self.seeds,
            );
            self.recomputed += doubtful.len();
        }
        let objective = loss.objective(self.settings.generative);
        if !objective.is_finite() {
            return Err(Error::Diverged {
                step: self.step,
                loss: objective,
            });
        }
        self.descend(&exact);
        self.step += 1;
        Ok(loss)
    }

    /// Scores a set without touching the training, and keeps the model if it is the best so far.
    pub(crate) fn validate(&mut self, set: &Data<'_>) -> Loss {
        const ROWS: usize = 256;
        let width = self.model.structure.width();
        let weights = self.current();
        let guard = UnderflowFallback::default();
        let mut total = Loss::default();
        for (index, rows) in set.values.chunks(ROWS * width).enumerate() {
            self.model.fill(rows, (0, 0), &mut self.batch);
            let count = self.batch.rows;
            self.activations.forward(
                &self.model.structure,
                &self.prepared,
                &self.batch,
                &[],
                Keep::Scores,
            );
            self.activations
                .recheck_scores(&self.model.structure, &weights, &guard, &self.batch);
            let labels: Vec<i64> = (0..count).map(|b| set.label(index * ROWS + b)).collect();
            let row_weights = set
                .weights
                .get(index * ROWS..index * ROWS + count)
                .unwrap_or_default();
            let scores = self.activations.log_likelihood();
            let target = Target::Objective(self.settings.generative);
            total.add(&loss_and_gradients(
                scores,
                &self.model.log_prior,
                &labels,
                row_weights,
                target,
                &mut self.seeds,
            ));
        }
        let score = if self.model.structure.classes > 1 {
            total.accuracy()
        } else {
            -total.generative / total.weight
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

    /// The rows of this step: shuffled, shifted, with random holes.
    fn fill(&mut self, data: &Data<'_>) {
        let (size, seed, structure) = (
            self.settings.batch,
            self.settings.seed,
            &self.model.structure,
        );
        let width = structure.width();
        let rows = data.values.len() / width;
        let picked: Vec<usize> = (0..size)
            .map(|b| pick(&mut self.order, seed, self.step * size + b, rows))
            .collect();
        self.labels.clear();
        self.labels
            .extend(picked.iter().map(|&row| data.label(row)));
        self.weights.clear();
        self.weights
            .extend(picked.iter().filter_map(|&row| data.weights.get(row)));
        self.batch.fit(structure, size);
        load_rows(
            &mut self.batch,
            structure,
            &self.placements,
            &self.settings,
            self.step,
            |b| &data.values[picked[b] * width..(picked[b] + 1) * width],
        );
    }

    /// Goes down, and moves each level as soon as its derivative is known, while that is still in the cache. Exact
    /// flows of doubtful samples are added.
    fn descend(&mut self, exact: &[(usize, LogFlows)]) {
        let settings = &self.settings;
        let rate = settings.rate * settings.schedule.factor(self.step, settings.steps);
        let step = Step::new(settings.rule, rate, settings.penalty, self.step);
        let counts = Counts::new(&self.model, exact);
        let s = &self.model.structure;
        let to_leaves = settings.leaf_rate > 0.0;
        self.activations
            .root_backward(s, &self.prepared, &self.seeds);
        if s.class_rows == ClassRows::Mixing {
            let classes = (
                &mut self.prepared.classes,
                &mut self.memory.classes,
                &counts.classes[..],
            );
            let activations = &self.activations;
            update_mixing(&step, classes, 0, |scratch, step| {
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
                    .learn_level((t, l, tree), learned, &step, to_leaves);
            }
        }
        if to_leaves {
            self.move_leaves(rate * settings.leaf_rate, exact);
        }
    }

    fn move_leaves(&mut self, rate: f64, exact: &[(usize, LogFlows)]) {
        let mut sums =
            self.activations
                .leaf_statistics(&self.model.structure, &self.prepared, &self.batch);
        add_leaf_flows(&self.model, &self.prepared, &self.batch, exact, &mut sums);
        let step = Step::new(self.settings.rule, rate, 0.0, self.step);
        for (t, tree) in self.model.weights.trees.iter_mut().enumerate() {
            for (f, family) in tree.families.iter_mut().enumerate() {
                let moments = &mut self.memory.families[t][f];
                update_family(
                    &step,
                    family,
                    moments,
                    &sums[t][f],
                    self.settings.leaves.floor,
                );
                self.prepared.leaves[t][f] = LeafKernel::new(family);
            }
        }
    }
}

/// The same leaves with the logits that follow from W.
pub(crate) fn with_simplexes(leaves: &Weights, prepared: &Prepared) -> Weights {
    let mut weights = leaves.clone();
    for (tree, simplexes) in weights.trees.iter_mut().zip(&prepared.levels) {
        tree.levels = simplexes.iter().map(Simplex::to_mixing).collect();
    }
    weights.classes = prepared.classes.to_mixing();
    weights
}
