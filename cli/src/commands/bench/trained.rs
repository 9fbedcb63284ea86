//! Jobs on real rows, with a trained model: what users see, rows that are computed again included.

use crate::commands::bench::Args;
use crate::commands::bench::report::{Reporter, RowsJob};
use crate::commands::bench::timing::Timing;
use crate::demo::recipe;
use anyhow::Result;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use sumout::queries::shifts;
use sumout::training::{Data, labels};
use sumout::{Device, Model, Precision, Predictor, Rows, Settings, Trainer};
use sumout_data::layout::{ReadOptions, Split, Table};
use sumout_data::model_files::layout_of;
use sumout_data::{digits, model_files};

/// Seed of the training on digits.
const SEED: u64 = 1;
/// A training step of a job moves weights by so little that the model stays what it is.
const RATE: f64 = 1e-7;

/// A trained model, and rows.
pub struct Subject {
    model: Model,
    table: Table,
}

/// A model of a file, and the rows of a data set.
pub fn given(model: &Path, data: &str) -> Result<Subject> {
    let model = model_files::load(model)?;
    let table = sumout_data::read_fitted(data, &half(Split::Test), &layout_of(&model))?;
    Ok(Subject { model, table })
}

/// The demo's model, trained for a moment, and the demo's digits.
pub fn digits(args: &Args, (device, precision): (Device, Precision)) -> Result<Subject> {
    let train = sumout_data::read(digits::NAME, &half(Split::Train))?;
    let settings = Settings {
        steps: args.digits_steps,
        ..recipe::settings(SEED)?
    };
    let start = recipe::model(SEED)?;
    let mut trainer = Trainer::start(start.structure, start.scaling, settings, data_of(&train)?)?;
    trainer.use_device(device, precision)?;
    trainer.run_with(|_, _| ControlFlow::Continue(()))?;
    Ok(Subject {
        model: trainer.into_model(),
        table: train,
    })
}

fn half(split: Split) -> ReadOptions {
    ReadOptions {
        split,
        ..ReadOptions::default()
    }
}

fn data_of(table: &Table) -> Result<Data<'_>> {
    let rows = Rows::new(&table.values, table.layout.width)?;
    let labels = labels(table.labels.as_deref().unwrap_or_default());
    Ok(Data::new(rows, &labels))
}

/// Questions about all rows, and training steps if there are labels.
pub fn jobs<W: Write>(
    args: &Args,
    subject: &Subject,
    on: (Device, Precision),
    reporter: &mut Reporter<'_, W>,
) -> Result<()> {
    let mut predictor = args.device.choice().predictor(subject.model.clone())?;
    let rows = Rows::new(&subject.table.values, subject.table.layout.width)?;
    let mut ask = |job: &'static str, question: &mut Question<'_>| {
        reporter.rows(&measure(args, &mut predictor, rows, (job, question))?)
    };
    ask("predict", &mut |p| Ok(p.score(rows).map(drop)?))?;
    ask("likelihoods", &mut |p| {
        Ok(p.log_likelihood(rows).map(drop)?)
    })?;
    if subject.model.structure.frame.is_some() {
        let all = shifts(1);
        ask("shifts", &mut |p| {
            Ok(p.score_shifted(rows, &all).map(drop)?)
        })?;
    }
    if subject.table.labels.is_none() {
        return Ok(());
    }
    for (job, drop_inputs) in [("train-10%", 0.1), ("train-50%", 0.5)] {
        reporter.rows(&train(args, subject, (job, drop_inputs), on)?)?;
    }
    Ok(())
}

type Question<'a> = dyn FnMut(&mut Predictor) -> Result<()> + 'a;

/// A question about all rows. Few rows are asked about several times.
fn measure(
    args: &Args,
    predictor: &mut Predictor,
    rows: Rows<'_>,
    (job, question): (&'static str, &mut Question<'_>),
) -> Result<RowsJob> {
    let timing = Timing {
        rounds: args.rounds,
        steps: 1,
    };
    let before = predictor.recomputed();
    question(predictor)?;
    let again = predictor.recomputed() - before;
    Ok(RowsJob {
        job,
        rows: rows.len(),
        seconds: timing.best_of(|| question(predictor))?,
        edges: predictor.model().structure.multiply_adds(),
        computed_again: Some(again as f64 / rows.len() as f64),
    })
}

/// Training steps in which this share of the numbers is summed out.
fn train(
    args: &Args,
    subject: &Subject,
    (job, drop_inputs): (&'static str, f64),
    (device, precision): (Device, Precision),
) -> Result<RowsJob> {
    let settings = Settings {
        steps: 1_000_000,
        batch: args.batch,
        rate: RATE,
        generative: 0.03,
        drop_inputs,
        ..Settings::default()
    };
    let data = data_of(&subject.table)?;
    let mut trainer = Trainer::from_model(subject.model.clone(), settings, data)?;
    trainer.use_device(device, precision)?;
    let seconds = args.timing().best_step(&mut trainer)?;
    let done = trainer.steps_done() * args.batch;
    Ok(RowsJob {
        job,
        rows: args.batch,
        seconds,
        edges: subject.model.structure.multiply_adds(),
        computed_again: Some(trainer.recomputed() as f64 / done as f64),
    })
}
