//! How much of the probability clusters with factors get beside the trees: as much as says most of rows that are held out
//! (stacking: Wolpert 1992). Side by side with equal shares, the trees would keep every interval as wide as they make it.
//!
//! ```text
//! density       Σ_n log Σ_k s_k p_k(x_n)                                        s_k: the share of part k
//! regression    Σ_n log (Σ_k s_k p_k(x_n, y_n) / Σ_k s_k p_k(x_n))
//! ```

use crate::arithmetic::math::log_sum_exp;
use crate::error::Result;
use crate::matrix::Rows;
use crate::model::{Model, Scaling};
use crate::queries::Predictor;
use crate::training::data::Data;
use serde::{Deserialize, Serialize};

/// Shares that are tried, beside an equal one; what is left is for rows that are unlike all others.
pub(crate) const SHARES: [f64; 8] = [0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.997, 0.999];

/// What a model says of rows that are held out; f32, so that a checkpoint holds the same numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowLogs {
    /// log p of all that is observed, (n).
    pub joint: Vec<f32>,
    /// The same without the number that is to be predicted, (n); empty where there is none.
    pub given: Vec<f32>,
}

impl RowLogs {
    /// Those of a model of one class, for rows to which the curves and bounds of columns were applied.
    pub fn new(model: Model, rows: &Data<'_>, target: Option<usize>) -> Result<Self> {
        let width = rows.rows()?.width();
        let scaling = Scaling {
            ranges: Vec::new(),
            curves: Vec::new(),
            ..model.scaling.clone()
        };
        let mut predictor = Predictor::new(Model { scaling, ..model })?;
        let mut logs = |values: &[f32]| -> Result<Vec<f32>> {
            let found = predictor.log_marginal(Rows::new(values, width)?)?;
            Ok(found.into_iter().map(|log| log.max(-1e30) as f32).collect())
        };
        let joint = logs(&rows.values)?;
        let Some(target) = target else {
            let given = Vec::new();
            return Ok(Self { joint, given });
        };
        let mut without = rows.values.to_vec();
        let of_target = without.iter_mut().skip(target).step_by(width);
        of_target.for_each(|number| *number = f32::NAN);
        let given = logs(&without)?;
        Ok(Self { joint, given })
    }

    /// Whether they are of so many rows, with or without a number to be predicted.
    pub fn are_of(&self, rows: usize, target: Option<usize>) -> bool {
        let given = target.map_or(0, |_| rows);
        (self.joint.len(), self.given.len()) == (rows, given)
    }
}

/// The share of the last part that says most of the rows, whose weights are all 1 where they are empty; nothing where no
/// share is better than an equal one. The other parts have equal shares of what is left.
pub(crate) fn best_share(others: &[RowLogs], last: &RowLogs, weights: &[f32]) -> Option<f64> {
    let equal = 1.0 / (1.0 + others.len() as f64);
    let mut best = (total_log(others, last, weights, equal), None);
    for share in SHARES.into_iter().filter(|share| *share > equal) {
        let score = total_log(others, last, weights, share);
        if score > best.0 {
            best = (score, Some(share));
        }
    }
    best.1
}

/// The weighted sum over rows of what all parts together say.
fn total_log(others: &[RowLogs], last: &RowLogs, weights: &[f32], share: f64) -> f64 {
    let rest = ((1.0 - share) / others.len() as f64).ln();
    let mixed = |of: fn(&RowLogs) -> &Vec<f32>, row: usize| {
        let parts = others.iter().map(|part| rest + f64::from(of(part)[row]));
        let own = share.ln() + f64::from(of(last)[row]);
        log_sum_exp(&parts.chain([own]).collect::<Vec<f64>>())
    };
    let mut sum = 0.0;
    for row in 0..last.joint.len() {
        let weight = weights.get(row).map_or(1.0, |&weight| f64::from(weight));
        sum += weight * mixed(|logs| &logs.joint, row);
        if !last.given.is_empty() {
            sum -= weight * mixed(|logs| &logs.given, row);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    fn logs(joint: [f32; 3]) -> RowLogs {
        RowLogs {
            joint: joint.to_vec(),
            given: Vec::new(),
        }
    }

    #[test]
    fn what_is_better_for_every_row_gets_all_there_is() {
        let (broad, sharp) = (logs([-3.0; 3]), logs([-1.0; 3]));
        assert_eq!(best_share(from_ref(&broad), &sharp, &[]), Some(0.999));
        assert_eq!(best_share(from_ref(&sharp), &broad, &[]), None);
        assert_eq!(
            best_share(&[broad.clone(), broad.clone()], &sharp, &[]),
            Some(0.999)
        );
    }

    #[test]
    fn rows_that_only_the_others_know_keep_a_share() {
        let (broad, sharp) = (logs([-3.0; 3]), logs([-1.0, -1.0, -40.0]));
        // d/ds of 2 log(s e⁻¹ + (1 − s) e⁻³) + log(1 − s) is zero near s = 0.62.
        assert_eq!(best_share(from_ref(&broad), &sharp, &[]), Some(0.7));
        assert_eq!(
            best_share(from_ref(&broad), &sharp, &[1.0, 1.0, 0.0]),
            Some(0.999)
        );
    }

    /// Twice the same part says what it says once.
    #[test]
    fn others_share_what_is_left() {
        let (broad, sharp) = (logs([-3.0; 3]), logs([-1.0, -5.0, -40.0]));
        let once = total_log(from_ref(&broad), &sharp, &[], 0.7);
        let twice = total_log(&[broad.clone(), broad], &sharp, &[], 0.7);
        assert!((once - twice).abs() < 1e-9, "{once} {twice}");
    }

    #[test]
    fn those_of_other_rows_are_told_apart() {
        let density = logs([-1.0; 3]);
        assert!(density.are_of(3, None));
        assert!(!density.are_of(4, None) && !density.are_of(3, Some(0)));
        let of_target = RowLogs {
            given: vec![-1.0; 3],
            ..density
        };
        assert!(of_target.are_of(3, Some(0)) && !of_target.are_of(3, None));
    }

    #[test]
    fn a_prediction_is_a_quotient() {
        let of = |joint: f32, given: f32| RowLogs {
            joint: vec![joint],
            given: vec![given],
        };
        // The last says less of the row, and more of its number.
        assert_eq!(
            best_share(&[of(-3.0, -1.0)], &of(-5.0, -4.9), &[]),
            Some(0.999)
        );
    }

    /// Each row counts as often as its weight says, less what is given.
    #[test]
    fn rows_count_by_their_weights() {
        let part = |of: f32| RowLogs {
            joint: [-2.0, -3.0, -5.0].map(|log| log * of).to_vec(),
            given: [-1.0, -1.5, -0.5].map(|log| log * of).to_vec(),
        };
        let (other, last) = (part(1.0), part(2.0));
        let mixed = |a: f64, b: f64| (0.3 * a.exp() + 0.7 * b.exp()).ln();
        let of_row = |joint: f64, given: f64| mixed(joint, 2.0 * joint) - mixed(given, 2.0 * given);
        let exact = 0.5 * of_row(-2.0, -1.0) + 3.0 * of_row(-5.0, -0.5);
        let ours = total_log(from_ref(&other), &last, &[0.5, 0.0, 3.0], 0.7);
        assert!((ours - exact).abs() < 1e-9, "{ours} {exact}");
    }
}
