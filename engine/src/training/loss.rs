//! The objective (paper, section 3): `−log P(y|X) − β log P(X)`, averaged over a batch, and its output gradients.
//!
//! ```text
//! log P(X)   = log Σ_y P(y) P(X|y)
//! log P(y|X) = log P(y) + log P(X|y) − log P(X)
//! ∂/∂ log P(X|k) = P(k|X) − [k = y] − β P(k|X)          labelled
//!                = −β P(k|X)                            label missing: the row teaches P(X) only
//! ```

use crate::arithmetic::math::log_sum_exp;

/// What a batch cost, summed over its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Σ −log P(y|X) over labelled rows.
    pub discriminative: f64,
    /// Σ −log P(X) over all rows.
    pub generative: f64,
    /// Labelled rows whose most probable class is their label.
    pub correct: usize,
    /// Labelled rows.
    pub labelled: usize,
    /// Rows.
    pub rows: usize,
    /// Sum of the rows' weights.
    pub weight: f64,
}

impl Loss {
    /// The objective per row.
    pub fn objective(&self, beta: f64) -> f64 {
        (self.discriminative + beta * self.generative) / self.weight.max(f64::MIN_POSITIVE)
    }

    /// Share of labelled rows that were right.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.labelled.max(1) as f64
    }

    /// Adds another batch.
    pub fn add(&mut self, other: &Self) {
        self.discriminative += other.discriminative;
        self.generative += other.generative;
        self.correct += other.correct;
        self.labelled += other.labelled;
        self.rows += other.rows;
        self.weight += other.weight;
    }
}

/// What is optimised: the objective above, or, for EM, the plain log-likelihood of all that is known of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// `−log P(y|X) − β log P(X)`, to be lowered.
    Objective(f64),
    /// `log P(X, y)`, or log P(X) without a label, to be raised; its output gradients are posteriors.
    Likelihood,
    /// `−log P(y|x) − β log P(x)` where y is a column: rows come in pairs, see [`pair_loss`].
    Column(f64),
}

/// The loss of a batch, and its output gradients (B, K) divided by the sum of the rows' weights.
///
/// `labels` are classes, or −1 where missing; `row_weights` is empty or (B).
pub fn loss_and_gradients(
    log_likelihood: &[f64],
    log_prior: &[f64],
    labels: &[i64],
    row_weights: &[f32],
    target: Target,
    output_gradients: &mut Vec<f32>,
) -> Loss {
    if let Target::Column(beta) = target {
        return pair_loss(log_likelihood, labels, row_weights, beta, output_gradients);
    }
    let k = log_prior.len();
    let mut loss = Loss {
        rows: labels.len(),
        ..Loss::default()
    };
    output_gradients.clear();
    for (b, &label) in labels.iter().enumerate() {
        let weight = row_weights.get(b).map_or(1.0, |&w| f64::from(w));
        let joint: Vec<f64> = (0..k)
            .map(|y| log_prior[y] + log_likelihood[b * k + y])
            .collect();
        let log_marginal = log_sum_exp(&joint);
        let label = usize::try_from(label).ok();
        loss.weight += weight;
        loss.generative -= weight * log_marginal;
        if let Some(y) = label {
            loss.discriminative += weight * (log_marginal - joint[y]);
            loss.correct += usize::from((0..k).all(|other| joint[other] < joint[y] || other == y));
            loss.labelled += 1;
        }
        for (y, log_joint) in joint.iter().enumerate() {
            let posterior = (log_joint - log_marginal).exp();
            let is_label = label.map(|label| label == y);
            output_gradients.push((weight * target.gradient(posterior, is_label)) as f32);
        }
    }
    let scale = share_of(loss.weight);
    output_gradients.iter_mut().for_each(|g| *g *= scale);
    loss
}

/// The loss where y is a column, and its output gradients. Of 2n rows, the first n hold x and y, the others the same x
/// alone.
///
/// ```text
/// −log P(y|x) − β log P(x) = −log P(x,y) + (1 − β) log P(x)
/// ```
///
/// `labels` are 0 where y is known, and −1 where it is missing: then the row teaches P(x) only.
fn pair_loss(
    log_likelihood: &[f64],
    labels: &[i64],
    row_weights: &[f32],
    beta: f64,
    output_gradients: &mut Vec<f32>,
) -> Loss {
    let n = labels.len() / 2;
    let mut loss = Loss {
        rows: n,
        ..Loss::default()
    };
    output_gradients.clear();
    output_gradients.resize(2 * n, 0.0);
    for b in 0..n {
        let weight = row_weights.get(b).map_or(1.0, |&w| f64::from(w));
        let (both, alone) = (log_likelihood[b], log_likelihood[n + b]);
        let known = f64::from(u8::from(labels[b] >= 0));
        loss.weight += weight;
        loss.generative -= weight * alone;
        loss.discriminative += weight * known * (alone - both);
        output_gradients[b] = (-weight * known) as f32;
        output_gradients[n + b] = (weight * (known - beta)) as f32;
    }
    let scale = share_of(loss.weight);
    output_gradients.iter_mut().for_each(|g| *g *= scale);
    loss
}

impl Target {
    /// `∂/∂ log P(X|y)` of one row, from P(y|X) and whether y is its label (`None` where that is missing).
    fn gradient(self, posterior: f64, is_label: Option<bool>) -> f64 {
        match (self, is_label) {
            (Self::Objective(beta) | Self::Column(beta), None) => -beta * posterior,
            (Self::Objective(beta) | Self::Column(beta), Some(is_label)) => {
                posterior - f64::from(is_label) - beta * posterior
            }
            (Self::Likelihood, None) => posterior,
            (Self::Likelihood, Some(is_label)) => f64::from(is_label),
        }
    }
}

/// What output gradients are multiplied by where the rows' weights have this sum: 0 where they weigh nothing.
pub(crate) fn share_of(weight: f64) -> f32 {
    if weight > 0.0 {
        (1.0 / weight).min(f32::MAX.into()) as f32
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_by_finite_differences() {
        let log_prior = [0.2f64.ln(), 0.5f64.ln(), 0.3f64.ln()];
        let scores = [-3.0, -2.5, -4.0, -1.0, -1.5, 2.0];
        let (labels, weights) = ([1, -1], [2.0, 0.5]);
        let objective = |scores: &[f64], gradients: &mut Vec<f32>| {
            loss_and_gradients(
                scores,
                &log_prior,
                &labels,
                &weights,
                Target::Objective(0.3),
                gradients,
            )
            .objective(0.3)
        };
        let mut gradients = Vec::new();
        objective(&scores, &mut gradients);
        for i in 0..scores.len() {
            let moved = |by: f64| {
                let mut scores = scores;
                scores[i] += by;
                objective(&scores, &mut Vec::new())
            };
            let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!(
                (numeric - f64::from(gradients[i])).abs() < 1e-6,
                "{i}: {numeric} {}",
                gradients[i]
            );
        }
    }

    #[test]
    fn gradients_of_pairs_by_finite_differences() {
        let scores = [-3.0, -2.5, -4.0, -1.0, -1.5, 2.0];
        let (labels, weights) = ([0, -1, 0, 0, -1, 0], [2.0, 0.5, 1.0]);
        let objective = |scores: &[f64], gradients: &mut Vec<f32>| {
            let target = Target::Column(0.3);
            loss_and_gradients(scores, &[0.0], &labels, &weights, target, gradients).objective(0.3)
        };
        let mut gradients = Vec::new();
        let whole = objective(&scores, &mut gradients);
        let by_hand = 2.0 * (-1.0 + 3.0 + 0.3) + 0.5 * 0.3 * 1.5 + (2.0 + 4.0 - 0.3 * 2.0);
        assert!((whole - by_hand / 3.5).abs() < 1e-12, "{whole}");
        for i in 0..scores.len() {
            let moved = |by: f64| {
                let mut scores = scores;
                scores[i] += by;
                objective(&scores, &mut Vec::new())
            };
            let numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((numeric - f64::from(gradients[i])).abs() < 1e-6, "{i}");
        }
    }

    #[test]
    fn rows_of_no_weight_have_no_gradients() {
        let (half, mut gradients) = ([0.5f64.ln(); 2], Vec::new());
        loss_and_gradients(
            &[-3.0, -2.5],
            &half,
            &[0],
            &[0.0],
            Target::Objective(0.1),
            &mut gradients,
        );
        assert_eq!(gradients, [0.0, 0.0]);
        loss_and_gradients(
            &[-3.0, -2.5],
            &half,
            &[0],
            &[1e-40],
            Target::Objective(0.1),
            &mut gradients,
        );
        assert!(
            gradients.iter().all(|gradient| gradient.is_finite()),
            "{gradients:?}"
        );
    }

    #[test]
    fn a_tie_is_not_right() {
        let half = [0.5f64.ln(); 2];
        let loss = loss_and_gradients(
            &[0.0, 0.0],
            &half,
            &[0],
            &[],
            Target::Likelihood,
            &mut Vec::new(),
        );
        assert_eq!((loss.correct, loss.labelled), (0, 1));
    }

    /// The counts of two batches, of which one has a right and a wrong answer, and one a right one.
    #[test]
    fn batches_add_up() {
        let (half, target) = ([0.5f64.ln(); 2], Target::Objective(0.5));
        let of = |likelihood: &[f64], labels: &[i64], weights: &[f32]| {
            loss_and_gradients(likelihood, &half, labels, weights, target, &mut Vec::new())
        };
        let mut sum = of(&[-1.0, -3.0, -1.0, -3.0], &[0, 1], &[2.0, 3.0]);
        let one = of(&[-4.0, -2.0, -7.0, -7.0], &[1, -1], &[5.0, 7.0]);
        assert_eq!((sum.accuracy(), one.accuracy()), (0.5, 1.0));
        let before = sum;
        sum.add(&one);
        let expected = Loss {
            discriminative: before.discriminative + one.discriminative,
            generative: before.generative + one.generative,
            correct: 2,
            labelled: 3,
            rows: 4,
            weight: 17.0,
        };
        assert_eq!((sum, sum.accuracy()), (expected, 2.0 / 3.0));
        assert!(one.discriminative > 0.0 && one.generative > 0.0);
    }
}
