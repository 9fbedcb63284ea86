//! A model that answers about rows of 32-bit numbers; NaN is missing.

use sumout::queries::How;
use sumout::{Model, Predictor, Result};
use wasm_bindgen::prelude::*;

/// A model file that was opened.
#[wasm_bindgen]
pub struct WebModel {
    predictor: Predictor,
}

fn checked<T>(result: Result<T>) -> std::result::Result<T, JsError> {
    result.map_err(|error| JsError::new(&error.to_string()))
}

type Answer<T> = std::result::Result<T, JsError>;

#[wasm_bindgen]
impl WebModel {
    /// Opens the bytes of a model file.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: &[u8]) -> Answer<Self> {
        let predictor = checked(Model::from_bytes(bytes).and_then(Predictor::new))?;
        Ok(Self { predictor })
    }

    /// Numbers in a row.
    #[wasm_bindgen(getter)]
    pub fn width(&self) -> usize {
        self.predictor.model().structure.width()
    }

    /// The names of the classes, or their numbers.
    #[wasm_bindgen(getter)]
    pub fn classes(&self) -> Vec<String> {
        let model = self.predictor.model();
        let classes = 0..model.structure.classes;
        classes.map(|class| model.class_name(class)).collect()
    }

    /// The names of the columns; none for images.
    #[wasm_bindgen(getter)]
    pub fn columns(&self) -> Vec<String> {
        self.predictor.model().about.columns.clone()
    }

    /// The names of a column's categories; none for a number.
    pub fn categories(&self, column: usize) -> Vec<String> {
        let all = &self.predictor.model().about.categories;
        all.get(column).cloned().unwrap_or_default()
    }

    /// (n): the most probable class of each row.
    pub fn predict(&mut self, rows: &[f32]) -> Answer<Vec<u32>> {
        let rows = checked(self.predictor.model().rows(rows))?;
        let classes = checked(self.predictor.predict(rows))?;
        Ok(classes.into_iter().map(|class| class as u32).collect())
    }

    /// (n, K): P(y|x).
    pub fn posterior(&mut self, rows: &[f32]) -> Answer<Vec<f64>> {
        let rows = checked(self.predictor.model().rows(rows))?;
        Ok(checked(self.predictor.posterior(rows))?.into_vec())
    }

    /// (n): log P(x).
    #[wasm_bindgen(js_name = logLikelihood)]
    pub fn log_likelihood(&mut self, rows: &[f32]) -> Answer<Vec<f64>> {
        let rows = checked(self.predictor.model().rows(rows))?;
        checked(self.predictor.log_marginal(rows))
    }

    /// (n, width): rows with their holes filled.
    pub fn impute(
        &mut self,
        rows: &[f32],
        how: &str,
        class: Option<usize>,
        seed: u32,
    ) -> Answer<Vec<f32>> {
        let how: How = how
            .parse()
            .map_err(|_| JsError::new(&format!("how: expected {}, got '{how}'", How::NAMES)))?;
        let rows = checked(self.predictor.model().rows(rows))?;
        let filled = checked(self.predictor.impute(rows, how, class, seed.into()))?;
        Ok(filled.into_vec())
    }

    /// (count, width): new rows.
    pub fn sample(&mut self, count: usize, class: Option<usize>, seed: u32) -> Answer<Vec<f32>> {
        let samples = checked(self.predictor.sample(count, class, seed.into()))?;
        Ok(samples.rows.into_vec())
    }
}
