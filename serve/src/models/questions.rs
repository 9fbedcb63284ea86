//! What a model can be asked, and its answers.

use crate::answers::rows::{NUMBERS, QUANTILES};
use crate::models::nodes::{self, ChannelView, NodeQuestion};
use crate::problem::Problem;
use sumout::queries::{How, Mixture};
use sumout::structure::Kind;
use sumout::{Predictor, Rows};

/// What can be asked. Rows come with it.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// P(y|x) and log P(x).
    Score,
    /// Holes filled; a mean with its standard deviation.
    Fill {
        /// With what.
        how: How,
        /// Given this class.
        class: Option<usize>,
        /// Seed of the samples.
        seed: u64,
    },
    /// The distribution of the number that the model predicts.
    Number {
        /// Its column.
        column: usize,
    },
    /// Probabilities of the values of every category.
    Probabilities {
        /// Given this class.
        class: Option<usize>,
    },
    /// New rows.
    Sample {
        /// How many.
        count: usize,
        /// Of this class.
        class: Option<usize>,
        /// Seed of the samples.
        seed: u64,
    },
    /// What a node stands for.
    Explain(NodeQuestion),
}

impl Question {
    /// Whether rows of several clients can be answered together: the answer to a row depends on that row alone.
    pub fn is_shared(&self) -> bool {
        matches!(
            self,
            Self::Score
                | Self::Number { .. }
                | Self::Probabilities { .. }
                | Self::Fill {
                    how: How::Mean | How::Median | How::Mode,
                    ..
                }
        )
    }
}

/// What comes back.
#[derive(Clone, Debug)]
pub enum Answer {
    /// (n, K) and (n).
    Scores(Vec<f64>, Vec<f64>),
    /// (n, width), and standard deviations where they are known; NaN for a category.
    Filled(Vec<f32>, Option<Vec<f32>>),
    /// (n, [`NUMBERS`]): mean, standard deviation and quantiles.
    Numbers(Vec<f64>),
    /// (n, values of all categories).
    Probabilities(Vec<f32>),
    /// (count, width), and the class of each.
    Samples(Vec<f32>, Vec<usize>),
    /// Channels of a node.
    Channels(Vec<ChannelView>),
}

/// Asks the engine.
pub fn answer(
    predictor: &mut Predictor,
    question: &Question,
    rows: &[f32],
) -> Result<Answer, Problem> {
    let rows = predictor.model().rows(rows)?;
    Ok(match question {
        Question::Score => score(predictor, rows)?,
        Question::Fill { how, class, seed } => match how {
            How::Mean => fill_with_mean(predictor, rows, *class)?,
            how => Answer::Filled(
                predictor.impute(rows, *how, *class, *seed)?.into_vec(),
                None,
            ),
        },
        Question::Number { column } => number(predictor, rows, *column)?,
        Question::Probabilities { class } => probabilities(predictor, rows, *class)?,
        Question::Sample { count, class, seed } => {
            let samples = predictor.sample(*count, *class, *seed)?;
            Answer::Samples(samples.rows.into_vec(), samples.classes)
        }
        Question::Explain(question) => Answer::Channels(nodes::explain(predictor, question)?),
    })
}

fn score(predictor: &mut Predictor, rows: Rows<'_>) -> Result<Answer, Problem> {
    let scores = predictor.score(rows)?;
    Ok(Answer::Scores(
        scores.posterior.into_vec(),
        scores.log_marginal,
    ))
}

/// Mean, standard deviation and quantiles of the number that the model predicts.
fn number(predictor: &mut Predictor, rows: Rows<'_>, column: usize) -> Result<Answer, Problem> {
    let mixtures = predictor.mixtures(rows, column, None)?;
    let numbers = mixtures.map(NUMBERS, |_, mixture: Mixture<'_>, to| {
        (to[0], to[1]) = (mixture.mean(), mixture.variance().sqrt());
        let quantiles = to[2..].iter_mut().zip(QUANTILES);
        quantiles.for_each(|(to, p)| *to = mixture.quantile(p));
    });
    Ok(Answer::Numbers(numbers.into_vec()))
}

/// Means with their standard deviations. A category has none; pixels are numbers.
fn fill_with_mean(
    predictor: &mut Predictor,
    rows: Rows<'_>,
    class: Option<usize>,
) -> Result<Answer, Problem> {
    let imputed = predictor.impute_mean(rows, class)?;
    let structure = &predictor.model().structure;
    let width = structure.width();
    let is_number =
        |column: usize| structure.frame.is_some() || structure.kinds[column] == Kind::Gaussian;
    let deviation = |(at, variance): (usize, &f32)| match is_number(at % width) {
        true => variance.sqrt(),
        false => f32::NAN,
    };
    let variance = imputed.variance.as_slice().iter();
    let deviation = variance.enumerate().map(deviation).collect();
    Ok(Answer::Filled(imputed.mean.into_vec(), Some(deviation)))
}

/// P(x_m = v | x_o) of every category side by side; one and zeros where it is observed.
fn probabilities(
    predictor: &mut Predictor,
    rows: Rows<'_>,
    class: Option<usize>,
) -> Result<Answer, Problem> {
    let kinds = predictor.model().structure.row_kinds();
    let is_discrete = |column: &usize| kinds[*column] != Kind::Gaussian;
    let columns: Vec<usize> = (0..kinds.len()).filter(is_discrete).collect();
    let parts = predictor.impute_probabilities(rows, &columns, class)?;
    let row = |row: usize| parts.iter().flat_map(move |part| part.row(row)).copied();
    Ok(Answer::Probabilities(
        (0..rows.len()).flat_map(row).collect(),
    ))
}
