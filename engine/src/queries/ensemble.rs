//! Several models as one: the average of their posteriors, or the sum of their scores.

use crate::arithmetic::math::log_sum_exp;
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Rows};
use crate::queries::predictor::Predictor;
use crate::queries::scores::Scores;
use crate::structure::Structure;

/// Several models that vote with the average of their posteriors.
pub struct Ensemble {
    members: Vec<Predictor>,
}

impl Ensemble {
    /// Joins models for rows of the same width and the same classes.
    pub fn new(members: Vec<Predictor>) -> Result<Self> {
        let first = members.first().ok_or(Error::Empty {
            what: "member of an ensemble",
        })?;
        let shape = |s: &Structure| format!("rows of {} and {} classes", s.width(), s.classes);
        let expected = shape(&first.model().structure);
        for member in &members {
            let got = shape(&member.model().structure);
            if got != expected {
                return Err(Error::shape("ensemble", expected, got));
            }
        }
        Ok(Self { members })
    }

    /// The members.
    pub fn members(&self) -> &[Predictor] {
        &self.members
    }

    /// The average of the members' P(y|x_o), as (n, K).
    pub fn posterior(&mut self, rows: Rows<'_>) -> Result<Matrix<f64>> {
        let posterior = |member: &mut Predictor| member.posterior(rows);
        let all: Result<Vec<_>> = self.members.iter_mut().map(posterior).collect();
        Ok(average(&all?))
    }

    /// The class with the largest average, the first where several are, as (n).
    pub fn predict(&mut self, rows: Rows<'_>) -> Result<Vec<usize>> {
        Ok(self.posterior(rows)?.argmax())
    }

    /// The average of the members' posteriors over these shifts ([`Predictor::score_shifted`]), and the logarithm of the
    /// average of their P(x_o): the members as a mixture.
    pub fn score(&mut self, rows: Rows<'_>, shifts: &[(isize, isize)]) -> Result<Scores> {
        let score = |member: &mut Predictor| member.score_shifted(rows, shifts);
        let all: Result<Vec<Scores>> = self.members.iter_mut().map(score).collect();
        let (posteriors, logs): (Vec<_>, Vec<_>) = all?
            .into_iter()
            .map(|scores| (scores.posterior, scores.log_marginal))
            .unzip();
        let count = (self.members.len() as f64).ln();
        let log_marginal = |row: usize| {
            let members: Vec<f64> = logs.iter().map(|logs| logs[row]).collect();
            log_sum_exp(&members) - count
        };
        Ok(Scores {
            posterior: average(&posteriors),
            log_marginal: (0..rows.len()).map(log_marginal).collect(),
        })
    }
}

/// The average of matrices of one shape.
fn average(all: &[Matrix<f64>]) -> Matrix<f64> {
    let mut sums = vec![0.0; all[0].as_slice().len()];
    for matrix in all {
        let numbers = sums.iter_mut().zip(matrix.as_slice());
        numbers.for_each(|(sum, number)| *sum += number);
    }
    let count = all.len() as f64;
    sums.iter_mut().for_each(|sum| *sum /= count);
    Matrix::new(sums, all[0].columns())
}

/// The class with the largest sum of all members' [`Predictor::log_joint`] over these shifts, the first where several are,
/// as (n). Scores that underflow may have spoilt are computed again only where they could change the answer: classes that
/// lie so far apart are rarely near the best.
pub fn predict_together(
    members: &mut [Predictor],
    rows: Rows<'_>,
    shifts: &[(isize, isize)],
) -> Result<Vec<usize>> {
    let Some(first) = members.first() else {
        return Err(Error::Empty { what: "model" });
    };
    let (k, width) = (
        first.model().structure.classes,
        first.model().structure.width(),
    );
    let n = first.check_rows(rows)?;
    for member in &*members {
        if member.model().structure.width() != width {
            return Err(Error::shape(
                "numbers in a row of a model",
                width,
                member.model().structure.width(),
            ));
        }
        if member.model().structure.classes != k {
            return Err(Error::shape(
                "classes of a model",
                k,
                member.model().structure.classes,
            ));
        }
    }
    let mut low = vec![0.0; n * k]; // the least that sums of scores can be
    let mut high = low.clone(); // and the most
    for member in &mut *members {
        member.add_bounds(rows.as_slice(), shifts, &mut low, &mut high)?;
    }
    let low = Matrix::new(low, k);
    let mut answers = low.argmax();
    let open = |&b: &usize| !is_decided(low.row(b), &high[b * k..(b + 1) * k], answers[b]);
    let open: Vec<usize> = (0..n).filter(open).collect();
    let rest = open.iter().flat_map(|&b| rows.row(b)).copied();
    let rest: Vec<f32> = rest.collect();
    let mut exact = vec![0.0; open.len() * k];
    for member in members {
        let scores = member.log_joint(Rows::new(&rest, width)?, shifts)?;
        let numbers = exact.iter_mut().zip(scores.as_slice());
        numbers.for_each(|(sum, score)| *sum += score);
    }
    open.into_iter()
        .zip(Matrix::new(exact, k).argmax())
        .for_each(|(b, answer)| answers[b] = answer);
    Ok(answers)
}

impl Predictor {
    /// The class with the largest [`Predictor::log_joint`] over these shifts, the first where several are, as (n). See
    /// [`predict_together`].
    pub fn predict_shifted(
        &mut self,
        rows: Rows<'_>,
        shifts: &[(isize, isize)],
    ) -> Result<Vec<usize>> {
        predict_together(std::slice::from_mut(self), rows, shifts)
    }
}

/// Whether no class but the answer can have the largest score: where underflow took something, by more than rounding.
fn is_decided(low: &[f64], high: &[f64], answer: usize) -> bool {
    const ROUNDING: f64 = 1e-3;
    let others = (0..low.len()).filter(|&y| y != answer);
    low == high
        || others
            .map(|y| high[y])
            .all(|high| high + ROUNDING < low[answer])
}
