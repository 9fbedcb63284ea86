//! The answer that most callers want: every row's posterior and how likely the row is, from one pass up.
//!
//! ```
//! use sumout::{Kind, Model, Predictor, Rows, Structure};
//! let structure = Structure::table(&[Kind::Gaussian; 2]).components(4).channels([8]).classes(3).build()?;
//! let mut predictor = Predictor::new(Model::random(structure, 1.0, 1))?;
//! let scores = predictor.score(Rows::new(&[0.5, -1.0, f32::NAN, 2.0], 2)?)?;
//! assert_eq!((scores.posterior.rows(), scores.posterior.columns()), (2, 3));
//! assert_eq!((scores.classes().len(), scores.log_marginal.len()), (2, 2));
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::arithmetic::math::log_sum_exp;
use crate::circuit::log_space::LogValues;
use crate::error::Result;
use crate::matrix::{Matrix, Rows};
use crate::queries::likelihoods::softmax_rows;
use crate::queries::predictor::{Pass, Predictor};
use rayon::prelude::*;

/// Posteriors and likelihoods of n rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// P(y|x_o), (n, K).
    pub posterior: Matrix<f64>,
    /// log P(x_o) in nats, a density in the units of the data, (n).
    pub log_marginal: Vec<f64>,
}

impl Scores {
    /// Beyond this log P(x_o), either way, a row has nothing to do with what was learned.
    pub const FARTHEST: f64 = 1e12;

    /// The most probable class of each row, the first where several are.
    pub fn classes(&self) -> Vec<usize> {
        self.posterior.argmax()
    }

    /// Whether a row is so far from all that was learned, more than a million standard deviations, that its posterior
    /// hangs on the last bits of the row's numbers. Do not rely on it.
    pub fn is_far(&self, row: usize) -> bool {
        self.log_marginal[row].abs() > Self::FARTHEST
    }
}

impl Predictor {
    /// P(y|x_o) and log P(x_o) of n rows. Small probabilities are as exact as large ones.
    ///
    /// Where nothing underflows, the posterior comes from the mantissas of the classes. Where classes are too far apart
    /// for those, it comes from their scores in f64; and where the row is so far away that scores have lost what tells
    /// the classes apart, from what classes have beyond the row's scale.
    pub fn score(&mut self, rows: Rows<'_>) -> Result<Scores> {
        let n = self.check_rows(rows)?;
        let (k, width) = (self.model().structure.classes, rows.width());
        let (mut posterior, mut logs) = (Vec::with_capacity(n * k), Vec::with_capacity(n * k));
        for piece in rows.as_slice().chunks(self.piece() * width) {
            self.load(piece, (0, 0));
            self.forward(Pass::Scores)?;
            let (recheck, first) = (self.activations.scores_to_recheck(k), logs.len());
            self.add_scores(&recheck, &mut logs);
            self.add_posteriors(&recheck, &logs[first..], &mut posterior);
        }
        self.keep_priors(rows, &mut posterior);
        self.add_units(rows.as_slice(), (0, 0), &mut logs);
        let prior = &self.model().log_prior;
        let log_marginal = |scores: &mut [f64]| {
            scores
                .iter_mut()
                .zip(prior)
                .for_each(|(score, log)| *score += log);
            log_sum_exp(scores)
        };
        let log_marginal = logs.chunks_exact_mut(k).map(log_marginal).collect();
        Ok(Scores {
            posterior: Matrix::new(posterior, k),
            log_marginal,
        })
    }

    /// The same, with the posterior that follows from the sum of the scores over all shifts, as
    /// [`Predictor::log_joint`] has it.
    pub fn score_shifted(&mut self, rows: Rows<'_>, shifts: &[(isize, isize)]) -> Result<Scores> {
        let scores = self.score(rows)?;
        if shifts == [(0, 0)] {
            return Ok(scores);
        }
        let mut posterior = self.log_joint(rows, shifts)?.into_vec();
        softmax_rows(&mut posterior, &self.model().log_prior);
        Ok(Scores {
            posterior: Matrix::new(posterior, self.model().structure.classes),
            ..scores
        })
    }

    /// Appends the posteriors of the rows of the last pass, whose log P(x_o|y) are `logs` (B, K).
    fn add_posteriors(&self, recheck: &[usize], logs: &[f64], all: &mut Vec<f64>) {
        let (k, log_prior) = (self.model().structure.classes, &self.model().log_prior);
        let prior: Vec<f64> = log_prior.iter().map(|log| log.exp()).collect();
        let first = all.len();
        all.resize(first + logs.len(), 0.0);
        let row = |(values, tops): &mut (LogValues, Vec<f64>), (b, to): (usize, &mut [f64])| {
            let scores = &logs[b * k..(b + 1) * k];
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if largest.is_finite() && largest.abs() > Scores::FARTHEST {
                return self.posterior_in_logs(b, to, (values, tops));
            }
            let (psi, _) = self.activations.class_mantissas(k, b);
            (0..k).for_each(|y| to[y] = f64::from(psi[y]) * prior[y]);
            let total: f64 = to.iter().sum();
            if recheck.binary_search(&b).is_err() && total > 0.0 {
                return to.iter_mut().for_each(|p| *p /= total);
            }
            (0..k).for_each(|y| to[y] = log_prior[y] + scores[y]);
            softmax_rows(to, log_prior);
        };
        all[first..]
            .par_chunks_mut(k)
            .enumerate()
            .for_each_init(Default::default, row);
    }
}
