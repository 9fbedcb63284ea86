//! Leaves: `φ⁰(d) = p(x | d) = Π_s p(x_s | d)`, a product over the coordinates that are observed.
//!
//! A missing coordinate drops out of the product, because its density integrates to one (paper, appendix on efficient
//! marginalisation). Coordinates are normal, or discrete with a table of probabilities; kinds mix within a family:
//!
//! ```text
//! Gaussian    log p(x|d) = −½ ((x − μ_d)/σ_d)² − log σ_d − ½ log 2π
//! discrete    log p(x|d) = log softmax_v(logits_d)[x]
//! ```
//!
//! A family may have factors: then the normal coordinates of a component depend on each other.
//!
//! ```text
//! x_s = μ_ds + Σ_r λ_dsr z_r + σ_ds ε_s      z, ε standard normal      log p(x_o|d) = log N(x_o; μ_o, Λ_o Λ_oᵀ + diag σ_o²)
//! ```
//!
//! What is missing drops out of μ_o, Λ_o and σ_o. Here all of it is written from the definition; `leaf_factors.rs` is fast.

use crate::arithmetic::math::{argmax, log_sum_exp};
use crate::arithmetic::triangle::MAX_SIDE;
use crate::structure::{Kind, OUTSIDE};

const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_8; // ½ log 2π

/// The free parameters of one coordinate, for all M components.
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinate {
    /// Normal densities.
    Gaussian {
        /// μ, (M).
        mean: Vec<f32>,
        /// log σ, (M).
        log_sigma: Vec<f32>,
    },
    /// Probabilities of the values 0 … V − 1.
    Discrete {
        /// (V, M); probabilities are a softmax over V.
        logits: Vec<f32>,
    },
}

impl Coordinate {
    /// Every free parameter: (μ, log σ) side by side, or logits.
    pub fn free_mut(&mut self) -> Vec<&mut f32> {
        match self {
            Self::Gaussian { mean, log_sigma } => mean.iter_mut().chain(log_sigma).collect(),
            Self::Discrete { logits } => logits.iter_mut().collect(),
        }
    }
}

/// What makes the normal coordinates of a component depend on each other. Training leaves it as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    /// R.
    pub rank: usize,
    /// λ, (S, R, M); 0 where a coordinate is discrete.
    pub loadings: Vec<f32>,
}

/// The most factors of a family.
pub const MAX_RANK: usize = MAX_SIDE;

/// The components of one leaf family: a coordinate for each number of its local structures.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// M.
    pub components: usize,
    /// S of them.
    pub coordinates: Vec<Coordinate>,
    /// Where coordinates of a component depend on each other. Then σ is what the factors leave.
    pub factors: Option<Factors>,
}

/// How many values a discrete kind has; `None` for a real number.
pub fn values_of(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Gaussian => None,
        Kind::Bernoulli => Some(2),
        Kind::Categorical(n) => Some(n as usize),
    }
}

impl Family {
    /// Standard normals and uniform tables.
    pub fn new(kinds: &[Kind], components: usize) -> Self {
        let coordinate = |&kind: &Kind| match values_of(kind) {
            None => Coordinate::Gaussian {
                mean: vec![0.0; components],
                log_sigma: vec![0.0; components],
            },
            Some(values) => Coordinate::Discrete {
                logits: vec![0.0; values * components],
            },
        };
        Self {
            components,
            coordinates: kinds.iter().map(coordinate).collect(),
            factors: None,
        }
    }

    /// λ of one coordinate and component, (R); empty without factors.
    fn loadings(&self, s: usize, d: usize) -> impl Iterator<Item = f64> + Clone {
        let m = self.components;
        let all = self.factors.iter().flat_map(move |factors| {
            let of_coordinate = &factors.loadings[s * factors.rank * m..][..factors.rank * m];
            of_coordinate.iter().skip(d).step_by(m)
        });
        all.map(|&loading| f64::from(loading))
    }

    /// log of the deviation of `x_s` in component d, with what the factors add.
    fn log_deviation(&self, s: usize, d: usize, log_sigma: f32) -> f64 {
        let log_sigma = f64::from(log_sigma);
        match self.factors {
            None => log_sigma,
            Some(_) => {
                let shared: f64 = self.loadings(s, d).map(|l| l * l).sum();
                0.5 * ((2.0 * log_sigma).exp() + shared).ln()
            }
        }
    }

    /// `log p(x_s | d)` in f64, straight from the definition.
    pub fn log_density(&self, s: usize, d: usize, x: f32) -> f64 {
        match &self.coordinates[s] {
            Coordinate::Gaussian { mean, log_sigma } => {
                let log_sigma = self.log_deviation(s, d, log_sigma[d]);
                let z = (f64::from(x) - f64::from(mean[d])) * (-log_sigma).exp();
                -0.5 * z * z - log_sigma - HALF_LOG_TAU
            }
            Coordinate::Discrete { logits } => log_table(logits, self.components, d)[x as usize],
        }
    }

    /// `max_x log p(x_s | d)` and where it is.
    pub fn mode(&self, s: usize, d: usize) -> (f64, f32) {
        match &self.coordinates[s] {
            Coordinate::Gaussian { mean, .. } => (self.log_density(s, d, mean[d]), mean[d]),
            Coordinate::Discrete { logits } => {
                let table = log_table(logits, self.components, d);
                let best = argmax(&table);
                (table[best], best as f32)
            }
        }
    }

    /// `E[x_s | d]` and `E[x_s² | d]`; for a discrete coordinate, of its value as a number.
    pub fn moments(&self, s: usize, d: usize) -> (f64, f64) {
        match &self.coordinates[s] {
            Coordinate::Gaussian { mean, log_sigma } => {
                let sigma = self.log_deviation(s, d, log_sigma[d]).exp();
                let mean = f64::from(mean[d]);
                (mean, mean * mean + sigma * sigma)
            }
            Coordinate::Discrete { .. } => {
                let weights = self.probabilities(s, d);
                let moment = |power| {
                    let values = weights.iter().enumerate();
                    values.map(|(v, p)| p * (v as f64).powi(power)).sum()
                };
                (moment(1), moment(2))
            }
        }
    }

    /// The probabilities of a discrete coordinate's values; empty for a normal one.
    pub fn probabilities(&self, s: usize, d: usize) -> Vec<f64> {
        match &self.coordinates[s] {
            Coordinate::Gaussian { .. } => Vec::new(),
            Coordinate::Discrete { logits } => log_table(logits, self.components, d)
                .into_iter()
                .map(f64::exp)
                .collect(),
        }
    }
}

/// `log p(μ_d | d) = −log σ_d − ½ log 2π`: the largest log-density of a normal component.
pub(crate) fn log_peak(log_sigma: f32) -> f64 {
    -f64::from(log_sigma) - HALF_LOG_TAU
}

/// `log p(x | d)` of one component for each value x, (V): a log-softmax of its logits.
fn log_table(logits: &[f32], components: usize, d: usize) -> Vec<f64> {
    let of_component = logits.iter().skip(d).step_by(components);
    let logits: Vec<f64> = of_component.map(|&logit| logit.into()).collect();
    let norm = log_sum_exp(&logits);
    logits.into_iter().map(|logit| logit - norm).collect()
}

/// The same for all components, (V, M).
pub(crate) fn log_tables(logits: &[f32], components: usize) -> Vec<f64> {
    let mut all = vec![0.0; logits.len()];
    for d in 0..components {
        let to = all.iter_mut().skip(d).step_by(components);
        to.zip(log_table(logits, components, d))
            .for_each(|(to, log)| *to = log);
    }
    all
}

/// `log p(x_o | d)` of one local structure in f64.
pub fn log_leaf(family: &Family, inputs: &[u32], frame: &[f32], d: usize) -> f64 {
    let seen = inputs
        .iter()
        .enumerate()
        .filter(|(_, input)| **input != OUTSIDE && !frame[**input as usize].is_nan());
    let seen = seen.map(|(s, &input)| (s, frame[input as usize]));
    if family.factors.is_none() {
        return seen.map(|(s, x)| family.log_density(s, d, x)).sum();
    }
    let is_normal = |s: usize| matches!(family.coordinates[s], Coordinate::Gaussian { .. });
    let (normal, discrete): (Vec<_>, Vec<_>) = seen.partition(|&(s, _)| is_normal(s));
    let discrete = discrete.into_iter();
    let discrete: f64 = discrete.map(|(s, x)| family.log_density(s, d, x)).sum();
    discrete + log_normal(family, &normal, d)
}

/// `log N(x_o; μ_o, Λ_o Λ_oᵀ + diag σ_o²)` of component d, for normal coordinates and their numbers: by the Cholesky
/// factor of the covariance and forward substitution.
fn log_normal(family: &Family, seen: &[(usize, f32)], d: usize) -> f64 {
    let mut lower: Vec<Vec<f64>> = Vec::with_capacity(seen.len());
    let mut solved: Vec<f64> = Vec::with_capacity(seen.len());
    let mut log_density = 0.0;
    for (i, &(s, x)) in seen.iter().enumerate() {
        let Coordinate::Gaussian { mean, log_sigma } = &family.coordinates[s] else {
            continue;
        };
        let mut line = Vec::with_capacity(i + 1);
        for (j, &(other, _)) in seen.iter().take(i + 1).enumerate() {
            let pairs = family.loadings(s, d).zip(family.loadings(other, d));
            let mut covariance: f64 = pairs.map(|(a, b)| a * b).sum();
            if i == j {
                covariance += (2.0 * f64::from(log_sigma[d])).exp();
                let before: f64 = line.iter().map(|l: &f64| l * l).sum();
                line.push((covariance - before).sqrt());
            } else {
                let above: f64 = line.iter().zip(&lower[j]).map(|(a, b)| a * b).sum();
                line.push((covariance - above) / lower[j][j]);
            }
        }
        let before: f64 = line.iter().zip(&solved).map(|(l, y)| l * y).sum();
        let y = (f64::from(x) - f64::from(mean[d]) - before) / line[i];
        log_density -= 0.5 * y * y + line[i].ln() + HALF_LOG_TAU;
        solved.push(y);
        lower.push(line);
    }
    log_density
}

#[cfg(test)]
mod tests {
    use crate::layers::leaf_kernel::tests::mixed;

    #[test]
    fn moments_are_those_of_the_values() {
        let (family, _) = mixed();
        let whole: f64 = [0.1f64, 0.3, 0.5].map(f64::exp).iter().sum();
        let table = [0.1f64, 0.3, 0.5].map(|logit| logit.exp() / whole);
        let (first, second) = family.moments(2, 0);
        assert!((first - (table[1] + 2.0 * table[2])).abs() < 1e-6);
        assert!((second - (table[1] + 4.0 * table[2])).abs() < 1e-6);
        let (first, second) = family.moments(0, 1);
        assert!((first + 1.0).abs() < 1e-6);
        assert!((second - (1.0 + 0.4f64.exp())).abs() < 1e-6);
    }
}
