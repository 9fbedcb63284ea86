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
    let learning = family.coordinates.iter_mut().take(gradients.len()); // none where there are factors
    for (s, coordinate) in learning.enumerate() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::Kind;

    const RATE: f64 = 0.25;

    /// `f / (f + MIN_FLOW)` for a flow of a half, of `MIN_FLOW` and of nothing.
    const SHARES: [f64; 3] = [0.5 / (0.5 + 1e-8), 0.5, 0.0];

    #[test]
    fn normals_move_by_what_flows() {
        let mut coordinate = Coordinate::Gaussian {
            mean: vec![1.0, 2.0, 3.0],
            log_sigma: vec![0.5, -0.5, 0.25],
        };
        // Σf, Σfz, Σfz²: z is 0.8 on average, and z² is 1.5.
        let flow = [0.5, 1e-8, 0.0];
        let sums: Vec<f64> = [1.0, 0.8, 1.5]
            .iter()
            .flat_map(|moment| flow.map(|flow| moment * flow))
            .collect();
        expect_coordinate(RATE as f32, &mut coordinate, 3, &sums);
        let Coordinate::Gaussian { mean, log_sigma } = coordinate else {
            panic!("it was normal")
        };
        let before = [(1.0, 0.5), (2.0, -0.5), (3.0, 0.25f64)];
        for (d, (old_mean, old_log)) in before.into_iter().enumerate() {
            let (by, z, spread) = (RATE * SHARES[d], 0.8 * SHARES[d], 1.5 * SHARES[d]);
            let variance = 1.0 - by + by * spread - by * z * by * z;
            let new_mean = old_mean + by * z * old_log.exp();
            let new_log = old_log + variance.sqrt().ln();
            assert!(
                (f64::from(mean[d]) - new_mean).abs() < 1e-6,
                "{d}: {mean:?}"
            );
            assert!((f64::from(log_sigma[d]) - new_log).abs() < 1e-6, "{d}");
        }
    }

    #[test]
    fn tables_move_by_what_flows() {
        let shares = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.25, 0.25, 0.5]]; // by component
        let logits = (0..9).map(|i| (shares[i % 3][i / 3] as f32).ln() + 0.7);
        let mut coordinate = Coordinate::Discrete {
            logits: logits.collect(),
        };
        // A component's flow is split a quarter, nothing, three quarters; less than nothing counts as nothing.
        let flow = [0.5, 1e-8, 0.0];
        let parts = [0.25, -1e-30, 0.75];
        let sums: Vec<f64> = (0..9).map(|i| parts[i / 3] * flow[i % 3]).collect();
        expect_coordinate(RATE as f32, &mut coordinate, 3, &sums);
        let Coordinate::Discrete { logits } = coordinate else {
            panic!("it was discrete")
        };
        for (i, logit) in logits.into_iter().enumerate() {
            let (d, v) = (i % 3, i / 3);
            let by = RATE * SHARES[d];
            let new = (1.0 - by) * shares[d][v] + by * parts[v].max(0.0) * SHARES[d];
            let ours = f64::from(logit).exp() - f64::from(PSEUDO_COUNT);
            assert!((ours - new).abs() < 1e-6, "{d} {v}: {ours} {new}");
        }
    }

    #[test]
    fn deviations_stay_above_the_floor() {
        let mut family = Family::new(&[Kind::Gaussian], 2);
        let sums = Statistics {
            sums: vec![vec![1.0, 1.0, 0.0, 0.0, 0.0, 1.0]],
        };
        let step = Step::new(Rule::Em, 1.0, 0.0, 0);
        update_family(&step, &mut family, &mut [Moments::new(4)], &sums, 0.01);
        let Coordinate::Gaussian { log_sigma, .. } = &family.coordinates[0] else {
            panic!("it was normal")
        };
        assert_eq!(log_sigma[0], 0.5 * 0.01f32.ln());
        assert!(log_sigma[1].abs() < 1e-6, "{log_sigma:?}");
    }
}
