//! A step whose rows lie in several places. Whoever holds the model sends a [`Round`]; every holder of a partition
//! answers with a [`Contribution`]; their sum is applied as one step, by Adam or any other rule, or by EM.
//!
//! Which rows a step takes is a function of (seed, step, partition), and so are their random holes. So the model does not
//! depend on who computed what, to the bit, as long as the partitions are the same.
//!
//! ```
//! use sumout::training::{Contribution, Data, Partitions, Round};
//! use sumout::{Kind, Rows, Settings, Structure, Trainer};
//! let structure = Structure::table(&[Kind::Gaussian; 2]).components(2).channels([3]).classes(2).build()?;
//! let (first, second) = ([0.0, 0.1, 2.0, f32::NAN], [1.9, 2.2, 0.3, -0.2]);
//! let rows = Rows::new(&first, 2)?;
//! let mut trainer = Trainer::new(structure, Settings::default(), rows, &[0, 1].map(Some))?;
//! let partitions = Partitions::new(&[2, 2], 4)?; // of 2 rows each, 4 rows a step
//! let round = Round::from_bytes(&trainer.round(&partitions)?)?; // on any machine
//! let mut sum = round.contribution(0, Data::new(rows, &[0, 1].map(Some)))?;
//! sum.add(round.contribution(1, Data::new(Rows::new(&second, 2)?, &[1, 0].map(Some)))?)?;
//! let loss = trainer.apply(&Contribution::from_bytes(&sum.to_bytes()?)?)?;
//! assert_eq!((loss.rows, trainer.steps_done()), (4, 1));
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::layers::leaf_statistics::Statistics;
use crate::layers::simplex::Simplex;
use crate::model::Model;
use crate::model::model_file::{Parts, checkpoint_from_bytes, checkpoint_to_bytes};
use crate::structure::ClassRows;
use crate::training::checkpoint::set_weights;
use crate::training::data::Data;
use crate::training::loss::{Loss, share_of};
use crate::training::memory::Moments;
use crate::training::optimizer::{Step, update_mixing};
use crate::training::rounds::contribution::{Contribution, RoundId, Sums};
use crate::training::rounds::partitions::Partitions;
use crate::training::settings::Settings;
use crate::training::step_randomness::BatchPart;
use crate::training::trainer::Trainer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that go through the circuit at a time; the sums of one such part have their own order.
const ROWS_AT_ONCE: usize = 512;

/// What a holder of rows must know of a step: the model, the settings, and which rows it takes.
#[derive(Clone, Debug)]
pub struct Round {
    model: Model,
    weights: Vec<f32>, // W as training moves it
    state: State,
    taken: Vec<usize>, // partitions
}

/// The rows of a partition that a step takes, and where they are in its batch.
struct Picked {
    rows: Vec<usize>,
    first: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    settings: Settings,
    step: usize,
    partitions: Partitions,
}

impl Round {
    /// From the bytes of [`Trainer::round`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut parts = checkpoint_from_bytes(bytes)?;
        let state: State = serde_json::from_value(parts.state)
            .map_err(|error| Error::ModelFile(format!("state of a round: {error}")))?;
        state.settings.check()?;
        state.partitions.check()?;
        let weights = parts.tensors.remove("weights");
        let weights = weights.ok_or_else(|| Error::ModelFile("a round without weights".into()))?;
        let taken = state.partitions.taken(state.settings.seed, state.step);
        Ok(Self {
            model: parts.model,
            weights,
            state,
            taken,
        })
    }

    /// The step, counted from 0.
    pub fn step(&self) -> usize {
        self.state.step
    }

    /// K, the classes of the model.
    pub fn classes(&self) -> usize {
        self.model.structure.classes
    }

    /// The partitions that the step takes rows of. Contributions are asked for by the place in this list.
    pub fn taken(&self) -> &[usize] {
        &self.taken
    }

    /// What the partition at this place of the list adds to the step. `data` are all of its rows.
    pub fn contribution(&self, place: usize, data: Data<'_>) -> Result<Contribution> {
        let State {
            settings,
            step,
            partitions,
        } = &self.state;
        let partition = self.taken.get(place).copied();
        let size = partition.map(|partition| partitions.sizes[partition]);
        if size != Some(data.len() as u64) {
            let expected = size.map_or("no such partition".into(), |n| format!("{n} rows"));
            let what = format!("partition {}", partition.unwrap_or(place));
            return Err(Error::shape(what, expected, format!("{} rows", data.len())));
        }
        let Picked { rows, mut first } = self.picked(place);
        let mut sums = Sums::default();
        let mut trainer = None;
        for picked in rows.chunks(ROWS_AT_ONCE) {
            let rows = self.rows(&data, picked)?;
            let trainer = match &mut trainer {
                Some(trainer) => trainer,
                none => none.insert(self.trainer()?),
            };
            sums.add(&trainer.collect(&rows, *step, first)?);
            first += picked.len();
        }
        let id = round_id(*step, settings, self.weights.iter())?;
        Ok(Contribution::of(place, self.taken.len(), id, sums))
    }

    fn picked(&self, place: usize) -> Picked {
        let State {
            settings,
            step,
            partitions,
        } = &self.state;
        let partition = self.taken[place];
        if !partitions.whole {
            return Picked {
                rows: partitions.picked(settings.seed, partition, *step),
                first: partitions.first_place(partition, *step),
            };
        }
        let before = self.taken[..place].iter();
        let before = before.map(|&partition| partitions.sizes[partition] as usize);
        Picked {
            rows: (0..partitions.sizes[partition] as usize).collect(),
            first: before.sum(),
        }
    }

    /// These rows, checked and bent as the model takes them.
    fn rows<'a>(&self, data: &Data<'a>, picked: &[usize]) -> Result<Data<'a>> {
        let rows = data.picked(picked).bent(&self.model.scaling);
        let checked = rows.and_then(|rows| rows.check(&self.model.structure).map(|_| rows));
        checked.map_err(|error| in_partition(error, picked))
    }

    fn trainer(&self) -> Result<Trainer<'static>> {
        let settings = self.state.settings.clone();
        let mut trainer = Trainer::without_rows(self.model.clone(), settings)?;
        set_weights(&mut trainer.prepared, &self.weights)?;
        Ok(trainer)
    }
}

/// The step with a fingerprint (FNV-1a) of W and the settings.
fn round_id<'a>(
    step: usize,
    settings: &Settings,
    weights: impl Iterator<Item = &'a f32>,
) -> Result<RoundId> {
    let wrong = |error: serde_json::Error| Error::Settings(error.to_string());
    let settings = serde_json::to_string(settings).map_err(wrong)?;
    let mix = |hash: u64, word: u32| (hash ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3);
    let hash = settings
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| mix(hash, byte.into()));
    let fingerprint = weights.fold(hash, |hash, weight| mix(hash, weight.to_bits()));
    Ok(RoundId { step, fingerprint })
}

/// A trainer that only adds contributions up needs no rows.
fn no_rows(model: &Model) -> Result<Data<'static>> {
    let width = model.structure.width();
    Ok(Data::new(crate::matrix::Rows::new(&[], width)?, &[]))
}

/// The same error with the row's number in the partition.
fn in_partition(mut error: Error, picked: &[usize]) -> Error {
    match &mut error {
        Error::Infinite { row, .. }
        | Error::Category { row, .. }
        | Error::Outside { row, .. }
        | Error::Label { row, .. } => *row = picked.get(*row).copied().unwrap_or(*row),
        _ => {}
    }
    error
}

impl Trainer<'static> {
    /// For steps by contributions alone: it has no rows of its own.
    pub fn without_rows(model: Model, settings: Settings) -> Result<Self> {
        model.check()?;
        let none = Arc::new(no_rows(&model)?);
        Self::assemble(model, settings, none)
    }
}

impl Trainer<'_> {
    /// The step that comes, for holders of partitions.
    pub fn round(&self, partitions: &Partitions) -> Result<Vec<u8>> {
        if self.settings.target.is_some() {
            let message = "contributions: expected classes or none, got a column to predict";
            return Err(Error::Settings(message.into()));
        }
        let state = State {
            settings: self.settings.clone(),
            step: self.step,
            partitions: partitions.clone(),
        };
        let wrong = |error: serde_json::Error| Error::ModelFile(error.to_string());
        let weights = self.prepared.all().flat_map(Simplex::weights);
        checkpoint_to_bytes(&Parts {
            model: self.model(),
            state: serde_json::to_value(state).map_err(wrong)?,
            tensors: BTreeMap::from([("weights".into(), weights.copied().collect())]),
            doubles: BTreeMap::new(),
        })
    }

    /// The sums of some rows, which are places `first`, … of the step's batch; nothing moves.
    fn collect(&mut self, rows: &Data<'_>, step: usize, first: usize) -> Result<Sums> {
        let picked: Vec<usize> = (0..rows.len()).collect();
        let part = BatchPart {
            step,
            first,
            rows: picked.len(),
        };
        let (loss, exact) = self.scored(rows, &picked, part)?;
        let to_leaves = self.settings.leaf_rate > 0.0;
        self.backward(&Step::collecting(), &exact, to_leaves);
        // Output gradients were divided by the sum of the rows' weights.
        let weight = loss.weight;
        let flows = self.learned().flat_map(|moments| &moments.first);
        let mut sums = Sums {
            flows: flows.map(|n| n * weight as f32).collect(),
            leaves: Vec::new(),
            loss,
        };
        if to_leaves {
            let all = self.leaf_sums(&exact);
            let numbers = all
                .iter()
                .flatten()
                .flat_map(|family| &family.sums)
                .flatten();
            sums.leaves = numbers.map(|sum| sum * weight).collect();
        }
        Ok(sums)
    }

    /// The memories of what contributions move, in their order.
    fn learned(&self) -> impl Iterator<Item = &Moments> {
        let has_classes = self.model.structure.class_rows == ClassRows::Mixing;
        let classes = has_classes.then_some(&self.memory.classes);
        self.memory.levels.iter().flatten().chain(classes)
    }

    /// One step by the sum of all partitions' contributions.
    pub fn apply(&mut self, contribution: &Contribution) -> Result<Loss> {
        let sums = contribution.whole()?;
        self.check_sums(contribution.round, sums)?;
        let objective = sums.loss.objective(self.settings.generative);
        if !objective.is_finite() {
            let (step, loss) = (self.step, objective);
            return Err(Error::Diverged { step, loss });
        }
        let share = share_of(sums.loss.weight);
        let flows: Vec<f32> = sums.flows.iter().map(|n| n * share).collect();
        self.move_weights(&flows);
        if self.settings.leaf_rate > 0.0 {
            let share = 1.0 / sums.loss.weight;
            let mut left = sums.leaves.iter().map(|sum| sum * share);
            let sums = self.shaped(&mut left);
            self.move_leaves(&sums);
        }
        self.step += 1;
        Ok(sums.loss)
    }

    /// The sums must be of this step, of a model like this one, and of some rows.
    fn check_sums(&self, round: RoundId, sums: &Sums) -> Result<()> {
        let wrong = |text: String| Err(Error::Contribution(text));
        let weights = self.prepared.all().flat_map(Simplex::weights);
        if round != round_id(self.step, &self.settings, weights)? {
            let (expected, got) = (self.step, round.step);
            return wrong(format!(
                "expected step {expected} of this model, got step {got}, or of another model"
            ));
        }
        if sums.loss.weight <= 0.0 {
            return wrong("expected rows that weigh something, got none".into());
        }
        let flows: usize = self.learned().map(|moments| moments.first.len()).sum();
        let leaves: usize = self.leaf_lengths().sum();
        let expected = (
            flows,
            if self.settings.leaf_rate > 0.0 {
                leaves
            } else {
                0
            },
        );
        let got = (sums.flows.len(), sums.leaves.len());
        if got != expected {
            return wrong(format!("expected sums of shape {expected:?}, got {got:?}"));
        }
        Ok(())
    }

    fn leaf_lengths(&self) -> impl Iterator<Item = usize> {
        let trees = self.model.weights.trees.iter();
        let families = trees.flat_map(|tree| &tree.families).map(Statistics::new);
        families.map(|family| family.sums.iter().map(Vec::len).sum())
    }

    /// The statistics of all leaf families from their numbers.
    fn shaped(&self, numbers: &mut impl Iterator<Item = f64>) -> Vec<Vec<Statistics>> {
        let mut all: Vec<Vec<Statistics>> = Vec::new();
        for tree in &self.model.weights.trees {
            let mut families: Vec<Statistics> = tree.families.iter().map(Statistics::new).collect();
            let slots = families
                .iter_mut()
                .flat_map(|family| &mut family.sums)
                .flatten();
            slots
                .zip(&mut *numbers)
                .for_each(|(slot, number)| *slot = number);
            all.push(families);
        }
        all
    }

    /// A step of all mixing matrices by their flows N.
    fn move_weights(&mut self, flows: &[f32]) {
        let step = self.rule();
        let levels = self.prepared.levels.iter_mut().flatten();
        let memory = self.memory.levels.iter_mut().flatten();
        let has_classes = self.model.structure.class_rows == ClassRows::Mixing;
        let classes = (&mut self.prepared.classes, &mut self.memory.classes);
        let all = levels.zip(memory).chain(has_classes.then_some(classes));
        let mut left = flows;
        for (simplex, moments) in all {
            let (own, rest) = left.split_at(moments.first.len());
            left = rest;
            update_mixing(
                &step,
                (simplex, moments, own),
                own.len(),
                |scratch, step| {
                    scratch.gradient.clear();
                    scratch.gradient.resize(step.panel.weights.len(), 0.0);
                },
            );
        }
    }
}
