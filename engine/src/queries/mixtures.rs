//! The whole distribution of a missing number given what is observed: a finite mixture of normals, exactly.
//!
//! ```text
//! P(x_m | x_o) = Σ_d w_d N(μ_d, σ_d²)        w_d = r_i(d), the responsibilities of `impute.rs`, over all trees
//! mean         = Σ_d w_d μ_d
//! variance     = Σ_d w_d (σ_d² + (μ_d − mean)²)
//! quantile(p)  : Σ_d w_d Φ((q − μ_d)/σ_d) = p
//! ```
//!
//! The normals of a column are the same for all rows, and only the weights differ. What a number's density at one
//! point is, [`Predictor::log_conditional`] says.
//!
//! ```
//! use sumout::{Kind, Model, Predictor, Rows, Structure};
//! let structure = Structure::table(&[Kind::Gaussian; 3]).components(4).channels([8]).build()?;
//! let mut predictor = Predictor::new(Model::random(structure, 1.0, 1))?;
//! let rows = Rows::new(&[0.5, -1.0, f32::NAN], 3)?;
//! let mixtures = predictor.mixtures(rows, 2, None)?;
//! let mixture = mixtures.row(0); // leaves are standard normals
//! assert!(mixture.mean().abs() < 1e-6 && (mixture.variance() - 1.0).abs() < 1e-6);
//! assert!((mixture.quantile(0.975) - 1.959964).abs() < 1e-5);
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::normal::{normal_cdf, normal_density};
use crate::error::{Error, Result};
use crate::layers::leaf_table::Density;
use crate::matrix::{Matrix, Rows};
use crate::model::Scaling;
use crate::model::column_range::MeanVariance;
use crate::queries::impute::Flows;
use crate::queries::predictor::Predictor;
use crate::random::Stream;
use crate::structure::{Kind, OUTSIDE};
use rayon::prelude::*;
use std::sync::Arc;

/// Distributions of one column in n rows, in the units of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixtures {
    normals: Vec<Normal>,
    bend: Option<Bend>,
    weights: Matrix<f64>, // (n, normals); rows sum to one, or are zero where what is observed is impossible
}

/// A column with bounds or a curve: w of its numbers is normal ([`Scaling`](crate::model::Scaling)).
#[derive(Clone, Debug, PartialEq)]
struct Bend {
    scaling: Arc<Scaling>,
    column: usize,
    moments: Vec<MeanVariance>, // of the normals, in the units of the data
}

/// One normal of a mixture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    /// μ.
    pub mean: f64,
    /// σ.
    pub sigma: f64,
}

/// The distribution of a number in one row. All it says is NaN where the model gives what is observed probability zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture<'a> {
    normals: &'a [Normal],
    bend: Option<&'a Bend>,
    weights: &'a [f64],
}

/// One position of a tree that has the column, and which of its coordinates that is.
struct Place {
    tree: usize,
    position: usize,
    coordinate: usize,
}

/// What the distributions of a column have in common: all but the weights.
pub(super) struct Parts {
    places: Vec<Place>,
    pub(super) normals: Vec<Normal>,
    bend: Option<Bend>,
}

impl Mixtures {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.weights.rows()
    }

    /// The distribution in one row.
    pub fn row(&self, row: usize) -> Mixture<'_> {
        Mixture {
            normals: &self.normals,
            bend: self.bend.as_ref(),
            weights: self.weights.row(row),
        }
    }

    /// Some numbers of every row's distribution, computed on all threads, (n, columns).
    pub fn map(
        &self,
        columns: usize,
        report: impl Fn(usize, Mixture<'_>, &mut [f64]) + Sync,
    ) -> Matrix<f64> {
        let mut all = vec![0.0; self.rows() * columns];
        let rows = all.par_chunks_mut(columns.max(1)).enumerate();
        rows.for_each(|(row, to)| report(row, self.row(row), to));
        Matrix::new(all, columns)
    }
}

impl<'a> Mixture<'a> {
    /// The normals that have a weight, with it; of w(x) where the column has bounds or a curve.
    pub fn parts(&self) -> impl Iterator<Item = (f64, Normal)> + Clone + use<'a> {
        let both = self.weights.iter().copied().zip(self.normals);
        both.filter(|(weight, _)| *weight > 0.0)
            .map(|(weight, normal)| (weight, *normal))
    }

    fn is_impossible(&self) -> bool {
        self.parts().next().is_none()
    }

    /// The mean and variance of a mixture of parts with these.
    fn mixed(&self, of_part: impl Fn(usize) -> MeanVariance) -> MeanVariance {
        if self.is_impossible() {
            let (mean, variance) = (f64::NAN, f64::NAN);
            return MeanVariance { mean, variance };
        }
        let parts = || self.weights.iter().enumerate().filter(|(_, w)| **w > 0.0);
        let mean: f64 = parts().map(|(d, w)| w * of_part(d).mean).sum();
        let around = |(d, w): (usize, &f64)| {
            let part = of_part(d);
            w * (part.variance + (part.mean - mean).powi(2))
        };
        let variance = parts().map(around).sum();
        MeanVariance { mean, variance }
    }

    /// Those of w.
    fn bent_moments(&self) -> MeanVariance {
        self.mixed(|d| MeanVariance {
            mean: self.normals[d].mean,
            variance: self.normals[d].sigma.powi(2),
        })
    }

    fn moments(&self) -> MeanVariance {
        match self.bend {
            Some(bend) => self.mixed(|d| bend.moments[d]),
            None => self.bent_moments(),
        }
    }

    /// From w to the units of the data.
    fn unbend(&self, w: f64) -> f64 {
        match self.bend {
            Some(bend) => bend.scaling.to_data(bend.column, w).into(),
            None => w,
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.moments().mean
    }

    /// The variance.
    pub fn variance(&self) -> f64 {
        self.moments().variance
    }

    /// P(x_m ≤ x | x_o).
    pub fn cdf(&self, x: f64) -> f64 {
        match self.bend {
            Some(bend) => self.bent_cdf(bend.scaling.bend(bend.column, x as f32).into()),
            None => self.bent_cdf(x),
        }
    }

    /// The same of w.
    fn bent_cdf(&self, x: f64) -> f64 {
        if self.is_impossible() {
            return f64::NAN;
        }
        let part = |(w, normal): (f64, Normal)| w * normal_cdf((x - normal.mean) / normal.sigma);
        self.parts().map(part).sum()
    }

    fn density(&self, x: f64) -> f64 {
        let part = |(w, normal): (f64, Normal)| {
            w * normal_density((x - normal.mean) / normal.sigma) / normal.sigma
        };
        self.parts().map(part).sum()
    }

    /// The number below which x_m lies with probability p, which must be between 0 and 1, to a millionth of the
    /// standard deviation: Newton's steps, or halves of the interval where those leave it.
    pub fn quantile(&self, p: f64) -> f64 {
        const STEPS: usize = 200;
        let MeanVariance { mean, variance } = self.bent_moments();
        let sigma = variance.sqrt();
        // Cantelli's inequality: the quantile lies in between.
        let mut low = mean - sigma * ((1.0 - p) / p).sqrt();
        let mut high = mean + sigma * (p / (1.0 - p)).sqrt();
        let mut x = mean;
        for _ in 0..STEPS {
            let miss = self.bent_cdf(x) - p;
            if miss > 0.0 {
                high = x;
            } else {
                low = x;
            }
            let newton = x - miss / self.density(x);
            let is_inside = newton > low && newton < high; // not if NaN
            let next = if is_inside {
                newton
            } else {
                (low + high) / 2.0
            };
            let moved = (next - x).abs();
            x = next;
            if moved <= 1e-9 * sigma || !moved.is_finite() {
                break;
            }
        }
        self.unbend(x)
    }

    /// A number drawn from it.
    pub fn sample(&self, stream: &mut Stream) -> f64 {
        if self.is_impossible() {
            return f64::NAN;
        }
        let chosen = self.normals[stream.pick(self.weights.iter().copied())];
        self.unbend(chosen.mean + chosen.sigma * stream.normal())
    }
}

impl Predictor {
    /// P(x_m|x_o) of a column of real numbers in every row, given all other numbers that are observed: what the rows
    /// say of this column itself is not looked at. Given a class, everything is given that class too.
    pub fn mixtures(
        &mut self,
        rows: Rows<'_>,
        column: usize,
        class: Option<usize>,
    ) -> Result<Mixtures> {
        self.check_rows(rows)?;
        self.check_class(class)?;
        self.check_real(column)?;
        let parts = self.parts_of(column);
        let (width, stride) = (rows.width(), parts.normals.len());
        let mut weights = vec![0.0; rows.len() * stride];
        let piece = self.piece();
        let pieces = rows.as_slice().chunks(piece * width);
        for (rows, out) in pieces.zip(weights.chunks_mut(piece * stride)) {
            let mut without = rows.to_vec();
            without
                .chunks_mut(width)
                .for_each(|row| row[column] = f32::NAN);
            let flows = self.flows(&without, class)?;
            let by_row = out.par_chunks_mut(stride).enumerate();
            by_row.for_each_init(Vec::new, |flow, (b, to)| parts.weigh(&flows, b, flow, to));
        }
        Ok(Mixtures {
            weights: Matrix::new(weights, stride),
            normals: parts.normals,
            bend: parts.bend,
        })
    }

    /// What the distributions of a column of real numbers are made of.
    pub(super) fn parts_of(&self, column: usize) -> Parts {
        let places = self.places_of(column);
        let normals = self.normals_of(&places, column);
        let scaling = &self.model.scaling;
        let moments = |normal: &Normal| scaling.moments(column, normal.mean, normal.sigma);
        let bend = scaling.is_bent(column).then(|| Bend {
            scaling: Arc::new(scaling.clone()),
            column,
            moments: normals.iter().map(moments).collect(),
        });
        Parts {
            places,
            normals,
            bend,
        }
    }

    pub(super) fn check_real(&self, column: usize) -> Result<()> {
        match self.columns.kinds.get(column) {
            Some(Kind::Gaussian) => Ok(()),
            Some(_) => Err(Error::shape(
                format!("column {column}"),
                "real numbers",
                "categories",
            )),
            None => {
                let last = self.columns.kinds.len() - 1;
                let expected = format!("a number from 0 to {last}");
                Err(Error::shape("column", expected, column))
            }
        }
    }

    /// Where the trees have a column: once each.
    fn places_of(&self, column: usize) -> Vec<Place> {
        let of_place = &self.columns.of_place;
        let is_column =
            |&input: &u32| input != OUTSIDE && of_place[input as usize] == column as u32;
        let mut places = Vec::new();
        for (tree, blueprint) in self.model.structure.trees.iter().enumerate() {
            for (position, leaf) in blueprint.positions.iter().enumerate() {
                let found = leaf.inputs.iter().position(is_column);
                places.extend(found.map(|coordinate| Place {
                    tree,
                    position,
                    coordinate,
                }));
            }
        }
        places
    }

    /// The normals of a column, in the units of the data, or of w.
    fn normals_of(&self, places: &[Place], column: usize) -> Vec<Normal> {
        let (offset, factor) = self.units(column);
        let mut normals = Vec::new();
        for place in places {
            let position = &self.model.structure.trees[place.tree].positions[place.position];
            let table = &self.leaves[place.tree][position.family as usize];
            if let Density::Gaussian { mean, sigma, .. } = &table.densities[place.coordinate] {
                let normal = |(mean, sigma): (&f64, &f64)| Normal {
                    mean: mean * factor + offset,
                    sigma: sigma * factor,
                };
                normals.extend(mean.iter().zip(sigma).map(normal));
            }
        }
        normals
    }
}

impl Parts {
    /// The weights of all normals in row b, which sum to one unless all are zero. `flow` is scratch.
    pub(super) fn weigh(&self, flows: &Flows<'_>, b: usize, flow: &mut Vec<f64>, to: &mut [f64]) {
        let mut rest = &mut *to;
        for place in &self.places {
            flows.of(place.tree, place.position, b, flow);
            let (own, others) = rest.split_at_mut(flow.len());
            own.copy_from_slice(flow);
            rest = others;
        }
        let total: f64 = to.iter().sum();
        if total > 0.0 {
            to.iter_mut().for_each(|weight| *weight /= total);
        } else {
            to.fill(0.0);
        }
    }

    /// The distribution that has these weights, (normals).
    pub(super) fn mixture<'a>(&'a self, weights: &'a [f64]) -> Mixture<'a> {
        Mixture {
            normals: &self.normals,
            bend: self.bend.as_ref(),
            weights,
        }
    }
}
