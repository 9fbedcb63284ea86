//! Mean and variance of components in the units of the data, for columns with bounds or a curve.

use crate::layers::leaf_table::Density;
use crate::model::column_range::MeanVariance;
use crate::queries::predictor::{BentMoments, LeafPlace, Predictor};
use crate::structure::OUTSIDE;
use std::sync::OnceLock;

impl Predictor {
    /// Mean and variance of every component at a tree, position and coordinate in the units of the data, if the column there
    /// has bounds or a curve. They do not depend on a row: they are computed when they are first asked for, and kept.
    pub(super) fn bent_moments(&self, place: LeafPlace) -> Option<&[MeanVariance]> {
        let all = self.bent_moments.get_or_init(|| self.bent_places());
        let (column, moments) = all.get(&place)?;
        Some(moments.get_or_init(|| self.compute_bent_moments(place, *column)))
    }

    /// The places of columns with bounds or a curve.
    fn bent_places(&self) -> BentMoments {
        let places = self.places().into_iter();
        let bent = places.filter(|(place, column)| {
            self.model.scaling.is_bent(*column) && self.normals_at(*place).is_some()
        });
        bent.map(|(place, column)| (place, (column, OnceLock::new())))
            .collect()
    }

    /// Means and deviations of the components in the units of the model.
    fn normals_at(&self, (t, i, s): LeafPlace) -> Option<(&[f64], &[f64])> {
        let family = self.model.structure.trees[t].positions[i].family as usize;
        match &self.leaves[t][family].densities[s] {
            Density::Gaussian { mean, sigma, .. } => Some((mean, sigma)),
            _ => None,
        }
    }

    fn compute_bent_moments(&self, place: LeafPlace, column: usize) -> Vec<MeanVariance> {
        let (mean, sigma) = self.normals_at(place).unwrap_or_default();
        let (offset, factor) = self.units(column);
        let of_component = |(mean, sigma): (&f64, &f64)| {
            let scaling = &self.model.scaling;
            scaling.moments(column, mean * factor + offset, sigma * factor)
        };
        mean.iter().zip(sigma).map(of_component).collect()
    }

    /// Tree, position and coordinate of every column, as often as it stands in a tree.
    fn places(&self) -> Vec<((usize, usize, usize), usize)> {
        let mut places = Vec::new();
        for (t, tree) in self.model.structure.trees.iter().enumerate() {
            for (i, position) in tree.positions.iter().enumerate() {
                for (s, &input) in position.inputs.iter().enumerate() {
                    let inside = (input != OUTSIDE).then(|| self.columns.of_place[input as usize]);
                    if let Some(column) = inside.filter(|&column| column != OUTSIDE) {
                        places.push(((t, i, s), column as usize));
                    }
                }
            }
        }
        places
    }
}
