//! What a leaf family learns from: sums over what was observed, and the gradients that follow from them.

use crate::layers::leaf::{Coordinate, Family};
use crate::layers::leaf_kernel::{KernelDensity, LeafKernel};
use crate::structure::OUTSIDE;

/// Weighted sums over observed coordinates, the sufficient statistics of gradients and of EM alike. The weight of
/// component d in a sample is its flow `φ(d)·dφ(d)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// For each coordinate; none where there are factors, which do not learn. Gaussian: (Σ f, Σ f z, Σ f z²) with z = (x − μ)/σ, (3, M). Discrete: Σ f [x = v], (V, M).
    pub sums: Vec<Vec<f64>>,
}

impl Statistics {
    /// All zero.
    pub fn new(family: &Family) -> Self {
        let zeros = |coordinate: &Coordinate| match coordinate {
            Coordinate::Gaussian { mean, .. } => vec![0.0; 3 * mean.len()],
            Coordinate::Discrete { logits } => vec![0.0; logits.len()],
        };
        let learning = match family.factors {
            None => &family.coordinates[..],
            Some(_) => &[],
        };
        Self {
            sums: learning.iter().map(zeros).collect(),
        }
    }

    /// Adds one local structure with the flow of each component. It is inlined, so that a caller who
    /// dispatches gets vectors.
    #[inline(always)]
    pub fn add(&mut self, kernel: &LeafKernel, inputs: &[u32], frame: &[f32], flow: &[f32]) {
        let components = flow.len();
        for ((sums, density), &input) in self.sums.iter_mut().zip(&kernel.densities).zip(inputs) {
            if input == OUTSIDE || frame[input as usize].is_nan() {
                continue;
            }
            let x = frame[input as usize];
            match density {
                KernelDensity::Gaussian { mean, inverse, .. } => {
                    let (zeroth, rest) = sums.split_at_mut(components);
                    let (first, second) = rest.split_at_mut(components);
                    let second = &mut second[..components]; // equal lengths: no check in the loop
                    let (mean, inverse) = (&mean[..components], &inverse[..components]);
                    for d in 0..components {
                        let z = (x - mean[d]) * inverse[d];
                        let f = flow[d];
                        zeroth[d] += f64::from(f);
                        first[d] += f64::from(f * z);
                        second[d] += f64::from(f * z * z);
                    }
                }
                KernelDensity::Discrete { .. } => {
                    let counts = &mut sums[x as usize * components..][..components];
                    let both = counts.iter_mut().zip(flow);
                    both.for_each(|(count, &f)| *count += f64::from(f));
                }
            }
        }
    }

    /// Adds another's sums.
    pub fn merge(&mut self, other: &Self) {
        for (sums, others) in self.sums.iter_mut().zip(&other.sums) {
            sums.iter_mut()
                .zip(others)
                .for_each(|(sum, other)| *sum += other);
        }
    }

    /// The gradient of the flow-weighted log-density by the free parameters of each coordinate:
    /// (dμ, d log σ) side by side, or dlogits.
    pub fn gradient(&self, family: &Family) -> Vec<Vec<f32>> {
        let m = family.components;
        let coordinates = family.coordinates.iter().enumerate().zip(&self.sums);
        coordinates
            .map(|((s, coordinate), sums)| match coordinate {
                Coordinate::Gaussian { log_sigma, .. } => {
                    let mean =
                        (0..m).map(|d| (sums[m + d] * (-f64::from(log_sigma[d])).exp()) as f32);
                    let log_sigma = (0..m).map(|d| (sums[2 * m + d] - sums[d]) as f32);
                    mean.chain(log_sigma).collect()
                }
                Coordinate::Discrete { logits } => {
                    let total: Vec<f64> = (0..m)
                        .map(|d| sums.iter().skip(d).step_by(m).sum())
                        .collect();
                    let probability: Vec<Vec<f64>> =
                        (0..m).map(|d| family.probabilities(s, d)).collect();
                    let by = |i: usize| sums[i] - probability[i % m][i / m] * total[i % m];
                    (0..logits.len()).map(|i| by(i) as f32).collect()
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::leaf::log_leaf;
    use crate::layers::leaf_kernel::tests::mixed;

    #[test]
    fn gradient_by_finite_differences() {
        let (family, _) = mixed();
        let inputs = [0, 1, 2];
        let frame = [0.3, 1.0, 2.0];
        let flow = [0.7f32, -0.4];
        let objective = |family: &Family| -> f64 {
            (0..2)
                .map(|d| f64::from(flow[d]) * log_leaf(family, &inputs, &frame, d))
                .sum()
        };
        let mut sums = Statistics::new(&family);
        sums.add(&LeafKernel::new(&family), &inputs, &frame, &flow);
        let gradient = sums.gradient(&family);
        for s in 0..3 {
            for i in 0..gradient[s].len() {
                let moved = |by: f32| {
                    let mut family = family.clone();
                    match &mut family.coordinates[s] {
                        Coordinate::Gaussian { mean, log_sigma } => {
                            if i < 2 {
                                mean[i] += by
                            } else {
                                log_sigma[i - 2] += by
                            }
                        }
                        Coordinate::Discrete { logits } => logits[i] += by,
                    }
                    objective(&family)
                };
                let numeric = (moved(1e-3) - moved(-1e-3)) / 2e-3;
                assert!(
                    (f64::from(gradient[s][i]) - numeric).abs() < 1e-3,
                    "{s} {i}: {} {numeric}",
                    gradient[s][i]
                );
            }
        }
    }
}
