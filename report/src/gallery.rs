//! What the model is asked for the page: completions of digits with holes, and digits of every class.
//!
//! No image is chosen by hand: every kind of holes gets the first test image of one class.

use anyhow::Result;
use sumout::masks::{Grid, Missing, hide};
use sumout::{Predictor, Rows};
use sumout_data::layout::Table;

/// Samples of each completion.
pub const SAMPLES: usize = 3;

/// Holes to look at.
#[derive(Clone, Copy, Debug)]
enum Holes {
    /// Of a kind that the table has too.
    Drawn(Missing),
    /// Rows and columns (from, to) in quarters of the image.
    Part([usize; 2], [usize; 2]),
    /// Every other band of four rows.
    Bands,
}

/// The digit, what is missing, in words.
const HOLES: [(i64, Holes, &str); 10] = [
    (3, Holes::Drawn(Missing::Iid(0.5)), "half of the pixels"),
    (8, Holes::Drawn(Missing::Iid(0.75)), "three of four pixels"),
    (5, Holes::Drawn(Missing::Iid(0.9)), "nine of ten pixels"),
    (
        2,
        Holes::Drawn(Missing::Squares {
            count: 1,
            width: 11,
        }),
        "a square of 11×11",
    ),
    (
        0,
        Holes::Drawn(Missing::Squares {
            count: 3,
            width: 11,
        }),
        "three squares of 11×11",
    ),
    (
        6,
        Holes::Drawn(Missing::Squares {
            count: 1,
            width: 15,
        }),
        "a square of 15×15",
    ),
    (9, Holes::Part([2, 4], [0, 4]), "the lower half"),
    (7, Holes::Part([0, 2], [0, 4]), "the upper half"),
    (4, Holes::Part([0, 4], [2, 4]), "the right half"),
    (1, Holes::Bands, "every other band"),
];

/// One image with holes, and what the model says about it. Rows of pixels from 0 to 255.
#[derive(Clone, Debug)]
pub struct Completion {
    /// What is missing, in words.
    pub words: &'static str,
    /// The class it has.
    pub label: usize,
    /// Before anything went missing.
    pub original: Vec<f32>,
    /// What the model sees.
    pub holes: Vec<f32>,
    /// P(y|x_o), (K).
    pub posterior: Vec<f64>,
    /// E[x_m|x_o].
    pub mean: Vec<f32>,
    /// Var[x_m|x_o].
    pub variance: Vec<f32>,
    /// The most likely joint assignment.
    pub mode: Vec<f32>,
    /// Draws from P(x_m|x_o).
    pub samples: Vec<Vec<f32>>,
}

impl Holes {
    fn cut(self, row: &mut [f32], side: usize, number: usize, seed: u64) -> Result<()> {
        let cell = |i: usize| (i / side, i % side);
        let mask: Vec<bool> = match self {
            Self::Drawn(missing) => {
                return Ok(missing.apply(&Grid::image(side, side, 1), row, number, seed)?);
            }
            Self::Part(rows, columns) => {
                let within = |at: usize, [from, to]: [usize; 2]| {
                    (from * side / 4..to * side / 4).contains(&at)
                };
                (0..row.len())
                    .map(|i| within(cell(i).0, rows) && within(cell(i).1, columns))
                    .collect()
            }
            Self::Bands => (0..row.len()).map(|i| cell(i).0 / 4 % 2 == 1).collect(),
        };
        Ok(hide(row, &mask)?)
    }
}

/// Every kind of holes, for the first test image of a class; kinds whose class has no image are left out.
pub fn completions(predictor: &mut Predictor, test: &Table, seed: u64) -> Result<Vec<Completion>> {
    let width = test.layout.width;
    let side = test.layout.shape.map_or(width, |shape| shape.width);
    let labels = test.labels.as_deref().unwrap_or_default();
    let mut all = Vec::new();
    for (digit, kind, words) in HOLES {
        let Some(number) = labels.iter().position(|&label| label == digit) else {
            continue;
        };
        let original = test.values[number * width..][..width].to_vec();
        let mut holes = original.clone();
        kind.cut(&mut holes, side, number, seed)?;
        let (row, many) = (Rows::new(&holes, width)?, holes.repeat(SAMPLES));
        let imputed = predictor.impute_mean(row, None)?;
        let draws = predictor.sample_given(Rows::new(&many, width)?, None, seed)?;
        all.push(Completion {
            words,
            label: digit as usize,
            posterior: predictor.posterior(row)?.into_vec(),
            mode: predictor.impute_mode(row, None)?.into_vec(),
            mean: imputed.mean.into_vec(),
            variance: imputed.variance.into_vec(),
            samples: draws.iter().map(<[f32]>::to_vec).collect(),
            original,
            holes,
        });
    }
    Ok(all)
}

/// What one class looks like.
#[derive(Clone, Debug)]
pub struct ClassDraws {
    /// E[X|y].
    pub mean: Vec<f32>,
    /// Draws from P(X|y).
    pub samples: Vec<Vec<f32>>,
}

/// The mean and `count` draws of every class.
pub fn classes(predictor: &mut Predictor, count: usize, seed: u64) -> Result<Vec<ClassDraws>> {
    let width = predictor.model().structure.width();
    let nothing = vec![f32::NAN; width];
    let mut classes = Vec::new();
    for class in 0..predictor.model().structure.classes {
        // A seed for each class: otherwise all would share their noise.
        let drawn = predictor.sample(count, Some(class), seed.wrapping_add(class as u64))?;
        classes.push(ClassDraws {
            mean: predictor
                .impute_mean(Rows::new(&nothing, width)?, Some(class))?
                .mean
                .into_vec(),
            samples: drawn.rows.iter().map(<[f32]>::to_vec).collect(),
        });
    }
    Ok(classes)
}
