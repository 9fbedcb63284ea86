//! The robust linear classifier of Dekel and Shamir (ICML 2008), as their linear program.
//!
//! It expects that an adversary deletes up to N features of each row. Every feature is worth the
//! same.
//!
//! ```text
//! min  1/m Σ_i ξ_i
//! s.t. y_i (b + Σ_{j∈J} w_j x_ij) ≥ |J|/d − ξ_i     for every row i and every J that keeps all but N of the d features
//!      ξ_i ≥ 0,  |w_j| ≤ C
//! ```
//!
//! The constraints of a row are one: the margin must hold after the N worst deletions. They take
//! away the sum of the N largest positive parts of y_i w_j x_ij − 1/d, which by duality is the
//! minimum of N λ_i + Σ_j α_ij over
//!
//! ```text
//!      λ_i + α_ij ≥ y_i w_j x_ij − 1/d,  λ_i ≥ 0,  α_ij ≥ 0
//! ```
//!
//! so the program has a variable and a constraint for each number that is not zero: about 100,000
//! for 600 digits. Clarabel, an interior-point solver, solves it without further changes.

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
    /// w, one per feature.
    pub weights: Vec<f64>,
    /// b.
    pub bias: f64,
}

impl Linear {
    /// b + w·x of one row; if positive, the class is +1. A missing number counts as zero.
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

/// A number of a row that is not zero.
#[derive(Clone, Copy)]
struct Cell {
    weight: usize, // the place of its feature among the weights
    x: f64,
}

/// The program while it grows, row by row. Its variables are z = w, b, ξ, λ, α.
struct Program {
    deleted: f64,
    worth: f64,       // 1/d
    bias: usize,      // the place of b
    slack: usize,     // the place of ξ_0
    lambda: usize,    // the place of λ_0
    variables: usize, // grows with each α
    all: Constraints,
}

impl Program {
    fn new(robust: &Robust, features: usize, weights: usize, rows: usize) -> Self {
        let slack = weights + 1;
        Self {
            deleted: robust.deleted as f64,
            worth: 1.0 / features as f64,
            bias: weights,
            slack,
            lambda: slack + rows,
            variables: slack + 2 * rows,
            all: Constraints::default(),
        }
    }

    /// Row i must be on the side of its class y after the worst deletions.
    fn add_row(&mut self, i: usize, y: f64, row: &[Cell]) {
        let (slack, lambda) = (self.slack + i, self.lambda + i);
        let mut margin: Vec<(usize, f64)> = row.iter().map(|c| (c.weight, -y * c.x)).collect();
        margin.extend([(self.bias, -y), (slack, -1.0)]);
        if self.deleted > 0.0 {
            margin.push((lambda, self.deleted));
            for cell in row {
                let alpha = self.variables;
                self.variables += 1;
                margin.push((alpha, 1.0));
                let terms = [(cell.weight, y * cell.x), (lambda, -1.0), (alpha, -1.0)];
                self.all.add(terms, self.worth);
                self.all.add([(alpha, -1.0)], 0.0);
            }
        }
        self.all.add(margin, -1.0);
        self.all.add([(slack, -1.0)], 0.0);
        self.all.add([(lambda, -1.0)], 0.0);
    }

    /// |w_j| ≤ bound.
    fn bound_weights(&mut self, bound: f64) {
        for weight in 0..self.bias {
            self.all.add([(weight, 1.0)], bound);
            self.all.add([(weight, -1.0)], bound);
        }
    }

    /// w and b, and more behind them.
    fn solve(self) -> Result<Vec<f64>> {
        let rows = self.lambda - self.slack;
        let mut cost = vec![0.0; self.variables];
        cost[self.slack..self.lambda].fill(1.0 / rows as f64);
        solve(&cost, self.all)
    }
}

/// The numbers of a row that are not zero, of the features that are used.
fn cells(row: &[f32], used: &[usize]) -> Vec<Cell> {
    let cell = |(weight, &j): (usize, &usize)| Cell {
        weight,
        x: f64::from(row[j]),
    };
    let all = used.iter().enumerate().map(cell);
    all.filter(|cell| cell.x != 0.0).collect()
}

impl Robust {
    /// Solves the program for rows (m, d) and classes of −1 and +1.
    pub fn train(&self, rows: &[f32], classes: &[f64]) -> Result<Linear> {
        let (m, d) = (classes.len(), rows.len() / classes.len());
        let used: Vec<usize> = (0..d)
            .filter(|&j| (0..m).any(|i| rows[i * d + j] != 0.0))
            .collect();
        let mut program = Program::new(self, d, used.len(), m);
        for (i, (row, &y)) in rows.chunks_exact(d).zip(classes).enumerate() {
            program.add_row(i, y, &cells(row, &used));
        }
        program.bound_weights(self.bound);
        let solution = program.solve()?;
        let mut weights = vec![0.0; d];
        for (&j, &w) in used.iter().zip(&solution) {
            weights[j] = w;
        }
        Ok(Linear {
            weights,
            bias: solution[used.len()],
        })
    }
}

/// The z with A z ≤ b and the minimal cost·z.
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

    /// Rows (1, 1) and (0, 0), one deletion. −b ≥ 1 − ξ₂ and b + w₁ + w₂ − max(w − ½) ≥ 1 − ξ₁: at
    /// C = 1 both weights are 1 and ξ₁ + ξ₂ = ½ for any b from −1 to −½; from C = 1.5 there is no
    /// loss, nor at C = 1 without a deletion.
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
            let min = worst_loss(&best, robust.deleted, &rows, &classes);
            for step in [1.0, 0.1, 0.01].repeat(300) {
                let mut near = best.clone();
                near.bias += step * random.normal();
                near.weights.iter_mut().for_each(|w| {
                    *w = (*w + step * random.normal()).clamp(-robust.bound, robust.bound);
                });
                assert!(worst_loss(&near, robust.deleted, &rows, &classes) > min - 1e-5);
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
