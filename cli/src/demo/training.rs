//! Trains the demo's model, with a live bar, or with lines if standard error is a file.

use crate::demo::recipe;
use crate::terminal::progress::StepReporter;
use anyhow::Result;
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use sumout::model::Notes;
use sumout::recipes::{Fit, Preset};
use sumout::training::Data;
use sumout::training::labels;
use sumout::{Model, Rows, Settings};
use sumout_data::layout::Table;
use sumout_data::table_checks;

/// Trains on a table of digits.
pub fn train(digits: &Table, settings: Settings) -> Result<Model> {
    let mut model = recipe::model(settings.seed)?;
    model.about = table_checks::names(digits);
    model.about.training = Notes::new(json!({
        "program": concat!("sumout ", env!("CARGO_PKG_VERSION"), " demo"),
        "rows": digits.rows(),
        "settings": settings,
    }));
    let labels = labels(digits.labels.as_deref().unwrap_or_default());
    let rows = Rows::new(&digits.values, digits.layout.width)?;
    let data = Data::new(rows, &labels);
    let mut reporter = StepReporter::new(&settings, settings.steps, 0);
    let mut lines = lines();
    let preset = Preset {
        structure: model.structure,
        scaling: model.scaling,
        settings,
    };
    let fit = Fit::new().preset(preset).trees(1).about(model.about);
    let mut fitting = fit.start(data)?;
    fitting.run_with(|progress| {
        let _ = reporter.step(progress, &mut lines); // a line that cannot be written does not matter
        ControlFlow::Continue(())
    })?;
    reporter.finish();
    Ok(fitting.into_model()?)
}

/// Where lines go: nowhere if there is a bar.
fn lines() -> Box<dyn Write> {
    if io::stderr().is_terminal() {
        Box::new(io::sink())
    } else {
        Box::new(io::stderr())
    }
}
