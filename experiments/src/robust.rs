//! The robust linear classifier of Dekel and Shamir (ICML 2008), their linear program: it expects an adversary to
//! delete up to N features of each row, and every feature is worth the same.
//!
//! ```text
//! min  1/m Σ_i ξ_i
//! s.t. y_i (b + Σ_{j∈J} w_j x_ij) ≥ |J|/d − ξ_i     for every row i and every J that keeps all but N of the d features
//!      ξ_i ≥ 0,  |w_j| ≤ C
//! ```
//!
//! A row's constraints are one: it must hold after the N deletions that hurt most, a sum of the N largest positive
//! parts of y_i w_j x_ij − 1/d, which by duality is the least N λ_i + Σ_j α_ij over
//!
//! ```text
//!      λ_i + α_ij ≥ y_i w_j x_ij − 1/d,  λ_i ≥ 0,  α_ij ≥ 0
//! ```
//!
//! so the program has a variable and a constraint for each number that is not zero: about 100,000 for 600 digits.
//! Clarabel, an interior-point solver, solves it as it stands.

use anyhow::{Result, bail};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, SupportedConeT,
};

/// What the classifier expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Robust {
    /// N: features that the adversary may delete.
    pub deleted: usize,
    /// C: the largest weight.
    pub bound: f64,
}

/// A linear classifier.
#[derive(Clone, Debug)]
pub struct Linear {
    /// w, one a feature.
    pub weights: Vec<f64>,
    /// b.
    pub bias: f64,
}

impl Linear {
    /// b + w·x of one row; positive is the class +1. What is missing counts as zero.
    pub fn score(&self, row: &[f32]) -> f64 {
        let seen = self.weights.iter().zip(row).filter(|(_, x)| !x.is_nan());
        self.bias + seen.map(|(w, &x)| w * f64::from(x)).sum::<f64>()
    }
}

/// The rows of A z ≤ b, as triplets.
#[derive(Default)]
struct Constraints {
    row: Vec<usize>,
    column: Vec<usize>,
    value: Vec<f64>,
    bound: Vec<f64>,
}

impl Constraints {
    /// Adds Σ value·z ≤ bound.
    fn add(&mut self, terms: impl IntoIterator<Item = (usize, f64)>, bound: f64) {
        for (column, value) in terms {
            self.row.push(self.bound.len());
            self.column.push(column);
            self.value.push(value);
        }
        self.bound.push(bound);
    }
}

impl Robust {
    /// Solves the program for rows (m, d) and classes of −1 and +1.
    pub fn train(&self, rows: &[f32], classes: &[f64]) -> Result<Linear> {
        let (m, d) = (classes.len(), rows.len() / classes.len());
        let used: Vec<usize> = (0..d)
            .filter(|&j| (0..m).any(|i| rows[i * d + j] != 0.0))
            .collect();
        let row = |i: usize| {
            used.iter()
                .map(move |&j| f64::from(rows[i * d + j]))
                .enumerate()
                .filter(|(_, x)| *x != 0.0)
        };
        // z = w, b, ξ, λ, α
        let (bias, slack) = (used.len(), used.len() + 1);
        let (lambda, mut variables) = (slack + m, slack + 2 * m);
        let mut all = Constraints::default();
        for (i, &y) in classes.iter().enumerate() {
            let mut margin: Vec<(usize, f64)> = row(i).map(|(k, x)| (k, -y * x)).collect();
            margin.extend([(bias, -y), (slack + i, -1.0)]);
            if self.deleted > 0 {
                margin.push((lambda + i, self.deleted as f64));
                for (k, x) in row(i) {
                    let alpha = variables;
                    variables += 1;
                    margin.push((alpha, 1.0));
                    all.add(
                        [(k, y * x), (lambda + i, -1.0), (alpha, -1.0)],
                        1.0 / d as f64,
                    );
                    all.add([(alpha, -1.0)], 0.0);
                }
            }
            all.add(margin, -1.0);
            all.add([(slack + i, -1.0)], 0.0);
            all.add([(lambda + i, -1.0)], 0.0);
        }
        (0..used.len()).for_each(|k| {
            [1.0, -1.0]
                .into_iter()
                .for_each(|sign| all.add([(k, sign)], self.bound))
        });
        let mut cost = vec![0.0; variables];
        cost[slack..slack + m].fill(1.0 / m as f64);
        let solution = solve(&cost, all)?;
        let mut weights = vec![0.0; d];
        used.iter()
            .zip(&solution)
            .for_each(|(&j, &w)| weights[j] = w);
        Ok(Linear {
            weights,
            bias: solution[bias],
        })
    }
}

/// The z with A z ≤ b and the least cost·z.
fn solve(cost: &[f64], all: Constraints) -> Result<Vec<f64>> {
    const CLOSE: f64 = 1e-6; // of the loss and of the constraints: below what an accuracy can show
    let rows = all.bound.len();
    let matrix = CscMatrix::new_from_triplets(rows, cost.len(), all.row, all.column, all.value);
    let quadratic = CscMatrix::zeros((cost.len(), cost.len()));
    let cones: [SupportedConeT<f64>; 1] = [NonnegativeConeT(rows)];
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .max_threads(1)
        .tol_gap_abs(CLOSE)
        .tol_gap_rel(CLOSE)
        .tol_feas(CLOSE)
        .build()?;
    let mut solver = DefaultSolver::new(&quadratic, cost, &matrix, &all.bound, &cones, settings)?;
    solver.solve();
    match solver.solution.status {
        SolverStatus::Solved | SolverStatus::AlmostSolved => Ok(solver.solution.x),
        status => bail!("the linear program ended with {status:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program's objective from its first form: every set of at most N deletions tried.
    fn worst_loss(linear: &Linear, deleted: usize, rows: &[f32], classes: &[f64]) -> f64 {
        let d = linear.weights.len();
        let row_loss = |row: &[f32], y: f64| {
            let sets = (0u32..1 << d).filter(|set| d - set.count_ones() as usize <= deleted);
            let loss = |kept: u32| {
                let sum: f64 = (0..d)
                    .filter(|j| kept >> j & 1 == 1)
                    .map(|j| linear.weights[j] * f64::from(row[j]))
                    .sum();
                f64::from(kept.count_ones()) / d as f64 - y * (linear.bias + sum)
            };
            sets.map(loss).fold(0.0, f64::max)
        };
        rows.chunks(d)
            .zip(classes)
            .map(|(row, &y)| row_loss(row, y))
            .sum::<f64>()
            / classes.len() as f64
    }

    /// Rows (1, 1) and (0, 0), one deletion. −b ≥ 1 − ξ₂ and b + w₁ + w₂ − max(w − ½) ≥ 1 − ξ₁: at C = 1 both weights
    /// are 1 and ξ₁ + ξ₂ = ½ for any b from −1 to −½; from C = 1.5 there is no loss, nor at C = 1 without a deletion.
    #[test]
    fn solved_by_hand() {
        let (rows, classes) = ([1.0, 1.0, 0.0, 0.0], [1.0, -1.0]);
        let loss = |deleted, bound| {
            let linear = Robust { deleted, bound }.train(&rows, &classes).unwrap();
            (worst_loss(&linear, deleted, &rows, &classes), linear)
        };
        let (tight, linear) = loss(1, 1.0);
        assert!((tight - 0.25).abs() < 1e-4, "{tight}");
        assert!(
            linear.weights.iter().all(|w| (w - 1.0).abs() < 1e-3),
            "{linear:?}"
        );
        assert!((-1.001..=-0.499).contains(&linear.bias), "{linear:?}");
        assert!(loss(1, 1.5).0 < 1e-4 && loss(1, 1.4).0 > 0.01 && loss(0, 1.0).0 < 1e-4);
    }

    /// No step from the solution, within the bound, lowers the loss of the first form.
    #[test]
    fn nothing_near_is_better() {
        use sumout::random::{Purpose, Stream};
        let mut random = Stream::new(5, Purpose::Sampling, 0, 0);
        let (m, d) = (30, 6);
        let classes: Vec<f64> = (0..m)
            .map(|i| if i % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let shifted = |i: usize, x: f64| (x + 0.7 * classes[i / d]).max(0.0) as f32;
        let rows: Vec<f32> = (0..m * d).map(|i| shifted(i, random.normal())).collect();
        for robust in [
            Robust {
                deleted: 2,
                bound: 0.4,
            },
            Robust {
                deleted: 3,
                bound: 2.0,
            },
        ] {
            let best = robust.train(&rows, &classes).unwrap();
            let least = worst_loss(&best, robust.deleted, &rows, &classes);
            for step in [1.0, 0.1, 0.01].repeat(300) {
                let mut near = best.clone();
                near.bias += step * random.normal();
                near.weights.iter_mut().for_each(|w| {
                    *w = (*w + step * random.normal()).clamp(-robust.bound, robust.bound);
                });
                assert!(worst_loss(&near, robust.deleted, &rows, &classes) > least - 1e-5);
            }
        }
    }

    #[test]
    fn missing_counts_as_zero() {
        let linear = Linear {
            weights: vec![1.0, -2.0],
            bias: 0.5,
        };
        assert_eq!(
            (linear.score(&[1.0, 1.0]), linear.score(&[1.0, f32::NAN])),
            (-0.5, 1.5)
        );
    }
}
