//! Which samples need a recheck because f32 may have underflown, and their scores in f64 or in log space.

use crate::circuit::activations::Activations;
use crate::circuit::log_space::{Join, LogCircuit, LogValues};
use crate::circuit::scaled_f64::ScaledF64;
use crate::layers::weights::Weights;
use crate::rows::batch::Batch;
use crate::structure::Structure;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Underflow may cost a reported log-likelihood this much, relative, before the sample is computed again in f64.
const SCORE_TOLERANCE: f32 = 1e-6;

/// Underflow in one sample may move the gradient of its batch, a mean over samples, by this much of an output gradient
/// before the sample is computed again in f64.
const GRADIENT_TOLERANCE: f64 = 1e-3;

/// The weights of one model in f64 and in log space. They are made when first needed: for a large model that takes
/// longer than a sample does.
#[derive(Default)]
pub struct UnderflowFallback {
    scaled_f64: OnceLock<ScaledF64>,
    log_circuit: OnceLock<LogCircuit>,
}

impl UnderflowFallback {
    /// The weights in log space.
    pub fn log_circuit(&self, s: &Structure, weights: &Weights) -> &LogCircuit {
        self.log_circuit.get_or_init(|| LogCircuit::new(s, weights))
    }

    /// log P(x_o|y), (K), of some samples of a batch: in f64, and in log space where that underflows too.
    pub fn scores(
        &self,
        s: &Structure,
        weights: &Weights,
        batch: &Batch,
        samples: &[usize],
    ) -> Vec<Vec<f64>> {
        if samples.is_empty() {
            return Vec::new();
        }
        let scaled_f64 = self.scaled_f64.get_or_init(|| ScaledF64::new(s, weights));
        let scores = scaled_f64.scores(s, weights, batch, samples);
        let in_log_space = |values: &mut LogValues, b: usize| {
            let circuit = self.log_circuit(s, weights);
            circuit.forward(s, batch.row(b), Join::Sum, values);
            circuit.scores(s, values)
        };
        let exact = |values: &mut LogValues, (&b, scores): (&usize, Option<Vec<f64>>)| {
            scores.unwrap_or_else(|| in_log_space(values, b))
        };
        let samples = samples.par_iter().zip(scores);
        samples.map_init(LogValues::default, exact).collect()
    }
}

impl Activations {
    /// Computes the scores of samples that need a recheck again. Call after [`Activations::forward`] where scores are
    /// reported.
    pub fn recheck_scores(
        &mut self,
        s: &Structure,
        weights: &Weights,
        fallback: &UnderflowFallback,
        batch: &Batch,
    ) {
        let samples = self.scores_to_recheck(s.classes);
        let scores = fallback.scores(s, weights, batch, &samples);
        for (b, scores) in samples.iter().zip(scores) {
            self.root.log_likelihood[b * s.classes..(b + 1) * s.classes].copy_from_slice(&scores);
        }
    }

    /// Samples of which some class score may have lost too much to underflow.
    pub fn scores_to_recheck(&self, classes: usize) -> Vec<usize> {
        let is_exact = |b: usize| {
            let bounds = self.class_underflow_bounds(classes, b).iter();
            bounds.copied().all(|bound| bound <= SCORE_TOLERANCE) // not if NaN
        };
        (0..self.samples).filter(|&b| !is_exact(b)).collect()
    }

    /// Samples whose derivative may have lost too much to underflow. `output_gradients` (B, K) are `∂/∂ log P(X|y)`: a
    /// class that hardly counts in the objective hardly counts here. The gradients themselves, of about 1/B, may be
    /// wrong by what underflow may have taken from the likeliest class.
    pub fn gradients_to_recheck(&self, classes: usize, output_gradients: &[f32]) -> Vec<usize> {
        let needs_recheck = |&b: &usize| {
            let harm = self.gradient_harm(b, &output_gradients[b * classes..(b + 1) * classes]);
            harm.is_nan() || harm > GRADIENT_TOLERANCE
        };
        (0..self.samples).filter(needs_recheck).collect()
    }

    /// How much of the derivative of sample b underflow may have taken, given its output gradients (K).
    fn gradient_harm(&self, b: usize, output_gradients: &[f32]) -> f64 {
        let bounds = self.class_underflow_bounds(output_gradients.len(), b);
        let likeliest = bounds.iter().copied().fold(f32::INFINITY, f32::min);
        let both = output_gradients.iter().zip(bounds);
        let of_classes = both
            .filter(|(gradient, _)| **gradient != 0.0)
            .map(|(gradient, bound)| f64::from(gradient.abs() * bound));
        of_classes.sum::<f64>() + f64::from(likeliest) / self.samples as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harm_is_what_the_gradients_may_lose() {
        let mut activations = Activations::new();
        activations.samples = 2;
        activations.root.relative_bound = vec![4e-4, 0.25, f32::INFINITY, 2e-3, 0.0, 0.0];
        let gradients = [0.5, -0.001, 0.0, 0.25, 0.0, 0.0];
        let harm = activations.gradient_harm(0, &gradients[..3]);
        assert!((harm - (2e-4 + 2.5e-4 + 2e-4)).abs() < 1e-9, "{harm}");
        let harm = activations.gradient_harm(1, &gradients[3..]);
        assert!((harm - 5e-4).abs() < 1e-9, "{harm}");
        assert!(activations.gradients_to_recheck(3, &gradients).is_empty());
        activations.root.relative_bound[0] = 2e-3; // of the likeliest class too
        assert_eq!(activations.gradients_to_recheck(3, &gradients), [0]);
        activations.root.relative_bound[4] = f32::NAN;
        assert_eq!(activations.gradients_to_recheck(3, &[0.5; 6]), [0, 1]);
        assert_eq!(activations.scores_to_recheck(3), [0, 1]);
        activations.root.relative_bound = vec![1e-6, 0.0, 0.0, 0.0, 0.0, 1.1e-6];
        assert_eq!(activations.scores_to_recheck(3), [1]);
    }
}
