//! Several models as one: the average of their posteriors, or the sum of their scores.

use crate::error::{Error, Result};
use crate::queries::predictor::{Predictor, argmax_rows};
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
    pub fn posterior(&mut self, rows: &[f32]) -> Result<Vec<f64>> {
        let mut sums: Vec<f64> = Vec::new();
        for member in &mut self.members {
            let posterior = member.posterior(rows)?;
            sums.resize(posterior.len(), 0.0);
            sums.iter_mut()
                .zip(posterior)
                .for_each(|(sum, p)| *sum += p);
        }
        let count = self.members.len() as f64;
        sums.iter_mut().for_each(|sum| *sum /= count);
        Ok(sums)
    }

    /// The class with the largest average, the first where several are, as (n).
    pub fn predict(&mut self, rows: &[f32]) -> Result<Vec<usize>> {
        let classes = self.members[0].model().structure.classes;
        Ok(argmax_rows(&self.posterior(rows)?, classes))
    }
}

/// The class with the largest sum of all members' [`Predictor::log_joint`] over these shifts, the first where several are,
/// as (n). Scores that underflow may have spoilt are computed again only where they could change the answer: classes that
/// lie so far apart are rarely near the best.
pub fn predict_together(
    members: &mut [Predictor],
    rows: &[f32],
    shifts: &[(isize, isize)],
) -> Result<Vec<usize>> {
    let Some(first) = members.first() else {
        return Err(Error::Empty { what: "model" });
    };
    let (k, width) = (
        first.model().structure.classes,
        first.model().structure.width(),
    );
    let n = first.model().check_rows(rows)?;
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
        member.add_bounds(rows, shifts, &mut low, &mut high)?;
    }
    let mut answers = argmax_rows(&low, k);
    let open = |&b: &usize| {
        !is_decided(
            &low[b * k..(b + 1) * k],
            &high[b * k..(b + 1) * k],
            answers[b],
        )
    };
    let open: Vec<usize> = (0..n).filter(open).collect();
    let rest: Vec<f32> = open
        .iter()
        .flat_map(|&b| &rows[b * width..(b + 1) * width])
        .copied()
        .collect();
    let mut exact = vec![0.0; open.len() * k];
    for member in members {
        let scores = member.log_joint(&rest, shifts)?;
        exact
            .iter_mut()
            .zip(scores)
            .for_each(|(sum, score)| *sum += score);
    }
    open.into_iter()
        .zip(argmax_rows(&exact, k))
        .for_each(|(b, answer)| answers[b] = answer);
    Ok(answers)
}

impl Predictor {
    /// The class with the largest [`Predictor::log_joint`] over these shifts, the first where several are, as (n). See
    /// [`predict_together`].
    pub fn predict_shifted(
        &mut self,
        rows: &[f32],
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
