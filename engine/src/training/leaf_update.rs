//! A step of a leaf family, by a rule or by EM.

use crate::layers::leaf::{Coordinate, Family};
use crate::layers::leaf_statistics::Statistics;
use crate::training::memory::Moments;
use crate::training::optimizer::{PSEUDO_COUNT, Rule, Step};

/// Moves a leaf family by its statistics. Statistics are flows of the objective, or, for EM, of the log-likelihood.
pub fn update_family(
    step: &Step,
    family: &mut Family,
    moments: &mut [Moments],
    sums: &Statistics,
    floor: f32,
) {
    let gradients = sums.gradient(family);
    let m = family.components;
    for (s, coordinate) in family.coordinates.iter_mut().enumerate() {
        let (moments, gradient, sums) = (&mut moments[s], &gradients[s], &sums.sums[s]);
        if step.rule != Rule::Em {
            for (i, value) in coordinate.free_mut().into_iter().enumerate() {
                *value -= step.change(gradient[i], &mut moments.first[i], &mut moments.second[i]);
            }
        } else {
            expect_coordinate(step.rate, coordinate, m, sums);
        }
        if let Coordinate::Gaussian { log_sigma, .. } = coordinate {
            let min = 0.5 * floor.ln();
            log_sigma
                .iter_mut()
                .for_each(|log_sigma| *log_sigma = log_sigma.clamp(min, 80.0)); // σ stays a number
        }
    }
}

/// EM for one coordinate: moments under the flows, moved towards by η; by less where next to nothing flows.
fn expect_coordinate(rate: f32, coordinate: &mut Coordinate, m: usize, sums: &[f64]) {
    const MIN_FLOW: f64 = 1e-8;
    let rate = f64::from(rate);
    match coordinate {
        Coordinate::Gaussian { mean, log_sigma } => {
            for d in 0..m {
                let share = sums[d].max(0.0);
                let by = rate * share / (share + MIN_FLOW);
                let sigma = f64::from(log_sigma[d]).exp();
                let z = sums[m + d] / (share + MIN_FLOW);
                let spread = sums[2 * m + d] / (share + MIN_FLOW);
                // E[z²] about the new mean, mixed with the 1 that the old σ stands for
                let variance = (1.0 - by) + by * spread - (by * z).powi(2);
                mean[d] += (by * z * sigma) as f32;
                log_sigma[d] += (0.5 * variance.max(MIN_FLOW).ln()) as f32;
            }
        }
        Coordinate::Discrete { logits } => {
            for d in 0..m {
                let total: f64 = sums.iter().skip(d).step_by(m).sum();
                let by = rate * total.max(0.0) / (total.max(0.0) + MIN_FLOW);
                let norm: f64 = logits
                    .iter()
                    .skip(d)
                    .step_by(m)
                    .map(|&l| f64::from(l).exp())
                    .sum();
                for i in (d..logits.len()).step_by(m) {
                    let old = f64::from(logits[i]).exp() / norm;
                    let new =
                        (1.0 - by) * old + by * sums[i].max(0.0) / (total.max(0.0) + MIN_FLOW);
                    logits[i] = (new + f64::from(PSEUDO_COUNT)).ln() as f32;
                }
            }
        }
    }
}
