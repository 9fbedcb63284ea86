//! The demo's table: how many of the test images each method gets right, by what is missing.

use crate::baselines::Neighbours;
use anyhow::Result;
use std::io::Write;
use sumout::Predictor;
use sumout::masks::{Grid, Missing};
use sumout::queries::shifts;
use sumout_data::layout::Table;

/// The methods, best first. "KNN" is the five nearest training images by the pixels that are seen.
pub const METHODS: [&str; 3] = ["Sumout", "KNN", "mean fill + KNN"];

/// Probabilities that a pixel is missing.
pub const IID: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

/// Widths of the squares that are missing; one, two and three of each.
pub const WIDTHS: [usize; 3] = [7, 11, 15];

/// What is asked: first i.i.d., then squares.
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
    /// Images asked about.
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

/// Asks all methods about the test images with these holes. Sumout sums the log scores of nine shifts, as the paper does.
pub fn score(
    missing: Missing,
    test: &Table,
    seed: u64,
    predictor: &mut Predictor,
    neighbours: &Neighbours,
) -> Result<Score> {
    let mut rows = test.values.clone();
    let (height, width) = test
        .layout
        .shape
        .map_or((1, test.layout.width), |shape| (shape.height, shape.width));
    missing.apply(&Grid::image(height, width, 1), &mut rows, 0, seed)?;
    let scores = predictor.log_joint(predictor.model().rows(&rows)?, &shifts(1))?;
    let answers = [
        scores.argmax(),
        neighbours.by_seen_pixels(&rows),
        neighbours.by_filled_in(&rows),
    ];
    let labels = test.labels.as_deref().unwrap_or_default();
    let right = |answers: Vec<usize>| {
        answers
            .iter()
            .zip(labels)
            .filter(|(a, label)| **a as i64 == **label)
            .count()
    };
    Ok(Score {
        missing,
        images: test.rows(),
        right: answers.map(right),
    })
}

/// What a column is called.
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
        "Accuracy in % on {images} test images, none of which was seen in training"
    )?;
    let (iid, squares) = scores.split_at(IID.len().min(scores.len()));
    for (title, part) in [
        ("each pixel missing with probability", iid),
        ("squares missing: 2×11² is two of 11×11", squares),
    ] {
        writeln!(out, "\n{title}")?;
        let heads: String = part
            .iter()
            .map(|score| format!("{:>7}", name(&score.missing)))
            .collect();
        writeln!(out, "{:<15}{heads}", "")?;
        for (method, label) in METHODS.iter().enumerate() {
            let cells: String = part
                .iter()
                .map(|score| format!("{:>7.1}", score.percent(method)))
                .collect();
            writeln!(out, "{label:<15}{cells}")?;
        }
    }
    writeln!(
        out,
        "\nSumout adds up its log scores of nine shifts by up to a pixel (`--shifts 1`)."
    )?;
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
