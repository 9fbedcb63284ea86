//! What the mixtures of [`Mixtures`] are made of: the normals of a column in all leaves, and their weights in a row.

use crate::error::{Error, Result};
use crate::layers::leaf_table::Density;
use crate::matrix::{Matrix, Rows};
use crate::queries::mixtures::{Bend, Mixture, Mixtures, Normal};
use crate::queries::predictor::Predictor;
use crate::queries::responsibilities::Flows;
use crate::structure::{Kind, OUTSIDE};
use rayon::prelude::*;
use std::sync::Arc;

/// One position of a tree that has the column, and which of its coordinates that is.
struct Place {
    tree: usize,
    position: usize,
    coordinate: usize,
}

/// What the distributions of a column have in common: all but the weights.
pub(super) struct Parts {
    places: Vec<Place>,
    pub(super) normals: Vec<Normal>, // where there are factors, only as many as there will be in a row
    bend: Option<Bend>,
    has_factors: bool,
    units: (f64, f64), // offset and factor of the column
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
        let mut normals = Vec::new();
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
            if parts.has_factors {
                let rows = (0..without.len() / width).into_par_iter();
                normals.par_extend(rows.flat_map_iter(|b| parts.normals_in_row(&flows, b)));
            }
        }
        Ok(Mixtures {
            weights: Matrix::new(weights, stride),
            normals: if parts.has_factors {
                normals
            } else {
                parts.normals
            },
            bend: parts.bend,
        })
    }

    /// What the distributions of a column of real numbers are made of.
    pub(super) fn parts_of(&self, column: usize) -> Parts {
        let places = self.places_of(column);
        let normals = self.normals_of(&places, column);
        let has_factors = places.iter().any(|place| {
            let position = &self.model.structure.trees[place.tree].positions[place.position];
            let table = &self.leaves[place.tree][position.family as usize];
            table.factors.is_some()
        });
        let scaling = &self.model.scaling;
        let moments = |normal: &Normal| scaling.moments(column, normal.mean, normal.sigma);
        let shared = normals.iter().filter(|_| !has_factors);
        let is_plain = !scaling.is_bent(column) && !scaling.range_of(column).whole;
        let bend = (!is_plain).then(|| Bend {
            scaling: Arc::new(scaling.clone()),
            column,
            moments: shared.map(moments).collect(),
        });
        Parts {
            places,
            normals,
            bend,
            has_factors,
            units: self.units(column),
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

    /// The normals in row b, which leaves with factors make from what is observed.
    pub(super) fn normals_in_row(&self, flows: &Flows<'_>, b: usize) -> Vec<Normal> {
        let mut normals = self.normals.clone();
        let (offset, factor) = self.units;
        let mut rest = &mut normals[..];
        for place in &self.places {
            let (own, others) = rest.split_at_mut(flows.components(place.tree));
            let of = (place.tree, place.position, place.coordinate);
            if let Some(given) = flows.conditionals(of, b) {
                for (to, (mean, sigma)) in own.iter_mut().zip(given.of(place.coordinate)) {
                    *to = Normal {
                        mean: mean * factor + offset,
                        sigma: sigma * factor,
                    };
                }
            }
            rest = others;
        }
        normals
    }

    /// The distribution in row b that has these weights, (normals). `normals` is scratch.
    pub(super) fn mixture<'a>(
        &'a self,
        flows: &Flows<'_>,
        b: usize,
        weights: &'a [f64],
        normals: &'a mut Vec<Normal>,
    ) -> Mixture<'a> {
        if self.has_factors {
            *normals = self.normals_in_row(flows, b);
        }
        Mixture {
            normals: if self.has_factors {
                normals
            } else {
                &self.normals
            },
            bend: self.bend.as_ref(),
            weights,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_mixture() {
        let table = crate::structure::Structure::table(&[Kind::Gaussian; 2]).components(2);
        let structure = table.channels([2]).build().unwrap();
        let mut predictor = Predictor::new(crate::model::Model::random(structure, 1.0, 3)).unwrap();
        let rows = Rows::new(&[0.5, 1.0, f32::NAN, 2.0, 0.1, f32::NAN], 2).unwrap();
        let mixtures = predictor.mixtures(rows, 0, None).unwrap();
        assert_eq!(mixtures.rows(), 3);
        let error = predictor.mixtures(rows, 2, None).unwrap_err().to_string();
        assert!(error.contains("a number from 0 to 1"), "{error}");
        let means = mixtures.map(2, |row, mixture, to| {
            to.copy_from_slice(&[row as f64, mixture.mean()]);
        });
        assert_eq!((means.rows(), means.columns()), (3, 2));
        for row in 0..3 {
            assert_eq!(means.row(row), [row as f64, mixtures.row(row).mean()]);
        }
    }
}
