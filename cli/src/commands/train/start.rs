//! A new run: read the data, choose a model, describe both.

use crate::commands::train::args::Args;
use crate::commands::train::card;
use crate::commands::train::class_numbers;
use crate::commands::train::number_target;
use crate::commands::train::ranges;
use crate::commands::train::training_data::{
    TrainingData, class_counts, class_name, describe, describe_labels, digest, limit,
};
use crate::options::input::say_ignored;
use crate::terminal::hints::warning;
use crate::terminal::user_error::{one_line, user_error, warn};
use anyhow::Result;
use serde_json::json;
use std::io::Write;
use sumout::model::Notes;
use sumout::recipes::images::ImageShape;
use sumout::recipes::{Fit, Fitting, Preset};
use sumout::training::Prior;
use sumout::{Settings, Structure};
use sumout_data::cells::NoDefaultNa;
use sumout_data::layout::{ReadOptions, Split, Table, some_of};
use sumout_data::model_files::{DATA, DATES, NA, NO_DEFAULT_NA, SPLIT_FROM, TARGET, dates_of};
use sumout_data::plan::Plan;
use sumout_data::table_checks;

/// The key of the validation data in a model's notes about its training.
pub const VALIDATION: &str = "validation";

/// The key of what the user gave as validation data, which only a checkpoint has.
pub const VALIDATION_FROM: &str = "validation_from";

/// The key that says that the table is a sample of the rows, which only a checkpoint has.
pub const SAMPLED: &str = "sampled";

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
        target: args.class_column(),
        ..args.input.options(Split::Train)?
    };
    let validation = args.validation.as_deref();
    let mut data = TrainingData::read(args, &options, None, validation, limit(args))?;
    if plan.is_density() {
        data.forget_labels();
    }
    say_ignored(&data.table.layout);
    data.table.layout.predicted = number_target::column(args, &data.table)?;
    warn_of_columns(&data.table);
    check_classes(&data.table)?;
    let weights = args.class_weight.as_deref();
    let weights = weights.map(|given| class_numbers::class_weights(given, &data.table));
    let weights = weights.transpose()?;
    if let Some(weights) = &weights {
        data.weigh(weights);
    }
    let mut about = table_checks::names(&data.table);
    about.training = notes(&data);
    card::begin(args, &mut about.training);
    if data.spool.is_some() {
        about.training.set(SAMPLED, true);
    }
    if let Some(given) = &args.validation {
        about.training.set(VALIDATION_FROM, given);
    }
    if let Some(weights) = &weights {
        about.training.set(CLASS_WEIGHT, weights);
    }
    let weighted = weights.map(|weights| class_numbers::weighted_prior(&weights, &data.table));
    let prior = args.prior.as_deref();
    let prior = prior.map(|given| class_numbers::prior(given, &data.table));
    let prior = prior.transpose()?;
    let fit = if plan.is_open(&data.table) {
        let fit = fit_to_table(&data.table).settings(plan.changes()?)?;
        let fit = args.trees.into_iter().fold(fit, Fit::trees);
        let fit = data
            .table
            .layout
            .predicted
            .into_iter()
            .fold(fit, Fit::target);
        with_changes(fit, args, prior.or(weighted))?
    } else {
        planned(&plan, args, &data.table, (prior, weighted))?
    };
    let file = &args.input.data;
    let ranges = ranges::ranges(&args.bounds, &args.whole, &data.table, file)?;
    Ok((fit.ranges(&ranges).about(about), data))
}

/// A fit that leaves the structure to the data.
fn fit_to_table(table: &Table) -> Fit {
    let fit = match table.layout.shape {
        Some(shape) => Fit::new().images(ImageShape {
            height: shape.height,
            width: shape.width,
            channels: shape.channels,
        }),
        None => Fit::new().kinds(&table_checks::kinds(&table.layout)),
    };
    fit.classes(table.classes().max(1))
}

/// The options of the command line as changes of the usual settings.
fn with_changes(mut fit: Fit, args: &Args, prior: Option<Prior>) -> Result<Fit> {
    fit = args.seed.into_iter().fold(fit, Fit::seed);
    fit = args.steps.into_iter().fold(fit, Fit::steps);
    if let Some(batch) = args.batch {
        fit = fit.settings(json!({ "batch": batch }))?;
    }
    if let Some(prior) = prior {
        fit = fit.settings(json!({ "prior": prior }))?;
    }
    Ok(fit)
}

/// A fit of the one model that a plan describes.
fn planned(
    plan: &Plan,
    args: &Args,
    table: &Table,
    (prior, weighted): (Option<Prior>, Option<Prior>),
) -> Result<Fit> {
    let chosen = plan.for_data(table)?;
    let mut settings = with_options(chosen.settings.clone(), args);
    if settings.prior == Prior::Labels {
        settings.prior = weighted.unwrap_or(Prior::Labels);
    }
    settings.prior = prior.unwrap_or(settings.prior);
    let preset = Preset { settings, ..chosen };
    let trees = args.trees.unwrap_or(1);
    Ok(Fit::new().preset(preset).trees(trees))
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
    if !dates_of(layout).is_empty() {
        notes.set(DATES, dates_of(layout));
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
pub fn print_start(out: &mut impl Write, fitting: &Fitting<'_>, data: &TrainingData) -> Result<()> {
    if let Some(spool) = &data.spool {
        writeln!(
            out,
            "data       {} rows, of which a sample starts the model",
            spool.rows()
        )?;
    }
    writeln!(out, "data       {}", describe(&data.table))?;
    if let Some(labels) = describe_labels(&data.table) {
        writeln!(out, "labels     {}", one_line(&labels))?;
    }
    if let Some(validation) = &data.validation {
        writeln!(out, "validation {}", describe(validation))?;
    }
    let settings = fitting.settings();
    if let Some(column) = settings.target {
        let target = number_target::describe(&data.table, column);
        writeln!(out, "target     {}", one_line(&target))?;
    }
    if fitting.trials() <= 1 {
        writeln!(out, "model      {}", describe_model(fitting))?;
    }
    let has_holes =
        settings.drop_inputs > 0.0 || settings.drop_nodes.iter().any(|&share| share > 0.0);
    let note = if has_holes {
        "; progress is measured with random holes"
    } else {
        ""
    };
    let (steps, batch, seed) = (fitting.steps(), settings.batch, settings.seed);
    if fitting.trials() > 0 {
        let trees = match fitting.trees() {
            1 => "one tree".to_owned(),
            trees => format!("{trees} trees"),
        };
        let trials = match fitting.trials() {
            1 => "a trial".to_owned(),
            trials => format!("{trials} trials"),
        };
        writeln!(
            out,
            "training   {trials} scored on held-out rows, then {trees}; at most {steps} steps of {batch} rows, \
             seed {seed}{note}"
        )?;
    } else {
        writeln!(
            out,
            "training   {steps} steps of {batch} rows, seed {seed}{note}"
        )?;
    }
    out.flush()?;
    Ok(())
}

/// The size of a model that is trained.
fn describe_model(fitting: &Fitting<'_>) -> String {
    let weights: usize = fitting.structures().map(Structure::weights).sum();
    let edges: usize = fitting.structures().map(Structure::multiply_adds).sum();
    let trees = match fitting.trees() {
        1 => String::new(),
        trees => format!("{trees} trees, "),
    };
    let clusters = match fitting.may_add_clusters() {
        true => "; clusters may be put beside",
        false => "",
    };
    format!("{trees}{weights} weights, {edges} multiply-adds per row{clusters}")
}
