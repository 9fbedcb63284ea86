//! A fit as bytes: stopped at any step of any part, it goes on to the same bits.
//!
//! A checkpoint is that of the part under way ([`Checkpoint`]). With it go the options, the trials that are done and the
//! weights of the trees that are done; all else follows from the data.

use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::recipes::beside::Correlated;
use crate::recipes::fit::in_progress::{Fitting, Start, of_tree};
use crate::recipes::fit::options::Fit;
use crate::recipes::presets::Preset;
use crate::recipes::search::Trial;
use crate::recipes::shares::RowLogs;
use crate::training::checkpoint::{Checkpoint, all_weights, fill, weight_slots};
use crate::training::data::Data;
use crate::training::trainer::{Measure, Trainer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parts that are done.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Done {
    options: Value,
    trials: Vec<Trial>,
    chosen: bool,
    trees: usize,
    steps: usize,
    #[serde(default)] // older programs knew none
    clusters_with_factors: Option<Correlated>,
    #[serde(default)] // of the best trial, until one is chosen
    best_logs: Option<RowLogs>,
}

fn wrong(error: impl ToString) -> Error {
    Error::ModelFile(format!("state of the fit: {}", error.to_string()))
}

/// The name of a trained tree's weights.
fn name_of(tree: usize) -> String {
    format!("tree.{tree}")
}

impl<'a> Fitting<'a> {
    /// The fit as it stands between two runs.
    pub fn checkpoint(&mut self) -> Result<Vec<u8>> {
        self.prepare()?;
        let trainer = self.trainer.as_ref();
        let trainer =
            trainer.ok_or_else(|| wrong("it is done, and nothing is left to go on with"))?;
        if self.options.is_null() {
            return trainer.checkpoint(); // of a model that learns more rows
        }
        let trials = self.search.as_ref().map(|search| search.trials.clone());
        let done = Done {
            options: self.options.clone(),
            chosen: trials.is_none(),
            trials: trials.unwrap_or_else(|| self.noted_trials()),
            trees: self.trees_done,
            steps: self.steps_done,
            clusters_with_factors: self.correlated(),
            best_logs: self
                .search
                .as_ref()
                .and_then(|search| search.best_logs.clone()),
        };
        // Once all are trained together, the trees apart are no longer needed.
        let apart = self.models.iter().filter(|_| self.trees_done < self.trees);
        let weights = |(tree, model): (usize, &Model)| (name_of(tree), all_weights(&model.weights));
        let tensors: BTreeMap<String, Vec<f32>> = apart.enumerate().map(weights).collect();
        trainer.checkpoint_with(serde_json::to_value(done).map_err(wrong)?, tensors)
    }

    fn noted_trials(&self) -> Vec<Trial> {
        self.start.about.training.get("trials").unwrap_or_default()
    }

    /// Goes on where a checkpoint stopped: to the same bits, if the rows are the same.
    pub fn resume(
        checkpoint: Checkpoint,
        data: Data<'a>,
        validation: Option<Data<'a>>,
    ) -> Result<Self> {
        if checkpoint.fit().is_null() {
            return Self::resume_one(checkpoint, data, validation);
        }
        let done: Done = serde_json::from_value(checkpoint.fit().clone()).map_err(wrong)?;
        let fit: Fit = serde_json::from_value(done.options).map_err(wrong)?;
        let mut fitting = fit.start(data)?;
        if let Some(validation) = validation {
            fitting.validate_on(validation)?;
        }
        let target = fitting.chosen.settings.target;
        if let Some(search) = &mut fitting.search {
            let rows = search.held_out.len();
            let is_strange = |logs: &RowLogs| !logs.are_of(rows, target);
            if done.best_logs.as_ref().is_some_and(is_strange) {
                return Err(wrong("what the best trial says is not of these rows"));
            }
            (search.trials, search.best_logs) = (done.trials, done.best_logs);
        }
        let chosen = done.clusters_with_factors;
        if chosen.is_some_and(|chosen| !chosen.is_possible()) {
            return Err(wrong("there are no such clusters with factors"));
        }
        if done.chosen {
            fitting.choose(Some(chosen))?;
        }
        if done.trees > fitting.trees {
            return Err(wrong("more trees are done than there are"));
        }
        (fitting.trees_done, fitting.steps_done) = (done.trees, done.steps);
        fitting.resume_part(checkpoint)?;
        Ok(fitting)
    }

    /// The trees that are done, and the part under way.
    fn resume_part(&mut self, mut checkpoint: Checkpoint) -> Result<()> {
        if self.trees_done < self.trees {
            for tree in 0..self.trees_done {
                let mut model = checkpoint.model().clone();
                let structure = self.structure_of(tree).clone();
                model.weights = Model::random(structure.clone(), 0.0, 0).weights; // all to be filled
                model.structure = structure;
                fill(
                    weight_slots(&mut model.weights),
                    &checkpoint.take(&name_of(tree))?,
                )?;
                model.about = self.about(&of_tree(self.chosen.settings.clone(), tree));
                model.check()?;
                self.models.push(model);
            }
        }
        let (data, validation) = match &self.search {
            Some(_) => {
                let (train, held_out) = self.search_rows();
                (train, Some(held_out))
            }
            None => (self.data.clone(), self.validation.clone()),
        };
        let mut trainer = Trainer::resume_shared(checkpoint, data)?;
        trainer.validation = validation;
        if self.search.is_some() {
            trainer.best_by = Measure::LogLoss;
        }
        self.trainer = Some(trainer);
        Ok(())
    }

    /// A run of one model, as older programs wrote it.
    fn resume_one(
        checkpoint: Checkpoint,
        data: Data<'a>,
        validation: Option<Data<'a>>,
    ) -> Result<Self> {
        let model = checkpoint.model();
        let chosen = Preset {
            structure: model.structure.clone(),
            scaling: model.scaling.clone(),
            settings: checkpoint.settings().clone(),
        };
        let start = Start {
            prior: None,
            about: model.about.clone(),
            device: Device::Cpu,
            precision: Precision::Tf32,
        };
        let scaling = chosen.scaling.clone();
        let bent = |data: Data<'a>| data.bent(&scaling).map(Arc::new);
        let mut fitting = Self::new(start, chosen, bent(data)?);
        fitting.validation = validation.map(bent).transpose()?;
        fitting.resume_part(checkpoint)?;
        Ok(fitting)
    }

    /// What computes from here on, and how a GPU multiplies. Clusters with factors, which a GPU does not compute, no longer
    /// come into question on one; where they have been chosen, the last part stays on the processor.
    pub fn use_device(&mut self, device: Device, precision: Precision) -> Result<()> {
        if device != Device::Cpu && self.may_correlate && self.search.is_some() {
            self.may_correlate = false;
            self.options["without_factors"] = true.into();
            let candidates = self.search.as_ref().map(|search| search.candidates.len());
            if candidates == Some(1) {
                (self.search, self.trainer) = (None, None); // the trial would decide nothing
            }
        }
        (self.start.device, self.start.precision) = (device, precision);
        let Some(mut trainer) = self.trainer.take() else {
            return Ok(());
        };
        let moved = trainer.use_device(self.device_of(&trainer), precision);
        self.trainer = Some(trainer);
        moved
    }
}
