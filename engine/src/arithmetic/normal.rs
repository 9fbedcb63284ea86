//! The normal distribution function, to the last few bits of f64.
//!
//! ```text
//! Φ(x) = ½ + φ(x) (x + x³/3 + x⁵/(3·5) + …)                      |x| < 3
//!      = 1 − φ(x) / (x + 1/(x + 2/(x + 3/(x + …))))              x ≥ 3, and by symmetry x ≤ −3
//! ```

/// Where the series ends and the continued fraction begins.
const MIDDLE: f64 = 3.0;

/// φ(x), the standard normal density.
pub fn normal_density(x: f64) -> f64 {
    const PEAK: f64 = 0.398_942_280_401_432_7; // 1/√(2π)
    PEAK * (-0.5 * x * x).exp()
}

/// Φ(x), the probability that a standard normal number is at most x.
pub fn normal_cdf(x: f64) -> f64 {
    if x.abs() < MIDDLE {
        return 0.5 + normal_density(x) * series(x);
    }
    let tail = normal_density(x) / fraction(x.abs());
    if x < 0.0 { tail } else { 1.0 - tail }
}

/// Φ⁻¹(p) for p between 0 and 1, by halves of an interval: the number below which a standard normal lies so often.
pub fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    while low < 0.5 * (low + high) && 0.5 * (low + high) < high {
        let middle = 0.5 * (low + high);
        *(if normal_cdf(middle) < p {
            &mut low
        } else {
            &mut high
        }) = middle;
    }
    high
}

/// x + x³/3 + x⁵/15 + …
fn series(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    sum
}

/// x + 1/(x + 2/(x + …)), from the inside out.
fn fraction(x: f64) -> f64 {
    const DEPTH: u32 = 60; // at x = 3 the rest is below 1e-15
    let deeper = |inner: f64, n: u32| x + f64::from(n) / inner;
    (1..=DEPTH).rev().fold(x, deeper)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the sum of the density over small steps (Simpson's rule), and values of `scipy.stats.norm.cdf`.
    #[test]
    fn it_is_the_integral_of_the_density() {
        let known = [
            (-8.0, 6.220_960_574_271_785e-16),
            (-3.5, 2.326_290_790_355_250_4e-4),
            (-1.0, 0.158_655_253_931_457_05),
            (1.959_963_984_540_054, 0.975),
        ];
        for (x, expected) in known {
            assert!((normal_cdf(x) / expected - 1.0).abs() < 1e-13, "{x}");
        }
        let (mut sum, step) = (normal_cdf(-6.0), 0.01);
        for i in 0..1200 {
            let x = -6.0 + f64::from(i) * step;
            assert!((normal_cdf(x) - sum).abs() < 1e-10, "{x}");
            let ends = normal_density(x) + normal_density(x + step);
            sum += step / 6.0 * (ends + 4.0 * normal_density(x + step / 2.0));
        }
        for x in [-7.0, -1.25, 0.0, 0.3, 4.0] {
            assert!((normal_quantile(normal_cdf(x)) - x).abs() < 1e-9, "{x}");
        }
        assert_eq!((normal_cdf(50.0), normal_cdf(-50.0)), (1.0, 0.0));
    }
}
