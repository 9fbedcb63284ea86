//! What each column tells: alone, beyond all others, and which to ask for first.
//!
//! ```text
//! alone       I(y; x_j)              = mean uncertainty about y given nothing − given x_j
//! beyond      I(y; x_j | x_others)   = mean uncertainty about y given all others − given everything
//! no target   I(x_j; x_others)       = mean of log P(x_j | x_others) − log P(x_j)
//! cells       log P(x_j | x_others)  of every observed cell
//! ```
//!
//! Means are over the rows, with their own holes: a cell that is missing tells nothing.

use crate::model_page::subject::{Answer, Predicts, Subject};
use crate::text::{breakable, escape, fixed};
use anyhow::Result;
use std::fmt::Write;
use sumout_data::layout::Layout;

/// What one column tells, in nats.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnInformation {
    /// Its number.
    pub column: usize,
    /// What it tells alone; without a target, what the others tell about it.
    pub alone: f64,
    /// What it tells beyond all others; without a target, nothing.
    pub beyond: f64,
}

/// A column that is asked for next, and what is known then.
#[derive(Clone, Debug, PartialEq)]
pub struct NextColumn {
    /// Its number.
    pub column: usize,
    /// The mean uncertainty that is left, in nats.
    pub uncertainty: f64,
    /// Accuracy with these columns alone; NaN without labels.
    pub accuracy: f64,
}

/// What all columns tell.
#[derive(Clone, Debug)]
pub struct Information {
    /// The most telling first.
    pub columns: Vec<ColumnInformation>,
    /// The best to ask for first, then the best given that, and so on.
    pub order: Vec<NextColumn>,
    /// The uncertainty before anything is seen, in nats; 0 without a target.
    pub at_first: f64,
    /// (n, width): log P(x_j | x_others), NaN where the cell is missing.
    pub cells: Vec<f64>,
}

/// Columns that are asked for one after the other.
const ORDER: usize = 5;

/// Columns among which the next one is chosen: those that tell most alone.
const CANDIDATES: usize = 20;

/// Questions about all rows that [`measure`] asks of a model with so many columns.
pub fn questions(width: usize) -> usize {
    let order: usize = (0..ORDER.min(width))
        .map(|asked| CANDIDATES.min(width).saturating_sub(asked))
        .sum();
    2 + 2 * width + order
}

/// Asks.
pub fn measure(subject: &mut Subject<'_>) -> Result<Information> {
    let sample = subject.sample;
    let (n, width) = (sample.rows(), sample.layout.width);
    let whole = subject.ask(&sample.values)?;
    let at_first = alone(subject, &[])?.uncertainty;
    let mut cells = vec![f64::NAN; n * width];
    let mut columns = Vec::new();
    for column in 0..width {
        let without = subject.ask(&sample.without(|other| other == column))?;
        for row in (0..n).filter(|row| !sample.values[row * width + column].is_nan()) {
            cells[row * width + column] = whole.log_marginal[row] - without.log_marginal[row];
        }
        let by_itself = alone(subject, &[column])?;
        let own = cells.iter().skip(column).step_by(width);
        columns.push(match subject.predicts {
            Predicts::Nothing => ColumnInformation {
                column,
                alone: gain(own, &by_itself.log_marginal),
                beyond: 0.0,
            },
            _ => ColumnInformation {
                column,
                alone: at_first - by_itself.uncertainty,
                beyond: without.uncertainty - whole.uncertainty,
            },
        });
    }
    let inputs = subject.inputs();
    columns.retain(|told| inputs.contains(&told.column));
    columns.sort_by(|a, b| b.alone.total_cmp(&a.alone));
    Ok(Information {
        order: order(subject, &columns)?,
        columns,
        at_first,
        cells,
    })
}

/// Asks with these columns alone.
fn alone(subject: &mut Subject<'_>, columns: &[usize]) -> Result<Answer> {
    let predicts = subject.predicts;
    let is_target = |column: usize| predicts == Predicts::Number(column);
    let rows = subject
        .sample
        .without(|column| !columns.contains(&column) && !is_target(column));
    subject.ask(&rows)
}

/// Mean of log P(x_j | x_others) − log P(x_j) over the cells that are observed.
fn gain<'a>(given: impl Iterator<Item = &'a f64>, alone: &[f64]) -> f64 {
    let pairs = given.zip(alone).filter(|(given, _)| !given.is_nan());
    let gains: Vec<f64> = pairs.map(|(given, alone)| given - alone).collect();
    gains.iter().sum::<f64>() / gains.len().max(1) as f64
}

/// The columns to ask for one after the other: each time the one that leaves the least uncertainty.
fn order(subject: &mut Subject<'_>, columns: &[ColumnInformation]) -> Result<Vec<NextColumn>> {
    if subject.predicts == Predicts::Nothing {
        return Ok(Vec::new());
    }
    let candidates = columns.iter().take(CANDIDATES).map(|told| told.column);
    let mut left: Vec<usize> = candidates.collect();
    let (mut order, mut asked) = (Vec::new(), Vec::new());
    while order.len() < ORDER && !left.is_empty() {
        let mut best: Option<NextColumn> = None;
        for &column in &left {
            let answer = alone(subject, &[&asked[..], &[column]].concat())?;
            if best
                .as_ref()
                .is_none_or(|best| answer.uncertainty < best.uncertainty)
            {
                best = Some(NextColumn {
                    column,
                    uncertainty: answer.uncertainty,
                    accuracy: answer.accuracy,
                });
            }
        }
        let before = order
            .last()
            .map_or(f64::INFINITY, |next: &NextColumn| next.uncertainty);
        let Some(best) = best.filter(|best| best.uncertainty < before - LEAST_GAIN) else {
            break; // no other column tells more
        };
        left.retain(|&column| column != best.column);
        asked.push(best.column);
        order.push(best);
    }
    Ok(order)
}

/// What the next column to ask for must tell, in nats.
const LEAST_GAIN: f64 = 1e-3;

/// Columns that are shown at once; the others are folded.
const SHOWN: usize = 20;

/// What columns tell, as bars.
pub fn section(told: &Information, predicts: Predicts, layout: &Layout, target: &str) -> String {
    let most = told.columns.iter().map(|told| told.alone.max(told.beyond));
    let scale = match predicts {
        Predicts::Class => told.at_first,
        _ => most.fold(0.0, f64::max),
    };
    let bar =
        |told_of: &ColumnInformation| bars(told_of, predicts, scale, &layout.name(told_of.column));
    let all: Vec<String> = told.columns.iter().map(bar).collect();
    let (first, rest) = all.split_at(SHOWN.min(all.len()));
    let rest = match rest.len() {
        0 => String::new(),
        n => format!(
            "<details>\n<summary>The other {n} columns</summary>\n<ol class=\"bars\">\n{}</ol>\n</details>\n",
            rest.concat()
        ),
    };
    let (first, target) = (first.concat(), escape(target));
    let (title, words, legend) = match predicts {
        Predicts::Nothing => (
            "How columns depend on each other",
            NOTHING_WORDS.to_owned(),
            "",
        ),
        Predicts::Class => ("Which columns matter", class_words(&target), LEGEND),
        Predicts::Number(_) => ("Which columns matter", number_words(&target), LEGEND),
    };
    let order = order_table(told, predicts, layout);
    format!(
        "<section class=\"card\">\n<h2>{title}</h2>\n<p>{words}</p>\n{legend}<ol class=\"bars\">\n{first}</ol>\n{rest}{order}</section>\n"
    )
}

const LEGEND: &str = "<ul class=\"legend\"><li class=\"m0\"><i></i><b>alone</b>, when nothing else is known</li>\
                      <li class=\"m1\"><i></i><b>beyond the others</b>, when all of them are known</li></ul>\n";

const NOTHING_WORDS: &str = "The mutual information of each column and all others together, in nats. At 1 nat, a cell is on average 2.7 times \
                             as likely once the rest of its row is known; at 0, the rest tells nothing about it.";

fn class_words(target: &str) -> String {
    format!(
        "How much of the uncertainty about <b>{target}</b> a column removes (its mutual information, as a share of the entropy). A column \
         that tells much alone and little beyond the others repeats what they say: it may be missing."
    )
}

fn number_words(target: &str) -> String {
    format!(
        "What a column tells about <b>{target}</b>: its mutual information in nats. At 1 nat, the true number is on average 2.7 times as \
         likely once the column is known. A column that tells much alone and little beyond the others repeats what they say."
    )
}

/// The bars of one column.
fn bars(told: &ColumnInformation, predicts: Predicts, scale: f64, name: &str) -> String {
    let wide = |nats: f64| (100.0 * nats / scale.max(f64::MIN_POSITIVE)).clamp(0.0, 100.0);
    let figure = |nats: f64| match predicts {
        Predicts::Class => format!("{:.0} %", wide(nats)),
        _ => fixed(nats, 2),
    };
    let name = escape(name);
    let both = [told.alone, told.beyond];
    let shown = if predicts == Predicts::Nothing {
        &both[..1]
    } else {
        &both[..]
    };
    let (mut bars, mut figures) = (String::new(), Vec::new());
    for (number, &nats) in shown.iter().enumerate() {
        let _ = write!(
            bars,
            "<i class=\"m{number}\" style=\"width:{:.1}%\"></i>",
            wide(nats)
        );
        figures.push(format!("<span class=\"m{number}\">{}</span>", figure(nats)));
    }
    let figures = figures.concat();
    format!(
        "<li><span class=\"column\" title=\"{name}\">{name}</span><span class=\"bar\">{bars}</span><span class=\"figures\">{figures}</span></li>\n"
    )
}

/// Which columns to ask for first.
fn order_table(told: &Information, predicts: Predicts, layout: &Layout) -> String {
    if told.order.len() < 2 {
        return String::new();
    }
    let is_class = predicts == Predicts::Class;
    let mut rows = String::new();
    for (at, next) in told.order.iter().enumerate() {
        let left = match is_class {
            true => format!("{:.0} %", 100.0 * next.uncertainty / told.at_first),
            false => fixed(told.at_first - next.uncertainty, 2),
        };
        let accuracy = match next.accuracy.is_nan() {
            true => String::new(),
            false => format!("<td>{:.1} %</td>", 100.0 * next.accuracy),
        };
        let name = breakable(&layout.name(next.column));
        let _ = writeln!(
            rows,
            "<tr><td>{}</td><td>{name}</td><td>{left}</td>{accuracy}</tr>",
            at + 1
        );
    }
    let left = if is_class {
        "uncertainty left"
    } else {
        "nats gained"
    };
    let has_accuracy = told.order.iter().any(|next| !next.accuracy.is_nan());
    let accuracy = if has_accuracy {
        "<th>accuracy</th>"
    } else {
        ""
    };
    format!(
        "<h3>Which to ask for first</h3>\n<p>In every line, the column that tells most beyond those above it. The figures hold when \
         it and those above are known.</p>\n<div class=\"wide\"><table class=\"cells\"><thead><tr><th></th><th>column</th>\
         <th>{left}</th>{accuracy}</tr></thead><tbody>\n{rows}</tbody></table></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_page::sample::Sample;
    use crate::model_page::subject::entropy;
    use sumout::recipes::Fit;
    use sumout::{Kind, Predictor, Rows};

    /// All rows of three columns of three categories.
    fn all_rows() -> Sample {
        let digit = |at: usize| [at / 9, at / 3 % 3, at % 3].map(|value| value as f32);
        Sample {
            layout: Layout::unnamed(3, None),
            values: (0..27).flat_map(digit).collect(),
            labels: vec![-1; 27],
            numbers: (0..27).collect(),
            total: 27,
            digest: String::new(),
        }
    }

    /// A model in which the class is the first column, or at times the second; and what its columns tell.
    fn measured(predicts: Predicts, sample: &Sample) -> (Information, Predictor) {
        let rows: Vec<[usize; 3]> = (0..270).map(|i| [i % 3, i / 3 % 3, i / 9 % 3]).collect();
        let values: Vec<f32> = rows.iter().flatten().map(|&value| value as f32).collect();
        let label = |(i, row): (usize, &[usize; 3])| row[usize::from(i % 5 == 0)];
        let labels = rows.iter().enumerate().map(label);
        let labels: Vec<Option<usize>> = match predicts {
            Predicts::Class => labels.map(Some).collect(),
            _ => vec![None; 270],
        };
        let fit = Fit::new()
            .kinds(&[Kind::Categorical(3); 3])
            .steps(60)
            .trees(1);
        let model = fit.run(Rows::new(&values, 3).unwrap(), &labels).unwrap();
        let mut predictor = Predictor::new(model).unwrap();
        let mut subject = Subject {
            predictor: &mut predictor,
            sample,
            predicts,
            tick: &mut || {},
        };
        (measure(&mut subject).unwrap(), predictor)
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }

    /// Mean entropy of the class given some of the columns, from its definition.
    fn left(predictor: &mut Predictor, sample: &Sample, known: &[usize]) -> f64 {
        let rows = sample.without(|column| !known.contains(&column));
        let rows = predictor.model().rows(&rows).unwrap();
        let posterior = predictor.posterior(rows).unwrap();
        posterior.iter().map(entropy).sum::<f64>() / 27.0
    }

    #[test]
    fn information_is_what_the_entropy_loses() {
        let sample = all_rows();
        let (told, mut predictor) = measured(Predicts::Class, &sample);
        close(told.at_first, left(&mut predictor, &sample, &[]));
        let first = &told.columns[0];
        assert_eq!(first.column, 0, "{told:?}");
        assert!(first.alone > 0.1 && first.beyond > 0.1, "{told:?}");
        for column in &told.columns {
            let others: Vec<usize> = (0..3).filter(|&other| other != column.column).collect();
            let known = left(&mut predictor, &sample, &[column.column]);
            close(column.alone, told.at_first - known);
            let (all, others) = ([0, 1, 2], &others[..]);
            let gain = left(&mut predictor, &sample, others) - left(&mut predictor, &sample, &all);
            close(column.beyond, gain);
        }
        assert!(told.columns.is_sorted_by(|a, b| a.alone >= b.alone));
        assert_eq!(told.order[0].column, told.columns[0].column);
        let mut asked = Vec::new();
        for next in &told.order {
            let before = left(&mut predictor, &sample, &asked);
            asked.push(next.column);
            close(next.uncertainty, left(&mut predictor, &sample, &asked));
            assert!(next.uncertainty < before - LEAST_GAIN, "it tells something");
        }
        assert_eq!(told.order.len(), 2, "the third tells nothing: {told:?}");
    }

    #[test]
    fn a_cell_has_a_distribution_given_the_others() {
        for predicts in [Predicts::Class, Predicts::Nothing] {
            let (told, _) = measured(predicts, &all_rows());
            // Rows 0, 1 and 2 differ in the last column only, rows 0, 9 and 18 in the first.
            close(
                [2, 5, 8].iter().map(|&cell| told.cells[cell].exp()).sum(),
                1.0,
            );
            close(
                [0, 27, 54].iter().map(|&cell| told.cells[cell].exp()).sum(),
                1.0,
            );
        }
    }

    #[test]
    fn a_missing_cell_tells_nothing() {
        let mut sample = all_rows();
        sample
            .values
            .iter_mut()
            .step_by(3)
            .for_each(|x| *x = f32::NAN);
        let (told, _) = measured(Predicts::Class, &sample);
        let first = told.columns.iter().find(|told| told.column == 0).unwrap();
        close(first.alone, 0.0);
        close(first.beyond, 0.0);
        assert!(told.cells[0].is_nan() && !told.cells[1].is_nan());
    }
}
