//! Likelihoods, joint scores and posteriors of rows, with bounds that spare rechecks.

use crate::arithmetic::math::{argmax, log_sum_exp};
use crate::circuit::log_space::{Join, LogValues};
use crate::error::{Error, Result};
use crate::matrix::{Matrix, Rows};
use crate::model::Scaling;
use crate::queries::predictor::{Predictor, TOLERANCE};
use crate::structure::OUTSIDE;
use rayon::prelude::*;

/// Turns rows of log P(x,y) (n, K), as [`Predictor::log_joint`] gives them, into P(y|x). A row that no class can have
/// made gets the prior.
pub(crate) fn softmax_rows(log_joint: &mut [f64], log_prior: &[f64]) {
    for row in log_joint.chunks_exact_mut(log_prior.len()) {
        if row.iter().all(|&log| log == f64::NEG_INFINITY) {
            row.copy_from_slice(log_prior);
        }
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|log| *log = (*log - top).exp());
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= total);
    }
}

/// Buffers of one thread that computes in log space.
#[derive(Default)]
pub(crate) struct LogScratch {
    pub values: LogValues,
    pub tops: Vec<f64>,
}

/// Whether all of a row is missing.
pub(crate) fn is_unseen(row: &[f32]) -> bool {
    row.iter().all(|x| x.is_nan())
}

/// What is given must be in the rows too.
fn check_given(rows: Rows<'_>, given: Rows<'_>) -> Result<()> {
    let (all, part) = (rows.as_slice(), given.as_slice());
    if all.len() != part.len() {
        let expected = format!("{} numbers as in the rows", all.len());
        return Err(Error::shape("what is given", expected, part.len()));
    }
    match (0..all.len()).find(|&i| !part[i].is_nan() && part[i] != all[i]) {
        Some(place) => {
            let (row, column) = (place / rows.width(), place % rows.width());
            let what = format!("what is given, row index {row}, column index {column}");
            let expected = format!("{} as in the rows, or NaN", all[place]);
            Err(Error::shape(what, expected, part[place]))
        }
        None => Ok(()),
    }
}

impl Predictor {
    /// log P(x_o|y) of n rows, as (n, K).
    pub fn log_likelihood(&mut self, rows: Rows<'_>) -> Result<Matrix<f64>> {
        self.check_rows(rows)?;
        let scores = self.scores(rows.as_slice(), (0, 0))?;
        Ok(Matrix::new(scores, self.model.structure.classes))
    }

    /// log P(x_o) of n rows, as (n).
    pub fn log_marginal(&mut self, rows: Rows<'_>) -> Result<Vec<f64>> {
        Ok(self.score(rows)?.log_marginal)
    }

    /// P(y|x_o) of n rows, as (n, K): the posterior of [`Predictor::score`].
    pub fn posterior(&mut self, rows: Rows<'_>) -> Result<Matrix<f64>> {
        Ok(self.score(rows)?.posterior)
    }

    /// Gives rows with everything missing the prior itself, in posteriors (n, K).
    pub(crate) fn keep_priors(&self, rows: Rows<'_>, posteriors: &mut [f64]) {
        let k = self.model.structure.classes;
        for (to, row) in posteriors.chunks_exact_mut(k).zip(rows.iter()) {
            if is_unseen(row) {
                to.iter_mut()
                    .zip(&self.model.log_prior)
                    .for_each(|(to, log)| *to = log.exp());
            }
        }
    }

    /// The most probable class of each row, the first where several are, as (n).
    pub fn predict(&mut self, rows: Rows<'_>) -> Result<Vec<usize>> {
        Ok(self.posterior(rows)?.argmax())
    }

    /// `log P(y) + Σ_shifts log P(x_o shifted|y)`, as (n, K): the paper's score at test time. What a shift moves out of
    /// the frame is missing. With the one shift (0, 0) it is log P(x_o, y).
    pub fn log_joint(&mut self, rows: Rows<'_>, shifts: &[(isize, isize)]) -> Result<Matrix<f64>> {
        let n = self.check_rows(rows)?;
        if shifts.is_empty() {
            return Err(Error::Empty { what: "shift" });
        }
        let mut sums = self.model.log_prior.repeat(n);
        for &shift in shifts {
            let scores = self.scores(rows.as_slice(), shift)?;
            sums.iter_mut()
                .zip(scores)
                .for_each(|(sum, score)| *sum += score);
        }
        Ok(Matrix::new(sums, self.model.structure.classes))
    }

    /// Adds the log P(y) of n rows and their scores of all shifts to sums (n, K): to one the least that they can be, to
    /// the other the most.
    pub(crate) fn add_bounds(
        &mut self,
        rows: &[f32],
        shifts: &[(isize, isize)],
        low: &mut [f64],
        high: &mut [f64],
    ) -> Result<()> {
        let k = self.model.structure.classes;
        for sums in [&mut *low, &mut *high] {
            sums.iter_mut()
                .zip(self.model.log_prior.iter().cycle())
                .for_each(|(sum, log)| *sum += log);
        }
        for &shift in shifts {
            self.score_pieces(rows, shift, |this, piece| {
                let places = piece.start * k..piece.end * k;
                this.add_bounds_of_pass(&mut low[places.clone()], &mut high[places]);
            })?;
        }
        Ok(())
    }

    /// The same for the rows of the last pass.
    fn add_bounds_of_pass(&self, low: &mut [f64], high: &mut [f64]) {
        let scores = self.activations.log_likelihood();
        let least = low.iter_mut().zip(scores);
        least.for_each(|(sum, score)| *sum += score);
        let k = self.model.structure.classes;
        let most = high.par_chunks_exact_mut(k).enumerate();
        most.for_each(|(b, sums)| self.add_most(b, sums));
    }

    /// Adds the most that each score of row b of the last pass can be, had underflow not taken anything.
    fn add_most(&self, b: usize, sums: &mut [f64]) {
        let k = sums.len();
        let scores = &self.activations.log_likelihood()[b * k..(b + 1) * k];
        let (psi, lost) = self.activations.class_mantissas(k, b);
        let best = argmax(psi);
        let log_scale = scores[best] - f64::from(psi[best]).ln(); // NaN where nothing is known: never decided
        let doubts = self.activations.class_underflow_bounds(k, b);
        for y in 0..k {
            let certain = doubts[y] <= TOLERANCE as f32;
            sums[y] += if certain {
                scores[y]
            } else {
                (f64::from(psi[y]) + f64::from(lost)).ln() + log_scale
            };
        }
    }

    /// log P(x_q|x_o), as (n): `rows` holds x_q and x_o, `given` holds x_o alone.
    pub fn log_conditional(&mut self, rows: Rows<'_>, given: Rows<'_>) -> Result<Vec<f64>> {
        check_given(rows, given)?;
        let mut logs = self.log_marginal(rows)?;
        let conditions = self.log_marginal(given)?;
        let divide = |(log, condition): (&mut f64, f64)| *log -= condition.max(f64::MIN);
        logs.iter_mut().zip(conditions).for_each(divide);
        Ok(logs)
    }

    /// log P(x_o|y) of checked rows, in the units of the data, as (n, K).
    fn scores(&mut self, rows: &[f32], shift: (isize, isize)) -> Result<Vec<f64>> {
        let (width, k) = (self.model.structure.width(), self.model.structure.classes);
        let mut all = Vec::with_capacity(rows.len() / width * k);
        self.score_pieces(rows, shift, |this, _| {
            let recheck = this.activations.scores_to_recheck(k);
            this.add_scores(&recheck, &mut all);
        })?;
        self.add_units(rows, shift, &mut all);
        Ok(all)
    }

    /// Appends log P(x_o|y) of the rows of the last pass, (B, K), in the units of the model.
    pub(crate) fn add_scores(&mut self, recheck: &[usize], all: &mut Vec<f64>) {
        let (first, k) = (all.len(), self.model.structure.classes);
        all.extend_from_slice(self.activations.log_likelihood());
        self.recomputed += recheck.len();
        let Self { model, batch, .. } = self;
        let exact = self
            .fallback
            .scores(&model.structure, &model.weights, batch, recheck);
        for (&b, exact) in recheck.iter().zip(exact) {
            all[first + b * k..][..k].copy_from_slice(&exact);
        }
    }

    /// Adds the logarithm of the scale of every observed number, and of the slope of w, which turns
    /// densities of the model into those of data.
    pub(crate) fn add_units(&self, rows: &[f32], shift: (isize, isize), scores: &mut [f64]) {
        let scaling = &self.model.scaling;
        let width = self.model.structure.width();
        let bent: Vec<usize> = (0..width)
            .filter(|&column| scaling.is_bent(column))
            .collect();
        if self.columns.log_scale.iter().all(|&log| log == 0.0) && bent.is_empty() {
            return;
        }
        let places = self.model.structure.placement(shift);
        let scales = places
            .iter()
            .zip(&self.columns.log_scale)
            .map(|(&p, &log)| if p == OUTSIDE { 0.0 } else { log });
        let scales: Vec<f64> = scales.collect();
        let by_row = scores
            .par_chunks_mut(self.model.structure.classes)
            .zip(rows.par_chunks(scales.len()));
        by_row.for_each(|(scores, row)| {
            let units = log_units(row, &scales, &bent, scaling);
            scores.iter_mut().for_each(|score| *score += units);
        });
    }

    /// P(y|x_o) of the rows of the last pass, (B, K), from mantissas, not from log-likelihoods: beside an outlier's
    /// −10²⁰ those have lost what tells the classes apart.
    pub(crate) fn posteriors(&self) -> Vec<f64> {
        let k = self.model.structure.classes;
        let prior: Vec<f64> = self.model.log_prior.iter().map(|log| log.exp()).collect();
        let mut all = vec![0.0; self.batch.rows * k];
        all.par_chunks_mut(k)
            .enumerate()
            .for_each_init(LogScratch::default, |scratch, (b, to)| {
                self.posterior_of(b, &prior, scratch, to)
            });
        all
    }

    /// P(y|x_o) of row b of the last pass, (K); `prior` is P(y).
    fn posterior_of(&self, b: usize, prior: &[f64], scratch: &mut LogScratch, to: &mut [f64]) {
        let (psi, lost) = self.activations.class_mantissas(to.len(), b);
        to.iter_mut()
            .zip(psi)
            .zip(prior)
            .for_each(|((to, &psi), prior)| *to = f64::from(psi) * prior);
        let total: f64 = to.iter().sum();
        if f64::from(lost) <= TOLERANCE * total {
            to.iter_mut().for_each(|p| *p /= total);
        } else {
            self.posterior_in_logs(b, to, scratch);
        }
    }

    /// P(y|x_o) of row b of the last pass, (K), in log space, from what the classes have beyond the row's scale: exact
    /// however unlikely the row is.
    pub(crate) fn posterior_in_logs(&self, b: usize, to: &mut [f64], scratch: &mut LogScratch) {
        let LogScratch { values, tops } = scratch;
        let s = &self.model.structure;
        self.logs().forward(s, self.batch.row(b), Join::Sum, values);
        for (y, to) in to.iter_mut().enumerate() {
            self.logs().root(s, values, y, tops);
            *to = log_sum_exp(tops) + self.model.log_prior[y];
        }
        softmax_rows(to, &self.model.log_prior);
    }
}

/// The logarithm of the scale of every observed number of a row, and of the slope of w where the column is bent.
fn log_units(row: &[f32], scales: &[f64], bent: &[usize], scaling: &Scaling) -> f64 {
    let seen = row.iter().zip(scales).filter(|(x, _)| !x.is_nan());
    let scale: f64 = seen.map(|(_, log)| log).sum();
    let seen = bent.iter().filter(|&&column| !row[column].is_nan());
    let slope = |&column: &usize| scaling.log_slope(column, row[column]);
    scale + seen.map(slope).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::predictor::tests::far_apart;

    #[test]
    fn rows_that_are_computed_again_are_counted() {
        let mut predictor = far_apart();
        let rows = [0.0, 0.0, 20.0, 20.0, 40.0, 40.0, 0.0, 0.1];
        let scores = predictor
            .log_likelihood(Rows::new(&rows, 2).unwrap())
            .unwrap();
        assert_eq!(predictor.recomputed(), 3);
        let exact = -1600.0 - std::f64::consts::TAU.ln();
        assert!((scores[(0, 1)] - exact).abs() < 1e-6, "{}", scores[(0, 1)]);
        predictor
            .log_likelihood(Rows::new(&rows, 2).unwrap())
            .unwrap();
        assert_eq!(predictor.recomputed(), 6);
    }

    /// A class that underflow took is between nothing and what may have been lost; one that it left is exact.
    #[test]
    fn bounds_hold_the_scores() {
        let mut predictor = far_apart();
        let rows = [0.0, 0.0, 20.0, 20.0];
        let exact = predictor
            .log_joint(Rows::new(&rows, 2).unwrap(), &[(0, 0)])
            .unwrap();
        let (mut low, mut high) = (vec![0.0; 4], vec![0.0; 4]);
        predictor
            .add_bounds(&rows, &[(0, 0)], &mut low, &mut high)
            .unwrap();
        for (i, exact) in exact.as_slice().iter().enumerate() {
            let (low, high) = (low[i], high[i]);
            assert!(
                low <= exact + 1e-5 && *exact <= high + 1e-5,
                "{low} {exact} {high}"
            );
            assert_eq!(low == high, i != 1, "{i}: {low} {high}");
        }
        assert!(high[1].is_finite() && high[1] < high[0] - 60.0);
    }

    #[test]
    fn a_conditional_is_a_quotient() {
        let mut predictor = far_apart();
        let rows = Rows::new(&[0.5, 1.0, 39.0, 41.0], 2).unwrap();
        let given = Rows::new(&[0.5, f32::NAN, f32::NAN, 41.0], 2).unwrap();
        for ours in predictor.log_conditional(rows, given).unwrap() {
            let exact = -0.5 - 0.5 * std::f64::consts::TAU.ln(); // one deviation; the class is certain
            assert!((ours - exact).abs() < 1e-4, "{ours} {exact}");
        }
        let wrong = Rows::new(&[0.5, f32::NAN, f32::NAN, 40.0], 2).unwrap();
        let error = predictor
            .log_conditional(rows, wrong)
            .unwrap_err()
            .to_string();
        assert!(error.contains("row index 1, column index 1"), "{error}");
    }
}
