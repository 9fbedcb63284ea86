//! `sumout evaluate`: accuracy and log-likelihood with holes of every kind.

use crate::options::device::DeviceArgs;
use crate::options::input::Input;
use crate::terminal::far_rows::FarRows;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use sumout::Model;
use sumout::masks::{Grid, Missing};
use sumout::queries::{Ensemble, Scores, shifts};
use sumout::{Predictor, Rows};
use sumout_data::layout::{Chunk, Keep};
use sumout_data::model_files;
use sumout_data::model_files::layout_of;

/// Accuracy and log-likelihood of a model, or of several together, with missing values
///
/// Accuracy is the share of labelled rows whose most probable class is the right one.
/// Log-likelihood is the mean over all rows of log P(observed values), in nats; higher is better.
/// It is a density in the units of the data. So it can be positive, and it can only be compared
/// between models of the same columns in the same units.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model files; several form an ensemble, which averages their posteriors
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    #[command(flatten)]
    input: Input,
    /// Values to make missing: clean (none), iid:0.9 (each value with this probability), rect:2x11
    /// (2 squares of 11×11 pixels), nonzero:50 (50 of the values that are not zero); can be given
    /// several times
    #[arg(long, value_name = "WHAT", default_value = "clean")]
    missing: Vec<Missing>,
    /// Sum the scores of all shifts of the image by up to this many pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    shifts: usize,
    /// Seed of the random choice of missing values
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

/// The result for one kind of holes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The kind.
    pub missing: String,
    /// Rows.
    pub n: usize,
    /// Rows with a label.
    pub labelled: usize,
    /// Share of labelled rows that were right; none without labels.
    pub accuracy: Option<f64>,
    /// Mean over all rows of log P(x_o), in nats, a density in the units of the data.
    pub log_likelihood: f64,
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
    let members = open_members(args)?;
    check_members(&members)?;
    check_missing(args, members[0].model())?;
    check_shifts(args, members[0].model())?;
    let tallies = tally(args, members)?;
    let kinds = args.missing.iter().zip(&tallies);
    let outcomes: Vec<Outcome> = kinds.map(|(m, tally)| tally.outcome(m)).collect();
    if outcomes[0].n == 0 {
        let data = &args.input.data;
        return Err(user_error(format!(
            "{data}: expected at least one row, got none"
        )));
    }
    tallies[0].far.warn();
    print(&outcomes, args.json, out)
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

/// Squares need an image that is large enough.
fn check_missing(args: &Args, model: &Model) -> Result<()> {
    for missing in &args.missing {
        if matches!(missing, Missing::Squares { .. }) && model.structure.frame.is_none() {
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

/// Goes through the data once, with all kinds of holes.
fn tally(args: &Args, members: Vec<Member<'_>>) -> Result<Vec<Tally>> {
    let (grid, width) = (
        grid_of(members[0].model()),
        members[0].model().structure.width(),
    );
    let shifts = shifts(args.shifts);
    let mut tallies = vec![Tally::default(); args.missing.len()];
    let chunks = args.input.open(members[0].model(), Keep::Nothing)?;
    let chunks = chunks.read_ahead();
    let mut ensemble = Ensemble::new(members.into_iter().map(|m| m.predictor).collect())?;
    for chunk in chunks {
        let chunk = chunk?;
        for (missing, tally) in args.missing.iter().zip(&mut tallies) {
            let mut rows = chunk.values.clone();
            missing.apply(&grid, &mut rows, chunk.first, args.seed)?;
            tally.count(&chunk, &ensemble.score(Rows::new(&rows, width)?, &shifts)?);
        }
    }
    Ok(tallies)
}

/// Counts of one kind of holes so far.
#[derive(Clone, Default)]
struct Tally {
    rows: usize,
    labelled: usize,
    correct: usize,
    log_likelihood: f64,
    far: FarRows,
}

impl Tally {
    /// Counts the scores of a chunk.
    fn count(&mut self, chunk: &Chunk, scores: &Scores) {
        for (row, &class) in scores.classes().iter().enumerate() {
            self.log_likelihood += scores.log_marginal[row];
            let label = chunk.labels.as_ref().map_or(-1, |labels| labels[row]);
            self.labelled += usize::from(label >= 0);
            self.correct += usize::from(label == class as i64);
        }
        self.far.count(chunk.first, &scores.log_marginal);
        self.rows += scores.log_marginal.len();
    }

    fn outcome(&self, missing: &Missing) -> Outcome {
        Outcome {
            missing: missing.to_string(),
            n: self.rows,
            labelled: self.labelled,
            accuracy: (self.labelled > 0).then(|| self.correct as f64 / self.labelled as f64),
            log_likelihood: self.log_likelihood / self.rows as f64,
        }
    }
}

fn print(outcomes: &[Outcome], json: bool, out: &mut impl Write) -> Result<()> {
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(outcomes)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "{:<12} {:>8} {:>9} {:>8} {:>15}",
        "missing", "labelled", "accuracy", "rows", "log-likelihood"
    )?;
    for outcome in outcomes {
        let accuracy = match outcome.accuracy {
            Some(accuracy) => format!("{accuracy:.4}"),
            None => "—".to_owned(),
        };
        let (missing, labelled, rows) = (&outcome.missing, outcome.labelled, outcome.n);
        let log_likelihood = short(outcome.log_likelihood);
        writeln!(
            out,
            "{missing:<12} {labelled:>8} {accuracy:>9} {rows:>8} {log_likelihood:>15}"
        )?;
    }
    Ok(())
}

/// Four decimals, or four digits of a huge number.
fn short(x: f64) -> String {
    if x.abs() < 1e9 {
        format!("{:.4}", (x * 1e4).round() / 1e4 + 0.0) // never −0
    } else {
        format!("{x:.4e}")
    }
}
