//! A fit under way: tree after tree, then all together.

use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::model::{About, Model};
use crate::recipes::presets::Preset;
use crate::training::class_clusters::class_clusters;
use crate::training::data::Data;
use crate::training::leaf_init::LeafStart;
use crate::training::settings::Settings;
use crate::training::trainer::{Progress, Trainer};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Clusters beside the trees, and how all are trained on together.
#[derive(Clone, Debug)]
pub(crate) struct Together {
    pub leaves: LeafStart,
    pub settings: Settings,
}

/// What every tree is given.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub chosen: Preset,
    pub prior: Option<Vec<f64>>, // without it, as the settings say
    pub about: About,
    pub device: Device,
    pub precision: Precision,
}

/// How far a fit is, all trees together.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FitProgress {
    /// Steps done.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// The mean objective of the rows of the last step.
    pub objective: f64,
}

/// A fit under way.
pub struct Fitting<'a> {
    start: Start,
    trees: usize,
    together: Option<Together>,
    data: Arc<Data<'a>>,
    models: Vec<Model>,           // trees that are trained
    trainer: Option<Trainer<'a>>, // of the next one, or of all together
    model: Option<Model>,         // at the end
}

impl<'a> Fitting<'a> {
    /// A fit of this many trees, and of all together where that is wanted.
    pub(crate) fn new(
        start: Start,
        trees: usize,
        together: Option<Together>,
        data: Data<'a>,
    ) -> Self {
        Self {
            start,
            trees,
            together,
            data: Arc::new(data),
            models: Vec::new(),
            trainer: None,
            model: None,
        }
    }

    /// A fit that only goes on with a model.
    pub(crate) fn of_model(start: Start, model: Model, data: Data<'a>) -> Result<Self> {
        let settings = start.chosen.settings.clone();
        let together = Together {
            leaves: settings.leaves,
            settings: settings.clone(),
        };
        let mut fitting = Self::new(start, 0, Some(together), data);
        let trainer = Trainer::assemble(model, settings, fitting.data.clone())?;
        fitting.trainer = Some(trainer);
        Ok(fitting)
    }

    /// Goes on to the end, or until `report`, which is called after each step, breaks off.
    pub fn run_with(
        &mut self,
        mut report: impl FnMut(&FitProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut stopped = false;
        while !self.is_done() && !stopped {
            self.run_part_with(|progress| {
                let flow = report(progress);
                stopped |= flow.is_break();
                flow
            })?;
        }
        Ok(())
    }

    /// The same to the end of one part: of a tree, or of the steps of all together.
    pub fn run_part_with(
        &mut self,
        mut report: impl FnMut(&FitProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        self.prepare()?;
        let (before, steps) = (self.steps_before(), self.steps());
        let Some(mut trainer) = self.trainer.take() else {
            return Ok(());
        };
        if trainer.steps_done() == 0 {
            trainer.use_device(self.start.device, self.start.precision)?;
        }
        trainer.run_with(|_, progress: &Progress| {
            report(&FitProgress {
                step: before + progress.step,
                steps,
                objective: progress.objective,
            })
        })?;
        if trainer.steps_done() < trainer.settings().steps {
            self.trainer = Some(trainer);
            return Ok(());
        }
        self.add(trainer.into_model())
    }

    /// Makes the next part ready: its leaves and weights. It happens anyway; this is for callers who want to do
    /// something else between that and the first step.
    pub fn prepare(&mut self) -> Result<()> {
        if self.trainer.is_none() && !self.is_done() {
            self.trainer = Some(self.next_trainer()?);
        }
        Ok(())
    }

    /// Whether all steps are done.
    pub fn is_done(&self) -> bool {
        self.model.is_some()
    }

    /// Steps of all trees, and of all together.
    pub fn steps(&self) -> usize {
        let together = self.together.as_ref().map_or(0, |t| t.settings.steps);
        let trees = self.trees.saturating_mul(self.start.chosen.settings.steps);
        trees.saturating_add(together)
    }

    /// The model; a fit that was broken off goes on to the end first.
    pub fn into_model(mut self) -> Result<Model> {
        self.run_with(|_| ControlFlow::Continue(()))?;
        let unfinished = || Error::Settings("a fit without an end".into());
        self.model.ok_or_else(unfinished)
    }

    /// Steps that trained trees have taken.
    fn steps_before(&self) -> usize {
        self.models
            .len()
            .saturating_mul(self.start.chosen.settings.steps)
    }

    /// The run of one tree.
    pub(crate) fn tree(&self, tree: usize) -> Result<Trainer<'a>> {
        let Preset {
            structure,
            settings,
            scaling,
        } = self.start.chosen.clone();
        let settings = Settings {
            seed: settings.seed + tree as u64,
            ..settings
        };
        let mut about = self.start.about.clone();
        if !about.training.has("program") {
            let program = concat!("sumout ", env!("CARGO_PKG_VERSION"));
            about.training.set("program", program);
        }
        about.training.set("rows", self.data.rows()?.len());
        about.training.set("settings", &settings);
        let (prior, data) = (self.start.prior.as_deref(), self.data.clone());
        let mut trainer = Trainer::begin(structure, scaling, settings, prior, data)?;
        trainer.set_about(about);
        Ok(trainer)
    }

    /// The run of the next tree, or of all together.
    fn next_trainer(&mut self) -> Result<Trainer<'a>> {
        match &self.together {
            Some(together) if self.models.len() == self.trees => {
                let trees = Model::mixture(self.models.clone())?;
                let model =
                    beside_clusters(trees, &self.data, together, &self.start.chosen.settings)?;
                Trainer::assemble(model, together.settings.clone(), self.data.clone())
            }
            _ => self.tree(self.models.len()),
        }
    }

    /// Takes the model of a run that is done.
    fn add(&mut self, model: Model) -> Result<()> {
        if self.models.len() == self.trees {
            self.model = Some(model);
            return Ok(());
        }
        self.models.push(model);
        if self.models.len() == self.trees && self.together.is_none() {
            self.model = Some(Model::mixture(std::mem::take(&mut self.models))?);
        }
        Ok(())
    }
}

/// Trees with the clusters of every class beside them.
fn beside_clusters(
    mut trees: Model,
    data: &Data<'_>,
    together: &Together,
    settings: &Settings,
) -> Result<Model> {
    trees.about.training.set("clusters", together.leaves);
    trees.about.training.set("finish", &together.settings);
    let clusters = class_clusters(&trees, data, &together.leaves, settings.seed)?;
    Model::mixture(vec![trees, clusters])
}
