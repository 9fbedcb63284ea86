//! Which samples underflow may have spoilt, and their scores once more, in f64 or in log space.

use crate::circuit::activations::Activations;
use crate::circuit::scaled_f64::Wide;
use crate::layers::weights::Weights;
use crate::reference::{self, LogWeights};
use crate::rows::batch::Batch;
use crate::structure::Structure;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Underflow may cost a reported log-likelihood this much, relative, before the sample is computed again in f64.
const SCORE_TOLERANCE: f32 = 1e-6;

/// Underflow in one sample may move the gradient of its batch, a mean over samples, by this much of a seed before the
/// sample is computed again in f64.
const GRADIENT_TOLERANCE: f64 = 1e-3;

/// The weights of a model as the guard of its scores reads them, made when first needed: for a large model that takes
/// longer than a sample does.
#[derive(Default)]
pub struct ScoreGuard {
    wide: OnceLock<Wide>,
    logs: OnceLock<LogWeights>,
}

impl Activations {
    /// Computes doubtful samples again in f64, in log space where that is too narrow too. Call after
    /// [`Activations::upward`] where scores are reported.
    pub fn guard_scores(
        &mut self,
        s: &Structure,
        weights: &Weights,
        guard: &ScoreGuard,
        batch: &Batch,
    ) {
        let doubtful = self.doubtful(s.classes);
        if doubtful.is_empty() {
            return;
        }
        let exact = |&b: &usize| {
            let logs = guard.logs.get_or_init(|| LogWeights::new(s, weights));
            reference::upward(s, weights, logs, batch.row(b), &|_, _, _| false).log_likelihood
        };
        let wide = guard
            .wide
            .get_or_init(|| Wide::new(s, weights))
            .scores(s, weights, batch, &doubtful);
        let scores = doubtful
            .par_iter()
            .zip(wide)
            .map(|(b, wide)| wide.unwrap_or_else(|| exact(b)));
        let scores: Vec<Vec<f64>> = scores.collect();
        for (b, scores) in doubtful.iter().zip(scores) {
            self.root.log_likelihood[b * s.classes..(b + 1) * s.classes].copy_from_slice(&scores);
        }
        self.recomputed = doubtful.len();
    }

    /// Samples of which some class score may have been spoilt by underflow.
    pub fn doubtful(&self, classes: usize) -> Vec<usize> {
        let spoilt = |&b: &usize| {
            !self
                .class_doubts(classes, b)
                .iter()
                .all(|&doubt| doubt <= SCORE_TOLERANCE)
        }; // or NaN
        (0..self.samples).filter(spoilt).collect()
    }

    /// Samples whose derivative underflow may have spoilt. `seeds` (B, K) are `∂/∂ log P(X|y)`: a class that hardly
    /// counts in the objective hardly counts here.
    pub fn doubtful_gradients(&self, classes: usize, seeds: &[f32]) -> Vec<usize> {
        let spoilt = |&b: &usize| {
            let seeds = seeds[b * classes..(b + 1) * classes]
                .iter()
                .zip(self.class_doubts(classes, b));
            let harm = seeds
                .filter(|(seed, _)| **seed != 0.0)
                .map(|(seed, doubt)| f64::from(seed.abs() * doubt));
            let harm: f64 = harm.sum();
            harm.is_nan() || harm > GRADIENT_TOLERANCE
        };
        (0..self.samples).filter(spoilt).collect()
    }
}
