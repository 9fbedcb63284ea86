//! Factors of a covariance: `C ≈ Λ Λᵀ + diag ψ`, by EM from a pivoted Cholesky factor (Rubin and Thayer, 1982).
//!
//! ```text
//! M = I + Λᵀ Ψ⁻¹ Λ      B = M⁻¹ Λᵀ Ψ⁻¹      Λ ← C Bᵀ (M⁻¹ + B C Bᵀ)⁻¹      ψ ← diag(C − Λ B C)
//! ```

/// Rounds of EM.
const ROUNDS: usize = 20;

/// What is found in a covariance of n numbers.
pub(crate) struct Analysis {
    /// Λ, (n, R).
    pub loadings: Vec<f64>,
    /// ψ, (n).
    pub own: Vec<f64>,
}

/// Factors of a covariance (n, n), whose diagonal must be positive. They leave at least the share `least` of every variance.
pub(crate) fn factor_analysis(covariance: &[f64], n: usize, rank: usize, least: f64) -> Analysis {
    let scale: Vec<f64> = (0..n).map(|i| covariance[i * n + i].sqrt()).collect();
    let correlation = |(at, c): (usize, &f64)| c / (scale[at / n] * scale[at % n]);
    let correlations: Vec<f64> = covariance.iter().enumerate().map(correlation).collect();
    let mut found = pivoted_cholesky(&correlations, n, rank, least);
    for _ in 0..ROUNDS {
        found = improved(&correlations, n, rank, least, &found);
    }
    for (i, scale) in scale.iter().enumerate() {
        let own = &mut found.loadings[i * rank..(i + 1) * rank];
        own.iter_mut().for_each(|loading| *loading *= scale);
        found.own[i] *= scale * scale;
    }
    found
}

/// One factor after the other, through the number that is explained least.
fn pivoted_cholesky(c: &[f64], n: usize, rank: usize, least: f64) -> Analysis {
    let mut loadings = vec![0.0; n * rank];
    let mut left: Vec<f64> = (0..n).map(|i| c[i * n + i]).collect();
    for r in 0..rank {
        let largest = |a: usize, b: usize| if left[b] > left[a] { b } else { a };
        let pivot = (0..n).reduce(largest).unwrap_or(0);
        if left[pivot] < least {
            break;
        }
        let root = left[pivot].sqrt();
        for i in 0..n {
            let pairs = (0..r).map(|q| loadings[i * rank + q] * loadings[pivot * rank + q]);
            let loading = (c[i * n + pivot] - pairs.sum::<f64>()) / root;
            loadings[i * rank + r] = loading;
        }
        (0..n).for_each(|i| left[i] -= loadings[i * rank + r].powi(2));
    }
    let own = left.into_iter().map(|left| left.max(least)).collect();
    Analysis { loadings, own }
}

/// One round of EM.
fn improved(c: &[f64], n: usize, rank: usize, least: f64, before: &Analysis) -> Analysis {
    let Analysis { loadings, own } = before;
    let mut m = vec![0.0; rank * rank];
    for (line, own) in loadings.chunks_exact(rank).zip(own) {
        for r in 0..rank {
            (0..rank).for_each(|q| m[r * rank + q] += line[r] * line[q] / own);
        }
    }
    (0..rank).for_each(|r| m[r * rank + r] += 1.0);
    let inverse = inverted(&m, rank);
    // B, as (n, R)
    let mut b = vec![0.0; n * rank];
    for ((to, line), own) in b
        .chunks_exact_mut(rank)
        .zip(loadings.chunks_exact(rank))
        .zip(own)
    {
        for r in 0..rank {
            to[r] = (0..rank)
                .map(|q| inverse[r * rank + q] * line[q])
                .sum::<f64>()
                / own;
        }
    }
    let mut cb = vec![0.0; n * rank];
    for (to, line) in cb.chunks_exact_mut(rank).zip(c.chunks_exact(n)) {
        for (c, b) in line.iter().zip(b.chunks_exact(rank)) {
            (0..rank).for_each(|r| to[r] += c * b[r]);
        }
    }
    let mut second = inverse;
    for (b, cb) in b.chunks_exact(rank).zip(cb.chunks_exact(rank)) {
        for r in 0..rank {
            (0..rank).for_each(|q| second[r * rank + q] += b[r] * cb[q]);
        }
    }
    let second = inverted(&second, rank);
    let mut after = Analysis {
        loadings: vec![0.0; n * rank],
        own: Vec::with_capacity(n),
    };
    for (i, (to, cb)) in after
        .loadings
        .chunks_exact_mut(rank)
        .zip(cb.chunks_exact(rank))
        .enumerate()
    {
        for r in 0..rank {
            to[r] = (0..rank).map(|q| second[r * rank + q] * cb[q]).sum();
        }
        let explained: f64 = to.iter().zip(cb).map(|(loading, cb)| loading * cb).sum();
        after.own.push((c[i * n + i] - explained).max(least));
    }
    after
}

/// The inverse of a positive definite matrix (r, r), by its Cholesky factor. Pivots that rounding or missing numbers make
/// too small are raised.
fn inverted(a: &[f64], r: usize) -> Vec<f64> {
    const LEAST_PIVOT: f64 = 1e-9;
    let mut lower = vec![0.0; r * r];
    for i in 0..r {
        for j in 0..=i {
            let before: f64 = (0..j).map(|k| lower[i * r + k] * lower[j * r + k]).sum();
            let left = a[i * r + j] - before;
            lower[i * r + j] = match i == j {
                true => left.max(LEAST_PIVOT).sqrt(),
                false => left / lower[j * r + j],
            };
        }
    }
    let mut inverse = vec![0.0; r * r];
    for column in 0..r {
        let mut x = vec![0.0; r];
        for i in column..r {
            let before: f64 = (column..i).map(|k| lower[i * r + k] * x[k]).sum();
            x[i] = (f64::from(i == column) - before) / lower[i * r + i];
        }
        for i in (0..r).rev() {
            let after: f64 = (i + 1..r).map(|k| lower[k * r + i] * x[k]).sum();
            x[i] = (x[i] - after) / lower[i * r + i];
        }
        (0..r).for_each(|i| inverse[i * r + column] = x[i]);
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A covariance of five numbers with two factors is found again, as far as a few rounds lead; with four factors, any is.
    #[test]
    fn finds_the_factors_of_a_covariance() {
        let lambda = [[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [0.3, 2.0], [1.5, -1.0]];
        let psi = [0.5, 1.0, 0.2, 0.7, 0.4];
        let mut exact = vec![0.0; 25];
        for (at, c) in exact.iter_mut().enumerate() {
            let (i, j) = (at / 5, at % 5);
            *c = lambda[i][0] * lambda[j][0] + lambda[i][1] * lambda[j][1];
            *c += if i == j { psi[i] } else { 0.0 };
        }
        for (rank, close) in [(2, 0.12), (4, 0.01)] {
            let Analysis { loadings, own } = factor_analysis(&exact, 5, rank, 0.005);
            for (at, c) in exact.iter().enumerate() {
                let (i, j) = (at / 5, at % 5);
                let shared = (0..rank).map(|r| loadings[i * rank + r] * loadings[j * rank + r]);
                let ours = shared.sum::<f64>() + if i == j { own[i] } else { 0.0 };
                let scale = (exact[i * 6] * exact[j * 6]).sqrt();
                assert!(
                    (ours - c).abs() < close * scale,
                    "{rank} {i} {j}: {ours} {c}"
                );
            }
        }
    }

    /// The second number is twice the first: one factor explains both, and the others stay 0.
    #[test]
    fn factors_that_explain_nothing_stay_zero() {
        let covariance = [1.0, 2.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 1e-9];
        let Analysis { loadings, own } = factor_analysis(&covariance, 3, 3, 0.01);
        let signs = loadings[0].signum();
        let near = |ours: f64, exact: f64| (signs * ours - exact).abs() < 0.02 * exact.max(1e-9);
        assert!(
            near(loadings[0], 1.0) && near(loadings[3], 2.0),
            "{loadings:?}"
        );
        assert!(
            own.iter()
                .zip([0.01, 0.04, 0.0])
                .all(|(own, least)| *own >= least * 0.999)
        );
        let start = pivoted_cholesky(&[4.0, 2.0, 2.0, 3.0], 2, 1, 0.01);
        assert_eq!(
            (&start.loadings[..], &start.own[..]),
            (&[2.0, 1.0][..], &[0.01, 2.0][..])
        );
        let start = pivoted_cholesky(&[1.0, 1.0, 1.0, 1.0], 2, 2, 0.01);
        assert_eq!(
            (&start.loadings[..], &start.own[..]),
            (&[1.0, 0.0, 1.0, 0.0][..], &[0.01, 0.01][..])
        );
    }

    #[test]
    fn inverses() {
        let a = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
        let inverse = inverted(&a, 3);
        for at in 0..9 {
            let product: f64 = (0..3)
                .map(|k| a[at / 3 * 3 + k] * inverse[k * 3 + at % 3])
                .sum();
            assert!(
                (product - f64::from(at / 3 == at % 3)).abs() < 1e-12,
                "{inverse:?}"
            );
        }
    }
}
