//! Steps: from dW to new weights, in one pass over each panel.
//!
//! The free parameters are logits, `W = softmax(logits)`. A step that subtracts Δ from the logits is
//! `W ← W exp(−Δ)`, normalised; so W itself is all that is kept, and a weight of zero stays zero.
//!
//! ```text
//! N       = W ∘ dW                      expected counts (flows), plus those of samples the guard computed again
//! g       = N − W ΣₐN                   the derivative by the logits
//! Adam    m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,   Δ = r m̂/√(v̂ + ε²)
//! Nadam   the same with m̂ = β₁ m/(1−β₁ᵗ⁺¹) + (1−β₁) g/(1−β₁ᵗ)
//! SGD     m ← μ m + g,                              Δ = r m
//! EM      s ← (1−η)s + η N,                         W ← (s + κ)/Σₐ(s + κ)
//! ```
//!
//! The penalty λ Σw² adds 2λW to dW.
//!
//! Tried: dW of all matrices first, then all steps over separate logits. The numbers of a step (weights, logits, memory,
//! dW) then leave the cache between the two, and the step waits for memory.

use crate::arithmetic::instructions::arch;
use crate::arithmetic::math::{exp, inverse_root};
use crate::arithmetic::tasks::for_each_task;
use crate::error::{Error, Result};
use crate::layers::mixing_gradient::Scratch;
use crate::layers::simplex::{PanelMut, Simplex, cut_panels, cut_panels_mut};
use crate::layers::softmax::normalise;
use crate::training::memory::Moments;
use pulp::{Simd, WithSimd};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

const EPSILON: f32 = 1e-8;
/// EM's pseudo-count, relative to a row whose counts sum to one a batch.
pub(super) const PSEUDO_COUNT: f32 = 1e-6;

/// How weights follow their gradient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Rule {
    /// Kingma and Ba 2015.
    Adam {
        /// Decay of the first moment.
        beta1: f32,
        /// Decay of the second moment.
        beta2: f32,
    },
    /// Dozat 2016.
    Nadam {
        /// Decay of the first moment.
        beta1: f32,
        /// Decay of the second moment.
        beta2: f32,
    },
    /// Gradient descent.
    Sgd {
        /// Momentum.
        momentum: f32,
    },
    /// Mini-batch expectation maximisation of log P(X, y); the learning rate is η.
    Em,
}

impl Rule {
    /// Adam with its usual decays.
    pub fn adam() -> Self {
        Self::Adam {
            beta1: 0.9,
            beta2: 0.999,
        }
    }

    /// Checks ranges.
    pub fn check(&self) -> Result<()> {
        let decays = match *self {
            Self::Adam { beta1, beta2 } | Self::Nadam { beta1, beta2 } => [beta1, beta2],
            Self::Sgd { momentum } => [momentum, 0.0],
            Self::Em => [0.0, 0.0],
        };
        match decays.iter().find(|decay| !(0.0..1.0).contains(*decay)) {
            Some(decay) => Err(Error::Setting {
                name: "decay",
                expected: "0 ≤ decay < 1",
                got: decay.to_string(),
            }),
            None => Ok(()),
        }
    }
}

/// How the learning rate changes with the step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Schedule {
    /// Always the same.
    Constant,
    /// Times `factor` after every `every` steps.
    Step {
        /// Steps between falls.
        every: usize,
        /// What a fall multiplies by.
        factor: f64,
    },
    /// Constant until step `from`, then in a straight line to zero at the end.
    Linear {
        /// Where the line starts.
        from: usize,
    },
    /// Half a cosine from the full rate to zero at the end.
    Cosine,
}

impl Schedule {
    /// The factor of the rate at `step` of `steps`.
    pub fn factor(&self, step: usize, steps: usize) -> f64 {
        let steps = steps.max(1) as f64;
        match *self {
            Self::Constant => 1.0,
            Self::Step { every, factor } => factor.powi((step / every.max(1)) as i32),
            Self::Linear { from } if step <= from => 1.0,
            Self::Linear { from } => {
                ((steps - step as f64) / (steps - from as f64).max(1.0)).clamp(0.0, 1.0)
            }
            Self::Cosine => {
                0.5 * (1.0 + (std::f64::consts::PI * (step as f64 / steps).min(1.0)).cos())
            }
        }
    }
}

/// One step's numbers: the rule with its bias corrections worked out.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub(crate) rule: Rule,
    pub(crate) rate: f32,
    pub(crate) penalty: f32,       // 2λ
    pub(crate) from_moment: f32,   // what m̂ takes of m
    pub(crate) from_gradient: f32, // what m̂ takes of g
    pub(crate) second: f32,        // 1/(1 − β₂ᵗ)
    collects: bool,                // N into the first memory, and nothing moves
}

impl Step {
    /// `index` counts from 0; `rate` has its schedule applied.
    pub fn new(rule: Rule, rate: f64, lambda: f64, index: usize) -> Self {
        let t = index as i32 + 1;
        let corrected = |decay: f32, t: i32| 1.0 / (1.0 - f64::from(decay).powi(t));
        let (from_moment, from_gradient, second) = match rule {
            Rule::Adam { beta1, beta2 } => (corrected(beta1, t), 0.0, corrected(beta2, t)),
            Rule::Nadam { beta1, beta2 } => {
                let look = f64::from(beta1) * corrected(beta1, t + 1);
                (
                    look,
                    f64::from(1.0 - beta1) * corrected(beta1, t),
                    corrected(beta2, t),
                )
            }
            Rule::Sgd { .. } | Rule::Em => (1.0, 0.0, 1.0),
        };
        Self {
            rule,
            rate: rate as f32,
            penalty: (2.0 * lambda) as f32,
            from_moment: from_moment as f32,
            from_gradient: from_gradient as f32,
            second: second as f32,
            collects: false,
        }
    }

    /// Not a step: N is kept in place of the first moment, and W stays as it is.
    pub(crate) fn collecting() -> Self {
        Self {
            collects: true,
            ..Self::new(Rule::Em, 0.0, 0.0, 0)
        }
    }

    /// Δ of one number.
    pub(super) fn change(&self, gradient: f32, first: &mut f32, second: &mut f32) -> f32 {
        self.changes(pulp::Scalar::new(), gradient, first, second)
    }

    /// Δ of a vector of numbers.
    #[inline(always)]
    fn changes<S: Simd>(
        &self,
        simd: S,
        gradient: S::f32s,
        first: &mut S::f32s,
        second: &mut S::f32s,
    ) -> S::f32s {
        let times = |factor: f32, x: S::f32s| simd.mul_f32s(simd.splat_f32s(factor), x);
        match self.rule {
            Rule::Adam { beta1, beta2 } | Rule::Nadam { beta1, beta2 } => {
                let square = simd.mul_f32s(gradient, gradient);
                *first = simd.add_f32s(times(beta1, *first), times(1.0 - beta1, gradient));
                *second = simd.add_f32s(times(beta2, *second), times(1.0 - beta2, square));
                let towards = simd.add_f32s(
                    times(self.from_moment, *first),
                    times(self.from_gradient, gradient),
                );
                let size = simd.mul_add_e_f32s(
                    simd.splat_f32s(self.second),
                    *second,
                    simd.splat_f32s(EPSILON * EPSILON),
                );
                simd.mul_f32s(times(self.rate, towards), inverse_root(simd, size))
            }
            Rule::Sgd { momentum } => {
                *first = simd.add_f32s(times(momentum, *first), gradient);
                times(self.rate, *first)
            }
            Rule::Em => simd.splat_f32s(0.0),
        }
    }
}

/// A panel of W with all that a step of it reads and writes.
pub(crate) struct PanelStep<'a> {
    pub panel: PanelMut<'a>,
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
    counts: &'a [f32],
}

/// The panels of all matrices of a level, in their order. `counts` are flows to be added to W ∘ dW, or empty.
pub(crate) fn panel_steps<'a>(
    simplex: &'a mut Simplex,
    moments: &'a mut Moments,
    counts: &'a [f32],
) -> impl Iterator<Item = PanelStep<'a>> {
    let columns = simplex.columns();
    let shapes: Vec<_> = simplex.panels().collect();
    let first = cut_panels_mut(&mut moments.first, &shapes, columns);
    let second = cut_panels_mut(&mut moments.second, &shapes, columns);
    let counts = if counts.is_empty() {
        vec![&[][..]; shapes.len()]
    } else {
        cut_panels(counts, &shapes, columns)
    };
    let parts = simplex
        .panels_mut()
        .into_iter()
        .zip(first)
        .zip(second)
        .zip(counts);
    parts.map(|(((panel, first), second), counts)| PanelStep {
        panel,
        first,
        second,
        counts,
    })
}

impl PanelStep<'_> {
    /// Moves the panel. `gradient` computes dW of its rows, which never leaves the cache.
    pub fn run(mut self, step: &Step, gradient: impl Fn(&mut Scratch, &Self)) {
        SCRATCH.with_borrow_mut(|scratch| {
            gradient(scratch, &self);
            self.update(step, &scratch.gradient);
        });
        self.panel.finish();
    }

    /// A step with the gradient dW.
    fn update(&mut self, step: &Step, gradient: &[f32]) {
        arch().dispatch(UpdatePanel {
            step,
            width: self.panel.rows.width,
            weights: self.panel.weights,
            first: self.first,
            second: self.second,
            gradient,
            counts: self.counts,
        });
    }
}

// One for each thread, kept from step to step.
thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// Moves all matrices of a level, with `gradient` for each panel; `work` is what that costs in multiply-adds.
pub(crate) fn update_mixing(
    step: &Step,
    (simplex, moments, counts): (&mut Simplex, &mut Moments, &[f32]),
    work: usize,
    gradient: impl Fn(&mut Scratch, &PanelStep<'_>) + Send + Sync,
) {
    for_each_task(
        work,
        panel_steps(simplex, moments, counts).collect(),
        |panel| panel.run(step, &gradient),
    );
}

struct UpdatePanel<'a> {
    step: &'a Step,
    width: usize,
    weights: &'a mut [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    gradient: &'a [f32],
    counts: &'a [f32],
}

impl WithSimd for UpdatePanel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        if self.step.collects {
            return self.collect();
        }
        let vectors = self.width / S::F32_LANES;
        if self.step.rule == Rule::Em {
            self.expect();
            let weights = S::as_mut_simd_f32s(self.weights).0;
            return (0..vectors).for_each(|v| normalise(simd, v, vectors, weights));
        }
        let weights = S::as_mut_simd_f32s(self.weights).0;
        let (first, second) = (
            S::as_mut_simd_f32s(self.first).0,
            S::as_mut_simd_f32s(self.second).0,
        );
        let (gradient, counts) = (
            S::as_simd_f32s(self.gradient).0,
            S::as_simd_f32s(self.counts).0,
        );
        let penalty = simd.splat_f32s(self.step.penalty);
        let flow = |i: usize, w: S::f32s| {
            let flow = simd.mul_f32s(w, simd.mul_add_e_f32s(penalty, w, gradient[i]));
            let count = counts.get(i);
            count.map_or(flow, |&count| simd.add_f32s(flow, count))
        };
        let zero = simd.splat_f32s(0.0);
        let max = simd.splat_f32s(80.0); // exp stays finite whatever the rate
        for v in 0..vectors {
            let mut total = zero; // ΣₐN
            for i in (v..weights.len()).step_by(vectors) {
                total = simd.add_f32s(total, flow(i, weights[i]));
            }
            let mut sum = zero;
            for i in (v..weights.len()).step_by(vectors) {
                let slope = simd.sub_f32s(flow(i, weights[i]), simd.mul_f32s(weights[i], total));
                let change = self
                    .step
                    .changes(simd, slope, &mut first[i], &mut second[i]);
                let factor = exp(simd, simd.min_f32s(simd.sub_f32s(zero, change), max));
                weights[i] = simd.mul_f32s(weights[i], factor);
                sum = simd.add_f32s(sum, weights[i]);
            }
            let scale = simd.div_f32s(simd.splat_f32s(1.0), sum);
            for i in (v..weights.len()).step_by(vectors) {
                weights[i] = simd.mul_f32s(weights[i], scale);
            }
        }
    }
}

impl UpdatePanel<'_> {
    /// N, signed, into the first memory.
    #[inline(always)]
    fn collect(self) {
        for (i, to) in self.first.iter_mut().enumerate() {
            let flow = self.weights[i] * self.gradient[i];
            *to = self.counts.get(i).map_or(flow, |count| flow + count);
        }
    }

    /// EM: running counts. A weight of zero stays zero.
    fn expect(&mut self) {
        for i in 0..self.weights.len() {
            let count = self.weights[i] * self.gradient[i] + self.counts.get(i).unwrap_or(&0.0);
            self.first[i] += self.step.rate * (count.max(0.0) - self.first[i]);
            if self.weights[i] > 0.0 {
                self.weights[i] = self.first[i] + PSEUDO_COUNT;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::mixing::Mixing;

    /// A gradient of one panel that is known already.
    fn given(gradient: &[f32]) -> impl Fn(&mut Scratch, &PanelStep<'_>) {
        |scratch, _| scratch.gradient = gradient.to_vec()
    }

    /// Every rule on one matrix, against its definition in f64.
    #[test]
    fn rules_follow_their_definitions() {
        let rules = [
            Rule::Adam {
                beta1: 0.9,
                beta2: 0.99,
            },
            Rule::Nadam {
                beta1: 0.8,
                beta2: 0.99,
            },
            Rule::Sgd { momentum: 0.5 },
        ];
        for rule in rules {
            let mut mixing = Mixing::random(1, 3, 5, 1.0, (1, 1));
            let mut simplex = Simplex::new(&mixing);
            let mut moments = Moments::new(mixing.logits.len());
            let (mut first, mut second) = (vec![0.0f64; 15], vec![0.0f64; 15]);
            for index in 0..5 {
                let before = mixing.clone();
                let gradient: Vec<f32> = (0..mixing.logits.len())
                    .map(|i| ((i * 7 + index) % 5) as f32 - 2.0)
                    .collect();
                update_mixing(
                    &Step::new(rule, 0.1, 0.3, index),
                    (&mut simplex, &mut moments, &[]),
                    0,
                    given(&gradient),
                );
                mixing = simplex.to_mixing();
                for c in 0..3 {
                    let w: Vec<f64> = before.log_row(0, c).iter().map(|log| log.exp()).collect();
                    let g = |a: usize| f64::from(gradient[before.place(0, c, a)]) + 0.6 * w[a];
                    let total: f64 = (0..5).map(|a| w[a] * g(a)).sum();
                    let mut moved = [0.0; 5];
                    for a in 0..5 {
                        let slope = w[a] * (g(a) - total);
                        let (m, v) = (&mut first[c * 5 + a], &mut second[c * 5 + a]);
                        let t = index as i32 + 1;
                        let change = match rule {
                            Rule::Adam { .. } => {
                                *m = 0.9 * *m + 0.1 * slope;
                                *v = 0.99 * *v + 0.01 * slope * slope;
                                *m / (1.0 - 0.9f64.powi(t))
                                    / ((*v / (1.0 - 0.99f64.powi(t))).sqrt() + 1e-8)
                            }
                            Rule::Nadam { .. } => {
                                *m = 0.8 * *m + 0.2 * slope;
                                *v = 0.99 * *v + 0.01 * slope * slope;
                                let hat = 0.8 * *m / (1.0 - 0.8f64.powi(t + 1))
                                    + 0.2 * slope / (1.0 - 0.8f64.powi(t));
                                hat / ((*v / (1.0 - 0.99f64.powi(t))).sqrt() + 1e-8)
                            }
                            _ => {
                                *m = 0.5 * *m + slope;
                                *m
                            }
                        };
                        moved[a] = w[a] * (-0.1 * change).exp();
                    }
                    for a in 0..5 {
                        let (ours, expected) = (
                            f64::from(simplex.weight(0, c, a)),
                            moved[a] / moved.iter().sum::<f64>(),
                        );
                        assert!(
                            (ours - expected).abs() < 1e-5,
                            "{rule:?} {index}: {ours} {expected}"
                        );
                    }
                }
            }
        }
    }

    /// Without a step: W ∘ dW, with what is to be added to it, in place of the first moment.
    #[test]
    fn flows_are_collected() {
        let mixing = Mixing::random(1, 3, 5, 1.0, (1, 1));
        let mut simplex = Simplex::new(&mixing);
        let before = simplex.to_mixing();
        let length = mixing.logits.len();
        let gradient: Vec<f32> = (0..length).map(|i| (i % 5) as f32 - 1.5).collect();
        let added: Vec<f32> = (0..length).map(|i| (i % 3) as f32).collect();
        for counts in [&[][..], &added] {
            let mut moments = Moments::new(length);
            let all = (&mut simplex, &mut moments, counts);
            update_mixing(&Step::collecting(), all, 0, given(&gradient));
            assert_eq!(simplex.to_mixing(), before, "weights stay");
            for (c, a) in (0..3).flat_map(|c| (0..5).map(move |a| (c, a))) {
                let place = mixing.place(0, c, a);
                let more = counts.get(place).unwrap_or(&0.0);
                let flow = simplex.weight(0, c, a) * gradient[place] + more;
                assert!((moments.first[place] - flow).abs() < 1e-6, "{c} {a}");
            }
        }
    }

    #[test]
    fn schedules() {
        assert_eq!(Schedule::Constant.factor(70, 100), 1.0);
        assert_eq!(
            Schedule::Step {
                every: 30,
                factor: 0.5
            }
            .factor(70, 100),
            0.25
        );
        assert_eq!(Schedule::Linear { from: 80 }.factor(80, 100), 1.0);
        assert_eq!(Schedule::Linear { from: 80 }.factor(90, 100), 0.5);
        assert!(Schedule::Cosine.factor(100, 100).abs() < 1e-12);
        assert!((Schedule::Cosine.factor(50, 100) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_identity_stays() {
        let mixing = Mixing::identity(4);
        let mut simplex = Simplex::new(&mixing);
        let mut moments = Moments::new(mixing.logits.len());
        let gradient = vec![0.7; mixing.logits.len()];
        update_mixing(
            &Step::new(Rule::adam(), 0.1, 0.5, 0),
            (&mut simplex, &mut moments, &[]),
            0,
            given(&gradient),
        );
        assert_eq!(simplex.to_mixing(), mixing);
    }

    /// EM on one matrix: counts move towards what flows, and a weight of zero stays zero.
    #[test]
    fn em_follows_its_definition() {
        let given_weights = [0.5, 0.0, 0.25, 0.25, 0.125, 0.375, 0.25, 0.25];
        let mixing = Mixing::from_weights(1, 2, 4, &given_weights);
        let mut simplex = Simplex::new(&mixing);
        let length = mixing.logits.len();
        let mut moments = Moments::new(length);
        let mut first = vec![0.0f64; length];
        for index in 0..3 {
            let gradient: Vec<f32> = (0..length)
                .map(|i| ((i + index) % 5) as f32 - 1.0)
                .collect();
            let added: Vec<f32> = (0..length).map(|i| (i % 3) as f32 * 0.5).collect();
            let counts = if index == 1 { &added[..] } else { &[] };
            let before = simplex.clone();
            let step = Step::new(Rule::Em, 0.25, 0.0, index);
            let all = (&mut simplex, &mut moments, counts);
            update_mixing(&step, all, 0, given(&gradient));
            for c in 0..2 {
                let mut kept = [0.0; 4];
                for (a, kept) in kept.iter_mut().enumerate() {
                    let (place, w) = (mixing.place(0, c, a), before.weight(0, c, a));
                    let flow = w * gradient[place] + counts.get(place).unwrap_or(&0.0);
                    first[place] = 0.75 * first[place] + 0.25 * f64::from(flow.max(0.0));
                    *kept = if w > 0.0 { first[place] + 1e-6 } else { 0.0 };
                }
                for (a, new) in kept.iter().enumerate() {
                    let new = new / kept.iter().sum::<f64>();
                    let ours = f64::from(simplex.weight(0, c, a));
                    assert!((ours - new).abs() < 1e-6, "{index} {c} {a}: {ours} {new}");
                }
            }
        }
    }
}
