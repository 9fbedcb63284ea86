//! `--plot`: the figures against what is missing, as a chart.

use crate::commands::evaluate::Args;
use crate::commands::evaluate::outcome::Outcome;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use std::path::Path;
use sumout::Model;
use sumout::masks::Missing;
use sumout_data::atomic_file::{Staged, check_apart};
use sumout_data::model_files;
use sumout_report::curve::{self, Curve};

/// Shares of missing values that are drawn if `--missing` is not given.
const SHARES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// What is drawn if `--missing` is not given.
pub fn kinds() -> Vec<Missing> {
    let shares = SHARES.into_iter().map(Missing::Iid);
    std::iter::once(Missing::None).chain(shares).collect()
}

/// There must be something to draw, and a file to draw it in: better known before the work.
pub fn check(args: &Args, model: &Model) -> Result<()> {
    let Some(path) = &args.plot else {
        return Ok(());
    };
    let shown = path.display();
    if path.extension().is_none_or(|ending| ending != "svg") {
        return Err(user_error(format!(
            "--plot: expected a file that ends in .svg, got {shown}"
        )));
    }
    if model.structure.classes == 1 && model.target().is_none() {
        return Err(user_error(
            "--plot: expected a model that predicts a class or a number; sumout report shows what others know",
        ));
    }
    let models = args.models.iter().map(|path| path.to_string_lossy());
    let models: Vec<String> = models.map(String::from).collect();
    let mut others: Vec<&str> = models.iter().map(String::as_str).collect();
    others.extend([args.input.data.as_str(), args.input.labels_file()]);
    check_apart(&path.to_string_lossy(), &others)?;
    Ok(Staged::create(path).map(drop)?)
}

/// Draws accuracies beside those of a constant guess.
pub fn accuracies(
    args: &Args,
    is_image: bool,
    kinds: &[Missing],
    outcomes: &[Outcome],
) -> Result<()> {
    let Some(path) = &args.plot else {
        return Ok(());
    };
    if outcomes[0].labelled == 0 {
        return Err(user_error(format!(
            "--plot: expected rows with a label in {}, got none",
            args.input.data
        )));
    }
    let percents = |of: fn(&Outcome) -> Option<f64>| {
        let percent = |outcome: &Outcome| of(outcome).map_or(f64::NAN, |share| 100.0 * share);
        outcomes.iter().map(percent).collect()
    };
    let curves = [
        Curve {
            name: "accuracy",
            colour: 0,
            percents: percents(|outcome| outcome.accuracy),
        },
        Curve {
            name: "guess",
            colour: 2,
            percents: percents(Outcome::most_frequent),
        },
    ];
    let cell = if is_image { "pixel" } else { "cell" };
    let title = format!("Accuracy against missing {cell}s");
    save(path, title, kinds, cell, &curves)
}

/// Draws shares of explained variance.
pub fn explained(
    args: &Args,
    kinds: &[Missing],
    r2: impl Iterator<Item = Option<f64>>,
) -> Result<()> {
    let Some(path) = &args.plot else {
        return Ok(());
    };
    let percents: Option<Vec<f64>> = r2.map(|r2| Some(100.0 * r2?)).collect();
    let percents = percents
        .ok_or_else(|| user_error("--plot: expected targets that differ, got one number only"))?;
    let curve = Curve {
        name: "r2",
        colour: 0,
        percents,
    };
    let title = "Explained share of the target's variance against missing cells".to_owned();
    save(path, title, kinds, "cell", &[curve])
}

fn save(path: &Path, title: String, kinds: &[Missing], cell: &str, curves: &[Curve]) -> Result<()> {
    let plot = curve::plot(title, kinds, cell, curves);
    Ok(model_files::save(path, plot.file().as_bytes())?)
}
