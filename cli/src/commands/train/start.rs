//! A new run: read the data, choose a model, describe both.

use crate::commands::train::args::Args;
use crate::commands::train::class_numbers;
use crate::commands::train::training_data::{
    TrainingData, class_counts, class_name, describe, describe_labels, digest,
};
use crate::options::input::say_ignored;
use crate::terminal::hints::warning;
use crate::terminal::user_error::{one_line, user_error, warn};
use anyhow::Result;
use serde_json::json;
use std::io::Write;
use sumout::model::Notes;
use sumout::recipes::{Fit, Preset};
use sumout::training::Prior;
use sumout::{Settings, Trainer};
use sumout_data::cells::NoDefaultNa;
use sumout_data::layout::{ReadOptions, Split, Table, some_of};
use sumout_data::model_files::{DATA, NA, NO_DEFAULT_NA, SPLIT_FROM, TARGET};
use sumout_data::plan::Plan;
use sumout_data::{memory, table_checks};

/// The key of the validation data in a model's notes about its training.
pub const VALIDATION: &str = "validation";

/// The key of what the user gave as validation data, which only a checkpoint has.
pub const VALIDATION_FROM: &str = "validation_from";

/// The key of the weights of the classes in a model's notes about its training.
pub const CLASS_WEIGHT: &str = "class_weight";

/// Warnings about columns that are printed one by one.
const MAX_WARNINGS: usize = 20;

/// Reads the data and chooses how to fit a model.
pub fn start(args: &Args) -> Result<(Fit, TrainingData)> {
    check_target(args)?;
    let plan = Plan::read(args.plan.as_deref())?;
    let options = ReadOptions {
        categorical: args.categorical.clone(),
        ignore: args.ignore.clone(),
        ..args.input.options(Split::Train)?
    };
    let mut data = TrainingData::read(args, &options, None, args.validation.as_deref())?;
    say_ignored(&data.table.layout);
    warn_of_columns(&data.table);
    check_classes(&data.table)?;
    let chosen = plan.for_data(&data.table)?;
    let mut settings = with_options(chosen.settings.clone(), args);
    memory::check_training(&chosen.structure, settings.batch)?;
    let weights = weigh_classes(args, &mut data, &mut settings)?;
    let mut about = table_checks::names(&data.table);
    about.training = notes(&data);
    if let Some(given) = &args.validation {
        about.training.set(VALIDATION_FROM, given);
    }
    if let Some(weights) = &weights {
        about.training.set(CLASS_WEIGHT, weights);
    }
    let preset = Preset { settings, ..chosen };
    Ok((Fit::new().preset(preset).about(about), data))
}

/// Gives rows the weights of their classes, if the user wants that, and P(y) what follows; returns the weights.
fn weigh_classes(
    args: &Args,
    data: &mut TrainingData,
    settings: &mut Settings,
) -> Result<Option<Vec<f64>>> {
    let mut weights = None;
    if let Some(given) = &args.class_weight {
        let each = class_numbers::class_weights(given, &data.table)?;
        data.weigh(&each);
        if settings.prior == Prior::Labels {
            settings.prior = class_numbers::weighted_prior(&each, &data.table);
        }
        weights = Some(each);
    }
    if let Some(given) = &args.prior {
        settings.prior = class_numbers::prior(given, &data.table)?;
    }
    Ok(weights)
}

/// The target cannot be ignored.
fn check_target(args: &Args) -> Result<()> {
    let Some(target) = &args.input.target else {
        return Ok(());
    };
    let is_named = |names: &String| names == target || names.split(',').any(|name| name == target);
    if args.ignore.iter().any(is_named) {
        return Err(user_error(format!(
            "--ignore {target}: it is the --target; expected other columns"
        )));
    }
    Ok(())
}

/// Prints warnings about suspicious columns.
fn warn_of_columns(table: &Table) {
    let findings = table_checks::findings(table);
    for finding in findings.iter().take(MAX_WARNINGS) {
        warn(&warning(finding));
    }
    if findings.len() > MAX_WARNINGS {
        let more = findings.len() - MAX_WARNINGS;
        warn(&format!("and {more} more columns with similar warnings"));
    }
}

/// Every class must have an example, better known before a model of all classes is made; and should have some.
fn check_classes(table: &Table) -> Result<()> {
    const FEW: usize = 10;
    let counts = class_counts(table);
    if counts.len() < 2 {
        return Ok(());
    }
    if let Some(class) = counts.iter().position(|&count| count == 0) {
        let error = sumout::Error::ClassWithoutExamples { class };
        return Err(with_class_names(error, table));
    }
    let few = (0..counts.len()).filter(|&class| counts[class] < FEW);
    let few: Vec<String> = few
        .map(|class| format!("{} ({})", class_name(table, class), counts[class]))
        .collect();
    if !few.is_empty() {
        let few = some_of(&few);
        warn(&format!(
            "classes with fewer than {FEW} labelled rows, which are hard to learn: {few}"
        ));
    }
    Ok(())
}

/// The engine numbers classes; people name them.
pub fn with_class_names(error: sumout::Error, table: &Table) -> anyhow::Error {
    match error {
        sumout::Error::ClassWithoutExamples { class } if !table.layout.classes.is_empty() => {
            let name = &table.layout.classes[class];
            user_error(format!(
                "class '{name}': expected at least one labelled example, got none"
            ))
        }
        other => other.into(),
    }
}

/// The plan's settings, with those of the command line in their place.
fn with_options(mut settings: Settings, args: &Args) -> Settings {
    settings.seed = args.seed.unwrap_or(settings.seed);
    settings.batch = args.batch.unwrap_or(settings.batch);
    if let Some(steps) = args.steps {
        // As many validations as without the option.
        let every = settings.validate_every as u128 * steps as u128 / settings.steps.max(1) as u128;
        settings.validate_every = every.clamp(1, usize::MAX as u128) as usize;
        settings.steps = steps;
    }
    settings
}

/// What the model file says about its training.
fn notes(data: &TrainingData) -> Notes {
    let layout = &data.table.layout;
    let mut notes = Notes::new(json!({
        "program": concat!("sumout ", env!("CARGO_PKG_VERSION")),
        DATA: digest(&data.table),
        VALIDATION: data.validation.as_ref().map(digest),
        TARGET: layout.target,
    }));
    if let Some(digest) = &data.split_from {
        notes.set(SPLIT_FROM, digest);
    }
    if !layout.na.is_empty() {
        notes.set(NA, &layout.na);
    }
    if layout.no_default_na != NoDefaultNa::Nowhere {
        notes.set(NO_DEFAULT_NA, &layout.no_default_na);
    }
    notes
}

/// Describes data, model and training.
pub fn print_start(out: &mut impl Write, trainer: &Trainer<'_>, data: &TrainingData) -> Result<()> {
    writeln!(out, "data       {}", describe(&data.table))?;
    if let Some(labels) = describe_labels(&data.table) {
        writeln!(out, "labels     {}", one_line(&labels))?;
    }
    if let Some(validation) = &data.validation {
        writeln!(out, "validation {}", describe(validation))?;
    }
    let (structure, settings) = (trainer.model().structure, trainer.settings());
    let (weights, edges) = (structure.weights(), structure.multiply_adds());
    writeln!(
        out,
        "model      {weights} weights, {edges} multiply-adds per row"
    )?;
    let has_holes =
        settings.drop_inputs > 0.0 || settings.drop_nodes.iter().any(|&share| share > 0.0);
    let note = if has_holes {
        "; the loss is measured with random holes"
    } else {
        ""
    };
    let (steps, batch, seed) = (settings.steps, settings.batch, settings.seed);
    writeln!(
        out,
        "training   {steps} steps of {batch} rows, seed {seed}{note}"
    )?;
    out.flush()?;
    Ok(())
}
