//! A leaf family in f64, for questions about one component at a time and for the circuit in log space.

use crate::layers::leaf::{Coordinate, Family, log_peak, log_tables};
use crate::random::Stream;

/// A leaf family in f64.
#[derive(Clone, Debug)]
pub struct LeafTable {
    /// M.
    pub components: usize,
    /// S of them.
    pub densities: Vec<Density>,
}

/// One coordinate of a family, for all M components.
#[derive(Clone, Debug)]
pub enum Density {
    /// Normal densities.
    Gaussian {
        /// μ, (M).
        mean: Vec<f64>,
        /// σ, (M).
        sigma: Vec<f64>,
        /// max_x log p(x|d), (M).
        peak: Vec<f64>,
    },
    /// Probabilities of the values 0 … V − 1.
    Discrete {
        /// (V, M).
        log_prob: Vec<f64>,
        /// (V, M).
        prob: Vec<f64>,
        /// max_x log p(x|d), (M).
        peak: Vec<f64>,
    },
}

impl Density {
    fn new(coordinate: &Coordinate, components: usize) -> Self {
        match coordinate {
            Coordinate::Gaussian { mean, log_sigma } => Self::Gaussian {
                mean: mean.iter().map(|&mean| mean.into()).collect(),
                sigma: log_sigma.iter().map(|&log| f64::from(log).exp()).collect(),
                peak: log_sigma.iter().map(|&log| log_peak(log)).collect(),
            },
            Coordinate::Discrete { logits } => {
                let log_prob = log_tables(logits, components);
                let of = |d| log_prob.iter().skip(d).step_by(components).copied();
                let peak = |d| of(d).fold(f64::NEG_INFINITY, f64::max);
                Self::Discrete {
                    prob: log_prob.iter().map(|log| log.exp()).collect(),
                    peak: (0..components).map(peak).collect(),
                    log_prob,
                }
            }
        }
    }
}

impl LeafTable {
    /// Prepares a family.
    pub fn new(family: &Family) -> Self {
        let m = family.components;
        let coordinates = family.coordinates.iter();
        Self {
            components: m,
            densities: coordinates.map(|c| Density::new(c, m)).collect(),
        }
    }

    /// Adds `log p(x_s|d)` of every component.
    pub(crate) fn add_observed(&self, s: usize, x: f32, to: &mut [f64]) {
        match &self.densities[s] {
            Density::Gaussian { mean, sigma, peak } => {
                for d in 0..self.components {
                    let z = (f64::from(x) - mean[d]) / sigma[d];
                    to[d] += peak[d] - 0.5 * z * z;
                }
            }
            Density::Discrete { log_prob, .. } => {
                let row = &log_prob[x as usize * self.components..];
                to.iter_mut().zip(row).for_each(|(to, log)| *to += log);
            }
        }
    }

    /// Adds `max_x log p(x_s|d)` of every component.
    pub(crate) fn add_peak(&self, s: usize, to: &mut [f64]) {
        let (Density::Gaussian { peak, .. } | Density::Discrete { peak, .. }) = &self.densities[s];
        to.iter_mut().zip(peak).for_each(|(to, peak)| *to += peak);
    }

    /// The value where `p(x_s|d)` is largest; the first where several are.
    pub fn mode(&self, s: usize, d: usize) -> f64 {
        match &self.densities[s] {
            Density::Gaussian { mean, .. } => mean[d],
            Density::Discrete { log_prob, peak, .. } => {
                let mut values = log_prob.iter().skip(d).step_by(self.components);
                values.position(|&log| log == peak[d]).unwrap_or(0) as f64
            }
        }
    }

    /// A sample from `p(x_s|d)`.
    pub fn sample(&self, s: usize, d: usize, stream: &mut Stream) -> f64 {
        match &self.densities[s] {
            Density::Gaussian { mean, sigma, .. } => mean[d] + sigma[d] * stream.normal(),
            Density::Discrete { prob, .. } => {
                stream.pick(prob.iter().skip(d).step_by(self.components).copied()) as f64
            }
        }
    }
}
