//! The page: plain HTML with its style and pictures inside. It loads nothing and runs nothing.

mod overview;
mod filled_digits;
mod new_digits;
mod states;
mod next_steps;

use crate::accuracy::Score;
use crate::gallery;
use crate::neuron_states;
use anyhow::Result;
use sumout::Predictor;
use sumout_data::layout::Table;

/// Samples per class.
const SAMPLES: usize = 9;

/// What was run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The folder of the model and the page.
    pub folder: &'a str,
    /// Training images.
    pub trained_on: usize,
    /// Steps of training.
    pub steps: usize,
    /// The seed.
    pub seed: u64,
}

/// Asks the model and writes the page.
pub fn write(
    predictor: &mut Predictor,
    test: &Table,
    scores: &[Score],
    run: &Run<'_>,
) -> Result<String> {
    let shape = test.layout.shape;
    let side = shape.map_or(test.layout.width, |shape| shape.width);
    let completions = gallery::completions(predictor, test, run.seed)?;
    let samples = gallery::classes(predictor, SAMPLES, run.seed)?;
    let middle = side / 2 * side + side / 2;
    let neurons = neuron_states::above(predictor, middle, run.seed)?;
    let sections = [
        overview::head(run, scores),
        overview::accuracy(scores),
        filled_digits::section(&completions, side)?,
        new_digits::section(&samples, side)?,
        states::section(&neurons, side)?,
        next_steps::next_commands(run),
        next_steps::foot(run, predictor),
    ];
    Ok(sections.concat())
}
