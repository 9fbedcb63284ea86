//! Compares the demo's model with its baselines, on all kinds of holes.

use crate::terminal::progress::bar;
use anyhow::Result;
use sumout::Predictor;
use sumout_data::layout::Table;
use sumout_report::accuracy::{self, Score};
use sumout_report::baselines::Neighbours;

/// The whole table.
pub fn compare(
    seed: u64,
    train: &Table,
    test: &Table,
    predictor: &mut Predictor,
) -> Result<Vec<Score>> {
    let labels = train.labels.as_deref().unwrap_or_default();
    let neighbours = Neighbours::new(&train.values, labels, train.layout.width);
    let kinds = accuracy::kinds();
    let style = "{bar:24} {pos} of {len} kinds of holes  time left {eta}";
    let bar = bar(kinds.len(), style);
    let mut scores = Vec::new();
    for missing in kinds {
        scores.push(accuracy::score(
            missing,
            test,
            seed,
            predictor,
            &neighbours,
        )?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(scores)
}
