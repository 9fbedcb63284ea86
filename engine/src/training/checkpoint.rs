//! A training run as bytes: stopped at any step, it goes on to the same bits.
//!
//! A checkpoint is a model file with a state: settings and counters as JSON, and vectors of
//! numbers in one fixed order: W as training moves it, the rule's two memories, and the best weights on the validation
//! set.
//!
//! ```
//! use sumout::training::{Checkpoint, Data};
//! use sumout::{Kind, Rows, Settings, Structure, Trainer};
//! let structure = Structure::table(&[Kind::Gaussian; 2]).components(2).channels([3]).classes(2).build()?;
//! let rows = Rows::new(&[0.0, 0.1, 2.0, f32::NAN, 1.9, 2.2, 0.3, -0.2], 2)?;
//! let labels = [0, 1, 1, 0].map(Some);
//! let mut trainer = Trainer::new(structure, Settings::default(), rows, &labels)?;
//! trainer.advance()?;
//! let checkpoint = Checkpoint::from_bytes(&trainer.checkpoint()?)?;
//! let mut again = Trainer::resume(checkpoint, Data::new(rows, &labels))?;
//! assert_eq!(again.advance(), trainer.advance());
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::layers::leaf::Coordinate;
use crate::layers::simplex::Simplex;
use crate::layers::weights::{Prepared, TreeWeights, Weights};
use crate::model::Model;
use crate::model::model_file::{Parts, checkpoint_from_bytes, checkpoint_to_bytes};
use crate::training::data::Data;
use crate::training::memory::Memory;
use crate::training::memory::Moments;
use crate::training::settings::Settings;
use crate::training::trainer::{Best, Trainer, with_simplexes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    settings: Settings,
    step: usize,
    recomputed: usize,
    best_step: Option<usize>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    fit: Value, // of a fit of several parts: which are done
}

/// A training run that was stopped.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    parts: Parts,
    state: State,
}

impl Checkpoint {
    /// The run in the bytes of a checkpoint; an error for a plain model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut parts = checkpoint_from_bytes(bytes)?;
        let state = serde_json::from_value(std::mem::take(&mut parts.state))
            .map_err(|error| Error::ModelFile(format!("training state: {error}")))?;
        Ok(Self { parts, state })
    }

    /// The model as it was then.
    pub fn model(&self) -> &Model {
        &self.parts.model
    }

    /// Steps done, with those of parts that are done.
    pub fn steps_done(&self) -> usize {
        let before = self.state.fit["steps"].as_u64().unwrap_or(0);
        usize::try_from(before).unwrap_or(usize::MAX) + self.state.step
    }

    /// The settings of the run.
    pub fn settings(&self) -> &Settings {
        &self.state.settings
    }

    /// Whether it is of a fit by rounds over partitions ([`Rounds`](crate::recipes::Rounds)).
    pub fn is_of_rounds(&self) -> bool {
        self.state.fit.get("rounds").is_some()
    }

    /// What a fit of several parts says about those that are done.
    pub(crate) fn fit(&self) -> &Value {
        &self.state.fit
    }

    /// Numbers of the state, by name.
    pub(crate) fn take(&mut self, name: &str) -> Result<Vec<f32>> {
        let missing = || Error::ModelFile(format!("training state: '{name}' is not there"));
        self.parts.tensors.remove(name).ok_or_else(missing)
    }
}

impl<'a> Trainer<'a> {
    /// The run as it stands.
    pub fn checkpoint(&self) -> Result<Vec<u8>> {
        self.checkpoint_with(Value::Null, BTreeMap::new())
    }

    /// The same with what a fit of several parts has done.
    pub(crate) fn checkpoint_with(
        &self,
        fit: Value,
        mut tensors: BTreeMap<String, Vec<f32>>,
    ) -> Result<Vec<u8>> {
        let best_step = self.best.as_ref().map(|best| best.step);
        let state = State {
            settings: self.settings.clone(),
            step: self.step,
            recomputed: self.recomputed,
            best_step,
            fit,
        };
        let fetched = self.fetched()?;
        let (prepared, memory, leaves) = match &fetched {
            Some((prepared, memory, weights)) => (prepared, memory, weights),
            None => (&self.prepared, &self.memory, &self.model.weights),
        };
        let model = Model {
            weights: with_simplexes(leaves, prepared),
            ..self.model.clone()
        };
        tensors.insert(
            "weights".to_string(),
            prepared.all().flat_map(Simplex::weights).copied().collect(),
        );
        tensors.insert(
            "first".to_string(),
            memory.all().flat_map(|m| &m.first).copied().collect(),
        );
        tensors.insert(
            "second".to_string(),
            memory.all().flat_map(|m| &m.second).copied().collect(),
        );
        let mut doubles = BTreeMap::new();
        if let Some(best) = &self.best {
            tensors.insert("best".to_string(), all_weights(&best.weights));
            doubles.insert("best_score".to_string(), vec![best.score]);
        }
        let state =
            serde_json::to_value(state).map_err(|error| Error::ModelFile(error.to_string()))?;
        checkpoint_to_bytes(&Parts {
            model,
            state,
            tensors,
            doubles,
        })
    }

    /// Goes on where a checkpoint stopped: to the same bits, if the data are the same.
    pub fn resume(checkpoint: Checkpoint, data: Data<'a>) -> Result<Self> {
        Self::resume_shared(checkpoint, Arc::new(data))
    }

    pub(crate) fn resume_shared(checkpoint: Checkpoint, data: Arc<Data<'a>>) -> Result<Self> {
        data.check(&checkpoint.model().structure)?;
        Self::resume_with(checkpoint, data)
    }

    /// The same for rows that were checked, or none where all steps are by contributions.
    pub(crate) fn resume_with(mut checkpoint: Checkpoint, data: Arc<Data<'a>>) -> Result<Self> {
        let (weights, first) = (checkpoint.take("weights")?, checkpoint.take("first")?);
        let second = checkpoint.take("second")?;
        let best = checkpoint.state.best_step.map(|_| checkpoint.take("best"));
        let best = best.transpose()?;
        let Checkpoint { parts, state } = checkpoint;
        let score = parts.doubles.get("best_score");
        let score = score.and_then(|score| score.first().copied());
        let mut trainer = Self::assemble(parts.model, state.settings, data)?;
        set_weights(&mut trainer.prepared, &weights)?;
        fill(trainer.memory.all_mut().flat_map(|m| &mut m.first), &first)?;
        fill(
            trainer.memory.all_mut().flat_map(|m| &mut m.second),
            &second,
        )?;
        if let (Some(step), Some(numbers)) = (state.best_step, best) {
            let score = score.ok_or_else(|| {
                Error::ModelFile("training state: 'best_score' is not there".into())
            })?;
            let mut best = trainer.model.clone();
            fill(weight_slots(&mut best.weights), &numbers)?;
            best.check()?;
            trainer.best = Some(Best {
                step,
                score,
                weights: best.weights,
            });
        }
        (trainer.step, trainer.recomputed) = (state.step, state.recomputed);
        Ok(trainer)
    }
}

impl Prepared {
    pub(super) fn all(&self) -> impl Iterator<Item = &Simplex> {
        self.levels.iter().flatten().chain([&self.classes])
    }
}

/// W of every matrix: finite and not negative.
pub(super) fn set_weights(prepared: &mut Prepared, mut weights: &[f32]) -> Result<()> {
    let wrong = || Error::ModelFile("training state: 'weights' does not fit the model".into());
    let all = prepared
        .levels
        .iter_mut()
        .flatten()
        .chain([&mut prepared.classes]);
    for simplex in all {
        let (own, rest) = weights
            .split_at_checked(simplex.weights().len())
            .ok_or_else(wrong)?;
        if own.iter().any(|w| !(0.0..=1.01).contains(w)) {
            return Err(wrong());
        }
        simplex.set_weights(own);
        weights = rest;
    }
    if weights.is_empty() {
        Ok(())
    } else {
        Err(wrong())
    }
}

impl Memory {
    fn all(&self) -> impl Iterator<Item = &Moments> {
        let families = self.families.iter().flatten().flatten();
        self.levels
            .iter()
            .flatten()
            .chain([&self.classes])
            .chain(families)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Moments> {
        let families = self.families.iter_mut().flatten().flatten();
        self.levels
            .iter_mut()
            .flatten()
            .chain([&mut self.classes])
            .chain(families)
    }
}

/// Every free parameter, in the order of [`weight_slots`].
pub(crate) fn all_weights(weights: &Weights) -> Vec<f32> {
    weight_slots(&mut weights.clone())
        .map(|slot| *slot)
        .collect()
}

/// The places of all free parameters.
pub(crate) fn weight_slots(weights: &mut Weights) -> impl Iterator<Item = &mut f32> {
    let trees = weights.trees.iter_mut().flat_map(tree_slots);
    trees.chain(&mut weights.classes.logits)
}

fn tree_slots(tree: &mut TreeWeights) -> impl Iterator<Item = &mut f32> {
    let leaves = tree
        .families
        .iter_mut()
        .flat_map(|family| &mut family.coordinates)
        .flat_map(Coordinate::free_mut);
    leaves.chain(tree.levels.iter_mut().flat_map(|mixing| &mut mixing.logits))
}

pub(crate) fn fill<'a>(slots: impl Iterator<Item = &'a mut f32>, numbers: &[f32]) -> Result<()> {
    let mut numbers = numbers.iter();
    for slot in slots {
        *slot = *numbers
            .next()
            .ok_or_else(|| Error::ModelFile("training state: too few numbers".into()))?;
    }
    match numbers.len() {
        0 => Ok(()),
        left => Err(Error::ModelFile(format!(
            "training state: {left} numbers too many"
        ))),
    }
}
