//! The figures as tables for people.

use crate::commands::evaluate::outcome::Outcome;
use crate::terminal::user_error::one_line;
use anyhow::Result;
use std::io::Write;

/// A confusion matrix of more classes is too wide for a terminal.
const MAX_WIDE: usize = 20;

/// A line for each kind of holes.
pub fn print(outcomes: &[Outcome], out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{:<12} {:>8} {:>9} {:>9} {:>12} {:>8} {:>15}",
        "missing", "labelled", "accuracy", "log-loss", "calibration", "rows", "log-likelihood"
    )?;
    for outcome in outcomes {
        let [accuracy, log_loss, calibration] = [
            outcome.accuracy,
            outcome.log_loss,
            outcome.calibration_error,
        ]
        .map(figure);
        let (missing, labelled, rows) = (&outcome.missing, outcome.labelled, outcome.n);
        let log_likelihood = short(outcome.log_likelihood);
        writeln!(
            out,
            "{missing:<12} {labelled:>8} {accuracy:>9} {log_loss:>9} {calibration:>12} {rows:>8} \
             {log_likelihood:>15}"
        )?;
    }
    Ok(())
}

/// Figures of every class, and which classes are taken for which.
pub fn print_classes(outcome: &Outcome, out: &mut impl Write) -> Result<()> {
    let widest = outcome.classes.iter().map(|class| shown(&class.class));
    let widest = widest.map(|name| name.chars().count()).max().unwrap_or(0);
    let width = widest.clamp(5, 30);
    writeln!(
        out,
        "\n{}\n{:<width$} {:>8} {:>9} {:>9} {:>9} {:>9}",
        outcome.missing, "class", "rows", "predicted", "precision", "recall", "f1"
    )?;
    for class in &outcome.classes {
        let [precision, recall, f1] = [class.precision, class.recall, class.f1].map(figure);
        let (name, rows, predicted) = (shown(&class.class), class.rows, class.predicted);
        writeln!(
            out,
            "{name:<width$} {rows:>8} {predicted:>9} {precision:>9} {recall:>9} {f1:>9}"
        )?;
    }
    if outcome.confusion.len() > MAX_WIDE {
        writeln!(out, "--json also has the confusion of these classes")?;
        return Ok(());
    }
    print_confusion(outcome, width, out)
}

/// A line for each true class, with the rows that were predicted to be of each class.
fn print_confusion(outcome: &Outcome, width: usize, out: &mut impl Write) -> Result<()> {
    let names: Vec<String> = outcome.classes.iter().map(|c| shown(&c.class)).collect();
    let head = |name: &String| format!(" {:>9}", name.chars().take(9).collect::<String>());
    let heads: String = names.iter().map(head).collect();
    let width = width.max("true as".len());
    writeln!(out, "{:<width$}{heads}", "true as")?;
    for (name, row) in names.iter().zip(&outcome.confusion) {
        let cells: String = row.iter().map(|count| format!(" {count:>9}")).collect();
        writeln!(out, "{name:<width$}{cells}")?;
    }
    Ok(())
}

/// The name of a class, cut if it is long.
fn shown(name: &str) -> String {
    const LONGEST: usize = 30;
    one_line(name).chars().take(LONGEST).collect()
}

fn figure(x: Option<f64>) -> String {
    x.map_or_else(|| "—".to_owned(), |x| format!("{x:.4}"))
}

/// Four decimals, or four digits of a huge number.
fn short(x: f64) -> String {
    if x.abs() < 1e9 {
        format!("{:.4}", (x * 1e4).round() / 1e4 + 0.0) // never −0
    } else {
        format!("{x:.4e}")
    }
}
