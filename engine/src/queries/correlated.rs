//! What leaves with factors say of the missing numbers of a row, which depends on what is observed in the same leaf.

use crate::layers::leaf_factors::{Conditionals, LeafFactors};
use crate::model::column_range::MeanVariance;
use crate::queries::predictor::Predictor;
use crate::random::Stream;
use crate::structure::{OUTSIDE, Position};

/// What a hole is filled with, once its component is known.
pub(crate) enum Filling<'a> {
    /// The most likely value.
    Mode,
    /// A draw.
    Sample(&'a mut Stream),
}

impl Filling<'_> {
    fn stream(&mut self) -> Option<&mut Stream> {
        match self {
            Self::Mode => None,
            Self::Sample(stream) => Some(stream),
        }
    }
}

impl Predictor {
    /// Mean and deviation of the missing numbers of position i of tree t, or of one of them, in sample b of the rows that
    /// are loaded, in the units of the model; nothing where the position has no factors.
    pub(super) fn conditionals(
        &self,
        t: usize,
        i: usize,
        b: usize,
        only: Option<usize>,
    ) -> Option<Conditionals> {
        let position = &self.model.structure.trees[t].positions[i];
        let factors = self.leaves[t][position.family as usize].factors.as_ref()?;
        Some(factors.conditionals(&position.inputs, self.batch.row(b), only))
    }

    /// Mean and variance of a normal of the model, as [`Beliefs`](super::beliefs::Beliefs) want them: in the units of the
    /// data for a column with bounds or a curve.
    pub(super) fn moments_of(&self, column: usize, mean: f64, sigma: f64) -> MeanVariance {
        if !self.model.scaling.is_bent(column) {
            let variance = sigma * sigma;
            return MeanVariance { mean, variance };
        }
        let (offset, factor) = self.units(column);
        let (mean, sigma) = (mean * factor + offset, sigma * factor);
        self.model.scaling.moments(column, mean, sigma)
    }

    /// Writes a value into every hole of a row that a position of tree t in component d has, in the units of the data.
    pub(super) fn fill_position(
        &self,
        t: usize,
        position: &Position,
        d: usize,
        row: &mut [f32],
        filling: &mut Filling<'_>,
    ) {
        let table = &self.leaves[t][position.family as usize];
        let factors = table.factors.as_ref();
        let hidden =
            factors.map(|factors| (factors, self.hidden(factors, position, d, row, filling)));
        for (s, &input) in position.inputs.iter().enumerate() {
            let Some(column) = self.column_of(input).filter(|&column| row[column].is_nan()) else {
                continue;
            };
            let z = match filling {
                Filling::Mode => table.mode(s, d),
                Filling::Sample(stream) => table.sample(s, d, stream),
            };
            let shift = hidden.as_ref().map(|(factors, z)| factors.shift(s, d, z));
            row[column] = self.to_data(column, z + shift.unwrap_or(0.0));
        }
    }

    /// The hidden numbers of a position in component d given what is observed, (R).
    fn hidden(
        &self,
        factors: &LeafFactors,
        position: &Position,
        d: usize,
        row: &[f32],
        filling: &mut Filling<'_>,
    ) -> Vec<f64> {
        let cells = self.cells_in_model(position, row);
        let inputs: Vec<u32> = (0..cells.len() as u32).collect();
        factors.hidden(&inputs, &cells, d, filling.stream())
    }

    /// The numbers of a position, (S), in the units of the model.
    fn cells_in_model(&self, position: &Position, row: &[f32]) -> Vec<f32> {
        let scaling = &self.model.scaling;
        let cell = |&input: &u32| match self.column_of(input) {
            Some(column) => scaling.apply(column, scaling.bend(column, row[column])),
            None => f32::NAN,
        };
        position.inputs.iter().map(cell).collect()
    }

    /// The column of an input; nothing for a border.
    fn column_of(&self, input: u32) -> Option<usize> {
        let inside = (input != OUTSIDE).then(|| self.columns.of_place[input as usize]);
        let column = inside.filter(|&column| column != OUTSIDE);
        column.map(|column| column as usize)
    }
}
