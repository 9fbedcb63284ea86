//! What the model answers for the page: completions of digits with holes, and samples of every
//! class.
//!
//! No image is chosen by hand: every kind of holes gets the first test image of one class.

use anyhow::Result;
use sumout::masks::{Grid, Missing, hide};
use sumout::{Matrix, Predictor, Rows};
use sumout_data::layout::Table;

/// Samples of each completion.
pub const SAMPLES: usize = 3;

/// Where the holes of an example are.
#[derive(Clone, Copy, Debug)]
enum HolesAt {
    /// Random, of a kind that the table has too.
    Random(Missing),
    /// Rows and columns (from, to) in quarters of the image.
    Part([usize; 2], [usize; 2]),
    /// Every other band of four rows.
    Bands,
}

/// A digit with holes.
struct Example {
    digit: i64,
    holes: HolesAt,
    words: &'static str, // what is missing
}

const fn example(digit: i64, holes: HolesAt, words: &'static str) -> Example {
    Example {
        digit,
        holes,
        words,
    }
}

const fn squares(count: usize, width: usize) -> HolesAt {
    HolesAt::Random(Missing::Squares { count, width })
}

const EXAMPLES: [Example; 10] = [
    example(3, HolesAt::Random(Missing::Iid(0.5)), "half of the pixels"),
    example(
        8,
        HolesAt::Random(Missing::Iid(0.75)),
        "three of four pixels",
    ),
    example(5, HolesAt::Random(Missing::Iid(0.9)), "nine of ten pixels"),
    example(2, squares(1, 11), "a square of 11×11"),
    example(0, squares(3, 11), "three squares of 11×11"),
    example(6, squares(1, 15), "a square of 15×15"),
    example(9, HolesAt::Part([2, 4], [0, 4]), "the lower half"),
    example(7, HolesAt::Part([0, 2], [0, 4]), "the upper half"),
    example(4, HolesAt::Part([0, 4], [2, 4]), "the right half"),
    example(1, HolesAt::Bands, "every other band"),
];

/// One image with holes, and the answers of the model. Rows of pixels from 0 to 255.
#[derive(Clone, Debug)]
pub struct Completion {
    /// What is missing, in words.
    pub words: &'static str,
    /// Its class.
    pub label: usize,
    /// Without holes.
    pub original: Vec<f32>,
    /// With holes: what the model sees.
    pub holes: Vec<f32>,
    /// P(y|x_o), (K).
    pub posterior: Vec<f64>,
    /// E[x_m|x_o].
    pub mean: Vec<f32>,
    /// Var[x_m|x_o].
    pub variance: Vec<f32>,
    /// The most likely joint assignment.
    pub mode: Vec<f32>,
    /// Samples from P(x_m|x_o).
    pub samples: Vec<Vec<f32>>,
}

impl HolesAt {
    /// Writes NaN over the missing pixels.
    fn apply(self, row: &mut [f32], side: usize, number: usize, seed: u64) -> Result<()> {
        let within =
            |at: usize, [from, to]: [usize; 2]| (from * side / 4..to * side / 4).contains(&at);
        let is_hole = |i: usize| match self {
            Self::Part(rows, columns) => within(i / side, rows) && within(i % side, columns),
            _ => i / side / 4 % 2 == 1,
        };
        if let Self::Random(missing) = self {
            return Ok(missing.apply(&Grid::image(side, side, 1), row, number, seed)?);
        }
        let mask: Vec<bool> = (0..row.len()).map(is_hole).collect();
        Ok(hide(row, &mask)?)
    }
}

/// All examples, each for the first test image of its class. If a class has no image, its example
/// is left out.
pub fn completions(predictor: &mut Predictor, test: &Table, seed: u64) -> Result<Vec<Completion>> {
    let width = test.layout.width;
    let side = test.layout.shape.map_or(width, |shape| shape.width);
    let labels = test.labels.as_deref().unwrap_or_default();
    let mut all = Vec::new();
    for example in EXAMPLES {
        let Some(number) = labels.iter().position(|&label| label == example.digit) else {
            continue;
        };
        let original = test.values[number * width..][..width].to_vec();
        let mut holes = original.clone();
        example.holes.apply(&mut holes, side, number, seed)?;
        let (row, copies) = (Rows::new(&holes, width)?, holes.repeat(SAMPLES));
        let imputed = predictor.impute_mean(row, None)?;
        let samples = predictor.sample_given(Rows::new(&copies, width)?, None, seed)?;
        all.push(Completion {
            words: example.words,
            label: example.digit as usize,
            posterior: predictor.posterior(row)?.into_vec(),
            mode: predictor.impute_mode(row, None)?.into_vec(),
            mean: imputed.mean.into_vec(),
            variance: imputed.variance.into_vec(),
            samples: rows_of(&samples),
            original,
            holes,
        });
    }
    Ok(all)
}

/// What one class looks like.
#[derive(Clone, Debug)]
pub struct ClassSamples {
    /// E[X|y].
    pub mean: Vec<f32>,
    /// Samples from P(X|y).
    pub samples: Vec<Vec<f32>>,
}

/// The mean and `count` samples of every class.
pub fn classes(predictor: &mut Predictor, count: usize, seed: u64) -> Result<Vec<ClassSamples>> {
    let width = predictor.model().structure.width();
    let mut classes = Vec::new();
    for class in 0..predictor.model().structure.classes {
        // Each class has its own seed: otherwise all would share their noise.
        let samples = predictor.sample(count, Some(class), seed.wrapping_add(class as u64))?;
        let nothing_observed = vec![f32::NAN; width];
        let nothing_observed = Rows::new(&nothing_observed, width)?;
        let imputed = predictor.impute_mean(nothing_observed, Some(class))?;
        classes.push(ClassSamples {
            mean: imputed.mean.into_vec(),
            samples: rows_of(&samples.rows),
        });
    }
    Ok(classes)
}

fn rows_of(values: &Matrix<f32>) -> Vec<Vec<f32>> {
    values.iter().map(<[f32]>::to_vec).collect()
}
