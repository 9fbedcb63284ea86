//! Whether probabilities mean what they say: predictions that have a probability of 70 % should be right in 70 % of the
//! rows, and an interval of 70 % should hold 70 % of the numbers.

use crate::classification::Confidence;
use crate::model_page::holes::{HALF, HoleFigures};
use crate::model_page::subject::{Predicts, Subject};
use crate::number_errors::Coverage;
use crate::plot::{Line, Plot, Point, Tick, inside};
use anyhow::Result;
use sumout::Kind;
use sumout::queries::Mixture;

/// What was promised and what was kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// A probability.
    pub promised: f64,
    /// How often it was true.
    pub kept: f64,
    /// Of so many cases.
    pub cases: usize,
}

/// One line of the chart.
#[derive(Clone, Debug)]
pub struct Promises {
    /// What they are about.
    pub name: &'static str,
    /// By probability.
    pub kept: Vec<Kept>,
}

/// The promises that a model makes about what it predicts, from the rows as they are and with half of their cells
/// hidden; without a target, about every cell given the others.
pub fn measure(subject: &mut Subject<'_>, figures: &[HoleFigures]) -> Result<Vec<Promises>> {
    let (clean, half) = (&figures[0], &figures[HALF]);
    let names = ["as it is", "half hidden"];
    let mut all = match subject.predicts {
        Predicts::Class => vec![
            of_bins(names[0], &clean.classes.confidence),
            of_bins(names[1], &half.classes.confidence),
        ],
        Predicts::Number(_) => vec![
            of_intervals(names[0], &clean.numbers.coverage),
            of_intervals(names[1], &half.numbers.coverage),
        ],
        Predicts::Nothing => of_cells(subject)?,
    };
    all.retain(|promises| !promises.kept.is_empty());
    Ok(all)
}

/// A point stands for at least so many cases: fewer say little.
const CASES: usize = 10;

/// Bins of confidence, where neighbours with few cases are put together.
fn of_bins(name: &'static str, counted: &Confidence) -> Promises {
    let mut kept: Vec<Kept> = Vec::new();
    for bin in counted.bins() {
        let bin = Kept {
            promised: bin.confidence(),
            kept: bin.accuracy(),
            cases: bin.rows,
        };
        match kept.last_mut().filter(|last| last.cases < CASES) {
            Some(last) => *last = together(*last, bin),
            None => kept.push(bin),
        }
    }
    if let [.., before, last] = kept[..]
        && last.cases < CASES
    {
        kept.truncate(kept.len() - 2);
        kept.push(together(before, last));
    }
    Promises { name, kept }
}

fn together(a: Kept, b: Kept) -> Kept {
    let cases = a.cases + b.cases;
    let share = a.cases as f64 / cases as f64;
    let mean = |a: f64, b: f64| share * a + (1.0 - share) * b;
    Kept {
        promised: mean(a.promised, b.promised),
        kept: mean(a.kept, b.kept),
        cases,
    }
}

fn of_intervals(name: &'static str, coverage: &Coverage) -> Promises {
    let mut kept = Vec::new();
    for interval in coverage.all().iter().filter(|_| coverage.numbers() > 0) {
        kept.push(Kept {
            promised: interval.level,
            kept: interval.inside,
            cases: coverage.numbers(),
        });
    }
    Promises { name, kept }
}

/// Every cell of a table given the others.
fn of_cells(subject: &mut Subject<'_>) -> Result<Vec<Promises>> {
    let structure = &subject.predictor.model().structure;
    if structure.frame.is_some() {
        return Ok(Vec::new());
    }
    let mut coverage = Coverage::default();
    let mut categories = Confidence::default();
    for (column, kind) in structure.row_kinds().into_iter().enumerate() {
        match kind {
            Kind::Gaussian => count_numbers(subject, column, &mut coverage)?,
            _ => count_categories(subject, column, &mut categories)?,
        }
        (subject.tick)();
    }
    Ok(vec![
        of_intervals("numbers", &coverage),
        of_bins("categories", &categories),
    ])
}

fn count_numbers(subject: &mut Subject<'_>, column: usize, coverage: &mut Coverage) -> Result<()> {
    let sample = subject.sample;
    let rows = subject.predictor.model().rows(&sample.values)?;
    let mixtures = subject.predictor.mixtures(rows, column, None)?;
    let seen: Vec<f32> = sample.column(column).collect();
    let below = mixtures.map(1, |row, mixture: Mixture<'_>, to| {
        to[0] = mixture.cdf(seen[row].into());
    });
    let known = seen
        .iter()
        .zip(below.as_slice())
        .filter(|(x, _)| !x.is_nan());
    known.for_each(|(_, &below)| coverage.count(below));
    Ok(())
}

fn count_categories(
    subject: &mut Subject<'_>,
    column: usize,
    counted: &mut Confidence,
) -> Result<()> {
    let sample = subject.sample;
    let rows = sample.without(|other| other == column);
    let rows = subject.predictor.model().rows(&rows)?;
    let likely = subject
        .predictor
        .impute_probabilities(rows, &[column], None)?;
    for (row, seen) in sample
        .column(column)
        .enumerate()
        .filter(|(_, x)| !x.is_nan())
    {
        let likely = likely[0].row(row);
        let best = likely.iter().copied().fold(0.0, f32::max);
        counted.count(best.into(), likely[seen as usize] == best);
    }
    Ok(())
}

/// The chart.
pub fn section(promises: &[Promises], predicts: Predicts, error: Option<f64>) -> String {
    if promises.is_empty() {
        return String::new();
    }
    let words = match predicts {
        Predicts::Class => {
            "Predictions are put together by the probability of the predicted class. On the dotted line, that is also how often they \
             are right; below it, the model is too sure. Large points stand for many rows, and each for at least ten. The second line is \
             for the same rows with half of their cells hidden, where the model should be less sure."
        }
        Predicts::Number(_) => {
            "Central intervals of the predicted distribution, from 10 % to 90 %. On the dotted line, each holds as many targets as it \
             should; below it, the model is too sure. The second line is for the same rows with half of their cells hidden."
        }
        Predicts::Nothing => {
            "Every cell was predicted from the others of its row. For numbers: how often central intervals, from 10 % to 90 %, hold the \
             number. For categories: how often the most probable one is right, by its probability. Below the dotted line, the model is \
             too sure."
        }
    };
    let chart = plot(promises).svg();
    let points = error.map(|error| format!("{:.1} percentage points", 100.0 * error));
    let error = points.map_or(String::new(), |points| {
        format!(" With the cells as they are, the expected difference is {points}.")
    });
    format!(
        "<section class=\"card\">\n<h2>Do probabilities mean what they say?</h2>\n<div class=\"two\">\n<figure>\n{chart}</figure>\n\
         <div>\n<p>{words}{error}</p>\n</div>\n</div>\n</section>\n"
    )
}

fn plot(promises: &[Promises]) -> Plot {
    let tick = |fifth: u32| {
        let share = f64::from(fifth) / 5.0;
        Tick::new(inside(share), format!("{:.0}", 100.0 * share))
    };
    Plot {
        title: "How often predictions come true, against their probability".into(),
        ticks: (0..=5).map(tick).collect(),
        axis: vec![Tick::new(0.5, "probability that was promised, in %")],
        diagonal: true,
        lines: promises.iter().enumerate().map(line).collect(),
        ..Plot::default()
    }
}

fn line((colour, promises): (usize, &Promises)) -> Line {
    let most = promises.kept.iter().map(|kept| kept.cases).max();
    let most = most.unwrap_or(1).max(1) as f64;
    let mut points = Vec::new();
    for kept in &promises.kept {
        let (promised, percent) = (100.0 * kept.promised, 100.0 * kept.kept);
        let words = format!(
            "{}: promised {promised:.0} %, true in {percent:.0} % of {}",
            promises.name, kept.cases
        );
        let point = Point::new(inside(kept.promised), percent, words);
        let radius = 2.5 + 3.0 * (kept.cases as f64 / most).sqrt();
        points.push(Point { radius, ..point });
    }
    Line {
        colour,
        name: promises.name.into(),
        parts: vec![points],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_cases_are_put_together() {
        let mut counted = Confidence::default();
        let cases = [(0.5, 9), (0.7, 3), (0.9, 30), (1.0, 4)];
        for (confidence, rows) in cases {
            (0..rows).for_each(|row| counted.count(confidence, row > 0));
        }
        let kept = of_bins("classes", &counted).kept;
        assert_eq!(
            kept.iter().map(|kept| kept.cases).collect::<Vec<_>>(),
            [12, 34]
        );
        assert!((kept[0].promised - (9.0 * 0.5 + 3.0 * 0.7) / 12.0).abs() < 1e-12);
        assert!((kept[1].kept - 32.0 / 34.0).abs() < 1e-12);
        let mut one = Confidence::default();
        one.count(0.8, true);
        assert_eq!(of_bins("classes", &one).kept.len(), 1);
        assert!(of_bins("classes", &Confidence::default()).kept.is_empty());
    }
}
