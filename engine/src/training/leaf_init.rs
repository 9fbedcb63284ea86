//! Where leaves start: k-means++ on local structures sampled from the data, then hard EM (paper, appendix on experiments).
//!
//! Holes are left out everywhere: a distance is taken over the coordinates that are there, and a component's moments
//! over the structures that have the coordinate.
//!
//! ```text
//! distance   Σ_{s seen} ((x_s − μ_s)² / var_s, or [x_s ≠ value_s]) · S/|seen|
//! assign     d(x) = argmax_d log p(x_o | d)
//! refit      μ, σ² + floor, tables from the structures assigned to d
//! ```

use crate::error::Result;
use crate::layers::leaf::{Coordinate, Family, values_of};
use crate::layers::leaf_kernel::LeafKernel;
use crate::model::{Model, Scaling};
use crate::random::{Purpose, Stream};
use crate::structure::{Kind, OUTSIDE};
use crate::training::stop::Stop;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How leaves are started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeafStart {
    /// Local structures sampled for each family.
    pub structures: usize,
    /// Rounds of assigning and refitting means alone (k-means).
    pub means: usize,
    /// Rounds of hard EM after that.
    pub rounds: usize,
    /// Added to every variance, and the minimum of a trained one.
    pub floor: f32,
}

impl Default for LeafStart {
    fn default() -> Self {
        Self {
            structures: 20_000,
            means: 5,
            rounds: 10,
            floor: 1e-4,
        }
    }
}

/// Fits every leaf family of the model to the rows of data (n, width). `start_of` says how, from the columns of the
/// positions that a family describes.
pub fn start_leaves(
    model: &mut Model,
    values: &[f32],
    start_of: impl Fn(&[Vec<u32>]) -> LeafStart + Sync,
    seed: u64,
    stop: &Stop,
) -> Result<()> {
    let places = model.structure.placement((0, 0));
    let mut column_of = vec![OUTSIDE; model.structure.frame_len()];
    for (column, &place) in places.iter().enumerate() {
        column_of[place as usize] = column as u32;
    }
    let mut families = 0; // of the trees before
    for t in 0..model.structure.trees.len() {
        let tree = &model.structure.trees[t];
        let mut columns: Vec<Vec<Vec<u32>>> = vec![Vec::new(); tree.families.len()];
        for position in &tree.positions {
            let column = |&i: &u32| column_of.get(i as usize).copied().unwrap_or(OUTSIDE);
            let inputs = position.inputs.iter().map(column).collect();
            columns[position.family as usize].push(inputs);
        }
        let all = Patches {
            scaling: &model.scaling,
            kinds: &[],
            values,
            width: places.len(),
            positions: &[],
            stop,
        };
        let random = |family: usize| Stream::new(seed, Purpose::Leaves, 0, family as u32);
        let fit = |(index, (kinds, positions)): (usize, (&Vec<Kind>, &Vec<Vec<u32>>))| {
            let (patches, start) = (all.of_family(kinds, positions), start_of(positions));
            let fitted = patches.fit(tree.components, &start, &mut random(families + index));
            fitted.0
        };
        let jobs = tree.families.par_iter().zip(&columns).enumerate();
        let fitted: Vec<Family> = jobs.map(fit).collect();
        families += fitted.len();
        model.weights.trees[t].families = fitted;
    }
    stop.check()
}

/// Local structures of one family in rows of data.
pub(crate) struct Patches<'a> {
    pub scaling: &'a Scaling,
    /// (S).
    pub kinds: &'a [Kind],
    /// (n, width).
    pub values: &'a [f32],
    pub width: usize,
    /// The columns of each position, (S); [`OUTSIDE`] where it has none.
    pub positions: &'a [Vec<u32>],
    pub stop: &'a Stop,
}

impl<'a> Patches<'a> {
    /// The same rows, seen by another family.
    fn of_family(&self, kinds: &'a [Kind], positions: &'a [Vec<u32>]) -> Self {
        Self {
            kinds,
            positions,
            ..*self
        }
    }

    /// Components of a sample of them, and to which component each of the sample belongs; anything, if it is to stop.
    pub fn fit(
        &self,
        components: usize,
        start: &LeafStart,
        random: &mut Stream,
    ) -> (Family, Vec<usize>) {
        let sampled = self.sample(start.structures, random);
        fit(self.kinds, components, &sampled, start, random, self.stop)
    }

    /// At most `count` local structures with something in them, (n, S), at random; all of them where there are no more.
    fn sample(&self, count: usize, random: &mut Stream) -> Vec<f32> {
        let (rows, positions) = (self.values.len() / self.width, self.positions.len());
        let exhaustive = rows * positions <= count;
        let tries = if exhaustive {
            rows * positions
        } else {
            4 * count
        };
        let max_numbers = count.min(tries) * self.kinds.len();
        let mut sampled = Vec::with_capacity(max_numbers);
        for index in 0..tries {
            if sampled.len() == max_numbers || self.stop.is_requested() {
                break;
            }
            let (row, position) = if exhaustive {
                (index / positions, index % positions)
            } else {
                (random.below(rows), random.below(positions))
            };
            self.push(row, position, &mut sampled);
        }
        sampled
    }

    /// Appends one local structure, unless all of it is missing.
    fn push(&self, row: usize, position: usize, to: &mut Vec<f32>) {
        let (before, row) = (to.len(), &self.values[row * self.width..]);
        for (&column, &kind) in self.positions[position].iter().zip(self.kinds) {
            to.push(match (column, values_of(kind)) {
                (OUTSIDE, _) => f32::NAN,
                (column, None) => self.scaling.apply(column as usize, row[column as usize]),
                (column, Some(_)) => row[column as usize],
            });
        }
        if to[before..].iter().all(|x| x.is_nan()) {
            to.truncate(before);
        }
    }
}

/// k-means++, k-means, hard EM: the components, and to which of them each local structure belongs.
fn fit(
    kinds: &[Kind],
    components: usize,
    sampled: &[f32],
    start: &LeafStart,
    random: &mut Stream,
    stop: &Stop,
) -> (Family, Vec<usize>) {
    let s = kinds.len();
    let count = sampled.len() / s;
    if count == 0 || stop.is_requested() {
        return (Family::new(kinds, components), Vec::new());
    }
    let refitting = Refitting {
        kinds,
        components,
        sampled,
        floor: start.floor,
        stop,
    };
    let one = Refitting {
        components: 1,
        ..refitting
    };
    let whole = one.refit(&vec![0; count], &[]);
    let spread = whole.coordinates.iter().map(|c| spread_of(c).max(1e-12));
    let spread: Vec<f32> = spread.collect();
    let assign = |centres: &[f32]| -> Vec<usize> {
        let nearest = |x: &[f32]| nearest(kinds, x, centres, &spread);
        let assigned = sampled.par_chunks(s).map(|x| stop.unless(|| nearest(x)));
        assigned.collect()
    };
    let centres = seed_centres(kinds, components, sampled, &spread, random, stop);
    let mut assigned = assign(&centres);
    let mut family = refitting.refit(&assigned, &centres);
    let goes_on = |_: &usize| !stop.is_requested();
    for _ in (0..start.means).take_while(goes_on) {
        let means = centres_of(&family);
        assigned = assign(&means);
        family = refitting.refit(&assigned, &means);
    }
    let inputs: Vec<u32> = (0..s as u32).collect();
    for _ in (0..start.rounds).take_while(goes_on) {
        let kernel = LeafKernel::new(&family);
        let most_likely =
            |row: &mut Vec<f32>, x: &[f32]| stop.unless(|| kernel.most_likely(&inputs, x, row));
        let structures = sampled.par_chunks(s);
        assigned = structures.map_init(Vec::new, most_likely).collect();
        family = refitting.refit(&assigned, &centres_of(&family));
    }
    (family, assigned)
}

fn spread_of(coordinate: &Coordinate) -> f32 {
    match coordinate {
        Coordinate::Gaussian { log_sigma, .. } => (2.0 * log_sigma[0]).exp(),
        Coordinate::Discrete { .. } => 1.0,
    }
}

/// Distance over what both have, stretched to S coordinates.
fn distance(kinds: &[Kind], x: &[f32], centre: &[f32], spread: &[f32]) -> f32 {
    let (mut sum, mut seen) = (0.0, 0);
    for s in 0..kinds.len() {
        if x[s].is_nan() || centre[s].is_nan() {
            continue;
        }
        seen += 1;
        sum += match kinds[s] {
            Kind::Gaussian => (x[s] - centre[s]).powi(2) / spread[s],
            _ => f32::from(u8::from(x[s] != centre[s])),
        };
    }
    if seen == 0 {
        0.0
    } else {
        sum * kinds.len() as f32 / seen as f32
    }
}

fn nearest(kinds: &[Kind], x: &[f32], centres: &[f32], spread: &[f32]) -> usize {
    let distances = centres
        .chunks_exact(kinds.len())
        .map(|centre| distance(kinds, x, centre, spread));
    distances
        .enumerate()
        .fold((0, f32::INFINITY), |best, (d, far)| {
            if far < best.1 { (d, far) } else { best }
        })
        .0
}

/// k-means++: each next centre is sampled in proportion to its squared distance from those before it.
fn seed_centres(
    kinds: &[Kind],
    components: usize,
    sampled: &[f32],
    spread: &[f32],
    random: &mut Stream,
    stop: &Stop,
) -> Vec<f32> {
    let s = kinds.len();
    let count = sampled.len() / s;
    let mut far = vec![f32::INFINITY; count];
    let mut centres = Vec::with_capacity(components * s);
    let mut next = random.below(count);
    for _ in 0..components {
        let centre = sampled[next * s..(next + 1) * s].to_vec();
        far.par_iter_mut()
            .zip(sampled.par_chunks(s))
            .for_each(|(far, x)| {
                *far = far.min(stop.unless(|| distance(kinds, x, &centre, spread)));
            });
        centres.extend_from_slice(&centre);
        let total: f64 = far.iter().map(|&d| f64::from(d)).sum();
        next = if total > 0.0 {
            random.pick(far.iter().map(|&d| f64::from(d)))
        } else {
            random.below(count)
        };
    }
    centres
}

/// The middle of each component, (M, S).
fn centres_of(family: &Family) -> Vec<f32> {
    let at = |d: usize, s: usize| family.mode(s, d).1;
    (0..family.components)
        .flat_map(|d| (0..family.coordinates.len()).map(move |s| at(d, s)))
        .collect()
}

/// Components from the local structures that are assigned to them.
#[derive(Clone, Copy)]
struct Refitting<'a> {
    kinds: &'a [Kind],
    components: usize,
    sampled: &'a [f32], // (n, S)
    floor: f32,
    stop: &'a Stop,
}

impl Refitting<'_> {
    /// Moments and tables of the structures assigned to each component. A component with nothing keeps its centre and
    /// the spread of all.
    fn refit(&self, assigned: &[usize], centres: &[f32]) -> Family {
        let mut family = Family::new(self.kinds, self.components);
        let coordinates = family.coordinates.iter_mut().enumerate();
        for (s, coordinate) in coordinates.take_while(|_| !self.stop.is_requested()) {
            match coordinate {
                Coordinate::Gaussian { mean, log_sigma } => {
                    let centre = |d: usize| centres.get(d * self.kinds.len() + s).copied();
                    let known = |d: usize| centre(d).filter(|c| !c.is_nan()).unwrap_or(0.0);
                    let centres: Vec<f32> = (0..self.components).map(known).collect();
                    self.moments(s, assigned, &centres, mean, log_sigma);
                }
                Coordinate::Discrete { logits } => self.counts(s, assigned, logits),
            }
        }
        family
    }

    /// Coordinate s of all structures that have it, with their components.
    fn seen(&self, s: usize, assigned: &[usize]) -> impl Iterator<Item = (usize, f32)> {
        let values = self.sampled.iter().skip(s).step_by(self.kinds.len());
        let both = assigned.iter().copied().zip(values.copied());
        both.filter(|(_, x)| !x.is_nan())
    }

    /// Means and deviations of coordinate s.
    fn moments(
        &self,
        s: usize,
        assigned: &[usize],
        centres: &[f32],
        mean: &mut [f32],
        log_sigma: &mut [f32],
    ) {
        let mut sums = vec![Sums::default(); self.components];
        for (d, x) in self.seen(s, assigned) {
            sums[d].add(f64::from(x) - f64::from(centres[d]));
        }
        let filled = sums.iter().filter(|own| own.count > 0.0);
        let within: f64 = filled.map(Sums::squares_about_the_mean).sum();
        let all = within / sums.iter().map(|own| own.count).sum::<f64>().max(1.0);
        for (d, own) in sums.iter().enumerate() {
            let (shift, variance) = if own.count > 0.0 {
                own.mean_and_variance()
            } else {
                (0.0, all)
            };
            mean[d] = (f64::from(centres[d]) + shift) as f32;
            log_sigma[d] = (0.5 * (variance + f64::from(self.floor)).ln()) as f32;
        }
    }

    /// Logarithms of the counts of coordinate s.
    fn counts(&self, s: usize, assigned: &[usize], logits: &mut [f32]) {
        let mut counts = vec![0.5f64; logits.len()]; // half a pseudo-count: no value is impossible
        for (d, x) in self.seen(s, assigned) {
            counts[x as usize * self.components + d] += 1.0;
        }
        let both = logits.iter_mut().zip(&counts);
        both.for_each(|(logit, count)| *logit = count.ln() as f32);
    }
}

/// Sums of numbers about the centre of a component.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    first: f64,  // Σx
    second: f64, // Σx²
}

impl Sums {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        self.first += x;
        self.second += x * x;
    }

    fn squares_about_the_mean(&self) -> f64 {
        self.second - self.first * self.first / self.count
    }

    fn mean_and_variance(&self) -> (f64, f64) {
        let mean = self.first / self.count;
        (mean, (self.second / self.count - mean.powi(2)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::Structure;

    /// Two clouds and two habits, with half of the numbers missing, are found again.
    #[test]
    fn finds_clusters_in_data_with_holes() {
        let kinds = [Kind::Gaussian, Kind::Gaussian, Kind::Categorical(3)];
        let structure = Structure::table(&kinds)
            .groups([vec![0, 1, 2]])
            .window(2)
            .components(2)
            .channels([2])
            .build()
            .unwrap();
        let mut model = Model::random(structure, 1.0, 1);
        let mut random = Stream::new(5, Purpose::Masks, 0, 0);
        let mut values = Vec::new();
        for row in 0..4000 {
            let side = if row % 2 == 0 { 1.0 } else { -1.0 };
            let cell = [
                (10.0 * side + random.normal()) as f32,
                (3.0 * side + 0.5 * random.normal()) as f32,
                if random.chance(0.9) {
                    1.0 + side as f32
                } else {
                    1.0
                },
            ];
            values.extend(cell.map(|x| if random.chance(0.3) { f32::NAN } else { x }));
        }
        let (start, stop) = (|_: &[Vec<u32>]| LeafStart::default(), Stop::default());
        start_leaves(&mut model, &values, start, 3, &stop).unwrap();
        let Coordinate::Gaussian { mean, log_sigma } =
            &model.weights.trees[0].families[0].coordinates[0]
        else {
            panic!()
        };
        let right = usize::from(mean[1] > mean[0]);
        assert!(
            (mean[right] - 10.0).abs() < 0.2 && (mean[1 - right] + 10.0).abs() < 0.2,
            "{mean:?}"
        );
        assert!(log_sigma.iter().all(|log| log.abs() < 0.1), "{log_sigma:?}");
        let table = model.weights.trees[0].families[0].probabilities(2, right);
        assert!((table[2] - 0.9).abs() < 0.03, "{table:?}");
    }

    #[test]
    fn constant_data_keeps_the_floor() {
        let structure = Structure::table(&[Kind::Gaussian])
            .window(2)
            .components(4)
            .channels([2])
            .build()
            .unwrap();
        let mut model = Model::random(structure, 1.0, 1);
        let (start, stop) = (|_: &[Vec<u32>]| LeafStart::default(), Stop::default());
        start_leaves(&mut model, &[2.5; 50], start, 3, &stop).unwrap();
        let Coordinate::Gaussian { mean, log_sigma } =
            &model.weights.trees[0].families[0].coordinates[0]
        else {
            panic!()
        };
        assert!(
            mean.iter().all(|&m| m == 2.5)
                && log_sigma
                    .iter()
                    .all(|&l| (l - 0.5 * 1e-4f32.ln()).abs() < 1e-3)
        );
    }
}
