//! A fit under way: trials on held-out rows, then tree after tree, then all together.

use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::model::{About, Model};
use crate::recipes::fit::progress::{FitProgress, WholeFit};
use crate::recipes::presets::Preset;
use crate::recipes::search::{Finish, Search, is_past_its_best};
use crate::recipes::shares::RowLogs;
use crate::recipes::tables;
use crate::structure::Structure;
use crate::training::data::Data;
use crate::training::room::{check_all, check_memory};
use crate::training::settings::Settings;
use crate::training::trainer::{Measure, Progress, Trainer};
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What every tree is given.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub prior: Option<Vec<f64>>, // without it, as the settings say
    pub about: About,
    pub device: Device,
    pub precision: Precision,
}

/// A fit under way.
pub struct Fitting<'a> {
    pub(crate) options: Value, // what the caller asked for
    pub(crate) start: Start,
    pub(crate) search: Option<Search<'a>>, // until its trials are done
    pub(crate) chosen: Preset,             // a guess until then
    pub(crate) stop_after: Option<usize>,  // a tree stops after this many of its steps
    pub(crate) trees: usize,
    pub(crate) structures: Vec<Structure>, // of the trees in turn; empty: all are like `chosen`
    pub(crate) finish: Finish,
    pub(crate) may_correlate: bool, // clusters with factors may stand beside the trees
    pub(crate) data: Arc<Data<'a>>,
    pub(crate) validation: Option<Arc<Data<'a>>>, // given by the caller
    pub(crate) steps_done: usize,                 // of the parts that are done
    pub(crate) trees_done: usize,
    pub(crate) models: Vec<Model>,           // the trees that are done
    pub(crate) trainer: Option<Trainer<'a>>, // of the part that comes or is under way
    pub(crate) model: Option<Model>,         // at the end
}

impl<'a> Fitting<'a> {
    /// A fit of one tree, without more.
    pub(crate) fn new(start: Start, chosen: Preset, data: Arc<Data<'a>>) -> Self {
        Self {
            options: Value::Null,
            start,
            search: None,
            chosen,
            stop_after: None,
            trees: 1,
            structures: Vec::new(),
            finish: Finish::Trees,
            may_correlate: false,
            data,
            validation: None,
            steps_done: 0,
            trees_done: 0,
            models: Vec::new(),
            trainer: None,
            model: None,
        }
    }

    /// A fit that only goes on with a model.
    pub(crate) fn of_model(
        start: Start,
        chosen: Preset,
        model: Model,
        data: Data<'a>,
    ) -> Result<Self> {
        let settings = chosen.settings.clone();
        let mut fitting = Self::new(start, chosen, Arc::new(data));
        (fitting.trees, fitting.finish) = (0, Finish::Model);
        let trainer = Trainer::assemble(model, settings, fitting.data.clone())?;
        fitting.trainer = Some(trainer);
        Ok(fitting)
    }

    /// Validates on these rows in place of some that are held out; every tree is the best of its steps on them.
    pub fn validate_on(&mut self, data: Data<'a>) -> Result<()> {
        let data = data.bent(&self.chosen.scaling)?;
        data.check(&self.chosen.structure)?;
        let data = Arc::new(data);
        if let Some(search) = &mut self.search {
            search.train = self.data.clone();
            search.hold_out(data.clone(), &self.chosen);
        }
        self.validation = Some(data);
        Ok(())
    }

    /// The settings of a tree; a guess until the trials are done.
    pub fn settings(&self) -> &Settings {
        &self.chosen.settings
    }

    /// The blueprint of a tree; a guess until the trials are done.
    pub fn structure(&self) -> &Structure {
        &self.chosen.structure
    }

    /// The blueprints of all trees, in their order; guesses until the trials are done.
    pub fn structures(&self) -> impl Iterator<Item = &Structure> {
        (0..self.trees).map(|tree| self.structure_of(tree))
    }

    /// Whether clusters may stand beside the trees in the end.
    pub fn may_add_clusters(&self) -> bool {
        self.may_correlate || matches!(self.finish, Finish::Beside(_))
    }

    /// How many trees are trained.
    pub fn trees(&self) -> usize {
        self.trees
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

    /// The same to the end of one part: of a trial, of a tree, or of the steps of all together.
    pub fn run_part_with(
        &mut self,
        mut report: impl FnMut(&FitProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        self.prepare()?;
        let (before, left, part) = (self.steps_done, self.steps_after(), self.part());
        let Some(mut trainer) = self.trainer.take() else {
            return Ok(());
        };
        if trainer.steps_done() == 0 {
            trainer.use_device(self.device_of(&trainer), self.start.precision)?;
        }
        let last = self.last_step(&trainer);
        let is_trial = self.search.is_some();
        let whole = WholeFit {
            before,
            steps: before + last + left,
            part,
        };
        let mut ended = trainer.steps_done() >= last; // a checkpoint may be of the last step
        trainer.report_every(last);
        trainer.run_with(|trainer, progress: &Progress| {
            let flow = report(&whole.at(progress));
            ended = progress.step >= last || (is_trial && is_past_its_best(trainer));
            if ended { ControlFlow::Break(()) } else { flow }
        })?;
        if !ended {
            self.trainer = Some(trainer);
            return Ok(());
        }
        self.steps_done += trainer.steps_done();
        self.add(trainer)
    }

    /// Makes the next part ready: after the trials what stands beside the trees, and its leaves and weights. It happens
    /// anyway; this is for callers who want to do something else between that and the first step.
    pub fn prepare(&mut self) -> Result<()> {
        if self.trainer.is_some() || self.is_done() {
            return Ok(());
        }
        if self.steps_done == 0 {
            self.check_memory()?; // rather now than when some trees are trained
        }
        let are_trials_done = |search: &Search<'_>| search.next().is_none();
        if self.search.as_ref().is_some_and(are_trials_done) {
            self.choose(None)?;
        }
        self.trainer = Some(self.next_trainer()?);
        Ok(())
    }

    /// An error if a tree does not fit into memory, or all of them where they are trained on together.
    fn check_memory(&self) -> Result<()> {
        let all: Vec<_> = self.structures().collect();
        if let Some(settings) = self.together() {
            return check_all(&all, &settings, self.start.device);
        }
        let check = |tree| check_memory(tree, self.settings(), self.start.device);
        all.into_iter().try_for_each(check)
    }

    /// What computes a part: factors, which a fit on the processor has chosen, stay there.
    pub(super) fn device_of(&self, trainer: &Trainer<'_>) -> Device {
        match trainer.model.has_factors() {
            true => Device::Cpu,
            false => self.start.device,
        }
    }

    /// Whether all steps are done.
    pub fn is_done(&self) -> bool {
        self.model.is_some()
    }

    /// The model; a fit that was broken off goes on to the end first.
    pub fn into_model(mut self) -> Result<Model> {
        self.run_with(|_| ControlFlow::Continue(()))?;
        let unfinished = || Error::Settings("a fit without an end".into());
        self.model.ok_or_else(unfinished)
    }

    /// The run of a single tree.
    pub(crate) fn into_trainer(self) -> Result<Trainer<'a>> {
        self.tree(self.chosen.clone(), 0, self.data.clone())
    }

    /// The settings with which all is trained on together, where it is.
    pub(super) fn together(&self) -> Option<Settings> {
        match &self.finish {
            Finish::Trees => None,
            Finish::Model => Some(self.chosen.settings.clone()),
            Finish::Beside(beside) => Some(Settings {
                seed: self.chosen.settings.seed + self.trees as u64,
                ..tables::finish(&self.chosen.settings, beside.leaves)
            }),
        }
    }

    /// The blueprint of this tree.
    pub(crate) fn structure_of(&self, tree: usize) -> &Structure {
        match self.structures.len() {
            0 => &self.chosen.structure,
            count => &self.structures[tree % count],
        }
    }

    /// The run of one tree.
    fn tree(&self, preset: Preset, tree: usize, data: Arc<Data<'a>>) -> Result<Trainer<'a>> {
        let Preset {
            structure,
            settings,
            scaling,
        } = preset;
        let settings = of_tree(settings, tree);
        check_memory(&structure, &settings, self.start.device)?;
        let (prior, about) = (self.start.prior.as_deref(), self.about(&settings));
        let mut trainer = Trainer::begin(structure, scaling, settings, prior, data)?;
        trainer.set_about(about);
        Ok(trainer)
    }

    /// The names and notes of a tree.
    pub(crate) fn about(&self, settings: &Settings) -> About {
        let mut about = self.start.about.clone();
        if !about.training.has("program") {
            let program = concat!("sumout ", env!("CARGO_PKG_VERSION"));
            about.training.set("program", program);
        }
        about.training.set("rows", self.data.len());
        about.training.set("settings", settings);
        if let Some(column) = settings.target {
            about.training.set_target(column);
        }
        about
    }

    /// The run of the next part.
    fn next_trainer(&mut self) -> Result<Trainer<'a>> {
        if let Some((_, preset)) = self.search.as_ref().and_then(Search::next) {
            let (train, held_out) = self.search_rows();
            let mut trainer = self.tree(preset, 0, train)?;
            trainer.validation = Some(held_out);
            trainer.best_by = Measure::LogLoss;
            return Ok(trainer);
        }
        let mut trainer = if self.trees_done < self.trees {
            let preset = Preset {
                structure: self.structure_of(self.trees_done).clone(),
                ..self.chosen.clone()
            };
            self.tree(preset, self.trees_done, self.data.clone())?
        } else {
            self.all_together()?
        };
        trainer.validation.clone_from(&self.validation);
        Ok(trainer)
    }

    /// The rows of a trial, and those that score it.
    pub(crate) fn search_rows(&self) -> (Arc<Data<'a>>, Arc<Data<'a>>) {
        match &self.search {
            Some(search) => (search.train.clone(), search.held_out.clone()),
            None => (self.data.clone(), self.data.clone()),
        }
    }

    /// The run of trees and clusters together.
    fn all_together(&self) -> Result<Trainer<'a>> {
        let mut trees = Model::mixture(self.models.clone())?;
        let (Finish::Beside(beside), Some(settings)) = (&self.finish, self.together()) else {
            return Err(Error::Settings("nothing to train on together".into()));
        };
        let notes = &mut trees.about.training;
        notes.set("clusters", beside.leaves);
        if let Some(correlated) = beside.correlated {
            notes.set("clusters_with_factors", correlated);
        }
        notes.set("finish", &settings);
        let all = beside.with_trees(trees, &self.data, self.chosen.settings.seed)?;
        check_memory(&all.structure, &settings, self.start.device)?;
        Trainer::assemble(all, settings, self.data.clone())
    }

    /// Takes the run of a part that is done.
    fn add(&mut self, trainer: Trainer<'a>) -> Result<()> {
        if let Some(search) = &mut self.search {
            if let Some((candidate, _)) = search.next() {
                search.add(candidate, &trainer);
            }
            let is_best = search.best() == search.trials.last().copied();
            if is_best && self.may_correlate && self.chosen.structure.classes == 1 {
                let target = trainer.settings.target;
                let logs = RowLogs::new(trainer.into_model(), &search.held_out, target)?;
                search.best_logs = Some(logs);
            }
            return Ok(());
        }
        let model = trainer.into_model();
        if self.trees_done == self.trees {
            self.model = Some(model);
            return Ok(());
        }
        self.models.push(model);
        self.trees_done += 1;
        if self.trees_done == self.trees && matches!(self.finish, Finish::Trees) {
            self.model = Some(side_by_side(std::mem::take(&mut self.models))?);
        }
        Ok(())
    }
}

/// The settings of a tree: each has a seed of its own.
pub(crate) fn of_tree(settings: Settings, tree: usize) -> Settings {
    Settings {
        seed: settings.seed + tree as u64,
        ..settings
    }
}

/// Models side by side; one alone stays as it is.
fn side_by_side(mut models: Vec<Model>) -> Result<Model> {
    match models.pop() {
        Some(only) if models.is_empty() => Ok(only),
        last => {
            models.extend(last);
            Model::mixture(models)
        }
    }
}
