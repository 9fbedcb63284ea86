//! What a model file says about where the model comes from: its card, which `sumout inspect` prints.
//!
//! There is no date in it: the same data, options and seed give the same file. `--note` is for all else.

use crate::commands::train::args::Args;
use anyhow::Result;
use serde::Serialize;
use std::path::Path;
use sumout::model::Notes;
use sumout::{Model, Predictor};
use sumout_data::layout::Table;
use sumout_data::model_files::{NOTE, SOURCE, VALIDATED};
use sumout_report::classification::Classification;
use sumout_report::number_errors::NumberErrors;

/// How good the model is on the validation rows; what does not suit the model is left out.
#[derive(Serialize)]
struct Validated {
    rows: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rmse: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r2: Option<f64>,
    log_likelihood: f64,
}

/// Notes what is known before training.
pub fn begin(args: &Args, notes: &mut Notes) {
    notes.set(SOURCE, source(&args.input.data));
    if let Some(note) = &args.note {
        notes.set(NOTE, note);
    }
}

/// The name of the data without its folders, which are nobody's business.
fn source(data: &str) -> String {
    let name = Path::new(data).file_name();
    match name {
        _ if data == "-" => "standard input".into(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => data.into(),
    }
}

/// Notes how good the trained model is on the rows that were kept aside.
pub fn finish(model: &mut Model, validation: Option<&Table>) -> Result<()> {
    let Some(table) = validation.filter(|table| table.rows() > 0) else {
        return Ok(());
    };
    let mut predictor = Predictor::new(model.clone())?;
    let rows = predictor.model().rows(&table.values)?;
    let scores = predictor.score(rows)?;
    let mut classes = Classification::new(model.structure.classes);
    let labels = table.labels.as_deref().unwrap_or_default();
    let answers = scores.classes().into_iter().zip(labels).enumerate();
    for (row, (class, &label)) in answers.filter(|(_, (_, label))| **label >= 0) {
        classes.count(scores.posterior.row(row), class, label as usize);
    }
    let mut numbers = NumberErrors::default();
    if let Some(column) = model.target() {
        let targets = table.values.iter().skip(column).step_by(table.layout.width);
        let targets: Vec<f32> = targets.copied().collect();
        numbers.count(&mut predictor, table.values.clone(), column, &targets)?;
    }
    let validated = Validated {
        rows: table.rows(),
        accuracy: classes.accuracy(),
        log_loss: classes.log_loss(),
        rmse: (numbers.known() > 0).then(|| numbers.rmse()),
        r2: numbers.r2(),
        log_likelihood: scores.log_marginal.iter().sum::<f64>() / table.rows() as f64,
    };
    model.about.training.set(VALIDATED, validated);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_no_folders() {
        assert_eq!(source("/home/ada/patients.csv"), "patients.csv");
        assert_eq!(
            (source("digits"), source("-")),
            ("digits".into(), "standard input".into())
        );
        assert_eq!(source(".."), "..");
    }
}
