//! Lower triangles of small symmetric matrices, eight matrices side by side: sums of squares, Cholesky factors, solutions.
//!
//! All matrices here are A = I + Σ a aᵀ, so no pivot is below 1.

/// Matrices side by side.
pub(crate) const LANES: usize = 8;

/// One number of each of them.
pub(crate) type Lane = [f64; LANES];

/// The most lines.
pub(crate) const MAX_SIDE: usize = 16;

const NUMBERS: usize = MAX_SIDE * (MAX_SIDE + 1) / 2;

/// A lower triangle, line after line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triangle([Lane; NUMBERS]);

impl Triangle {
    /// The unit matrix.
    pub fn identity(side: usize) -> Self {
        let mut all = Self([[0.0; LANES]; NUMBERS]);
        (0..side).for_each(|r| all.0[Self::line(r) + r] = [1.0; LANES]);
        all
    }

    /// The numbers that a matrix of this side has.
    pub fn packed(&self, side: usize) -> Vec<Lane> {
        self.0[..Self::line(side)].to_vec()
    }

    /// The triangle that [`packed`](Self::packed) was called on.
    #[inline(always)]
    pub fn unpacked(numbers: &[Lane]) -> Self {
        let mut all = Self([[0.0; LANES]; NUMBERS]);
        all.0[..numbers.len()].copy_from_slice(numbers);
        all
    }

    /// Where line r begins.
    #[inline(always)]
    fn line(r: usize) -> usize {
        r * (r + 1) / 2
    }

    /// Adds a aᵀ.
    #[inline(always)]
    pub fn add_square(&mut self, a: &[Lane]) {
        let mut at = 0;
        for (r, row) in a.iter().enumerate() {
            let line = &mut self.0[at..=at + r];
            for (to, column) in line.iter_mut().zip(a) {
                (0..LANES).for_each(|l| to[l] += row[l] * column[l]);
            }
            at += r + 1;
        }
    }

    /// From A to L.
    #[inline(always)]
    pub fn factor(&mut self, side: usize) {
        for r in 0..side {
            for q in 0..=r {
                let (own, other) = (Self::line(r), Self::line(q));
                let mut sum = self.0[own + q];
                for p in 0..q {
                    let (a, b) = (self.0[own + p], self.0[other + p]);
                    (0..LANES).for_each(|l| sum[l] -= a[l] * b[l]);
                }
                let corner = self.0[other + q];
                self.0[own + q] = match q == r {
                    true => sum.map(|sum| sum.max(1.0).sqrt()), // A − I has no negative part
                    false => std::array::from_fn(|l| sum[l] / corner[l]),
                };
            }
        }
    }

    /// L⁻¹b in the place of b.
    #[inline(always)]
    pub fn solve(&self, b: &mut [Lane]) {
        for r in 0..b.len() {
            let line = Self::line(r);
            let mut sum = b[r];
            for p in 0..r {
                let (a, y) = (self.0[line + p], b[p]);
                (0..LANES).for_each(|l| sum[l] -= a[l] * y[l]);
            }
            let corner = self.0[line + r];
            b[r] = std::array::from_fn(|l| sum[l] / corner[l]);
        }
    }

    /// L⁻ᵀy of one lane, in the place of y.
    pub fn solve_transposed(&self, lane: usize, y: &mut [f64]) {
        for r in (0..y.len()).rev() {
            let below: f64 = (r + 1..y.len())
                .map(|p| self.0[Self::line(p) + r][lane] * y[p])
                .sum();
            y[r] = (y[r] - below) / self.0[Self::line(r) + r][lane];
        }
    }

    /// log|L|.
    #[inline(always)]
    pub fn log_determinant(&self, side: usize) -> Lane {
        let mut sum = [0.0; LANES];
        for r in 0..side {
            let corner = self.0[Self::line(r) + r];
            (0..LANES).for_each(|l| sum[l] += corner[l].ln());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L Lᵀ = I + a aᵀ + b bᵀ, and L⁻¹ and L⁻ᵀ solve what they should.
    #[test]
    fn factors_multiply_to_the_matrix() {
        let vector = |scale: f64| -> Vec<Lane> {
            let number = |r: usize, l: usize| scale * (0.3 * (r * 8 + l) as f64).sin();
            (0..5)
                .map(|r| std::array::from_fn(|l| number(r, l)))
                .collect()
        };
        let (a, b) = (vector(1.0), vector(40.0));
        let mut lower = Triangle::identity(5);
        lower.add_square(&a);
        lower.add_square(&b);
        lower.factor(5);
        let at = |r: usize, q: usize, l: usize| {
            if q > r {
                0.0
            } else {
                lower.0[Triangle::line(r) + q][l]
            }
        };
        for l in 0..LANES {
            for (r, q) in (0..5).flat_map(|r| (0..5).map(move |q| (r, q))) {
                let ours: f64 = (0..5).map(|p| at(r, p, l) * at(q, p, l)).sum();
                let exact = f64::from(r == q) + a[r][l] * a[q][l] + b[r][l] * b[q][l];
                assert!((ours - exact).abs() < 1e-9, "{ours} {exact}");
            }
            let mut y = a.clone();
            lower.solve(&mut y);
            let mut x: Vec<f64> = (0..5).map(|r| y[r][l]).collect();
            lower.solve_transposed(l, &mut x);
            for r in 0..5 {
                let forward: f64 = (0..5).map(|p| at(r, p, l) * y[p][l]).sum();
                let back: f64 = (0..5).map(|p| at(p, r, l) * x[p]).sum();
                assert!((forward - a[r][l]).abs() < 1e-9 && (back - y[r][l]).abs() < 1e-9);
            }
            let log: f64 = (0..5).map(|r| at(r, r, l).ln()).sum();
            assert!((lower.log_determinant(5)[l] - log).abs() < 1e-12);
        }
    }
}
