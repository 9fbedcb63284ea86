//! Which of several ways to learn suits the data: each is tried on most of the rows and scored on the rest.
//!
//! The best of the short trials may be tried once more for longer. What wins is then trained on all rows, for as many
//! steps as were best.

use crate::recipes::presets::Preset;
use crate::training::data::Data;
use crate::training::settings::Settings;
use crate::training::trainer::Trainer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A trial ends when this many validations in a row were no better than one before.
const PATIENCE: usize = 3;

/// Whether a trial has long been past its best.
pub(crate) fn is_past_its_best(trainer: &Trainer<'_>) -> bool {
    let patience = PATIENCE.saturating_mul(trainer.settings.validate_every);
    let best = trainer.best.as_ref();
    best.is_some_and(|best| trainer.step >= best.step.saturating_add(patience))
}

/// What a trial gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub candidate: usize,
    /// Steps of the schedule.
    pub steps: usize,
    /// The step after which the held-out rows were scored best.
    pub best_step: usize,
    /// Their score then; larger is better.
    pub score: f64,
}

/// Trials on held-out rows.
pub(crate) struct Search<'a> {
    pub candidates: Vec<Preset>,
    pub train: Arc<Data<'a>>,
    pub held_out: Arc<Data<'a>>,
    /// Steps of one more trial of the best candidate.
    pub long_steps: Option<usize>,
    /// Steps of what wins, where the caller wants them.
    pub given_steps: Option<usize>,
    pub trials: Vec<Trial>,
}

impl Search<'_> {
    /// The candidate of the next trial with its settings; nothing where all is known.
    pub fn next(&self) -> Option<(usize, Preset)> {
        let tried = self.trials.len();
        if tried < self.candidates.len() {
            return Some((tried, self.candidates[tried].clone()));
        }
        let steps = self.long_steps.filter(|_| tried == self.candidates.len())?;
        let best = self.best()?.candidate;
        let mut preset = self.candidates[best].clone();
        preset.settings = longer(&preset.settings, steps);
        Some((best, preset))
    }

    /// Notes what a trial gave.
    pub fn add(&mut self, candidate: usize, trainer: &Trainer<'_>) {
        let (best_step, score) = match &trainer.best {
            Some(best) => (best.step, best.score),
            None => (trainer.step, f64::NEG_INFINITY),
        };
        self.trials.push(Trial {
            candidate,
            steps: trainer.settings.steps,
            best_step,
            score,
        });
    }

    /// The trial that scored best, the first of equals.
    pub fn best(&self) -> Option<Trial> {
        let better = |a: Trial, b: Trial| if b.score > a.score { b } else { a };
        self.trials.iter().copied().reduce(better)
    }

    /// What won, with its settings, and after how many of its steps to stop.
    pub fn winner(&self) -> Option<(Preset, Option<usize>)> {
        let best = self.best()?;
        let mut preset = self.candidates[best.candidate].clone();
        let steps = self.given_steps.unwrap_or(best.steps);
        preset.settings = longer(&preset.settings, steps);
        Some((preset, self.given_steps.is_none().then_some(best.best_step)))
    }

    /// Steps of the trials that are left.
    pub fn steps_left(&self) -> usize {
        let tried = self.trials.len();
        let short = self.candidates.iter().skip(tried);
        let short: usize = short.map(|candidate| candidate.settings.steps).sum();
        let is_long_left = tried <= self.candidates.len();
        short + self.long_steps.filter(|_| is_long_left).unwrap_or(0)
    }
}

/// The same settings for this many steps, with as many validations.
pub(crate) fn longer(settings: &Settings, steps: usize) -> Settings {
    let every = settings.validate_every as u128 * steps as u128 / settings.steps.max(1) as u128;
    Settings {
        steps,
        validate_every: usize::try_from(every).unwrap_or(usize::MAX).max(1),
        ..settings.clone()
    }
}
