//! `sumout train`: learns a model from data with holes.

use crate::options::device::DeviceArgs;
use crate::options::input::{Input, Unseen, say_ignored, warn_of_findings};
use crate::terminal::hints::{quoted, warning};
use crate::terminal::interrupt;
use crate::terminal::interrupt::Interrupted;
use crate::terminal::progress::Report;
use crate::terminal::user_error::{user_error as mistake, warn as say};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use sumout::Model;
use sumout::device::Precision;
use sumout::model::model_file;
use sumout::random::{Purpose, Stream};
use sumout::training::data::Data;
use sumout::training::trainer::{Proceed, Trainer};
use sumout_data::atomic_file::{Staged, check_apart};
use sumout_data::layout::{Layout, ReadOptions, Split, Table};
use sumout_data::model_files;
use sumout_data::model_files::{NA, TARGET, layout_of};
use sumout_data::plan::Plan;
use sumout_data::table_checks;

/// Learn a model from data with holes
///
/// Without a plan, what suits the data is trained: a deep tree of 2×2 windows for images, a tree over columns, learned
/// from how they depend on each other, for tables. The same seed prints the same lines and gives the same model, with
/// any number of threads.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A TOML file or a preset (`sumout inspect` shows them)
    #[arg(value_name = "PLAN", conflicts_with = "resume")]
    pub plan: Option<String>,
    #[command(flatten)]
    input: Input,
    /// Columns whose numbers are names of categories, with commas between them; may be given many times
    #[arg(long, value_name = "COLUMNS")]
    categorical: Vec<String>,
    /// Columns to leave out, likewise
    #[arg(long, value_name = "COLUMNS")]
    ignore: Vec<String>,
    /// Data to choose the best model by (the test half, where there are two), or the share of the rows to keep for it,
    /// such as 0.1
    #[arg(long, value_name = "DATA")]
    validation: Option<String>,
    /// Where the model goes
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Go on where this checkpoint stopped, to the same bits
    #[arg(long, value_name = "CHECKPOINT", conflicts_with_all = ["seed", "steps", "batch", "categorical", "ignore"])]
    resume: Option<PathBuf>,
    /// Steps between checkpoints; 0 for none but on Ctrl-C
    #[arg(long, value_name = "STEPS", default_value_t = 1000)]
    checkpoint_every: usize,
    /// Seed of everything random [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Steps in all
    #[arg(long)]
    steps: Option<usize>,
    /// Rows of a step
    #[arg(long, value_name = "ROWS")]
    batch: Option<usize>,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Trains, and writes the model.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    if args.out.as_os_str() == "-" {
        return Err(mistake(
            "--out: expected a file for the model, got - (standard output)",
        ));
    }
    let resumed = args
        .resume
        .as_ref()
        .map(|path| path.to_string_lossy().into_owned());
    let others = [&args.input.labels, &args.validation, &args.plan, &resumed];
    let read = [&args.input.data]
        .into_iter()
        .chain(others.into_iter().flatten());
    check_apart(
        &args.out.to_string_lossy(),
        &read.map(String::as_str).collect::<Vec<_>>(),
    )?;
    drop(Staged::create(&args.out)?); // a folder that cannot be written to is better known now
    let (device, precision) = args.device.choice().ready(Precision::Tf32)?;
    let (mut trainer, table, validation) = match &args.resume {
        Some(checkpoint) => resume(args, checkpoint, out)?,
        None => start(args, out)?,
    };
    trainer.use_device(device, precision)?;
    if args.checkpoint_every > 0 {
        trainer.look_every(args.checkpoint_every);
    }
    let (labels, judged) = (table.labels.as_deref(), validation.as_ref());
    let data = Data::new(&table.values, labels.unwrap_or_default());
    let set = judged.map(|set| Data::new(&set.values, set.labels.as_deref().unwrap_or_default()));
    learn(args, &mut trainer, &data, set.as_ref(), out)?;
    let model = trainer.into_model();
    model_files::save(&args.out, &model_file::to_bytes(&model)?)?;
    let _ = fs::remove_file(checkpoint_path(&args.out)); // there may be none
    writeln!(out, "wrote {}", args.out.display())?;
    Ok(())
}

/// Steps to the end, with checkpoints on the way.
fn learn(
    args: &Args,
    trainer: &mut Trainer,
    data: &Data<'_>,
    set: Option<&Data<'_>>,
    out: &mut impl Write,
) -> Result<()> {
    let settings = trainer.settings().clone();
    let mut report = Report::new(
        settings.steps,
        trainer.steps_done(),
        settings.batch,
        settings.generative,
    );
    let checkpoint = checkpoint_path(&args.out);
    let deferred = interrupt::defer();
    let mut failed = Ok(());
    let mut stopped = None;
    trainer.run(data, set, &mut |trainer, progress| {
        let done = progress.step == progress.steps;
        let now = progress.step == trainer.steps_done(); // a GPU is ahead of what it tells
        let due = args.checkpoint_every > 0
            && progress.step.is_multiple_of(args.checkpoint_every)
            && !done
            && now;
        let stop = interrupt::requested() && !done && now;
        if failed.is_ok() {
            // a GPU tells of some more steps after the one that failed
            failed = report.step(progress, out).and_then(|()| match due || stop {
                true => trainer
                    .checkpoint()
                    .map_err(Into::into)
                    .and_then(|bytes| Ok(model_files::save(&checkpoint, &bytes)?)),
                false => Ok(()),
            });
        }
        stopped = stop.then_some(progress.step);
        if stop || failed.is_err() {
            Proceed::Stop
        } else {
            Proceed::Continue
        }
    })?;
    report.finish();
    drop(deferred);
    failed?;
    match stopped {
        Some(step) => Err(Interrupted(how_to_resume(args, step, settings.steps)).into()),
        None => Ok(()),
    }
}

/// What to type to go on.
fn how_to_resume(args: &Args, step: usize, steps: usize) -> String {
    let checkpoint = checkpoint_path(&args.out).to_string_lossy().into_owned();
    let split = args
        .input
        .split
        .and_then(|half| half.to_possible_value())
        .map(|half| half.get_name().to_owned());
    let (device, precision) = args.device.words();
    let words = [
        ("resume", Some(checkpoint)),
        ("data", Some(args.input.data.clone())),
        ("labels", args.input.labels.clone()),
        ("split", split),
        ("validation", args.validation.clone()),
        ("device", device),
        ("precision", precision),
        ("out", Some(args.out.to_string_lossy().into_owned())),
    ];
    let word = |(name, value): (&str, Option<String>)| {
        value.map(|value| format!(" --{name} {}", quoted(&value)))
    };
    let command: String = words.into_iter().filter_map(word).collect();
    let header = if args.input.no_header {
        " --no-header"
    } else {
        ""
    };
    let unseen = if args.input.unseen == Unseen::Missing {
        " --unseen missing"
    } else {
        ""
    };
    format!(
        "stopped after step {step} of {steps}; go on with\n  sumout train{command}{header}{unseen}"
    )
}

/// `model.checkpoint.sumout` beside `model.sumout`, and `model.1.checkpoint.sumout` beside `model.1`.
fn checkpoint_path(out: &Path) -> PathBuf {
    let stem = if out.extension().is_some_and(|end| end == "sumout") {
        out.with_extension("")
    } else {
        out.to_owned()
    };
    let mut name = stem.into_os_string();
    name.push(".checkpoint.sumout");
    name.into()
}

/// A trainer with the data it learns from and those it is judged by.
type Run = (Trainer, Table, Option<Table>);

fn start(args: &Args, out: &mut impl Write) -> Result<Run> {
    let named = |names: &String, target: &str| {
        names == target || names.split(',').any(|name| name == target)
    };
    let ignored = |target: &&String| args.ignore.iter().any(|names| named(names, target));
    if let Some(target) = args.input.target.as_ref().filter(ignored) {
        let message = format!("--ignore {target}: it is the --target; expected other columns");
        return Err(mistake(message));
    }
    let plan = Plan::read(args.plan.as_deref())?;
    let options = ReadOptions {
        categorical: args.categorical.clone(),
        ignore: args.ignore.clone(),
        ..args.input.options(Split::Train)
    };
    let (table, validation) = read(args, &options, None)?;
    say_ignored(&table.layout);
    let doubts = table_checks::findings(&table);
    let shown = doubts.iter().take(MOST_DOUBTS);
    shown.for_each(|doubt| say(&warning(doubt)));
    if doubts.len() > MOST_DOUBTS {
        say(&format!(
            "and {} more columns of which something like that could be said",
            doubts.len() - MOST_DOUBTS
        ));
    }
    check_classes(&table)?;
    let chosen = plan.for_data(&table)?;
    let mut settings = chosen.settings;
    settings.seed = args.seed.unwrap_or(settings.seed);
    if let Some(steps) = args.steps {
        // as often on the way as without
        let every = settings.validate_every as u128 * steps as u128 / settings.steps.max(1) as u128;
        (settings.steps, settings.validate_every) =
            (steps, every.clamp(1, usize::MAX as u128) as usize);
    }
    settings.batch = args.batch.unwrap_or(settings.batch);
    let mut model = Model::random(chosen.structure, 1.0, settings.seed);
    model.scaling = chosen.scaling;
    model.about = table_checks::names(&table);
    model.about.training = json!({
        "program": concat!("sumout ", env!("CARGO_PKG_VERSION")),
        "rows": table.rows(),
        "data": digest(&table),
        VALIDATION: validation.as_ref().map(digest),
        TARGET: table.layout.target,
        "settings": settings,
    });
    if !table.layout.na.is_empty() {
        model.about.training[NA] = json!(table.layout.na);
    }
    let data = Data::new(&table.values, table.labels.as_deref().unwrap_or_default());
    let trainer =
        Trainer::new(model, settings, &data).map_err(|error| with_names(error, &table))?;
    say_start(out, &trainer, &table, validation.as_ref())?;
    Ok((trainer, table, validation))
}

/// So many doubts are told one by one.
const MOST_DOUBTS: usize = 20;

/// Names what the model is judged by in what it says about its training.
const VALIDATION: &str = "validation";

/// Every class must have an example; better known before a model for all of them is made.
fn check_classes(table: &Table) -> Result<()> {
    let mut there = vec![false; table.classes()];
    for label in table.labels.iter().flatten().filter(|&&label| label >= 0) {
        there[*label as usize] = true;
    }
    match there.iter().position(|there| !there) {
        Some(class) if there.len() > 1 => Err(with_names(
            sumout::Error::ClassWithoutExamples { class },
            table,
        )),
        _ => Ok(()),
    }
}

/// Goes on with the same data; others would give other bits than the run that was stopped.
fn resume(args: &Args, checkpoint: &Path, out: &mut impl Write) -> Result<Run> {
    let trainer = Trainer::resume(&model_files::bytes(checkpoint)?)
        .with_context(|| checkpoint.display().to_string())?;
    let model = trainer.model();
    let options = args.input.options(Split::Train);
    let (table, validation) = read(args, &options, Some(&layout_of(&model)))?;
    warn_of_findings(&table.layout);
    let file = checkpoint.display();
    let judged = model
        .about
        .training
        .get(VALIDATION)
        .map(|judged| (judged.as_str(), validation.as_ref().map(digest)));
    match judged {
        Some((Some(_), None)) => {
            return Err(mistake(format!(
                "{file}: expected --validation as at the start of this run, got none"
            )));
        }
        Some((None, Some(_))) => {
            return Err(mistake(format!(
                "{file}: expected no --validation, as at the start of this run, got one"
            )));
        }
        _ => {}
    }
    if model.about.training.get("data") != Some(&json!(digest(&table))) {
        return Err(mistake(format!(
            "{}: expected the data that {file} was trained on, got others",
            args.input.data
        )));
    }
    if let Some((Some(then), Some(now))) = &judged
        && then != now
    {
        return Err(mistake(format!(
            "--validation: expected the data that {file} was judged by, got others"
        )));
    }
    writeln!(out, "data       {}", describe(&table))?;
    writeln!(
        out,
        "going on   after step {} of {}",
        trainer.steps_done(),
        trainer.settings().steps
    )?;
    Ok((trainer, table, validation))
}

/// Reads what is learned from, and what it is judged by.
fn read(
    args: &Args,
    options: &ReadOptions,
    model: Option<&Layout>,
) -> Result<(Table, Option<Table>)> {
    let data = sumout_data::open(&args.input.data, options)?;
    let rows = match model {
        Some(model) => data.fitted_to(model)?,
        None => data.rows()?,
    };
    let table = args.input.with_labels(rows)?.collect_table()?;
    if table.values.is_empty() {
        return Err(mistake(format!(
            "{}: expected at least one row, got none",
            args.input.data
        )));
    }
    let few = if table.layout.classes.len() < 2 {
        table.layout.target.as_ref()
    } else {
        None
    };
    if let Some(target) = few {
        let hint =
            format!("--ignore {target} in place of --target learns from rows without classes");
        let got = table
            .layout
            .classes
            .first()
            .map_or("none".to_owned(), |only| format!("'{only}' alone"));
        let message = format!(
            "{}: expected two classes or more in '{target}', got {got}",
            args.input.data
        );
        return Err(mistake(format!("{message}; {hint}")));
    }
    let Some(validation) = &args.validation else {
        return Ok((table, None));
    };
    if let Ok(share) = validation.parse::<f64>() {
        return split(table, share).map(|(table, kept)| (table, Some(kept)));
    }
    let options = ReadOptions {
        split: Split::Test,
        target: args.input.target.clone(),
        ignore: Vec::new(),
        categorical: Vec::new(),
        ..options.clone()
    };
    let set = sumout_data::read_fitted(validation, &options, &table.layout)?;
    warn_of_findings(&set.layout);
    Ok((table, Some(set)))
}

/// Keeps a share of the rows apart, drawn at random; always the same ones of the same data.
fn split(table: Table, share: f64) -> Result<(Table, Table)> {
    let (rows, width) = (table.rows(), table.layout.width);
    let kept = (share * rows as f64).round() as usize;
    if !(share > 0.0 && share < 1.0) || kept == 0 || kept == rows {
        let message = format!(
            "--validation: expected data, or a share of the {rows} rows that leaves some on both sides, got {share}"
        );
        return Err(mistake(message));
    }
    let order = Stream::new(0, Purpose::Shuffle, u32::MAX, 0).permutation(rows);
    let pick = |rows: &[u32]| {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        let numbers = |&row: &u32| &table.values[row as usize * width..][..width];
        let labels = table
            .labels
            .as_ref()
            .map(|labels| rows.iter().map(|&row| labels[row as usize]).collect());
        Table {
            layout: table.layout.clone(),
            values: rows.iter().flat_map(numbers).copied().collect(),
            labels,
        }
    };
    Ok((pick(&order[kept..]), pick(&order[..kept])))
}

fn say_start(
    out: &mut impl Write,
    trainer: &Trainer,
    table: &Table,
    validation: Option<&Table>,
) -> Result<()> {
    writeln!(out, "data       {}", describe(table))?;
    if let Some(set) = validation {
        writeln!(out, "validation {}", describe(set))?;
    }
    let (structure, settings) = (trainer.model().structure, trainer.settings());
    let (weights, edges) = (structure.weights(), structure.multiply_adds());
    writeln!(
        out,
        "model      {weights} weights, {edges} multiply-adds a row"
    )?;
    let holes = settings.drop_inputs > 0.0 || settings.drop_nodes.iter().any(|&share| share > 0.0);
    let holes = if holes {
        "; steps are measured with random holes"
    } else {
        ""
    };
    writeln!(
        out,
        "training   {} steps of {} rows, seed {}{holes}",
        settings.steps, settings.batch, settings.seed
    )?;
    out.flush()?;
    Ok(())
}

fn describe(table: &Table) -> String {
    let layout = &table.layout;
    let some = |count: usize, one: &str, more: &str| {
        format!("{count} {}", if count == 1 { one } else { more })
    };
    let what = layout.shape.map_or_else(
        || some(layout.width, "column", "columns"),
        |shape| shape.to_string(),
    );
    let holes =
        table.values.iter().filter(|x| x.is_nan()).count() as f64 / table.values.len() as f64;
    let holes = if holes > 0.0 {
        format!(", {:.1} % missing", 100.0 * holes)
    } else {
        String::new()
    };
    let classes = match table.labels {
        Some(_) => some(table.classes(), "class", "classes"),
        None => "no labels".to_owned(),
    };
    format!(
        "{} of {what}, {classes}{holes}",
        some(table.rows(), "row", "rows")
    )
}

/// Tells data apart: SHA-256 of numbers and labels.
fn digest(table: &Table) -> String {
    let mut hash = Sha256::new();
    for piece in table.values.chunks(1 << 16) {
        hash.update(
            piece
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect::<Vec<u8>>(),
        );
    }
    for piece in table
        .labels
        .iter()
        .flat_map(|labels| labels.chunks(1 << 16))
    {
        hash.update(
            piece
                .iter()
                .flat_map(|label| label.to_le_bytes())
                .collect::<Vec<u8>>(),
        );
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The engine counts classes; people name them.
fn with_names(error: sumout::Error, table: &Table) -> anyhow::Error {
    match error {
        sumout::Error::ClassWithoutExamples { class } if !table.layout.classes.is_empty() => {
            let name = &table.layout.classes[class];
            mistake(format!(
                "class '{name}': expected at least one labelled example, got none"
            ))
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_of_models_do_not_share_a_name() {
        let beside = |out: &str| checkpoint_path(Path::new(out)).display().to_string();
        assert_eq!(beside("a/model.sumout"), "a/model.checkpoint.sumout");
        assert_eq!(beside("run.1"), "run.1.checkpoint.sumout");
        assert_eq!(beside("run.2"), "run.2.checkpoint.sumout");
    }
}
