//! Training: batches with random holes, the objective, a step; again. And validation, the best model, resuming.
//!
//! All randomness is a function of (seed, step, row of the batch), so a run that was stopped goes on to the same bits,
//! with any number of threads.
//!
//! ```
//! use sumout::{Kind, Rows, Settings, Structure, Trainer};
//! let rows = Rows::new(&[0.0, 0.1, 2.0, f32::NAN, 1.9, 2.2, 0.3, -0.2], 2)?;
//! let labels = [0, 1, 1, 0].map(Some);
//! let structure = Structure::table(&[Kind::Gaussian; 2]).components(2).channels([3]).classes(2).build()?;
//! let settings = Settings { steps: 20, ..Settings::default() };
//! let mut trainer = Trainer::new(structure, settings, rows, &labels)?;
//! trainer.on_progress(|progress| assert!(progress.objective.is_finite()));
//! let model = trainer.train()?;
//! assert_eq!(model.structure.classes, 2);
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::circuit::activations::Activations;
use crate::error::{Error, Result};
use crate::layers::simplex::Simplex;
use crate::layers::weights::{Prepared, Weights};
use crate::matrix::Rows;
use crate::model::{About, Column, Model, Scaling};
use crate::rows::batch::Batch;
use crate::structure::{Kind, Structure};
use crate::training::data::Data;
use crate::training::gpu::GpuTraining;
use crate::training::leaf_init::start_leaves;
use crate::training::loss::Loss;
use crate::training::memory::Memory;
use crate::training::settings::{Prior, Settings};
use crate::training::step_randomness::training_shifts;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What is reported after each step.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Steps done.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// Of the step's batch.
    pub loss: Loss,
    /// The mean objective of its rows.
    pub objective: f64,
    /// Of the validation set, where it was scored after this step.
    pub validation: Option<Loss>,
}

/// Called after each step.
type Listener<'a> = Box<dyn FnMut(&Progress) + Send + 'a>;

/// The best model on the validation set so far.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    /// Steps done when it was scored.
    pub step: usize,
    /// Accuracy or minus log-loss; mean log P(y|x) where y is a column, or mean log P(X) where there is neither class nor
    /// target.
    pub score: f64,
    /// Its weights.
    pub weights: Weights,
}

/// What makes a model of classes the best on the validation set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Accuracy,
    LogLoss,
}

/// A training run.
pub struct Trainer<'a> {
    pub(crate) data: Arc<Data<'a>>,
    pub(crate) validation: Option<Arc<Data<'a>>>,
    pub(crate) listener: Option<Listener<'a>>,
    pub(crate) model: Model, // its mixing logits are those of the start; see `current`
    pub(crate) settings: Settings,
    pub(crate) step: usize,
    pub(crate) best: Option<Best>,
    pub(crate) best_by: Measure,
    pub(crate) memory: Memory,
    pub(crate) prepared: Prepared,
    pub(crate) activations: Activations,
    pub(crate) batch: Batch,
    pub(crate) labels: Vec<i64>,
    pub(crate) weights: Vec<f32>,
    pub(crate) output_gradients: Vec<f32>,
    pub(crate) placements: Vec<Vec<Column>>, // by shift, row-major
    pub(crate) order: Vec<(usize, Vec<u32>)>, // epoch and its permutation, the newest last
    pub(crate) recomputed: usize,
    pub(crate) gpu: Option<GpuTraining>, // where a GPU has the run, what it moves is here only after `sync_from_gpu`
    pub(crate) report_every: usize,
    pub(crate) max_gpu_bytes: usize,
}

impl<'a> Trainer<'a> {
    /// Starts leaves and weights. `labels` are classes, `None` where missing; none at all where all are.
    pub fn new(
        structure: Structure,
        settings: Settings,
        rows: Rows<'a>,
        labels: &[Option<usize>],
    ) -> Result<Self> {
        let data = Data::new(rows, labels);
        Self::start(structure, Scaling::default(), settings, data)
    }

    /// The same for data that are scaled before the model sees them.
    pub fn start(
        structure: Structure,
        scaling: Scaling,
        settings: Settings,
        data: Data<'a>,
    ) -> Result<Self> {
        Self::begin(structure, scaling, settings, None, Arc::new(data))
    }

    /// The same with this P(y), also for classes without examples; without it, as the settings say.
    pub(crate) fn begin(
        structure: Structure,
        scaling: Scaling,
        settings: Settings,
        prior: Option<&[f64]>,
        data: Arc<Data<'a>>,
    ) -> Result<Self> {
        settings.check()?;
        structure.check()?;
        scaling.check(structure.width())?;
        let mut model = Model::random(structure, settings.spread, settings.seed);
        model.scaling = scaling;
        data.check(&model.structure)?;
        match prior {
            Some(prior) => model.set_prior(prior)?,
            None => set_prior(&mut model, &settings.prior, &data)?,
        }
        let start_of = |positions: &[Vec<u32>]| settings.leaves_of(positions);
        start_leaves(
            &mut model,
            &data.values,
            start_of,
            settings.seed,
            &data.stop,
        )?;
        Self::assemble(model, settings, data)
    }

    /// Goes on from a model as it is, with fresh memory: fine-tuning.
    pub fn from_model(model: Model, settings: Settings, data: Data<'a>) -> Result<Self> {
        model.check()?;
        data.check(&model.structure)?;
        Self::assemble(model, settings, Arc::new(data))
    }

    pub(crate) fn assemble(model: Model, settings: Settings, data: Arc<Data<'a>>) -> Result<Self> {
        settings.check()?;
        check_moves(&model.structure, &settings)?;
        check_target(&model.structure, &settings)?;
        let shifts = training_shifts(&model.structure, settings.shift);
        let placements = shifts.into_iter().map(|shift| model.columns(shift));
        Ok(Self {
            prepared: Prepared::new(&model.weights),
            memory: Memory::new(&model.weights, settings.leaf_rate > 0.0),
            placements: placements.collect(),
            activations: Activations::new(),
            batch: Batch::default(),
            labels: Vec::new(),
            weights: Vec::new(),
            output_gradients: Vec::new(),
            order: Vec::new(),
            step: 0,
            best: None,
            best_by: Measure::Accuracy,
            recomputed: 0,
            gpu: None,
            report_every: usize::MAX,
            max_gpu_bytes: usize::MAX,
            data,
            validation: None,
            listener: None,
            model,
            settings,
        })
    }

    /// Names of classes, columns and categories, and notes, which the model keeps.
    pub fn set_about(&mut self, about: About) {
        self.model.about = about;
    }

    /// Learns from other rows from the next step on.
    pub fn set_data(&mut self, data: Data<'a>) -> Result<()> {
        data.check(&self.model.structure)?;
        self.data = Arc::new(data);
        Ok(())
    }

    /// Scores these rows now and then; the trained model is the best on them.
    pub fn validate_on(&mut self, data: Data<'a>) -> Result<()> {
        data.check(&self.model.structure)?;
        self.validation = Some(Arc::new(data));
        Ok(())
    }

    /// Calls `listener` after each step of [`Trainer::train`].
    pub fn on_progress(&mut self, listener: impl FnMut(&Progress) + Send + 'a) {
        self.listener = Some(Box::new(listener));
    }

    /// Steps done.
    pub fn steps_done(&self) -> usize {
        self.step
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// On a GPU, many steps are reported at once. Each multiple of this is reported before the run goes on, so that the
    /// trainer can be asked for a checkpoint then.
    pub fn report_every(&mut self, steps: usize) {
        self.report_every = steps.max(1);
    }

    /// Samples so far whose gradient was computed again in f64.
    pub fn recomputed(&self) -> usize {
        self.recomputed
    }

    /// The model as it stands; on a GPU, as it was when the last [`Trainer::run_with`] ended.
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

    /// Trains to the last step: the best model on the validation set, or the last one where there is none.
    pub fn train(mut self) -> Result<Model> {
        let mut silent = |_: &Progress| ();
        let mut listener = self.listener.take();
        let tell: &mut dyn FnMut(&Progress) = match &mut listener {
            Some(listener) => listener,
            None => &mut silent,
        };
        self.run_with(|_, progress| {
            tell(progress);
            ControlFlow::Continue(())
        })?;
        Ok(self.into_model())
    }

    /// Trains to the last step, or until `report`, which is called after each step, breaks off. Then the trainer can be
    /// asked for a checkpoint or the model, and can go on.
    pub fn run_with(
        &mut self,
        mut report: impl FnMut(&Self, &Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let (data, validation) = (self.data.clone(), self.validation.clone());
        if self.gpu.is_some() {
            return self.run_on_gpu(&data, validation.as_deref(), &mut report);
        }
        while self.step < self.settings.steps {
            let loss = self.advance()?;
            let due = self.step.is_multiple_of(self.settings.validate_every)
                || self.step == self.settings.steps;
            let validation = validation.as_ref().filter(|_| due);
            let progress = Progress {
                step: self.step,
                steps: self.settings.steps,
                loss,
                objective: loss.objective(self.settings.generative),
                validation: validation.map(|set| self.validate(set)),
            };
            if report(self, &progress).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// One step.
    pub fn advance(&mut self) -> Result<Loss> {
        let data = self.data.clone();
        if self.gpu.is_some() {
            return self.advance_on_gpu(&data);
        }
        // On a thread of the pool: from outside, every parallel part would wait for one to wake up.
        rayon::scope(|_| self.step(&data))
    }
}

/// P(y) as the settings say.
pub(crate) fn set_prior(model: &mut Model, prior: &Prior, data: &Data<'_>) -> Result<()> {
    let counts = data.class_counts(model.structure.classes)?;
    let uniform = vec![1.0; model.structure.classes];
    model.set_prior(match prior {
        Prior::Labels if model.structure.classes > 1 => &counts,
        Prior::Given(prior) => prior,
        _ => &uniform,
    })
}

/// Images can be turned, and moved by less than their size; tables cannot.
fn check_moves(structure: &Structure, settings: &Settings) -> Result<()> {
    let flat = structure
        .frame
        .is_none_or(|frame| frame.height == 1 || frame.width == 1);
    if settings.turns() && flat {
        return Err(Error::Setting {
            name: "rotate and stretch",
            expected: "0 where the data are not images",
            got: format!("{} and {}", settings.rotate, settings.stretch),
        });
    }
    let side = structure
        .frame
        .map_or(1, |frame| frame.height.max(frame.width));
    if settings.shift >= side {
        return Err(Error::Setting {
            name: "shift",
            expected: "less than the longer side of the image, and 0 where the data are none",
            got: settings.shift.to_string(),
        });
    }
    Ok(())
}

/// A column to predict is one of real numbers in a table without classes.
fn check_target(structure: &Structure, settings: &Settings) -> Result<()> {
    let Some(column) = settings.target else {
        return Ok(());
    };
    let is_number = structure.kinds.get(column) == Some(&Kind::Gaussian);
    if is_number && structure.classes == 1 && structure.frame.is_none() {
        return Ok(());
    }
    Err(Error::Setting {
        name: "target",
        expected: "a column of real numbers in a table without classes",
        got: format!("column {column}"),
    })
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
