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
use crate::error::Result;
use crate::matrix::{Matrix, Rows};
use crate::queries::likelihoods::{LogScratch, is_unseen, softmax_rows};
use crate::queries::predictor::{Predictor, TOLERANCE};
use rayon::prelude::*;

/// Probabilities below this need not be right.
const NEGLIGIBLE: f64 = 1e-30;

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
    /// P(y|x_o) and log P(x_o) of n rows. A probability is right to about 10⁻⁶ of itself if it is at least 10⁻³⁰; one
    /// that is less may be given as less still, down to 0. A row with everything missing gets the prior itself, and 0.
    ///
    /// Where nothing that counts underflows, the posterior comes from the mantissas of the classes. Elsewhere it comes
    /// from their scores in f64; and where the row is so far away that scores have lost what tells the classes apart,
    /// from what classes have beyond the row's scale.
    pub fn score(&mut self, rows: Rows<'_>) -> Result<Scores> {
        let n = self.check_rows(rows)?;
        let k = self.model().structure.classes;
        let (mut posterior, mut logs) = (Vec::with_capacity(n * k), Vec::with_capacity(n * k));
        self.score_pieces(rows.as_slice(), (0, 0), |this, piece| {
            let recheck = this.answers_to_recheck();
            this.add_scores(&recheck, &mut logs);
            this.add_posteriors(&recheck, &logs[piece.start * k..], &mut posterior);
        })?;
        self.keep_priors(rows, &mut posterior);
        self.add_units(rows.as_slice(), (0, 0), &mut logs);
        let prior = &self.model().log_prior;
        let log_marginal = |scores: &mut [f64]| {
            let both = scores.iter_mut().zip(prior);
            both.for_each(|(score, log)| *score += log);
            log_sum_exp(scores)
        };
        let mut log_marginal: Vec<f64> = logs.par_chunks_exact_mut(k).map(log_marginal).collect();
        for (log, _) in log_marginal
            .iter_mut()
            .zip(rows.iter())
            .filter(|(_, row)| is_unseen(row))
        {
            *log = 0.0; // not what rounding made of it
        }
        Ok(Scores {
            posterior: Matrix::new(posterior, k),
            log_marginal,
        })
    }

    /// Rows of the last pass whose P(x_o), or some P(y|x_o) that is not negligible, underflow may have changed.
    fn answers_to_recheck(&self) -> Vec<usize> {
        let prior: Vec<f64> = self.model().log_prior.iter().map(|log| log.exp()).collect();
        (0..self.batch.rows)
            .filter(|&b| !self.is_right(b, &prior))
            .collect()
    }

    /// Whether underflow can have changed nothing that counts in row b of the last pass; `prior` is P(y).
    fn is_right(&self, b: usize, prior: &[f64]) -> bool {
        let k = prior.len();
        let bounds = self.activations.class_underflow_bounds(k, b);
        are_right(self.activations.class_mantissas(k, b), bounds, prior)
    }

    /// The same, with the posterior that follows from the sum of the scores over all shifts, as
    /// [`Predictor::log_joint`] has it. Scores that underflow may have spoilt are computed again only where they count.
    pub fn score_shifted(&mut self, rows: Rows<'_>, shifts: &[(isize, isize)]) -> Result<Scores> {
        let scores = self.score(rows)?;
        if shifts == [(0, 0)] {
            return Ok(scores);
        }
        let (k, n) = (self.model().structure.classes, rows.len());
        let (mut low, mut high) = (vec![0.0; n * k], vec![0.0; n * k]);
        self.add_bounds(rows.as_slice(), shifts, &mut low, &mut high)?;
        let places = |b: usize| b * k..(b + 1) * k;
        let is_open = |&b: &usize| !is_known(&low[places(b)], &high[places(b)]);
        let open: Vec<usize> = (0..n).filter(is_open).collect();
        let rest: Vec<f32> = open.iter().flat_map(|&b| rows.row(b)).copied().collect();
        let exact = self.log_joint(Rows::new(&rest, rows.width())?, shifts)?;
        for (&b, exact) in open.iter().zip(exact.iter()) {
            low[places(b)].copy_from_slice(exact);
        }
        softmax_rows(&mut low, &self.model().log_prior);
        Ok(Scores {
            posterior: Matrix::new(low, k),
            ..scores
        })
    }

    /// Appends the posteriors of the rows of the last pass, whose log P(x_o|y) are `logs` (B, K).
    fn add_posteriors(&self, recheck: &[usize], logs: &[f64], all: &mut Vec<f64>) {
        let (k, first) = (self.model().structure.classes, all.len());
        all.resize(first + logs.len(), 0.0);
        all[first..]
            .par_chunks_mut(k)
            .zip(logs.par_chunks(k))
            .enumerate()
            .for_each_init(LogScratch::default, |scratch, (b, (to, scores))| {
                let is_right = recheck.binary_search(&b).is_err();
                self.scored_posterior(b, scores, is_right, scratch, to)
            });
    }

    /// The posterior of row b of the last pass, whose log P(x_o|y) are `scores` (K). `is_right` says that its mantissas
    /// are exact.
    fn scored_posterior(
        &self,
        b: usize,
        scores: &[f64],
        is_right: bool,
        scratch: &mut LogScratch,
        to: &mut [f64],
    ) {
        let (k, log_prior) = (scores.len(), &self.model().log_prior);
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if largest.is_finite() && largest.abs() > Scores::FARTHEST {
            return self.posterior_in_logs(b, to, scratch);
        }
        let (psi, _) = self.activations.class_mantissas(k, b);
        (0..k).for_each(|y| to[y] = f64::from(psi[y]) * log_prior[y].exp());
        let total: f64 = to.iter().sum();
        if is_right && total > 0.0 {
            return to.iter_mut().for_each(|p| *p /= total);
        }
        (0..k).for_each(|y| to[y] = log_prior[y] + scores[y]);
        softmax_rows(to, log_prior);
    }
}

/// Whether the mantissas of classes (K) are as good as exact, where underflow may have taken `lost` from each: a class is
/// right to within its bound, or too unlikely to count.
fn are_right((psi, lost): (&[f32], f32), bounds: &[f32], prior: &[f64]) -> bool {
    let lost = f64::from(lost);
    let parts = psi.iter().zip(prior);
    let total: f64 = parts.map(|(&psi, p)| f64::from(psi) * p).sum();
    let is_class_right = |y: usize| {
        let most = (f64::from(psi[y]) + lost) * prior[y];
        f64::from(bounds[y]) <= TOLERANCE || most <= NEGLIGIBLE * total
    };
    lost <= TOLERANCE * total && (0..psi.len()).all(is_class_right) // not if NaN
}

/// Whether the posterior that follows from sums of scores is known, where `low` are the least that they can be and
/// `high` the most: every class is as exact as its scores, or too far below the others to count.
fn is_known(low: &[f64], high: &[f64]) -> bool {
    let total = log_sum_exp(low);
    let mut both = low.iter().zip(high);
    both.all(|(low, high)| low == high || high - total <= NEGLIGIBLE.ln()) // not if NaN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::queries::predictor::tests::classes_far_apart;
    use crate::structure::{Sharing, Structure};

    #[test]
    fn far_is_beyond_the_farthest() {
        let scores = |log| Scores {
            posterior: Matrix::new(vec![1.0], 1),
            log_marginal: vec![log],
        };
        assert!(!scores(-Scores::FARTHEST).is_far(0) && !scores(Scores::FARTHEST).is_far(0));
        assert!(scores(-1.1e12).is_far(0) && scores(1.1e12).is_far(0));
    }

    #[test]
    fn mantissas_are_right_where_little_that_counts_is_lost() {
        let right =
            |psi: [f32; 2], lost, bound| are_right((&psi, lost), &[0.0, bound], &[0.5, 0.5]);
        assert!(right([1.0, 0.5], 0.0, 1e-7) && !right([1.0, 0.5], 0.0, 1e-5));
        assert!(right([1.0, 0.5], 7e-7, 1e-7) && !right([1.0, 0.5], 8e-7, 1e-7)); // of a total of 0.75
        // A class that is next to nothing, also with what it may have lost, need not be right.
        assert!(right([1.0, 4e-31], 5e-31, 1.0) && !right([1.0, 6e-31], 5e-31, 1.0));
        assert!(right([1.0, 0.0], 9e-31, 1.0) && !right([1.0, 0.0], 1.1e-30, 1.0));
        assert!(are_right((&[1.0, 1e-20], 0.0), &[0.0, 1.0], &[1.0, 1e-11])); // by the prior
        assert!(!are_right((&[1.0, 1e-20], 0.0), &[0.0, 1.0], &[1.0, 1e-9]));
        assert!(!right([f32::NAN, 1.0], 0.0, 0.0) && !right([1.0, 0.5], 0.0, f32::NAN));
    }

    #[test]
    fn posteriors_are_known_where_sums_are_exact_or_next_to_nothing() {
        let low = [-10.0, -11.0, -100.0];
        assert!(is_known(&low, &low));
        assert!(!is_known(&low, &[-10.0, -10.9, -100.0]));
        // log Σ is −9.687, and 10⁻³⁰ is 69.078 below.
        assert!(is_known(&low, &[-10.0, -11.0, -78.8]) && !is_known(&low, &[-10.0, -11.0, -78.7]));
        assert!(!is_known(&low, &[-10.0, f64::NAN, -100.0]));
    }

    /// Two classes, each of which a shift makes all but impossible: their sums of scores tell them apart nonetheless.
    #[test]
    fn classes_that_underflow_in_turn_are_told_apart() {
        let sequence = Structure::sequence(2).components(2).classes(2);
        let structure = sequence.level(2, 2, Sharing::Own).build().unwrap();
        let mut predictor = classes_far_apart(structure);
        let rows = [0.01, 40.0, 0.0, 0.0];
        let shifts = [(0, -1), (0, 0), (0, 1)];
        let scores = predictor
            .score_shifted(Rows::new(&rows, 2).unwrap(), &shifts)
            .unwrap();
        // Every number is seen twice: log odds of class 1 are 2 (½ 40² + ½ 0.01² − ½ 39.99²).
        let exact = 1.0 / (1.0 + (-(1600.0f64 + 0.0001 - 39.99 * 39.99)).exp());
        let ours = scores.posterior[(0, 1)];
        assert!((ours - exact).abs() < 1e-4, "{ours} {exact}");
        assert_eq!(scores.posterior.row(1), [1.0, 0.0]);
    }

    /// Rows of several pieces are scored as they are alone, also over shifts.
    #[test]
    fn pieces_of_rows_are_put_together() {
        let sequence = Structure::sequence(2).components(2).classes(2);
        let structure = sequence.level(2, 2, Sharing::Own).build().unwrap();
        let mut predictor = Predictor::new(Model::random(structure, 1.0, 3)).unwrap();
        let count = 2 * predictor.piece() + 5;
        let rows: Vec<f32> = (0..2 * count).map(|i| (i as f32).sin()).collect();
        let shifts = [(0, 0), (0, 1)];
        let both = |predictor: &mut Predictor, rows: &[f32]| {
            let rows = Rows::new(rows, 2).unwrap();
            let scores = predictor.score(rows).unwrap();
            (scores, predictor.score_shifted(rows, &shifts).unwrap())
        };
        let (scores, shifted) = both(&mut predictor, &rows);
        assert_eq!(
            (scores.posterior.rows(), shifted.posterior.rows()),
            (count, count)
        );
        for row in (0..count).step_by(37).chain([count - 1]) {
            let alone = both(&mut predictor, &rows[2 * row..2 * row + 2]);
            assert_eq!(alone.0.posterior.row(0), scores.posterior.row(row));
            assert_eq!(alone.0.log_marginal[0], scores.log_marginal[row]);
            assert_eq!(alone.1.posterior.row(0), shifted.posterior.row(row));
        }
    }
}
