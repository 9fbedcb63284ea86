//! How the scores log P(x_o|y) of several models, or of several places of an image, become one answer.

use serde::{Deserialize, Serialize};
use sumout::internals::log_sum_exp;

/// How scores are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vote {
    /// Their sum, as in the paper.
    Sum,
    /// log Σ P(x_o|y): the shift is a hidden variable.
    Mixture,
    /// Σ P(y|x_o).
    Posterior,
}

impl Vote {
    /// Adds the scores of one shift, (n, K).
    pub fn add(self, sums: &mut [f64], scores: &[f64], classes: usize) {
        let rows = sums
            .chunks_exact_mut(classes)
            .zip(scores.chunks_exact(classes));
        for (sums, scores) in rows {
            let pairs = sums.iter_mut().zip(scores);
            match self {
                Self::Sum => pairs.for_each(|(sum, score)| *sum += score),
                Self::Mixture => pairs.for_each(|(sum, &score)| *sum = log_sum_exp(&[*sum, score])),
                Self::Posterior => {
                    let whole = log_sum_exp(scores);
                    pairs.for_each(|(sum, score)| *sum += (score - whole).exp());
                }
            }
        }
    }

    /// The value before anything was added.
    pub fn empty(self) -> f64 {
        if self == Self::Mixture {
            f64::NEG_INFINITY
        } else {
            0.0
        }
    }
}

/// The class with the largest sum in each row of (n, K), the first where several are.
pub fn largest(sums: &[f64], classes: usize) -> Vec<usize> {
    let best =
        |row: &[f64]| (1..classes).fold(0, |best, y| if row[y] > row[best] { y } else { best });
    sums.chunks_exact(classes).map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: usize = 10;

    #[test]
    fn votes_join_scores() {
        let shifts = [[0.5, 0.1], [0.2, 0.6]].map(|p: [f64; 2]| {
            let mut scores = vec![f64::MIN; CLASSES];
            scores[..2].copy_from_slice(&p.map(f64::ln));
            scores
        });
        let joined = |vote: Vote| {
            let mut sums = vec![vote.empty(); CLASSES];
            shifts
                .iter()
                .for_each(|scores| vote.add(&mut sums, scores, CLASSES));
            [sums[0], sums[1]]
        };
        let near = |a: [f64; 2], b: [f64; 2]| {
            assert!(
                a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12),
                "{a:?} {b:?}"
            )
        };
        near(joined(Vote::Sum), [0.1_f64.ln(), 0.06_f64.ln()]);
        near(joined(Vote::Mixture), [0.7_f64.ln(), 0.7_f64.ln()]);
        near(
            joined(Vote::Posterior),
            [0.5 / 0.6 + 0.2 / 0.8, 0.1 / 0.6 + 0.6 / 0.8],
        );
    }
}
