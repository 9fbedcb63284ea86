//! How good the predictions of a number are.

use crate::commands::evaluate::{Args, grid_of};
use crate::terminal::user_error::user_error;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use sumout::Predictor;
use sumout::queries::Mixture;
use sumout_data::data_digest::DataDigest;
use sumout_data::layout::Keep;
use sumout_data::model_files::layout_of;

/// The result for one kind of holes.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Outcome {
    missing: String,
    /// Rows.
    n: usize,
    /// Rows that have the target.
    known: usize,
    /// Root of the mean squared error of the mean.
    rmse: f64,
    /// Mean absolute error of the median.
    mae: f64,
    /// Share of the variance that the mean explains; none if the target is constant.
    r2: Option<f64>,
    /// Share of the rows whose target lies between the quantiles 0.25 and 0.75.
    coverage_50: f64,
    /// The same between 0.05 and 0.95.
    coverage_90: f64,
    /// Mean of log P(y|x_o), in nats.
    log_score: f64,
}

/// Sums of one kind of holes so far.
#[derive(Clone, Default)]
struct Tally {
    rows: usize,
    known: usize,
    squares: f64,
    absolute: f64,
    inside_50: usize,
    inside_90: usize,
    log_score: f64,
    mean: f64,   // of the targets
    spread: f64, // Σ of their squared distances from it
}

/// Evaluates and prints; the digest of the data.
pub fn run(
    args: &Args,
    predictor: &mut Predictor,
    column: usize,
    out: &mut impl Write,
) -> Result<String> {
    let model = predictor.model();
    let (grid, width) = (grid_of(model), model.structure.width());
    let mut tallies = vec![Tally::default(); args.missing.len()];
    let mut digest = DataDigest::default();
    for chunk in args.input.open(model, Keep::Nothing)?.read_ahead() {
        let chunk = chunk?;
        digest.add(&chunk.values, chunk.labels.as_deref());
        let targets = chunk.values.iter().skip(column).step_by(width).copied();
        let targets: Vec<f32> = targets.collect();
        for (missing, tally) in args.missing.iter().zip(&mut tallies) {
            let mut rows = chunk.values.clone();
            missing.apply(&grid, &mut rows, chunk.first, args.seed)?;
            tally.count(predictor, rows, column, &targets)?;
        }
    }
    if tallies[0].known == 0 {
        let name = layout_of(predictor.model()).name(column);
        return Err(user_error(format!(
            "{}: expected rows with a number in '{name}', got none",
            args.input.data
        )));
    }
    let kinds = args.missing.iter().zip(&tallies);
    let outcomes: Vec<Outcome> = kinds
        .map(|(missing, tally)| tally.outcome(missing.to_string()))
        .collect();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&outcomes)?)?;
    } else {
        print(&outcomes, out)?;
    }
    Ok(digest.finish())
}

impl Tally {
    /// Counts rows with their targets.
    fn count(
        &mut self,
        predictor: &mut Predictor,
        mut rows: Vec<f32>,
        column: usize,
        targets: &[f32],
    ) -> Result<()> {
        let width = predictor.model().structure.width();
        let mut alone = rows.clone();
        for (row, &target) in targets.iter().enumerate() {
            rows[row * width + column] = target;
            alone[row * width + column] = f32::NAN;
        }
        let model = predictor.model();
        let (both, alone) = (model.rows(&rows)?, model.rows(&alone)?);
        let logs = predictor.log_conditional(both, alone)?;
        let mixtures = predictor.mixtures(alone, column, None)?;
        let numbers = mixtures.map(3, |row, mixture: Mixture<'_>, to| {
            let below = mixture.cdf(targets[row].into());
            to.copy_from_slice(&[mixture.mean(), mixture.quantile(0.5), below]);
        });
        self.rows += targets.len();
        for (row, &target) in targets.iter().enumerate().filter(|(_, y)| !y.is_nan()) {
            let [mean, median, below] = [0, 1, 2].map(|i| numbers[(row, i)]);
            let y = f64::from(target);
            self.known += 1;
            self.squares += (y - mean).powi(2);
            self.absolute += (y - median).abs();
            self.inside_50 += usize::from((0.25..=0.75).contains(&below));
            self.inside_90 += usize::from((0.05..=0.95).contains(&below));
            self.log_score += logs[row];
            let apart = y - self.mean;
            self.mean += apart / self.known as f64;
            self.spread += apart * (y - self.mean);
        }
        Ok(())
    }

    fn outcome(&self, missing: String) -> Outcome {
        let known = self.known.max(1) as f64;
        Outcome {
            missing,
            n: self.rows,
            known: self.known,
            rmse: (self.squares / known).sqrt(),
            mae: self.absolute / known,
            r2: (self.spread > 0.0).then(|| 1.0 - self.squares / self.spread),
            coverage_50: self.inside_50 as f64 / known,
            coverage_90: self.inside_90 as f64 / known,
            log_score: self.log_score / known,
        }
    }
}

/// A line for each kind of holes.
fn print(outcomes: &[Outcome], out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{:<12} {:>8} {:>11} {:>11} {:>8} {:>8} {:>8} {:>10}",
        "missing", "rows", "rmse", "mae", "r2", "in 50 %", "in 90 %", "log score"
    )?;
    for o in outcomes {
        let r2 = o.r2.map_or("-".to_owned(), |r2| format!("{r2:.4}"));
        let (missing, rows) = (&o.missing, o.known);
        writeln!(
            out,
            "{missing:<12} {rows:>8} {:>11.4} {:>11.4} {r2:>8} {:>8.4} {:>8.4} {:>10.4}",
            o.rmse, o.mae, o.coverage_50, o.coverage_90, o.log_score
        )?;
    }
    Ok(())
}
