//! Mean and variance of components in the units of the data, for columns with bounds or a curve.

use crate::layers::leaf_table::Density;
use crate::queries::predictor::{BentMoments, Predictor};
use crate::structure::OUTSIDE;

impl Predictor {
    /// Mean and variance of every component in the units of the data, by tree, position and coordinate, for columns with
    /// bounds or a curve. They do not depend on a row, and are computed once.
    pub(super) fn bent_moments(&self) -> &BentMoments {
        self.bent_moments
            .get_or_init(|| self.compute_bent_moments())
    }

    fn compute_bent_moments(&self) -> BentMoments {
        let mut all = BentMoments::new();
        let scaling = &self.model.scaling;
        for (place, column) in self.places() {
            let (t, i, s) = place;
            let family = self.model.structure.trees[t].positions[i].family as usize;
            let Density::Gaussian { mean, sigma, .. } = &self.leaves[t][family].densities[s] else {
                continue;
            };
            if scaling.is_bent(column) {
                let (offset, factor) = self.units(column);
                let pairs = mean.iter().zip(sigma);
                let moments = pairs.map(|(mean, sigma)| {
                    scaling.moments(column, mean * factor + offset, sigma * factor)
                });
                all.insert(place, moments.collect());
            }
        }
        all
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
