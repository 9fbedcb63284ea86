//! A leaf family in f64, for questions about one component at a time and for the circuit in log space.

use crate::layers::leaf::{Coordinate, Family, log_peak, log_tables};
use crate::layers::leaf_factors::{LeafFactors, Missing};
use crate::random::Stream;
use crate::structure::OUTSIDE;

/// A leaf family in f64.
#[derive(Clone, Debug)]
pub struct LeafTable {
    /// M.
    pub components: usize,
    /// S of them; with factors, of what these leave.
    pub densities: Vec<Density>,
    /// What makes normal coordinates depend on each other.
    pub factors: Option<LeafFactors>,
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
            factors: LeafFactors::new(family),
        }
    }

    /// Adds the log-density of every component in a local structure of a row of the frame. What is missing is summed out,
    /// or takes its most likely value where `is_maximised` says so of an input.
    pub(crate) fn log_densities(
        &self,
        inputs: &[u32],
        frame: &[f32],
        is_maximised: impl Fn(usize) -> bool,
        to: &mut [f64],
    ) {
        let inside = inputs.iter().enumerate();
        for (s, &input) in inside.filter(|(_, input)| **input != OUTSIDE) {
            let x = frame[input as usize];
            if !x.is_nan() {
                self.add_observed(s, x, to);
            } else if is_maximised(input as usize) {
                self.add_peak(s, to);
            }
        }
        if let Some(factors) = &self.factors {
            factors.add(inputs, frame, is_maximised, to);
        }
    }

    /// Adds `log p(x_s|d)` of every component.
    fn add_observed(&self, s: usize, x: f32, to: &mut [f64]) {
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
    fn add_peak(&self, s: usize, to: &mut [f64]) {
        let (Density::Gaussian { peak, .. } | Density::Discrete { peak, .. }) = &self.densities[s];
        to.iter_mut().zip(peak).for_each(|(to, peak)| *to += peak);
    }

    /// The normal coordinates of component d that are missing in a row of the frame, given what is observed.
    pub(crate) fn missing(&self, inputs: &[u32], frame: &[f32], d: usize) -> Vec<Missing> {
        if let Some(factors) = &self.factors {
            return factors.missing(inputs, frame, d);
        }
        let holes = inputs.iter().zip(&self.densities).enumerate();
        let holes = holes.filter(|(_, (input, _))| frame[**input as usize].is_nan());
        let missing = |(s, (_, density)): (usize, (&u32, &Density))| match density {
            Density::Gaussian { mean, sigma, .. } => Some(Missing {
                s,
                mean: mean[d],
                shared: Vec::new(),
                own: sigma[d] * sigma[d],
            }),
            Density::Discrete { .. } => None,
        };
        holes.filter_map(missing).collect()
    }

    /// The value where `p(x_s|d)` is largest, where factors are zero; the first where several are.
    pub fn mode(&self, s: usize, d: usize) -> f64 {
        match &self.densities[s] {
            Density::Gaussian { mean, .. } => mean[d],
            Density::Discrete { log_prob, peak, .. } => {
                let mut values = log_prob.iter().skip(d).step_by(self.components);
                values.position(|&log| log == peak[d]).unwrap_or(0) as f64
            }
        }
    }

    /// A sample from `p(x_s|d)`, where factors are zero.
    pub fn sample(&self, s: usize, d: usize, stream: &mut Stream) -> f64 {
        match &self.densities[s] {
            Density::Gaussian { mean, sigma, .. } => mean[d] + sigma[d] * stream.normal(),
            Density::Discrete { prob, .. } => {
                stream.pick(prob.iter().skip(d).step_by(self.components).copied()) as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::leaf_kernel::tests::mixed;
    use crate::random::Purpose;

    #[test]
    fn samples_are_the_mean_and_as_many_deviations() {
        let stream = || Stream::new(7, Purpose::Sampling, 0, 0);
        let expected = f64::from(-1.0f32) + f64::from(0.2f32).exp() * stream().normal();
        let ours = LeafTable::new(&mixed().0).sample(0, 1, &mut stream());
        assert!((ours - expected).abs() < 1e-12, "{ours} {expected}");
    }
}
