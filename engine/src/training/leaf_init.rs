//! Where leaves start: k-means++ on local structures drawn from the data, then hard EM (paper, appendix on experiments).
//!
//! Holes are left out everywhere: a distance is taken over the coordinates that are there, and a component's moments
//! over the structures that have the coordinate.
//!
//! ```text
//! distance   Σ_{s seen} ((x_s − μ_s)² / var_s, or [x_s ≠ value_s]) · S/|seen|
//! assign     d(x) = argmax_d log p(x_o | d)
//! refit      μ, σ² + floor, tables from the structures assigned to d
//! ```

use crate::layers::leaf::{Coordinate, Family, values_of};
use crate::layers::leaf_kernel::Table;
use crate::model::Model;
use crate::random::{Purpose, Stream};
use crate::structure::{Kind, OUTSIDE};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How leaves are started.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeafStart {
    /// Local structures drawn for each family.
    pub structures: usize,
    /// Rounds of assigning and refitting means alone (k-means).
    pub means: usize,
    /// Rounds of hard EM after that.
    pub rounds: usize,
    /// Added to every variance, and the least a trained one can be.
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

/// Fits every leaf family of the model to the rows of data (n, width).
pub fn start_leaves(model: &mut Model, values: &[f32], start: &LeafStart, seed: u64) {
    let places = model.structure.placement((0, 0));
    let mut column_of = vec![OUTSIDE; model.structure.frame_len()];
    places
        .iter()
        .enumerate()
        .for_each(|(column, &place)| column_of[place as usize] = column as u32);
    let width = places.len();
    let mut item = 0;
    for t in 0..model.structure.trees.len() {
        let tree = &model.structure.trees[t];
        let mut positions_of: Vec<Vec<&[u32]>> = vec![Vec::new(); tree.families.len()];
        tree.positions
            .iter()
            .for_each(|p| positions_of[p.family as usize].push(&p.inputs));
        let jobs: Vec<_> = tree
            .families
            .iter()
            .zip(&positions_of)
            .enumerate()
            .collect();
        let fitted: Vec<Family> = jobs
            .par_iter()
            .map(|(index, (kinds, positions))| {
                let mut random = Stream::new(seed, Purpose::Leaves, 0, (item + index) as u32);
                let columns: Vec<Vec<u32>> = positions
                    .iter()
                    .map(|inputs| {
                        let column = |&i: &u32| {
                            if i == OUTSIDE {
                                OUTSIDE
                            } else {
                                column_of[i as usize]
                            }
                        };
                        inputs.iter().map(column).collect()
                    })
                    .collect();
                let drawn = draw_structures(
                    &model.scaling,
                    kinds,
                    values,
                    width,
                    &columns,
                    start.structures,
                    &mut random,
                );
                fit(kinds, tree.components, &drawn, start, &mut random).0
            })
            .collect();
        item += jobs.len();
        model.weights.trees[t].families = fitted;
    }
}

/// Local structures with something in them, (n, S), drawn from random rows and positions.
pub(crate) fn draw_structures(
    scaling: &crate::model::Scaling,
    kinds: &[Kind],
    values: &[f32],
    width: usize,
    positions: &[Vec<u32>],
    count: usize,
    random: &mut Stream,
) -> Vec<f32> {
    let rows = values.len() / width;
    let exhaustive = rows * positions.len() <= count;
    let tries = if exhaustive {
        rows * positions.len()
    } else {
        4 * count
    };
    let most = count.min(tries) * kinds.len();
    let mut drawn = Vec::with_capacity(most);
    for index in 0..tries {
        if drawn.len() == most {
            break;
        }
        let (row, position) = match exhaustive {
            true => (index / positions.len(), index % positions.len()),
            false => (random.below(rows), random.below(positions.len())),
        };
        let before = drawn.len();
        for (&column, &kind) in positions[position].iter().zip(kinds) {
            drawn.push(match (column, values_of(kind)) {
                (OUTSIDE, _) => f32::NAN,
                (column, None) => {
                    scaling.apply(column as usize, values[row * width + column as usize])
                }
                (column, Some(_)) => values[row * width + column as usize],
            });
        }
        if drawn[before..].iter().all(|x| x.is_nan()) {
            drawn.truncate(before);
        }
    }
    drawn
}

/// k-means++, k-means, hard EM: the components, and to which of them each local structure belongs.
pub(crate) fn fit(
    kinds: &[Kind],
    components: usize,
    drawn: &[f32],
    start: &LeafStart,
    random: &mut Stream,
) -> (Family, Vec<usize>) {
    let s = kinds.len();
    let count = drawn.len() / s;
    if count == 0 {
        return (Family::new(kinds, components), Vec::new());
    }
    let everything = vec![0; count];
    let whole = refit(kinds, 1, drawn, &everything, start.floor, &[]);
    let spread: Vec<f32> = whole
        .coordinates
        .iter()
        .map(|c| spread_of(c).max(1e-12))
        .collect();
    let centres = seed_centres(kinds, components, drawn, &spread, random);
    let mut assigned: Vec<usize> = drawn
        .par_chunks(s)
        .map(|x| nearest(kinds, x, &centres, &spread))
        .collect();
    let mut family = refit(kinds, components, drawn, &assigned, start.floor, &centres);
    for _ in 0..start.means {
        let means = centres_of(&family);
        assigned = drawn
            .par_chunks(s)
            .map(|x| nearest(kinds, x, &means, &spread))
            .collect();
        family = refit(kinds, components, drawn, &assigned, start.floor, &means);
    }
    let inputs: Vec<u32> = (0..s as u32).collect();
    for _ in 0..start.rounds {
        let table = Table::new(&family);
        assigned = drawn
            .par_chunks(s)
            .map_init(Vec::new, |scratch, x| {
                table.most_likely(&inputs, x, scratch)
            })
            .collect();
        family = refit(
            kinds,
            components,
            drawn,
            &assigned,
            start.floor,
            &centres_of(&family),
        );
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

/// k-means++: each next centre is drawn in proportion to its squared distance from those before it.
fn seed_centres(
    kinds: &[Kind],
    components: usize,
    drawn: &[f32],
    spread: &[f32],
    random: &mut Stream,
) -> Vec<f32> {
    let s = kinds.len();
    let count = drawn.len() / s;
    let mut far = vec![f32::INFINITY; count];
    let mut centres = Vec::with_capacity(components * s);
    let mut next = random.below(count);
    for _ in 0..components {
        let centre = drawn[next * s..(next + 1) * s].to_vec();
        far.par_iter_mut()
            .zip(drawn.par_chunks(s))
            .for_each(|(far, x)| {
                *far = far.min(distance(kinds, x, &centre, spread));
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

/// Moments and tables of the structures assigned to each component. A component with nothing keeps its centre and
/// the spread of all.
fn refit(
    kinds: &[Kind],
    components: usize,
    drawn: &[f32],
    assigned: &[usize],
    floor: f32,
    centres: &[f32],
) -> Family {
    let s_count = kinds.len();
    let mut family = Family::new(kinds, components);
    for (s, (&kind, coordinate)) in kinds.iter().zip(&mut family.coordinates).enumerate() {
        let seen = assigned
            .iter()
            .zip(drawn.iter().skip(s).step_by(s_count))
            .filter(|(_, x)| !x.is_nan());
        match coordinate {
            Coordinate::Gaussian { mean, log_sigma } => {
                // (count, Σx, Σx²) about each component's centre, and of all
                let centre = |d: usize| {
                    centres
                        .get(d * s_count + s)
                        .copied()
                        .filter(|c| !c.is_nan())
                        .unwrap_or(0.0)
                };
                let mut sums = vec![[0.0f64; 3]; components];
                for (&d, &x) in seen {
                    let x = f64::from(x) - f64::from(centre(d));
                    sums[d] = [sums[d][0] + 1.0, sums[d][1] + x, sums[d][2] + x * x];
                }
                let within = sums
                    .iter()
                    .filter(|n| n[0] > 0.0)
                    .map(|n| n[2] - n[1] * n[1] / n[0])
                    .sum::<f64>();
                let all = within / sums.iter().map(|n| n[0]).sum::<f64>().max(1.0);
                for d in 0..components {
                    let [n, first, second] = sums[d];
                    let (shift, variance) = match n > 0.0 {
                        true => (first / n, (second / n - (first / n).powi(2)).max(0.0)),
                        false => (0.0, all),
                    };
                    mean[d] = (f64::from(centre(d)) + shift) as f32;
                    log_sigma[d] = (0.5 * (variance + f64::from(floor)).ln()) as f32;
                }
            }
            Coordinate::Discrete { logits } => {
                let values = values_of(kind).unwrap_or(1);
                let mut counts = vec![0.5f64; values * components]; // half a pseudo-count: no value is impossible
                seen.for_each(|(&d, &x)| counts[x as usize * components + d] += 1.0);
                logits
                    .iter_mut()
                    .zip(&counts)
                    .for_each(|(logit, count)| *logit = count.ln() as f32);
            }
        }
    }
    family
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
        start_leaves(&mut model, &values, &LeafStart::default(), 3);
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
        start_leaves(&mut model, &[2.5; 50], &LeafStart::default(), 3);
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
