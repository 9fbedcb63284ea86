//! Clusters of every class: a mixture for each class, as a tree of one position that needs no training.
//!
//! ```text
//! P(x|y) = Σ_d W[y,d] Π_s p(x_s|d)          d: the clusters of all classes; W[y,d] is tiny where d is of another class
//! ```
//!
//! Its marginals of few columns are good, and it errs where trained trees do not: beside them in a
//! [`Model::mixture`] it helps where much is missing, or where there is little to learn from.
//!
//! ```
//! use sumout::training::{Data, LeafStart, class_clusters};
//! use sumout::{Kind, Model, Predictor, Rows, Structure};
//! let structure = Structure::table(&[Kind::Gaussian; 2]).components(2).channels([2]).classes(2).build()?;
//! let like = Model::random(structure, 1.0, 1);
//! let rows = Rows::new(&[1.0, 5.0, 1.2, 4.8, 9.0, -5.0, 9.1, -5.1], 2)?;
//! let data = Data::new(rows, &[0, 0, 1, 1].map(Some));
//! let clusters = class_clusters(&like, &data, &LeafStart::default(), 1)?;
//! let mut predictor = Predictor::new(clusters)?;
//! assert_eq!(predictor.predict(Rows::new(&[f32::NAN, 5.0, 9.0, f32::NAN], 2)?)?, [0, 1]);
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::Result;
use crate::layers::leaf::{Coordinate, Factors, Family};
use crate::layers::mixing::Mixing;
use crate::layers::weights::{TreeWeights, Weights};
use crate::model::Model;
use crate::random::{Purpose, Stream};
use crate::structure::{Kind, Structure};
use crate::training::data::Data;
use crate::training::leaf_init::{LeafStart, Patches};
use crate::training::stop::Stop;
use rayon::prelude::*;

/// At most so many clusters in a class, and at least so many rows for each on average.
const MOST: usize = 16;
const ROWS: usize = 4;

/// Every class is clustered so often, from other starts: what one finds by chance, the others do not.
const TIMES: usize = 8;

/// What a class has of another's clusters: nothing is impossible, and classes stay within reach of one scale.
const FOREIGN: f64 = 1e-8;

/// Clusters of the labelled rows, or of all rows where there is one class, in the columns, scaling, classes and prior of
/// the model `like`.
pub fn class_clusters(
    like: &Model,
    data: &Data<'_>,
    start: &LeafStart,
    seed: u64,
) -> Result<Model> {
    data.check(&like.structure)?;
    let classes = like.structure.classes;
    let labelled = match classes {
        1 => data.len(),
        _ => data.labels.iter().filter(|&&label| label >= 0).count(),
    };
    let each = (labelled / (ROWS * classes)).clamp(1, MOST);
    let found = clusterings(like, data, start, each, seed);
    data.stop.check()?;
    let size = |d: usize| {
        let assigned = found[d / each].1.iter();
        1 + assigned.filter(|&&cluster| cluster == d % each).count()
    };
    let sizes: Vec<f64> = (0..each * found.len()).map(|d| size(d) as f64).collect(); // (M)
    let families: Vec<Family> = found.into_iter().map(|(family, _)| family).collect();
    model_of(like, &families, sizes)
}

/// A model of the clusters of all classes, as many of each, and their sizes (M).
pub(super) fn model_of(like: &Model, families: &[Family], sizes: Vec<f64>) -> Result<Model> {
    let (kinds, classes) = (&like.structure.kinds, like.structure.classes);
    let columns = [(0..kinds.len() as u32).collect::<Vec<_>>()];
    let tree = TreeWeights {
        families: vec![side_by_side(kinds, families)],
        levels: vec![class_weights(classes, &sizes)],
    };
    let tops = Mixing::from_logits(1, classes, classes, |_, y, c| {
        if y == c { 0.0 } else { FOREIGN.ln() as f32 }
    });
    let structure = Structure::table(kinds)
        .groups(columns)
        .window(2)
        .components(sizes.len())
        .channels([classes])
        .classes(classes)
        .build()?;
    Ok(Model {
        structure,
        weights: Weights {
            trees: vec![tree],
            classes: tops,
        },
        ..like.clone()
    })
}

/// Every class clustered several times: the clusters, and which of them each row belongs to.
fn clusterings(
    like: &Model,
    data: &Data<'_>,
    start: &LeafStart,
    each: usize,
    seed: u64,
) -> Vec<(Family, Vec<usize>)> {
    let classes = like.structure.classes;
    let class = |index: usize| (classes > 1).then_some((index / TIMES) as i64);
    let clustering = |index: usize| {
        let random = Stream::new(seed, Purpose::Leaves, 1, index as u32);
        let rows = rows_of(data, class(index), like.structure.kinds.len());
        clusters_of(like, &rows, start, each, random, &data.stop)
    };
    let all = (0..classes * TIMES).into_par_iter();
    all.map(clustering).collect()
}

/// Clusters of some rows, and which of them each row belongs to.
pub(super) fn clusters_of(
    like: &Model,
    rows: &[f32],
    start: &LeafStart,
    each: usize,
    mut random: Stream,
    stop: &Stop,
) -> (Family, Vec<usize>) {
    let kinds = &like.structure.kinds;
    let patches = Patches {
        scaling: &like.scaling,
        kinds,
        values: rows,
        width: kinds.len(),
        positions: &[(0..kinds.len() as u32).collect()],
        stop,
    };
    patches.fit(each, start, &mut random)
}

/// The rows of a class, as many as it has, each as often as its weight says.
pub(super) fn rows_of(data: &Data<'_>, class: Option<i64>, width: usize) -> Vec<f32> {
    let rows: Vec<usize> = (0..data.len())
        .filter(|&row| class.is_none_or(|class| data.label(row) == class))
        .collect();
    let weight = |row: usize| data.weights.get(row).map_or(1.0, |&w| f64::from(w));
    let total: f64 = rows.iter().map(|&row| weight(row)).sum();
    let mut values = Vec::with_capacity(rows.len() * width);
    let mut due = 0.5;
    for &row in rows.iter().filter(|_| total > 0.0) {
        due += weight(row) * rows.len() as f64 / total;
        (0..due as usize)
            .for_each(|_| values.extend_from_slice(&data.values[row * width..(row + 1) * width]));
        due = due.fract();
    }
    values
}

/// W, (K, M): a class has its own clusters by their sizes.
fn class_weights(classes: usize, sizes: &[f64]) -> Mixing {
    let own = sizes.len() / classes;
    let totals: Vec<f64> = sizes.chunks(own).map(|sizes| sizes.iter().sum()).collect();
    let share = |y: usize, d: usize| match d / own == y {
        true => sizes[d] / totals[y],
        false => FOREIGN,
    };
    Mixing::from_logits(1, classes, sizes.len(), |_, y, d| share(y, d).ln() as f32)
}

/// The components of all families, which have coordinates of the same kinds.
fn side_by_side(kinds: &[Kind], families: &[Family]) -> Family {
    let components = families.iter().map(|family| family.components).sum();
    let mut all = Family::new(kinds, components);
    all.factors = factors_side_by_side(families, components);
    let mut first = 0;
    for family in families {
        let m = family.components;
        for pair in all.coordinates.iter_mut().zip(&family.coordinates) {
            match pair {
                (
                    Coordinate::Gaussian { mean, log_sigma },
                    Coordinate::Gaussian {
                        mean: means,
                        log_sigma: logs,
                    },
                ) => {
                    mean[first..first + m].copy_from_slice(means);
                    log_sigma[first..first + m].copy_from_slice(logs);
                }
                (Coordinate::Discrete { logits }, Coordinate::Discrete { logits: tables }) => {
                    let values = logits
                        .chunks_exact_mut(components)
                        .zip(tables.chunks_exact(m));
                    values.for_each(|(to, from)| to[first..first + m].copy_from_slice(from));
                }
                _ => {}
            }
        }
        first += m;
    }
    all
}

/// The factors of all families, if they have any.
fn factors_side_by_side(families: &[Family], components: usize) -> Option<Factors> {
    let rank = families.first()?.factors.as_ref()?.rank;
    let lines = families[0].coordinates.len() * rank;
    let mut loadings = Vec::with_capacity(lines * components);
    for line in 0..lines {
        for family in families {
            let own = &family.factors.as_ref()?.loadings[line * family.components..];
            loadings.extend_from_slice(&own[..family.components]);
        }
    }
    Some(Factors { rank, loadings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Rows;
    use crate::queries::Predictor;

    /// Two clusters a class, in the corners of a square, and a category that goes with the class in nine rows of ten:
    /// no column alone tells the classes apart but the category. A fifth of the cells is missing.
    fn corners(rows: usize) -> (Vec<f32>, Vec<i64>) {
        let mut random = Stream::new(5, Purpose::Masks, 0, 0);
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let (class, side) = (
                (row % 2) as f64,
                if random.chance(0.5) { 3.0 } else { -3.0 },
            );
            let other = if class == 0.0 { side } else { -side };
            let category = if random.chance(0.9) {
                class
            } else {
                1.0 - class
            };
            let cells = [
                side + random.normal(),
                100.0 + other + random.normal(),
                category,
            ];
            values.extend(cells.map(|x| {
                if random.chance(0.2) {
                    f32::NAN
                } else {
                    x as f32
                }
            }));
            labels.push(class as i64);
        }
        (values, labels)
    }

    fn like(classes: usize) -> Model {
        let kinds = [Kind::Gaussian, Kind::Gaussian, Kind::Categorical(2)];
        let mut model = Model::random(
            Structure::table(&kinds)
                .groups([vec![0, 1, 2]])
                .window(2)
                .components(2)
                .channels([2])
                .classes(classes)
                .build()
                .unwrap(),
            1.0,
            1,
        );
        model.scaling = crate::model::Scaling {
            offset: vec![0.0, 100.0, 0.0],
            scale: vec![1.0 / 3.0, 1.0 / 3.0, 1.0],
            ..crate::model::Scaling::default()
        };
        model
    }

    #[test]
    fn finds_the_clusters_of_each_class_in_rows_with_holes() {
        let (values, labels) = corners(800);
        let model = class_clusters(
            &like(2),
            &Data::new(
                Rows::new(&values, 3).unwrap(),
                &crate::training::labels(&labels),
            ),
            &LeafStart::default(),
            3,
        )
        .unwrap();
        let hole = f32::NAN;
        let asked = [
            3.0, 103.0, hole, -3.0, 103.0, hole, hole, hole, 1.0, hole, hole, 0.0, hole, hole, hole,
        ];
        let mut predictor = Predictor::new(model).unwrap();
        let asked = Rows::new(&asked, 3).unwrap();
        let posterior = predictor.posterior(asked).unwrap().into_vec();
        assert!(posterior[0] > 0.99 && posterior[3] > 0.99, "{posterior:?}");
        assert!(
            (posterior[5] - 0.9).abs() < 0.04 && (posterior[6] - 0.9).abs() < 0.04,
            "{posterior:?}"
        );
        assert!((posterior[8] - 0.5).abs() < 1e-5, "{posterior:?}");
        let far = Rows::new(&[1e6, 100.0, 0.0], 3).unwrap();
        let far = predictor.posterior(far).unwrap().into_vec();
        assert!(far.iter().all(|p| p.is_finite() && *p > 0.0), "{far:?}");
    }

    /// Clusters that would never be found.
    #[test]
    fn stops_on_request() {
        let (values, labels) = corners(800);
        let (stop, rows) = (Stop::default(), Rows::new(&values, 3).unwrap());
        let data = Data::new(rows, &crate::training::labels(&labels)).stopped_by(&stop);
        let forever = LeafStart {
            rounds: usize::MAX,
            ..LeafStart::default()
        };
        let stopped = std::thread::scope(|scope| {
            scope.spawn(|| stop.request());
            class_clusters(&like(2), &data, &forever, 3)
        });
        assert_eq!(stopped.err(), Some(crate::Error::Stopped));
    }

    /// Rows count by their weights; rows without a label and classes without rows are no error.
    #[test]
    fn weights_count_and_labels_may_be_missing() {
        let rows = Rows::new(&[1.0, 2.0, 3.0, 4.0], 1).unwrap();
        let alike = Data::new(rows, &[Some(0), Some(0), Some(0), None]);
        let data = alike.clone().weighted(&[2.0, 0.0, 1.0, 5.0]);
        assert_eq!(
            (rows_of(&data, Some(0), 1), rows_of(&data, Some(1), 1)),
            (vec![1.0, 1.0, 3.0], vec![])
        );
        assert_eq!(rows_of(&alike, Some(0), 1), [1.0, 2.0, 3.0]);
        let (values, mut labels) = corners(200);
        labels[..20].fill(-1);
        class_clusters(
            &like(3),
            &Data::new(
                Rows::new(&values, 3).unwrap(),
                &crate::training::labels(&labels),
            ),
            &LeafStart::default(),
            3,
        )
        .unwrap();
    }
}
