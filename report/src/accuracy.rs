//! The demo's table: the accuracy of each method, by what is missing.

use crate::baselines::Neighbours;
use anyhow::Result;
use std::io::Write;
use sumout::Predictor;
use sumout::masks::{Grid, Missing};
use sumout::queries::shifts;
use sumout_data::layout::Table;

/// The methods, best first. "KNN" is the five nearest training images, by the observed pixels.
pub const METHODS: [&str; 3] = ["Sumout", "KNN", "mean fill + KNN"];

/// Probabilities that a pixel is missing.
pub const IID: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// Widths of missing squares; one, two or three squares of each.
pub const WIDTHS: [usize; 3] = [7, 11, 15];

/// All kinds of holes: first i.i.d., then squares.
pub fn kinds() -> Vec<Missing> {
    let squares = WIDTHS
        .iter()
        .flat_map(|&width| (1..=3).map(move |count| Missing::Squares { count, width }));
    IID.iter()
        .map(|&p| Missing::Iid(p))
        .chain(squares)
        .collect()
}

/// One column of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// What is missing.
    pub missing: Missing,
    /// Test images.
    pub images: usize,
    /// How many each of [`METHODS`] got right.
    pub right: [usize; METHODS.len()],
}

impl Score {
    /// Accuracy of a method in percent.
    pub fn percent(&self, method: usize) -> f64 {
        100.0 * self.right[method] as f64 / self.images as f64
    }
}

/// Tests all methods on images with these holes. Sumout sums the log scores of nine shifts, as in
/// the paper.
pub fn score(
    missing: Missing,
    test: &Table,
    seed: u64,
    predictor: &mut Predictor,
    neighbours: &Neighbours,
) -> Result<Score> {
    let mut rows = test.values.clone();
    let grid = match test.layout.shape {
        Some(shape) => Grid::image(shape.height, shape.width, 1),
        None => Grid::image(1, test.layout.width, 1),
    };
    missing.apply(&grid, &mut rows, 0, seed)?;
    let ours = predictor.predict_shifted(predictor.model().rows(&rows)?, &shifts(1))?;
    let answers = [
        ours,
        neighbours.by_seen_pixels(&rows),
        neighbours.by_filled_in(&rows),
    ];
    let labels = test.labels.as_deref().unwrap_or_default();
    Ok(Score {
        missing,
        images: test.rows(),
        right: answers.map(|answers| count_right(&answers, labels)),
    })
}

fn count_right(answers: &[usize], labels: &[i64]) -> usize {
    let pairs = answers.iter().zip(labels);
    pairs.filter(|(a, label)| **a as i64 == **label).count()
}

/// The head of a column.
pub fn name(missing: &Missing) -> String {
    match missing {
        Missing::Iid(p) if *p == 0.0 => "0".into(),
        Missing::Iid(p) => format!("{p:.2}").trim_start_matches('0').to_owned(),
        Missing::Squares { count, width } => format!("{count}×{width}²"),
        other => other.to_string(),
    }
}

/// Prints the table, in two parts of less than 80 columns.
pub fn print(scores: &[Score], out: &mut impl Write) -> Result<()> {
    let images = scores.first().map_or(0, |score| score.images);
    writeln!(
        out,
        "Accuracy in % on {images} test images, which were not used in training"
    )?;
    let (iid, squares) = scores.split_at(IID.len().min(scores.len()));
    print_part("each pixel missing with probability", iid, out)?;
    print_part("squares missing: 2×11² is two of 11×11", squares, out)?;
    writeln!(
        out,
        "\nSumout sums its log scores over nine shifts, by up to one pixel (`--shifts 1`)."
    )?;
    Ok(())
}

fn print_part(title: &str, scores: &[Score], out: &mut impl Write) -> Result<()> {
    writeln!(out, "\n{title}")?;
    let head = |score: &Score| format!("{:>7}", name(&score.missing));
    writeln!(
        out,
        "{:<15}{}",
        "",
        scores.iter().map(head).collect::<String>()
    )?;
    for (method, label) in METHODS.iter().enumerate() {
        let cell = |score: &Score| format!("{:>7.1}", score.percent(method));
        writeln!(
            out,
            "{label:<15}{}",
            scores.iter().map(cell).collect::<String>()
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_two_blocks() {
        let scores: Vec<Score> = kinds()
            .into_iter()
            .map(|missing| Score {
                missing,
                images: 200,
                right: [199, 150, 30],
            })
            .collect();
        let mut text = Vec::new();
        print(&scores, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() < 80));
    }
}
