//! The column that a model was trained to predict.

use crate::model::{Model, Notes};
use crate::structure::Kind;

/// The key of the column in the notes about the training.
const REGRESSION: &str = "regression";

impl Notes {
    /// Notes the column that the model is trained to predict.
    pub(crate) fn set_target(&mut self, column: usize) {
        self.set(REGRESSION, column);
    }
}

impl Model {
    /// The column of real numbers that the model was trained to predict from the others, if there is one.
    pub fn target(&self) -> Option<usize> {
        let column: usize = self.about.training.get(REGRESSION)?;
        let is_number = self.structure.row_kinds().get(column) == Some(&Kind::Gaussian);
        is_number.then_some(column)
    }
}
