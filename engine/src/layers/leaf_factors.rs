//! Factors of a leaf family, eight components at a time: what they add to the product over coordinates, and what they say
//! of missing numbers.
//!
//! ```text
//! e_s = (x_s − μ_s)/σ_s      a_s = λ_s/σ_s, (R)
//! A = I + Σ_s a_s a_sᵀ = L Lᵀ      b = Σ_s a_s e_s      sums over the normal coordinates s that are observed
//! log p(x_o)  = Σ_s log N(x_s; μ_s, σ_s²) + ½ |L⁻¹b|² − log|L|
//! max over x_m of log p(x_o, x_m): the same, with |L| of all coordinates, and the peaks of those that are missing
//! z | x_o     ~ N(A⁻¹b, A⁻¹)
//! x_m | x_o     has mean μ_m + σ_m v·L⁻¹b and variance σ_m² (1 + |v|²), with v = L⁻¹a_m
//! ```
//!
//! All in f64: where columns almost follow from each other, the two parts of log p cancel.

use crate::arithmetic::instructions::arch;
use crate::arithmetic::triangle::{LANES, Lane, Triangle};
use crate::layers::leaf::{Coordinate, Family, MAX_RANK};
use crate::random::Stream;
use crate::structure::OUTSIDE;

/// The factors of a family, prepared.
#[derive(Clone, Debug)]
pub struct LeafFactors {
    rank: usize,
    components: usize,
    is_normal: Vec<bool>, // (S)
    blocks: Vec<Block>,
}

/// Eight components; those that fill the last block up are standard normals without factors.
#[derive(Clone, Debug)]
struct Block {
    mean: Vec<Lane>,    // (S)
    inverse: Vec<Lane>, // (S): 1/σ
    scaled: Vec<Lane>,  // (S, R): a
    whole: Vec<Lane>,   // L where all coordinates are observed, packed
}

/// Mean and deviation of normal coordinates in every component given what is observed; zeros of those that were not asked
/// for.
#[derive(Clone, Debug)]
pub struct Conditionals {
    components: usize,
    mean: Vec<f64>,  // (S, M)
    sigma: Vec<f64>, // (S, M)
}

impl Conditionals {
    /// Those of a coordinate, for all components.
    pub fn of(&self, s: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
        let part = s * self.components..(s + 1) * self.components;
        let sigma = self.sigma[part.clone()].iter().copied();
        self.mean[part].iter().copied().zip(sigma)
    }
}

/// A missing number of one component given what is observed: its mean, what it shares with the other missing ones, and
/// its own variance. The covariance of two is the product of what they share.
pub(crate) struct Missing {
    pub s: usize,
    pub mean: f64,
    pub shared: Vec<f64>, // (R)
    pub own: f64,
}

/// The normal coordinates of a local structure that are observed, and their numbers.
type Seen = Vec<(usize, f64)>;

impl Block {
    fn new(family: &Family, rank: usize, loadings: &[f32], first: usize) -> Self {
        let m = family.components;
        let lane = |of: &dyn Fn(usize) -> f64, rest: f64| -> Lane {
            std::array::from_fn(|l| if first + l < m { of(first + l) } else { rest })
        };
        let (mut mean, mut inverse, mut scaled) = (Vec::new(), Vec::new(), Vec::new());
        for (s, coordinate) in family.coordinates.iter().enumerate() {
            let Coordinate::Gaussian {
                mean: means,
                log_sigma,
            } = coordinate
            else {
                mean.push([0.0; LANES]);
                inverse.push([1.0; LANES]);
                scaled.extend(std::iter::repeat_n([0.0; LANES], rank));
                continue;
            };
            mean.push(lane(&|d| means[d].into(), 0.0));
            let of_sigma = |d: usize| (-f64::from(log_sigma[d])).exp();
            inverse.push(lane(&of_sigma, 1.0));
            for r in 0..rank {
                let loading = |d: usize| f64::from(loadings[(s * rank + r) * m + d]) * of_sigma(d);
                scaled.push(lane(&loading, 0.0));
            }
        }
        let mut whole = Triangle::identity(rank);
        scaled.chunks_exact(rank).for_each(|a| whole.add_square(a));
        whole.factor(rank);
        Self {
            mean,
            inverse,
            scaled,
            whole: whole.packed(rank),
        }
    }

    /// L and L⁻¹b.
    #[inline(always)]
    fn observe(&self, rank: usize, seen: &Seen, is_whole: bool) -> (Triangle, [Lane; MAX_RANK]) {
        let mut b = [[0.0; LANES]; MAX_RANK];
        let mut triangle = if is_whole {
            Triangle::unpacked(&self.whole)
        } else {
            Triangle::identity(rank)
        };
        for &(s, x) in seen {
            let (mean, inverse) = (self.mean[s], self.inverse[s]);
            let e: Lane = std::array::from_fn(|l| (x - mean[l]) * inverse[l]);
            let a = &self.scaled[s * rank..][..rank];
            for (b, a) in b.iter_mut().zip(a) {
                (0..LANES).for_each(|l| b[l] += a[l] * e[l]);
            }
            if !is_whole {
                triangle.add_square(a);
            }
        }
        if !is_whole {
            triangle.factor(rank);
        }
        triangle.solve(&mut b[..rank]);
        (triangle, b)
    }
}

impl Block {
    /// v of coordinate s, and its mean, from L and L⁻¹b.
    #[inline(always)]
    fn given(
        &self,
        (triangle, y): &(Triangle, [Lane; MAX_RANK]),
        rank: usize,
        s: usize,
    ) -> ([Lane; MAX_RANK], Lane) {
        let mut v = [[0.0; LANES]; MAX_RANK];
        v[..rank].copy_from_slice(&self.scaled[s * rank..][..rank]);
        triangle.solve(&mut v[..rank]);
        let along = |l: usize| (0..rank).map(|r| v[r][l] * y[r][l]).sum::<f64>();
        let mean = std::array::from_fn(|l| self.mean[s][l] + along(l) / self.inverse[s][l]);
        (v, mean)
    }

    /// A missing number of one component.
    fn missing(
        &self,
        observed: &(Triangle, [Lane; MAX_RANK]),
        rank: usize,
        s: usize,
        lane: usize,
    ) -> Missing {
        let ((v, mean), sigma) = (self.given(observed, rank, s), 1.0 / self.inverse[s][lane]);
        Missing {
            s,
            mean: mean[lane],
            shared: v[..rank].iter().map(|v| sigma * v[lane]).collect(),
            own: sigma * sigma,
        }
    }
}

impl LeafFactors {
    /// Prepares those of a family, if it has any.
    pub fn new(family: &Family) -> Option<Self> {
        let factors = family.factors.as_ref()?;
        let block = |first| Block::new(family, factors.rank, &factors.loadings, first);
        let is_normal = |c: &Coordinate| matches!(c, Coordinate::Gaussian { .. });
        Some(Self {
            rank: factors.rank,
            components: family.components,
            is_normal: family.coordinates.iter().map(is_normal).collect(),
            blocks: (0..family.components).step_by(LANES).map(block).collect(),
        })
    }

    fn seen(&self, inputs: &[u32], frame: &[f32]) -> Seen {
        let cells = inputs.iter().enumerate().filter(|&(s, &input)| {
            self.is_normal[s] && input != OUTSIDE && !frame[input as usize].is_nan()
        });
        let number = |(s, &input): (usize, &u32)| (s, f64::from(frame[input as usize]));
        cells.map(number).collect()
    }

    fn is_whole(&self, seen: &Seen) -> bool {
        seen.len() == self.is_normal.iter().filter(|normal| **normal).count()
    }

    /// Adds `½ |L⁻¹b|² − log|L|` to the log-density of every component; |L| is also over what is missing, where
    /// `is_maximised` says so of an input.
    pub(crate) fn add(
        &self,
        inputs: &[u32],
        frame: &[f32],
        is_maximised: impl Fn(usize) -> bool,
        to: &mut [f64],
    ) {
        let seen = self.seen(inputs, frame);
        let is_whole = self.is_whole(&seen);
        let is_hole = |s: usize, input: u32| {
            let is_inside = self.is_normal[s] && input != OUTSIDE;
            is_inside && frame[input as usize].is_nan() && is_maximised(input as usize)
        };
        let inputs = inputs.iter().enumerate();
        let holes = inputs.filter(|&(s, &input)| is_hole(s, input));
        let holes: Vec<usize> = holes.map(|(s, _)| s).collect();
        for (block, to) in self.blocks.iter().zip(to.chunks_mut(LANES)) {
            arch().dispatch(|| self.add_block(block, &seen, is_whole, &holes, to));
        }
    }

    #[inline(always)]
    fn add_block(
        &self,
        block: &Block,
        seen: &Seen,
        is_whole: bool,
        holes: &[usize],
        to: &mut [f64],
    ) {
        let (mut triangle, y) = block.observe(self.rank, seen, is_whole);
        if !holes.is_empty() {
            triangle = Triangle::identity(self.rank);
            for &s in seen.iter().map(|(s, _)| s).chain(holes) {
                triangle.add_square(&block.scaled[s * self.rank..][..self.rank]);
            }
            triangle.factor(self.rank);
        }
        let log = triangle.log_determinant(self.rank);
        for (l, to) in to.iter_mut().enumerate() {
            let square: f64 = y[..self.rank].iter().map(|y| y[l] * y[l]).sum();
            *to += 0.5 * square - log[l];
        }
    }

    /// Mean and deviation of every missing number, or of one of them alone, given what is observed.
    pub(crate) fn conditionals(
        &self,
        inputs: &[u32],
        frame: &[f32],
        only: Option<usize>,
    ) -> Conditionals {
        let (seen, m) = (self.seen(inputs, frame), self.components);
        let is_whole = self.is_whole(&seen);
        let mut found = Conditionals {
            components: m,
            mean: vec![0.0; inputs.len() * m],
            sigma: vec![0.0; inputs.len() * m],
        };
        let holes = self.holes(&seen, inputs.len());
        let missing: Vec<usize> = holes
            .filter(|s| only.is_none_or(|only| *s == only))
            .collect();
        for (block, first) in self.blocks.iter().zip((0..).step_by(LANES)) {
            let to = &mut found;
            arch().dispatch(|| self.conditional_block(block, &seen, is_whole, &missing, first, to));
        }
        found
    }

    #[inline(always)]
    fn conditional_block(
        &self,
        block: &Block,
        seen: &Seen,
        is_whole: bool,
        missing: &[usize],
        first: usize,
        to: &mut Conditionals,
    ) {
        let observed = block.observe(self.rank, seen, is_whole);
        for &s in missing {
            let (v, mean) = block.given(&observed, self.rank, s);
            for l in 0..LANES.min(self.components - first) {
                let square: f64 = v[..self.rank].iter().map(|v| v[l] * v[l]).sum();
                let at = s * self.components + first + l;
                to.mean[at] = mean[l];
                to.sigma[at] = (1.0 + square).sqrt() / block.inverse[s][l];
            }
        }
    }

    /// What is missing, in component d.
    pub(crate) fn missing(&self, inputs: &[u32], frame: &[f32], d: usize) -> Vec<Missing> {
        let (seen, lane) = (self.seen(inputs, frame), d % LANES);
        let is_whole = self.is_whole(&seen);
        let block = &self.blocks[d / LANES];
        let observed = arch().dispatch(|| block.observe(self.rank, &seen, is_whole));
        let holes = self.holes(&seen, inputs.len());
        holes
            .map(|s| block.missing(&observed, self.rank, s, lane))
            .collect()
    }

    /// The normal coordinates that are not observed.
    fn holes(&self, seen: &Seen, count: usize) -> impl Iterator<Item = usize> {
        let is_seen = |s: usize| seen.binary_search_by_key(&s, |&(s, _)| s).is_ok();
        (0..count).filter(move |&s| self.is_normal[s] && !is_seen(s))
    }

    /// The hidden z of component d given what is observed, (R): its mean, or a draw.
    pub(crate) fn hidden(
        &self,
        inputs: &[u32],
        frame: &[f32],
        d: usize,
        stream: Option<&mut Stream>,
    ) -> Vec<f64> {
        let (seen, lane) = (self.seen(inputs, frame), d % LANES);
        let block = &self.blocks[d / LANES];
        let (triangle, y) = block.observe(self.rank, &seen, self.is_whole(&seen));
        let mut z: Vec<f64> = y[..self.rank].iter().map(|y| y[lane]).collect();
        if let Some(stream) = stream {
            z.iter_mut().for_each(|z| *z += stream.normal());
        }
        triangle.solve_transposed(lane, &mut z);
        z
    }

    /// What z adds to coordinate s of component d: λ_s·z.
    pub(crate) fn shift(&self, s: usize, d: usize, z: &[f64]) -> f64 {
        let (block, lane) = (&self.blocks[d / LANES], d % LANES);
        let scaled = &block.scaled[s * self.rank..][..self.rank];
        let along: f64 = scaled.iter().zip(z).map(|(a, z)| a[lane] * z).sum();
        along / block.inverse[s][lane]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layers::leaf::{Factors, log_leaf};
    use crate::layers::leaf_table::LeafTable;
    use crate::random::Purpose;
    use crate::structure::Kind;

    /// Four numbers and a category, eleven components with two factors.
    pub(crate) fn correlated() -> Family {
        let kinds = [
            Kind::Gaussian,
            Kind::Gaussian,
            Kind::Categorical(3),
            Kind::Gaussian,
            Kind::Gaussian,
        ];
        let (m, rank) = (11, 2);
        let mut random = Stream::new(3, Purpose::Leaves, 0, 0);
        let mut family = Family::new(&kinds, m);
        for coordinate in &mut family.coordinates {
            let free = coordinate.free_mut().into_iter();
            free.for_each(|x| *x = 0.7 * random.normal() as f32);
        }
        let mut loadings: Vec<f32> = (0..5 * rank * m).map(|_| random.normal() as f32).collect();
        loadings[2 * rank * m..3 * rank * m].fill(0.0);
        family.factors = Some(Factors { rank, loadings });
        family
    }

    /// Every pattern of holes in five numbers.
    pub(crate) fn patterns() -> impl Iterator<Item = Vec<f32>> {
        let full = [0.4f32, -1.2, 1.0, 2.0, -0.3];
        (0..32).map(move |holes: u32| {
            let cell = |s: usize| {
                if holes >> s & 1 == 1 {
                    f32::NAN
                } else {
                    full[s]
                }
            };
            (0..5).map(cell).collect()
        })
    }

    const INPUTS: [u32; 5] = [0, 1, 2, 3, 4];

    #[test]
    fn log_densities_equal_the_definition() {
        let family = correlated();
        let table = LeafTable::new(&family);
        for frame in patterns() {
            let mut ours = vec![0.0; 11];
            table.log_densities(&INPUTS, &frame, |_| false, &mut ours);
            for (d, ours) in ours.into_iter().enumerate() {
                let exact = log_leaf(&family, &INPUTS, &frame, d);
                assert!((ours - exact).abs() < 1e-9, "{frame:?} {d}: {ours} {exact}");
            }
        }
    }

    /// The mean and variance of a missing number, by numeric integration of the joint density.
    #[test]
    fn conditionals_are_those_of_the_joint_density() {
        let family = correlated();
        let factors = LeafFactors::new(&family).unwrap();
        for frame in patterns().filter(|frame| frame[1].is_nan()) {
            let found = factors.conditionals(&INPUTS, &frame, None);
            for (d, (mean, sigma)) in found.of(1).enumerate() {
                let (mut sums, step) = ([0.0; 3], sigma / 50.0);
                for i in -400..=400 {
                    let mut row = frame.clone();
                    row[1] = (mean + f64::from(i) * step) as f32;
                    let weight = log_leaf(&family, &INPUTS, &row, d).exp();
                    let x = f64::from(row[1]);
                    (0..3).for_each(|p| sums[p] += weight * step * x.powi(p as i32));
                }
                let (total, m) = (sums[0], sums[1] / sums[0]);
                let without = log_leaf(&family, &INPUTS, &frame, d).exp();
                assert!((total / without - 1.0).abs() < 1e-4, "{frame:?} {d}");
                let variance = sums[2] / total - m * m;
                assert!((m - mean).abs() < 1e-4 * sigma, "{frame:?} {d}: {m} {mean}");
                assert!(
                    (variance / (sigma * sigma) - 1.0).abs() < 1e-3,
                    "{frame:?} {d}"
                );
            }
        }
    }

    /// The most likely completion has the log-density that the maximum claims, and no other point has more.
    #[test]
    fn the_maximum_is_where_the_hidden_mean_leads() {
        let family = correlated();
        let table = LeafTable::new(&family);
        let factors = LeafFactors::new(&family).unwrap();
        let mut random = Stream::new(4, Purpose::Leaves, 0, 0);
        for frame in patterns().filter(|frame| !frame[2].is_nan()) {
            let mut best = vec![0.0; 11];
            table.log_densities(&INPUTS, &frame, |_| true, &mut best);
            for (d, &best) in best.iter().enumerate() {
                let z = factors.hidden(&INPUTS, &frame, d, None);
                let mut fill = |by: f64| {
                    let cell = |s: usize| match frame[s].is_nan() {
                        true => {
                            (table.mode(s, d) + factors.shift(s, d, &z) + by * random.normal())
                                as f32
                        }
                        false => frame[s],
                    };
                    let row: Vec<f32> = (0..5).map(cell).collect();
                    log_leaf(&family, &INPUTS, &row, d)
                };
                assert!((fill(0.0) - best).abs() < 1e-5, "{frame:?} {d}");
                assert!(fill(0.1) <= best + 1e-9, "{frame:?} {d}");
            }
        }
    }
}
