//! How good the model is while cells go missing: at what it predicts, and at what it fills in.

use crate::classification::Classification;
use crate::curve::{self, Curve};
use crate::model_page::subject::{Predicts, Subject};
use crate::number_errors::NumberErrors;
use crate::text::four_digits;
use anyhow::Result;
use std::fmt::Write;
use sumout::Kind;
use sumout::masks::{Grid, Missing};

/// Shares of missing cells.
pub const SHARES: [f64; 6] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9];

/// Where a half is among them.
pub const HALF: usize = 3;

/// The figures for one share of missing cells.
#[derive(Clone, Debug)]
pub struct HoleFigures {
    /// What was made missing.
    pub missing: Missing,
    /// Predictions of classes.
    pub classes: Classification,
    /// Predictions of a number.
    pub numbers: NumberErrors,
    /// What was filled in.
    pub filled: Filled,
}

/// How good the values are that were filled in, where a known cell was made missing.
#[derive(Clone, Debug, Default)]
pub struct Filled {
    /// Share of the variance of numbers that their means explain, the mean of all columns; none without numbers.
    pub numbers: Option<f64>,
    /// Share of the categories that are right; none without categories.
    pub categories: Option<f64>,
}

/// Makes more and more cells missing.
pub fn measure(subject: &mut Subject<'_>, seed: u64) -> Result<Vec<HoleFigures>> {
    let mut all = Vec::new();
    for share in SHARES {
        all.push(with_holes(subject, share, seed)?);
        (subject.tick)();
    }
    Ok(all)
}

fn with_holes(subject: &mut Subject<'_>, share: f64, seed: u64) -> Result<HoleFigures> {
    let (sample, structure) = (subject.sample, &subject.predictor.model().structure);
    let grid = match structure.frame {
        Some(frame) => Grid::image(frame.height, frame.width, frame.channels),
        None => Grid::columns(structure.width()),
    };
    let mut classes = Classification::new(structure.classes);
    let missing = if share == 0.0 {
        Missing::None
    } else {
        Missing::Iid(share)
    };
    let mut rows = sample.values.clone();
    missing.apply(&grid, &mut rows, 0, seed)?;
    let mut numbers = NumberErrors::default();
    match subject.predicts {
        Predicts::Class => {
            let scores = subject
                .predictor
                .score(subject.predictor.model().rows(&rows)?)?;
            let answers = scores.classes().into_iter().zip(&sample.labels).enumerate();
            for (row, (class, &label)) in answers.filter(|(_, (_, label))| **label >= 0) {
                classes.count(scores.posterior.row(row), class, label as usize);
            }
        }
        Predicts::Number(column) => {
            let targets: Vec<f32> = sample.column(column).collect();
            numbers.count(subject.predictor, rows.clone(), column, &targets)?;
        }
        Predicts::Nothing => {}
    }
    let is_table = subject.predictor.model().structure.frame.is_none();
    let filled = match is_table && share > 0.0 {
        true => filled(subject, &missing, &grid, seed)?,
        false => Filled::default(),
    };
    Ok(HoleFigures {
        missing,
        classes,
        numbers,
        filled,
    })
}

/// A cell that was hidden, and what was filled in.
#[derive(Clone, Copy)]
struct Hidden {
    seen: f64,
    filled: f64,
}

/// Hides cells, fills them and compares. With few rows, this is done several times: a tenth of few cells is too few to
/// tell anything.
fn filled(subject: &mut Subject<'_>, missing: &Missing, grid: &Grid, seed: u64) -> Result<Filled> {
    let sample = subject.sample;
    let width = sample.layout.width;
    let kinds = subject.predictor.model().structure.row_kinds();
    let mut hidden: Vec<Vec<Hidden>> = vec![Vec::new(); width];
    for draw in 0..(1000 / sample.rows() as u64).clamp(1, 8) {
        let mut rows = sample.values.clone();
        missing.apply(grid, &mut rows, 0, seed.wrapping_add(draw))?;
        let asked = subject.predictor.model().rows(&rows)?;
        let mean = subject.predictor.impute_mean(asked, None)?.mean;
        let cells = sample.values.iter().zip(mean.as_slice()).enumerate();
        for (at, (&seen, &filled)) in
            cells.filter(|(at, (seen, _))| rows[*at].is_nan() && !seen.is_nan())
        {
            let (seen, filled) = (seen.into(), filled.into());
            hidden[at % width].push(Hidden { seen, filled });
        }
    }
    let mut explained = Vec::new();
    let (mut right, mut categories) = (0, 0);
    for (cells, kind) in hidden.iter().zip(kinds) {
        if kind == Kind::Gaussian {
            explained.extend(explained_share(cells));
        } else {
            categories += cells.len();
            right += cells.iter().filter(|cell| cell.seen == cell.filled).count();
        }
    }
    let of_columns = explained.len() as f64;
    Ok(Filled {
        numbers: (!explained.is_empty()).then(|| explained.iter().sum::<f64>() / of_columns),
        categories: (categories > 0).then(|| right as f64 / categories as f64),
    })
}

/// 1 − Σ (x − filled)² / Σ (x − mean)²; none where the cells do not differ.
fn explained_share(cells: &[Hidden]) -> Option<f64> {
    let mean = cells.iter().map(|cell| cell.seen).sum::<f64>() / cells.len().max(1) as f64;
    let spread: f64 = cells.iter().map(|cell| (cell.seen - mean).powi(2)).sum();
    let missed = cells.iter().map(|cell| (cell.seen - cell.filled).powi(2));
    let missed: f64 = missed.sum();
    (spread > 0.0 && missed.is_finite()).then(|| 1.0 - missed / spread)
}

/// The charts and their numbers.
pub fn section(figures: &[HoleFigures], predicts: Predicts, cell: &str) -> String {
    let kinds: Vec<Missing> = figures.iter().map(|figures| figures.missing).collect();
    let percents = |of: &dyn Fn(&HoleFigures) -> Option<f64>| -> Vec<f64> {
        let percent = |figures: &HoleFigures| of(figures).map_or(f64::NAN, |share| 100.0 * share);
        figures.iter().map(percent).collect()
    };
    let curve =
        |name: &'static str, colour: usize, of: &dyn Fn(&HoleFigures) -> Option<f64>| Curve {
            name,
            colour,
            percents: percents(of),
        };
    let predicted = match predicts {
        Predicts::Class => vec![
            curve("accuracy", 0, &|f| f.classes.accuracy()),
            curve("guess", 2, &|f| f.classes.most_frequent()),
        ],
        Predicts::Number(_) => vec![curve("r2", 0, &|f| f.numbers.r2())],
        Predicts::Nothing => Vec::new(),
    };
    let filled = vec![
        curve("numbers", 0, &|f| f.filled.numbers),
        curve("categories", 1, &|f| f.filled.categories),
    ];
    let charts = [
        figure(&kinds, cell, predicted, predicted_words(predicts)),
        figure(&kinds, cell, filled, FILLED_WORDS),
    ];
    let charts = charts.concat();
    if charts.is_empty() {
        return String::new();
    }
    let table = table(figures, predicts);
    format!(
        "<section class=\"card\">\n<h2>What missing {cell}s cost</h2>\n\
         <p>More and more of the {cell}s that are known were hidden at random, and the model was asked again. It was not told \
         how many would be missing.</p>\n<div class=\"two\">\n{charts}</div>\n\
         <details>\n<summary>The numbers</summary>\n<div class=\"wide\">{table}</div>\n</details>\n</section>\n"
    )
}

const FILLED_WORDS: &str = "Hidden cells that were filled in: the share of the variance of numbers that is explained, the mean of all \
                            columns, and the share of categories that are right.";

fn predicted_words(predicts: Predicts) -> &'static str {
    match predicts {
        Predicts::Class => {
            "The share of rows whose class is right. Guess: always the most frequent class."
        }
        _ => "r2: the share of the variance of the target that the prediction explains.",
    }
}

/// A chart of the curves that have points; nothing if there are none.
fn figure(kinds: &[Missing], cell: &str, mut curves: Vec<Curve>, words: &str) -> String {
    curves.retain(|curve| curve.percents.iter().any(|percent| !percent.is_nan()));
    if curves.is_empty() {
        return String::new();
    }
    let chart = curve::plot(words.into(), kinds, cell, &curves).svg();
    format!("<figure>\n{chart}<figcaption>{words}</figcaption>\n</figure>\n")
}

/// A column of the table of figures.
struct FigureColumn {
    head: &'static str,
    cells: Vec<Option<f64>>,
}

impl FigureColumn {
    fn new(
        head: &'static str,
        figures: &[HoleFigures],
        of: fn(&HoleFigures) -> Option<f64>,
    ) -> Self {
        let cells = figures.iter().map(of).collect();
        Self { head, cells }
    }
}

/// All figures that there are, one row per share.
fn table(figures: &[HoleFigures], predicts: Predicts) -> String {
    let column = |head, of| FigureColumn::new(head, figures, of);
    let mut columns = match predicts {
        Predicts::Class => vec![
            column("accuracy", |f| f.classes.accuracy()),
            column("log-loss", |f| f.classes.log_loss()),
            column("calibration", |f| f.classes.confidence.error()),
        ],
        Predicts::Number(_) => vec![
            column("r2", |f| f.numbers.r2()),
            column("rmse", |f| Some(f.numbers.rmse())),
            column("mae", |f| Some(f.numbers.mae())),
            column("in 90 %", |f| Some(f.numbers.coverage.of(90).inside)),
            column("log score", |f| Some(f.numbers.log_score())),
        ],
        Predicts::Nothing => Vec::new(),
    };
    columns.push(column("numbers filled", |f| f.filled.numbers));
    columns.push(column("categories filled", |f| f.filled.categories));
    columns.retain(|column| column.cells.iter().any(Option::is_some));
    let head = |column: &FigureColumn| format!("<th>{}</th>", column.head);
    let heads: String = columns.iter().map(head).collect();
    let mut html = format!("<table><thead><tr><th>missing</th>{heads}</tr></thead><tbody>\n");
    for (row, figures) in figures.iter().enumerate() {
        let cell = |column: &FigureColumn| {
            let text = column.cells[row].map_or("–".into(), four_digits);
            format!("<td>{text}</td>")
        };
        let cells: String = columns.iter().map(cell).collect();
        let share = share_of(&figures.missing);
        let _ = writeln!(html, "<tr><th>{share}</th>{cells}</tr>");
    }
    html + "</tbody></table>\n"
}

fn share_of(missing: &Missing) -> f64 {
    match missing {
        Missing::Iid(share) => *share,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_is_filled_with_its_mean_explains_nothing() {
        let share = |cells: &[(f64, f64)]| {
            let cells = cells.iter().map(|&(seen, filled)| Hidden { seen, filled });
            explained_share(&cells.collect::<Vec<_>>())
        };
        assert_eq!(share(&[(1.0, 2.0), (3.0, 2.0)]), Some(0.0));
        assert_eq!(share(&[(1.0, 1.0), (3.0, 3.0)]), Some(1.0));
        assert_eq!(share(&[(1.0, 3.0), (3.0, 3.0)]), Some(-1.0));
        assert_eq!((share(&[(1.0, 2.0)]), share(&[])), (None, None));
    }
}
