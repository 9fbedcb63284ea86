//! `sumout evaluate`: how good a model is, with holes of every kind.

pub mod outcome;
mod print;
mod plot;
mod numbers;

use crate::options::device::DeviceArgs;
use crate::options::input::Input;
use crate::terminal::user_error::{user_error, warn};
use anyhow::Result;
use outcome::{Outcome, Tally};
use std::io::Write;
use std::path::PathBuf;
use sumout::Model;
use sumout::masks::{Grid, Missing};
use sumout::queries::{Ensemble, shifts};
use sumout::{Predictor, Rows};
use sumout_data::data_digest::DataDigest;
use sumout_data::layout::Keep;
use sumout_data::model_files::{self, DATA, SPLIT_FROM, layout_of};

/// Accuracy and log-likelihood of a model, or of several together, with missing values
///
/// Accuracy is the share of labelled rows whose most probable class is the right one. Log-loss is the
/// mean of −log P(label | observed values), in nats. Calibration is the expected difference between
/// the probability of the predicted class and how often it is right. Both are better if lower.
/// Log-likelihood is the mean over all rows of log P(observed values), in nats; higher is better.
/// It is a density in the units of the data. So it can be positive, and it can only be compared
/// between models of the same columns in the same units.
///
/// A model that was trained with --regression is evaluated by the errors of its mean (rmse, r2) and of its
/// median (mae), by how often its 50 % and 90 % intervals hold the target, and by the log score: the mean of
/// log P(target | observed values), in nats; higher is better.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model files; several form an ensemble, which averages their posteriors
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Values to make missing: clean (none), iid:0.9 (each value with this probability), rect:2x11
    /// (2 squares of 11×11 pixels), nonzero:50 (50 of the values that are not zero), stripes:4,
    /// half, rows:0.5, blocks:4x0.9 (parts of images); can be given several times [default: clean;
    /// with --plot, also iid from 0.1 to 0.9]
    #[arg(long, value_name = "WHAT")]
    missing: Vec<Missing>,
    /// Sum the scores of all shifts of the image by up to this many pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    shifts: usize,
    /// Seed of the random choice of missing values
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also print precision, recall and f1 of every class, and which classes are taken for which
    #[arg(long)]
    per_class: bool,
    /// Also draw the accuracy, or the r2 of a model of numbers, against what is missing: a chart, whose
    /// name ends in .svg
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON, with the figures of every class
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Args {
    /// What is made missing.
    fn kinds(&self) -> Vec<Missing> {
        match &self.missing[..] {
            [] if self.plot.is_some() => plot::kinds(),
            [] => vec![Missing::None],
            given => given.to_vec(),
        }
    }
}

/// A model of the ensemble, and its file.
struct Member<'a> {
    path: &'a PathBuf,
    predictor: Predictor,
}

impl Member<'_> {
    fn model(&self) -> &Model {
        self.predictor.model()
    }
}

/// Evaluates and prints.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let mut members = open_members(args)?;
    check_members(&members)?;
    check_missing(args, members[0].model())?;
    check_shifts(args, members[0].model())?;
    plot::check(args, members[0].model())?;
    if let Some(column) = members[0].model().target() {
        check_alone(args, &members)?;
        let trained_on = trained_on(&members);
        let digest = numbers::run(args, &mut members[0].predictor, column, out)?;
        warn_of_training_rows(&trained_on, &digest);
        return Ok(());
    }
    let model = members[0].model();
    let names: Vec<String> = (0..model.structure.classes)
        .map(|class| model.class_name(class))
        .collect();
    let (trained_on, is_image) = (trained_on(&members), model.structure.frame.is_some());
    let Counted { tallies, digest } = count(args, members)?;
    let kinds = args.kinds();
    let tallied = kinds.iter().zip(&tallies);
    let outcomes: Vec<Outcome> = tallied.map(|(m, tally)| tally.outcome(m, &names)).collect();
    if outcomes[0].n == 0 {
        let data = &args.input.data;
        return Err(user_error(format!(
            "{data}: expected at least one row, got none"
        )));
    }
    tallies[0].far.warn();
    warn_of_training_rows(&trained_on, &digest);
    plot::accuracies(args, is_image, &kinds, &outcomes)?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&outcomes)?)?;
        return Ok(());
    }
    print::print(&outcomes, out)?;
    let with_labels = outcomes.iter().filter(|outcome| outcome.labelled > 0);
    for outcome in with_labels.filter(|_| args.per_class) {
        print::print_classes(outcome, out)?;
    }
    Ok(())
}

fn open_members(args: &Args) -> Result<Vec<Member<'_>>> {
    let mut members = Vec::new();
    for path in &args.models {
        let predictor = args.device.choice().predictor(model_files::load(path)?)?;
        members.push(Member { path, predictor });
    }
    Ok(members)
}

/// All members must have the same columns and classes, by name if they have names.
fn check_members(members: &[Member<'_>]) -> Result<()> {
    let first = layout_of(members[0].model());
    for member in &members[1..] {
        let layout = layout_of(member.model());
        let same = layout.width == first.width
            && layout.columns == first.columns
            && layout.classes == first.classes
            && member.model().structure.classes == members[0].model().structure.classes;
        if !same {
            let (path, first) = (member.path.display(), members[0].path.display());
            return Err(user_error(format!(
                "{path}: expected a model of the same columns and classes as {first}"
            )));
        }
    }
    Ok(())
}

/// A model of numbers has no classes, and averages with no other.
fn check_alone(args: &Args, members: &[Member<'_>]) -> Result<()> {
    if members.len() > 1 {
        let (first, count) = (members[0].path.display(), members.len());
        return Err(user_error(format!(
            "{first}: it predicts a number; expected one model, got {count}"
        )));
    }
    if args.per_class {
        return Err(user_error(
            "--per-class: expected a model of classes, got one that predicts a number",
        ));
    }
    Ok(())
}

/// Squares and stripes need an image that is large enough.
fn check_missing(args: &Args, model: &Model) -> Result<()> {
    for missing in args.kinds() {
        if missing.is_for_images() && model.structure.frame.is_none() {
            return Err(user_error(format!(
                "--missing {missing}: expected a model of images, got one of a table"
            )));
        }
        missing.check_on(&grid_of(model))?;
    }
    Ok(())
}

/// A shift must leave a part of the image.
fn check_shifts(args: &Args, model: &Model) -> Result<()> {
    let frame = model.structure.frame;
    let side = frame.map_or(1, |frame| frame.height.max(frame.width));
    if args.shifts < side {
        return Ok(());
    }
    let expected = if frame.is_some() {
        format!("less than the {side} pixels of the image")
    } else {
        "0 for a model of a table".to_owned()
    };
    let got = args.shifts;
    Err(user_error(format!(
        "--shifts: expected {expected}, got {got}"
    )))
}

/// The grid of pixels that a row is; a table is a grid of one row.
fn grid_of(model: &Model) -> Grid {
    match model.structure.frame {
        Some(f) => Grid::image(f.height, f.width, f.channels),
        None => Grid::columns(model.structure.width()),
    }
}

/// What was counted, for every kind of holes, and the digest of the data.
struct Counted {
    tallies: Vec<Tally>,
    digest: String,
}

/// Goes through the data once, with all kinds of holes.
fn count(args: &Args, members: Vec<Member<'_>>) -> Result<Counted> {
    let model = members[0].model();
    let (grid, width) = (grid_of(model), model.structure.width());
    let shifts = shifts(args.shifts);
    let kinds = args.kinds();
    let mut tallies = vec![Tally::new(model.structure.classes); kinds.len()];
    let mut digest = DataDigest::default();
    let chunks = args.input.open(model, Keep::Nothing)?.read_ahead();
    let mut ensemble = Ensemble::new(members.into_iter().map(|m| m.predictor).collect())?;
    for chunk in chunks {
        let chunk = chunk?;
        digest.add(&chunk.values, chunk.labels.as_deref());
        for (missing, tally) in kinds.iter().zip(&mut tallies) {
            let mut rows = chunk.values.clone();
            missing.apply(&grid, &mut rows, chunk.first, args.seed)?;
            tally.count(&chunk, &ensemble.score(Rows::new(&rows, width)?, &shifts)?);
        }
    }
    let digest = digest.finish();
    Ok(Counted { tallies, digest })
}

/// What models say about the data that they were trained on.
fn trained_on(members: &[Member<'_>]) -> Vec<(String, Option<String>)> {
    let mut trained_on = Vec::new();
    for member in members {
        let notes = &member.model().about.training;
        let file = member.path.display().to_string();
        trained_on.push((file.clone(), notes.get(DATA)));
        trained_on.push((file, notes.get(SPLIT_FROM)));
    }
    trained_on
}

/// Warns if the data are those that a model was trained on.
fn warn_of_training_rows(trained_on: &[(String, Option<String>)], digest: &str) {
    let mut same = trained_on
        .iter()
        .filter(|(_, known)| known.as_deref() == Some(digest));
    if let Some((file, _)) = same.next() {
        warn(&format!(
            "{file} was trained on these rows: on other rows it will do worse; evaluate it on rows \
             that it has not seen"
        ));
    }
}
