//! The page of `sumout report`: what a model knows about the rows of a table. Like the demo's page it loads nothing and
//! runs nothing.

pub mod sample;
mod subject;
mod holes;
mod columns;
mod calibration;
mod surprises;
mod column_tree;
mod overview;

use anyhow::Result;
use sample::Sample;
use subject::{Predicts, Subject};
use sumout::Predictor;

/// What is reported.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The file of the model.
    pub model: &'a str,
    /// The data.
    pub data: &'a str,
    /// The seed of the hidden cells.
    pub seed: u64,
    /// Whether the model was trained on these rows.
    pub trained_on_these: bool,
}

/// How often the model is asked about all rows, for a bar.
pub fn questions(predictor: &Predictor) -> usize {
    let structure = &predictor.model().structure;
    let of_columns = match structure.frame {
        Some(_) => 0,
        None => columns::questions(structure.width()),
    };
    holes::SHARES.len() + of_columns
}

/// Asks the model and writes the page; `tick` is called after each question.
pub fn write(
    predictor: &mut Predictor,
    sample: &Sample,
    run: &Run<'_>,
    tick: &mut dyn FnMut(),
) -> Result<String> {
    let model = predictor.model().clone();
    let is_table = model.structure.frame.is_none();
    let predicts = Predicts::of(predictor, sample);
    let mut subject = Subject {
        predictor,
        sample,
        predicts,
        tick,
    };
    let figures = holes::measure(&mut subject, run.seed)?;
    let information = match is_table {
        true => Some(columns::measure(&mut subject)?),
        false => None,
    };
    let promises = calibration::measure(&mut subject, &figures)?;
    let surprises = surprises::measure(&mut subject, information.as_ref())?;
    let layout = &sample.layout;
    let target = match predicts {
        Predicts::Number(column) => layout.name(column),
        _ => layout.target.clone().unwrap_or_else(|| "the class".into()),
    };
    let about_columns = information.as_ref().map_or(String::new(), |told| {
        columns::section(told, predicts, layout, &target)
    });
    let tree = match is_table {
        true => column_tree::section(
            &model.structure,
            &|column| layout.name(column),
            model.target(),
        ),
        false => String::new(),
    };
    let cell = if is_table { "cell" } else { "pixel" };
    let sections = [
        overview::head(run, &model, sample, predicts, &figures),
        holes::section(&figures, predicts, cell),
        about_columns,
        calibration::section(&promises, predicts, figures[0].classes.confidence.error()),
        surprises::section(&surprises),
        tree,
        overview::foot(run, &model, sample),
    ];
    Ok(sections.concat())
}
