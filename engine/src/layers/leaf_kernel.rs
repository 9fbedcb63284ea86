//! Leaves on vectors: log-densities of all components of a family, for the rows of a chunk.
//!
//! Not the usual expansion into features (x², x, 1) and one small matrix product: that cancels for outliers, and
//! differences are three operations a coordinate too.

use crate::arithmetic::math::{argmax, exp};
use crate::arithmetic::matmul::padded;
use crate::layers::leaf::{Coordinate, Family, log_leaf, log_peak, log_tables};
use crate::layers::leaf_table::LeafTable;
use crate::layers::scaled_rows::UnderflowBound;
use crate::rows::batch::{Batch, CHUNK, bits};
use crate::structure::{OUTSIDE, Position};
use pulp::{Simd, WithSimd};

/// Below this log-density differences of f32 lose the distance between components: such a row is computed in f64.
const OUTLIER: f32 = -1000.0;

/// A family as the kernels read it: vectors over components, padded.
#[derive(Clone, Debug)]
pub struct LeafKernel {
    family: Family,
    width: usize,
    start: Vec<f32>, // 0, and −∞ where a component only fills the row up
    pub(crate) densities: Vec<KernelDensity>,
    normal: Option<NormalKernel>, // where all coordinates are
    joint: Option<LeafTable>,     // where they depend on each other
}

/// Normal densities side by side, for rows of which everything is observed.
#[derive(Clone, Debug)]
struct NormalKernel {
    mean: Vec<f32>,    // (S, padded M)
    inverse: Vec<f32>, // (S, padded M): 1/(σ√2)
    norm: Vec<f32>,    // (padded M): log p at the mean
}

impl NormalKernel {
    fn new(family: &Family, width: usize) -> Option<Self> {
        let mut all = Self {
            mean: vec![],
            inverse: vec![],
            norm: vec![f32::NEG_INFINITY; width],
        };
        let mut norm = vec![0.0; family.components];
        for (coordinate, end) in family.coordinates.iter().zip((1..).map(|s| s * width)) {
            let Coordinate::Gaussian { mean, log_sigma } = coordinate else {
                return None;
            };
            all.mean.extend(mean);
            all.mean.resize(end, 0.0);
            all.inverse.extend(
                log_sigma
                    .iter()
                    .map(|&log| ((-f64::from(log)).exp() / f64::sqrt(2.0)) as f32),
            );
            all.inverse.resize(end, 0.0);
            norm.iter_mut()
                .zip(log_sigma)
                .for_each(|(norm, &log)| *norm += log_peak(log));
        }
        all.norm
            .iter_mut()
            .zip(norm)
            .for_each(|(to, norm)| *to = norm as f32);
        Some(all)
    }

    /// `log p(x|d)` of all components into `row`; `false` where something is missing.
    #[inline(always)]
    fn log_densities<S: Simd>(
        &self,
        simd: S,
        inputs: &[u32],
        frame: &[f32],
        row: &mut [S::f32s],
    ) -> bool {
        const MAX: usize = 16;
        let mut x = [0.0; MAX];
        if inputs.len() > MAX {
            return false;
        }
        let mut seen = true;
        for (x, &input) in x.iter_mut().zip(inputs) {
            *x = *frame.get(input as usize).unwrap_or(&f32::NAN); // OUTSIDE is in no frame
            seen &= !x.is_nan();
        }
        if !seen {
            return false;
        }
        let (mean, inverse) = (
            S::as_simd_f32s(&self.mean).0,
            S::as_simd_f32s(&self.inverse).0,
        );
        let n = row.len();
        for (v, (to, &norm)) in row
            .iter_mut()
            .zip(S::as_simd_f32s(&self.norm).0)
            .enumerate()
        {
            let mut sum = simd.splat_f32s(0.0);
            for (s, &x) in x[..inputs.len()].iter().enumerate() {
                let z = simd.mul_f32s(
                    simd.sub_f32s(simd.splat_f32s(x), mean[s * n + v]),
                    inverse[s * n + v],
                );
                sum = simd.mul_add_e_f32s(z, z, sum);
            }
            *to = simd.sub_f32s(norm, sum);
        }
        true
    }

    /// The same for many rows of which everything is observed, each with its place: means and widths stay in registers.
    #[inline(always)]
    fn many_log_densities<S: Simd, const N: usize>(
        &self,
        simd: S,
        full: &[(usize, [f32; N])],
        rows: &mut [S::f32s],
    ) {
        let (means, inverses) = (
            S::as_simd_f32s(&self.mean).0,
            S::as_simd_f32s(&self.inverse).0,
        );
        let norms = S::as_simd_f32s(&self.norm).0;
        let n = norms.len();
        for (v, &norm) in norms.iter().enumerate() {
            let (mut mean, mut inverse) = ([norm; N], [norm; N]);
            for s in 0..N {
                (mean[s], inverse[s]) = (means[s * n + v], inverses[s * n + v]);
            }
            for (row, x) in full {
                let mut sum = simd.splat_f32s(0.0);
                for s in 0..N {
                    let z =
                        simd.mul_f32s(simd.sub_f32s(simd.splat_f32s(x[s]), mean[s]), inverse[s]);
                    sum = simd.mul_add_e_f32s(z, z, sum);
                }
                rows[row * n + v] = simd.sub_f32s(norm, sum);
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum KernelDensity {
    Gaussian {
        mean: Vec<f32>,
        inverse: Vec<f32>,
        norm: Vec<f32>,
    },
    Discrete {
        log_prob: Vec<f32>,
    }, // (V, padded M)
}

impl LeafKernel {
    /// Prepares a family.
    pub fn new(family: &Family) -> Self {
        let (components, width) = (family.components, padded(family.components));
        let pad = |values: &mut dyn Iterator<Item = f32>| {
            let mut row: Vec<f32> = values.collect();
            row.resize(width, 0.0);
            row
        };
        let density = |coordinate: &Coordinate| match coordinate {
            Coordinate::Gaussian { mean, log_sigma } => KernelDensity::Gaussian {
                mean: pad(&mut mean.iter().copied()),
                inverse: pad(&mut log_sigma.iter().map(|&log| (-f64::from(log)).exp() as f32)),
                norm: pad(&mut log_sigma.iter().map(|&log| log_peak(log) as f32)),
            },
            Coordinate::Discrete { logits } => {
                let tables = log_tables(logits, components);
                let rows = tables.chunks_exact(components);
                KernelDensity::Discrete {
                    log_prob: rows
                        .flat_map(|row| pad(&mut row.iter().map(|&log| log as f32)))
                        .collect(),
                }
            }
        };
        let mut start = vec![f32::NEG_INFINITY; width];
        start[..components].fill(0.0);
        let densities = family.coordinates.iter().map(density).collect();
        let has_factors = family.factors.is_some();
        Self {
            family: family.clone(),
            width,
            start,
            densities,
            normal: NormalKernel::new(family, width).filter(|_| !has_factors),
            joint: has_factors.then(|| LeafTable::new(family)),
        }
    }

    /// The family it was made from.
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// `log p(x|d)` of all components into `row`; padding gets −∞.
    #[inline(always)]
    fn log_densities<S: Simd>(&self, simd: S, inputs: &[u32], frame: &[f32], row: &mut [f32]) {
        let normal = self.normal.as_ref();
        if normal.is_some_and(|normal| {
            normal.log_densities(simd, inputs, frame, S::as_mut_simd_f32s(row).0)
        }) {
            return;
        }
        row.copy_from_slice(&self.start);
        let (row, _) = S::as_mut_simd_f32s(row);
        for (density, &input) in self.densities.iter().zip(inputs) {
            if input == OUTSIDE || frame[input as usize].is_nan() {
                continue;
            }
            let x = frame[input as usize];
            match density {
                KernelDensity::Gaussian {
                    mean,
                    inverse,
                    norm,
                } => {
                    let (x, minus_half) = (simd.splat_f32s(x), simd.splat_f32s(-0.5));
                    let (mean, inverse, norm) = (
                        S::as_simd_f32s(mean).0,
                        S::as_simd_f32s(inverse).0,
                        S::as_simd_f32s(norm).0,
                    );
                    for (to, ((&mean, &inverse), &norm)) in
                        row.iter_mut().zip(mean.iter().zip(inverse).zip(norm))
                    {
                        let z = simd.mul_f32s(simd.sub_f32s(x, mean), inverse);
                        let log_prob = simd.mul_add_e_f32s(simd.mul_f32s(z, minus_half), z, norm);
                        *to = simd.add_f32s(*to, log_prob);
                    }
                }
                KernelDensity::Discrete { log_prob } => {
                    let (table, _) =
                        S::as_simd_f32s(&log_prob[x as usize * self.width..][..self.width]);
                    row.iter_mut()
                        .zip(table)
                        .for_each(|(to, &log_prob)| *to = simd.add_f32s(*to, log_prob));
                }
            }
        }
    }

    /// The component under which a local structure is most likely; `row` is scratch of padded M.
    pub fn most_likely(&self, inputs: &[u32], frame: &[f32], row: &mut Vec<f32>) -> usize {
        row.resize(self.width, 0.0);
        if self.joint.is_some() {
            self.in_f64(inputs, frame, row);
        } else {
            self.log_densities(pulp::Scalar::new(), inputs, frame, row);
        }
        argmax(&row[..self.family.components])
    }

    /// The log-scale of a row of log-densities, `None` where no component is finite, and what to subtract from them.
    #[inline(always)]
    fn scale<S: Simd>(
        &self,
        simd: S,
        inputs: &[u32],
        frame: &[f32],
        row: &mut [f32],
    ) -> (Option<f64>, f32) {
        let lowest = simd.splat_f32s(f32::NEG_INFINITY);
        let tops = S::as_simd_f32s(row)
            .0
            .iter()
            .fold(lowest, |top, &value| simd.max_f32s(top, value));
        let top = simd.reduce_max_f32s(tops);
        if top >= OUTLIER {
            (Some(f64::from(top)), top)
        } else {
            (self.in_f64(inputs, frame, row), 0.0) // also if the top is NaN
        }
    }

    /// Log-densities less the largest, in f64: for a row far from every component, and where there are factors. The
    /// largest, `None` where no component is finite.
    fn in_f64(&self, inputs: &[u32], frame: &[f32], row: &mut [f32]) -> Option<f64> {
        let mut log_prob = vec![0.0; self.family.components];
        match &self.joint {
            Some(table) => table.log_densities(inputs, frame, |_| false, &mut log_prob),
            None => (0..self.family.components)
                .for_each(|d| log_prob[d] = log_leaf(&self.family, inputs, frame, d)),
        }
        let top = log_prob.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.fill(f32::NEG_INFINITY);
        if !top.is_finite() {
            return None;
        }
        row.iter_mut()
            .zip(&log_prob)
            .for_each(|(to, log_prob)| *to = (log_prob - top) as f32);
        Some(top)
    }
}

/// Evaluates the rows of one position for the samples of one word.
pub struct LeafForward<'a> {
    /// The leaf family, prepared.
    pub kernel: &'a LeafKernel,
    /// The local structure.
    pub position: &'a Position,
    /// The samples, in the frame.
    pub batch: &'a Batch,
    /// First sample of the word.
    pub first_sample: usize,
    /// Samples to evaluate.
    pub mask: u64,
    /// (rows, padded M).
    pub phi: &'a mut [f32],
    /// (rows).
    pub log_scale: &'a mut [f64],
    /// (rows).
    pub underflow_bound: &'a mut [UnderflowBound],
}

impl LeafForward<'_> {
    /// Log-densities of rows of which all N numbers are observed; returns those rows.
    #[inline(always)]
    fn full_rows<S: Simd, const N: usize>(&mut self, simd: S, normal: &NormalKernel) -> u64 {
        let mut full = [(0, [0.0; N]); CHUNK];
        let (mut count, mut rows) = (0, 0);
        for (row, bit) in bits(self.mask).enumerate() {
            let (frame, x) = (self.batch.row(self.first_sample + bit), &mut full[count]);
            x.0 = row;
            let mut seen = true;
            for s in 0..N {
                x.1[s] = *frame
                    .get(self.position.inputs[s] as usize)
                    .unwrap_or(&f32::NAN); // OUTSIDE is in no frame
                seen &= !x.1[s].is_nan();
            }
            count += usize::from(seen);
            rows |= u64::from(seen) << row;
        }
        normal.many_log_densities(simd, &full[..count], S::as_mut_simd_f32s(self.phi).0);
        rows
    }
}

impl WithSimd for LeafForward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (kernel, inputs) = (self.kernel, &self.position.inputs);
        let done = match (&kernel.normal, inputs.len()) {
            (Some(normal), 1) => self.full_rows::<S, 1>(simd, normal),
            (Some(normal), 2) => self.full_rows::<S, 2>(simd, normal),
            (Some(normal), 3) => self.full_rows::<S, 3>(simd, normal),
            (Some(normal), 4) => self.full_rows::<S, 4>(simd, normal),
            _ => 0,
        };
        let mut tops = [0.0; CHUNK];
        for (row, bit) in bits(self.mask).enumerate() {
            let frame = self.batch.row(self.first_sample + bit);
            let phi = &mut self.phi[row * kernel.width..(row + 1) * kernel.width];
            if done >> row & 1 == 0 && kernel.joint.is_none() {
                kernel.log_densities(simd, inputs, frame, phi);
            }
            let (scale, top) = match kernel.joint {
                None => kernel.scale(simd, inputs, frame, phi),
                Some(_) => (kernel.in_f64(inputs, frame, phi), 0.0),
            };
            tops[row] = top;
            self.log_scale[row] = scale.unwrap_or(0.0);
            self.underflow_bound[row] = UnderflowBound::of_leaf(scale.is_some());
        }
        let (phi, _) = S::as_mut_simd_f32s(self.phi);
        for (row, &top) in phi.chunks_exact_mut(kernel.width / S::F32_LANES).zip(&tops) {
            row.iter_mut()
                .for_each(|value| *value = exp(simd, simd.sub_f32s(*value, simd.splat_f32s(top))));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::arithmetic::instructions::arch;
    use crate::structure::Kind;

    /// A family with a coordinate of each kind, and a position of it.
    pub(crate) fn mixed() -> (Family, Position) {
        let mut family = Family::new(&[Kind::Gaussian, Kind::Bernoulli, Kind::Categorical(3)], 2);
        family.coordinates[0] = Coordinate::Gaussian {
            mean: vec![0.5, -1.0],
            log_sigma: vec![-0.3, 0.2],
        };
        family.coordinates[1] = Coordinate::Discrete {
            logits: vec![0.0, 1.0, 2.0, -1.0],
        };
        family.coordinates[2] = Coordinate::Discrete {
            logits: vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        };
        (
            family,
            Position {
                inputs: vec![0, 1, 2],
                family: 0,
            },
        )
    }

    #[test]
    fn rows_equal_the_definition_for_every_pattern_of_holes() {
        let (family, position) = mixed();
        let kernel = LeafKernel::new(&family);
        for (holes, x) in (0..8).flat_map(|holes| [-0.7f32, 80.0, 1e6].map(|x| (holes, x))) {
            let full = [x, 1.0, 2.0];
            let values: Vec<f32> = (0..3)
                .map(|s| {
                    if holes >> s & 1 == 1 {
                        f32::NAN
                    } else {
                        full[s]
                    }
                })
                .collect();
            let batch = Batch::of_rows(3, &values);
            let (mut phi, mut log_scale, mut underflow_bound) =
                (vec![0.0; 16], [0.0], [UnderflowBound::default()]);
            let (position, batch) = (&position, &batch);
            arch().dispatch(LeafForward {
                kernel: &kernel,
                position,
                batch,
                first_sample: 0,
                mask: 1,
                phi: &mut phi,
                log_scale: &mut log_scale,
                underflow_bound: &mut underflow_bound,
            });
            for d in 0..2 {
                let exact = log_leaf(&family, &position.inputs, batch.row(0), d);
                let ours = f64::from(phi[d]).ln() + log_scale[0];
                let close = (ours - exact).abs() < 1e-5 * exact.abs().max(1.0);
                assert!(
                    close || exact - log_scale[0] < -80.0,
                    "{holes} {x}: {ours} {exact}"
                );
            }
            assert!(phi[2..].iter().all(|&m| m == 0.0));
        }
    }

    /// One more number than the quick way holds, one as many, and some that are missing.
    #[test]
    fn leaves_of_many_numbers() {
        for (n, missing) in [(2, 3), (3, 1), (1, 0), (16, 20), (16, 5), (17, 20), (17, 5)] {
            let mut family = Family::new(&vec![Kind::Gaussian; n], 2);
            for (s, coordinate) in family.coordinates.iter_mut().enumerate() {
                *coordinate = Coordinate::Gaussian {
                    mean: vec![0.1 * s as f32, -0.2],
                    log_sigma: vec![0.3, -0.1 * s as f32],
                };
            }
            let inputs: Vec<u32> = (0..n as u32).collect();
            let value = |s| {
                if s == missing {
                    f32::NAN
                } else {
                    (s as f32).cos()
                }
            };
            let frame: Vec<f32> = (0..n).map(value).collect();
            let mut row = vec![0.0; padded(2)];
            let kernel = LeafKernel::new(&family);
            kernel.most_likely(&inputs, &frame, &mut row);
            for (d, &ours) in row[..2].iter().enumerate() {
                let exact = log_leaf(&family, &inputs, &frame, d);
                assert!(
                    (f64::from(ours) - exact).abs() < 1e-4,
                    "{n}: {ours} {exact}"
                );
            }
        }
    }

    /// Where f32 has lost the distance between two components, f64 has it.
    #[test]
    fn an_outlier_knows_its_components_apart() {
        let mut family = Family::new(&[Kind::Gaussian], 2);
        family.coordinates[0] = Coordinate::Gaussian {
            mean: vec![0.0, 1e-5],
            log_sigma: vec![0.0; 2],
        };
        let batch = Batch::of_rows(1, &[1e5]);
        let (mut phi, mut log_scale, mut bound) =
            (vec![0.0; 16], [0.0], [UnderflowBound::default()]);
        arch().dispatch(LeafForward {
            kernel: &LeafKernel::new(&family),
            position: &Position {
                inputs: vec![0],
                family: 0,
            },
            batch: &batch,
            first_sample: 0,
            mask: 1,
            phi: &mut phi,
            log_scale: &mut log_scale,
            underflow_bound: &mut bound,
        });
        assert_eq!(phi[1], 1.0);
        assert!((f64::from(phi[0]).ln() + 1.0).abs() < 1e-5, "{}", phi[0]);
        assert!((log_scale[0] - log_leaf(&family, &[0], &[1e5], 1)).abs() < 1e-3);
    }
}
