//! Trains the demo's model, with a live bar, or with lines if standard error is a file.

use crate::demo::recipe;
use crate::terminal::progress::StepReporter;
use anyhow::Result;
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use sumout::Model;
use sumout::training::data::Data;
use sumout::training::settings::Settings;
use sumout::training::trainer::{Proceed, Progress, Trainer};
use sumout_data::layout::Table;
use sumout_data::table_checks;

/// Trains on a table of digits.
pub fn train(digits: &Table, settings: Settings) -> Result<Model> {
    let mut model = recipe::model(settings.seed)?;
    model.about = table_checks::names(digits);
    model.about.training = json!({
        "program": concat!("sumout ", env!("CARGO_PKG_VERSION"), " demo"),
        "rows": digits.rows(),
        "settings": settings,
    });
    let data = Data::new(&digits.values, digits.labels.as_deref().unwrap_or_default());
    let mut reporter = StepReporter::new(&settings, 0);
    let mut lines = lines();
    let mut trainer = Trainer::new(model, settings, &data)?;
    let mut on_progress = |_: &Trainer, progress: &Progress| {
        let _ = reporter.step(progress, &mut lines); // a line that cannot be written does not matter
        Proceed::Continue
    };
    trainer.run(&data, None, &mut on_progress)?;
    reporter.finish();
    Ok(trainer.into_model())
}

/// Where lines go: nowhere if there is a bar.
fn lines() -> Box<dyn Write> {
    if io::stderr().is_terminal() {
        Box::new(io::sink())
    } else {
        Box::new(io::stderr())
    }
}
