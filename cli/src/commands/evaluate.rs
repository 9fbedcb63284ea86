//! `sumout evaluate`: accuracy and log-likelihood under holes of every kind.

use crate::commands::predict::Far;
use crate::options::device::DeviceArgs;
use crate::options::input::Input;
use crate::terminal::user_error::user_error as mistake;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use sumout::Model;
use sumout::arithmetic::math::log_sum_exp;
use sumout::masks::{Grid, Missing};
use sumout::queries::predictor::{Predictor, argmax_rows, shifts, softmax_rows};
use sumout_data::layout::{Chunk, Keep};
use sumout_data::model_files;
use sumout_data::model_files::layout_of;

/// Accuracy and log-likelihood of a model, or of several that vote, under missing values
///
/// Accuracy is the share of labelled rows whose most probable class is their own. Log-likelihood is the mean over all rows
/// of log P(what is observed), in nats: higher is better, and because it is a density in the units of the data it may be
/// positive and can be compared only between models of the same columns in the same units.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Model files; several make an ensemble, which averages their posteriors
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    #[command(flatten)]
    input: Input,
    /// What goes missing: clean, iid:0.9 (every pixel with this probability), rect:2x11 (2 squares of 11×11), nonzero:50
    /// (50 of the values that are not zero); may be given many times
    #[arg(long, value_name = "WHAT", default_value = "clean")]
    missing: Vec<Missing>,
    /// Sum the scores of all shifts by up to so many pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    shifts: usize,
    /// Seed of what goes missing
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

/// What one kind of holes gave.
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

/// Evaluates and prints.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let mut members = Vec::new();
    for path in &args.models {
        members.push((
            path,
            args.device.choice().predictor(model_files::load(path)?)?,
        ));
    }
    check_members(&members)?;
    let grid = grid_of(members[0].1.model());
    for missing in &args.missing {
        if matches!(missing, Missing::Squares { .. })
            && members[0].1.model().structure.frame.is_none()
        {
            return Err(mistake(format!(
                "--missing {missing}: expected a model of images, got one of a table"
            )));
        }
        missing.check_on(&grid)?;
    }
    let frame = members[0].1.model().structure.frame;
    let side = frame.map_or(1, |frame| frame.height.max(frame.width));
    if args.shifts >= side {
        let expected = match frame {
            Some(_) => format!("less than the {side} pixels of the image"),
            None => "0 for a model of a table".to_owned(),
        };
        return Err(mistake(format!(
            "--shifts: expected {expected}, got {}",
            args.shifts
        )));
    }
    let shifts = shifts(args.shifts);
    let mut tallies = vec![Tally::default(); args.missing.len()];
    for chunk in args.input.open(members[0].1.model(), Keep::Nothing)? {
        let chunk = chunk?;
        for (missing, tally) in args.missing.iter().zip(&mut tallies) {
            let mut rows = chunk.values.clone();
            missing.apply(&grid, &mut rows, chunk.first, args.seed)?;
            for (_, member) in &mut members {
                tally.hear(member, &rows, &shifts)?;
            }
            tally.count(&chunk, members.len());
        }
    }
    let outcomes: Vec<Outcome> = args
        .missing
        .iter()
        .zip(&tallies)
        .map(|(m, tally)| tally.outcome(m))
        .collect();
    if outcomes[0].n == 0 {
        return Err(mistake(format!(
            "{}: expected at least one row, got none",
            args.input.data
        )));
    }
    tallies[0].far.say();
    print(&outcomes, args.json, out)
}

/// Members must agree on rows and classes, by name where they have names.
fn check_members(members: &[(&PathBuf, Predictor)]) -> Result<()> {
    let (first_path, first) = (members[0].0, layout_of(members[0].1.model()));
    for (path, member) in &members[1..] {
        let (layout, classes) = (layout_of(member.model()), member.model().structure.classes);
        let same = (layout.width, &layout.columns, &layout.classes)
            == (first.width, &first.columns, &first.classes)
            && classes == members[0].1.model().structure.classes;
        if !same {
            let (path, first) = (path.display(), first_path.display());
            return Err(mistake(format!(
                "{path}: expected a model of the same columns and classes as {first}"
            )));
        }
    }
    Ok(())
}

/// How the rows of a model are a grid of pixels.
pub fn grid_of(model: &Model) -> Grid {
    match model.structure.frame {
        Some(f) => Grid::image(f.height, f.width, f.channels),
        None => Grid::columns(model.structure.width()),
    }
}

/// What has been seen so far of one kind of holes.
#[derive(Clone, Default)]
struct Tally {
    posterior: Vec<f64>,          // (rows of the chunk, K), summed over members
    log_marginals: Vec<Vec<f64>>, // by member, (rows of the chunk)
    rows: usize,
    labelled: usize,
    correct: usize,
    log_likelihood: f64,
    far: Far,
}

impl Tally {
    /// What one member says about a chunk.
    fn hear(
        &mut self,
        member: &mut Predictor,
        rows: &[f32],
        shifts: &[(isize, isize)],
    ) -> Result<()> {
        let classes = member.model().structure.classes;
        let plain = member.log_joint(rows, &[(0, 0)])?;
        self.log_marginals
            .push(plain.chunks_exact(classes).map(log_sum_exp).collect());
        let mut posterior = if shifts.len() == 1 {
            plain
        } else {
            member.log_joint(rows, shifts)?
        };
        softmax_rows(&mut posterior, &member.model().log_prior);
        self.posterior.resize(posterior.len(), 0.0);
        self.posterior
            .iter_mut()
            .zip(posterior)
            .for_each(|(sum, p)| *sum += p);
        Ok(())
    }

    /// Counts what all members said.
    fn count(&mut self, chunk: &Chunk, members: usize) {
        let n = self.log_marginals[0].len();
        let predicted = argmax_rows(&self.posterior, self.posterior.len() / n.max(1));
        for (row, &class) in predicted.iter().enumerate() {
            // As a mixture of the members: the mean of their densities.
            let logs: Vec<f64> = self.log_marginals.iter().map(|logs| logs[row]).collect();
            self.log_likelihood += log_sum_exp(&logs) - (members as f64).ln();
            let label = chunk.labels.as_ref().map_or(-1, |labels| labels[row]);
            self.labelled += usize::from(label >= 0);
            self.correct += usize::from(label == class as i64);
        }
        self.far.count(chunk.first, &self.log_marginals[0]);
        self.rows += n;
        self.posterior.clear();
        self.log_marginals.clear();
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
        let accuracy = outcome
            .accuracy
            .map_or_else(|| "—".to_owned(), |accuracy| format!("{accuracy:.4}"));
        let Outcome {
            missing,
            n,
            labelled,
            log_likelihood,
            ..
        } = outcome;
        let log_likelihood = match log_likelihood.abs() < 1e9 {
            true => format!("{:.4}", (log_likelihood * 1e4).round() / 1e4 + 0.0), // never −0
            false => format!("{log_likelihood:.4e}"),
        };
        writeln!(
            out,
            "{missing:<12} {labelled:>8} {accuracy:>9} {n:>8} {log_likelihood:>15}"
        )?;
    }
    Ok(())
}
