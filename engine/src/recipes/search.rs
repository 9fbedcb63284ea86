//! Which of several ways to learn suits the data: each is tried on most of the rows and scored on the rest.
//!
//! The best of the short trials may be tried once more for longer. What wins is then trained on all rows, for as many
//! steps as were best.

use crate::recipes::beside::Beside;
use crate::recipes::presets::Preset;
use crate::recipes::shares::RowLogs;
use crate::structure::Kind;
use crate::training::data::Data;
use crate::training::leaf_init::LeafStart;
use crate::training::settings::Settings;
use crate::training::trainer::Trainer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What comes after the trees.
#[derive(Clone, Debug)]
pub(crate) enum Finish {
    /// Nothing.
    Trees,
    /// Clusters stand beside the trees, and all are trained on together.
    Beside(Beside),
    /// There were no trees: a model is trained on.
    Model,
}

impl Finish {
    /// Clusters beside the trees, where there are any.
    pub fn with(clusters: Option<LeafStart>) -> Self {
        let clusters = clusters.map(Beside::independent);
        clusters.map_or(Self::Trees, Self::Beside)
    }
}

/// A way to learn that is tried.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub preset: Preset,
    pub finish: Finish,
}

impl Candidate {
    /// The kinds of the columns.
    pub fn kinds(&self) -> Vec<Kind> {
        self.preset.structure.row_kinds()
    }
}

/// Shares of the cells of held-out rows that are taken away, beside the rows as they are.
const HOLES: [f64; 2] = [0.25, 0.5];

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
    pub candidates: Vec<Candidate>,
    pub train: Arc<Data<'a>>,
    pub held_out: Arc<Data<'a>>,
    /// Steps of one more trial of the best candidate.
    pub long_steps: Option<usize>,
    /// Steps of what wins, where the caller wants them.
    pub given_steps: Option<usize>,
    /// Whether a trial is scored once, after its last step; else as often as its settings say.
    pub at_the_end: bool,
    pub trials: Vec<Trial>,
    /// What the best trial says of the held-out rows, where the share of clusters with factors depends on it.
    pub best_logs: Option<RowLogs>,
}

impl<'a> Search<'a> {
    /// Trials of at most so many steps, scored ten times.
    pub fn shorten(&mut self, steps: usize) {
        for candidate in &mut self.candidates {
            let settings = &mut candidate.preset.settings;
            settings.steps = settings.steps.min(steps);
            settings.validate_every = settings.steps.div_ceil(10);
        }
    }

    /// Scores trials on these rows; where there are classes, also on copies with holes.
    pub fn hold_out(&mut self, rows: Arc<Data<'a>>, like: &Preset) {
        self.held_out = match like.structure.classes {
            1 => rows,
            _ => Arc::new(rows.with_holes(&HOLES, like.settings.seed)),
        };
    }

    /// The candidate of the next trial with its settings; nothing where all is known.
    pub fn next(&self) -> Option<(usize, Preset)> {
        let tried = self.trials.len();
        if let Some(candidate) = self.candidates.get(tried) {
            let mut preset = candidate.preset.clone();
            if self.at_the_end {
                preset.settings.validate_every = preset.settings.steps;
            }
            return Some((tried, preset));
        }
        let steps = self.long_steps.filter(|_| tried == self.candidates.len())?;
        let best = self.best()?.candidate;
        let mut preset = self.candidates[best].preset.clone();
        preset.settings = longer(&preset.settings, steps);
        Some((best, preset))
    }

    /// Notes what a trial gave.
    pub fn add(&mut self, candidate: usize, trainer: &Trainer<'_>) {
        let (best_step, score) = match &trainer.best {
            Some(best) if best.score.is_finite() => (best.step, best.score),
            _ => (trainer.step, f64::MIN), // which JSON can hold
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
    pub fn winner(&self) -> Option<(Candidate, Option<usize>)> {
        let best = self.best()?;
        let mut candidate = self.candidates[best.candidate].clone();
        let steps = self.given_steps.unwrap_or(best.steps);
        candidate.preset.settings = longer(&candidate.preset.settings, steps);
        let stop_after = self.given_steps.is_none().then_some(best.best_step);
        Some((candidate, stop_after))
    }

    /// The most steps that a tree can have, whatever wins.
    pub fn longest(&self) -> usize {
        let steps = |candidate: &Candidate| candidate.preset.settings.steps;
        let tried = self.candidates.iter().map(steps).max().unwrap_or(0);
        let long = self.long_steps.unwrap_or(0);
        self.given_steps.unwrap_or(tried.max(long))
    }

    /// Steps of the trials that are left.
    pub fn steps_left(&self) -> usize {
        let tried = self.trials.len();
        let short = self.candidates.iter().skip(tried);
        let short: usize = short.map(|candidate| candidate.preset.settings.steps).sum();
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
