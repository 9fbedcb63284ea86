//! How good the predictions of a number are.

use crate::commands::evaluate::{Args, grid_of, plot};
use crate::terminal::user_error::user_error;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use sumout::Predictor;
use sumout_data::data_digest::DataDigest;
use sumout_data::layout::Keep;
use sumout_data::model_files::layout_of;
use sumout_report::number_errors::NumberErrors;

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

/// Evaluates and prints; the digest of the data.
pub fn run(
    args: &Args,
    predictor: &mut Predictor,
    column: usize,
    out: &mut impl Write,
) -> Result<String> {
    let model = predictor.model();
    let (grid, width) = (grid_of(model), model.structure.width());
    let missing = args.kinds();
    let mut tallies = vec![NumberErrors::default(); missing.len()];
    let mut digest = DataDigest::default();
    for chunk in args.input.open(model, Keep::Nothing)?.read_ahead() {
        let chunk = chunk?;
        digest.add(&chunk.values, chunk.labels.as_deref());
        let targets = chunk.values.iter().skip(column).step_by(width).copied();
        let targets: Vec<f32> = targets.collect();
        for (missing, tally) in missing.iter().zip(&mut tallies) {
            let mut rows = chunk.values.clone();
            missing.apply(&grid, &mut rows, chunk.first, args.seed)?;
            tally.count(predictor, rows, column, &targets)?;
        }
    }
    if tallies[0].known() == 0 {
        let name = layout_of(predictor.model()).name(column);
        return Err(user_error(format!(
            "{}: expected rows with a number in '{name}', got none",
            args.input.data
        )));
    }
    let kinds = missing.iter().zip(&tallies);
    let outcomes: Vec<Outcome> = kinds
        .map(|(missing, errors)| outcome(missing.to_string(), errors))
        .collect();
    plot::explained(args, &missing, outcomes.iter().map(|outcome| outcome.r2))?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&outcomes)?)?;
    } else {
        print(&outcomes, out)?;
    }
    Ok(digest.finish())
}

fn outcome(missing: String, errors: &NumberErrors) -> Outcome {
    Outcome {
        missing,
        n: errors.rows,
        known: errors.known(),
        rmse: errors.rmse(),
        mae: errors.mae(),
        r2: errors.r2(),
        coverage_50: errors.coverage.of(50).inside,
        coverage_90: errors.coverage.of(90).inside,
        log_score: errors.log_score(),
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
