//! Rows of activations in scaled numbers, with a bound on what underflow has taken from them.
//!
//! A row is `m · exp(log_scale)`: mantissas m in f32 whose largest lies in [½, 1), and one log-scale in f64. Rows are
//! rescaled by powers of two ([`power_of_two`]), which rounds nothing.
//!
//! **The underflow bound.** What can go wrong is underflow alone: a mantissa below [`TINY`] may have lost everything. So
//! each row carries a bound on what underflow may have taken from any mantissa m of it: at most `absolute + relative·m`.
//!
//! Mixing does not raise it, for rows of W sum to one. More than that: one mantissa of φ is at least ½, so every ψ is at
//! least half of the least number w of W, and what was taken from it is known relative to it ([`UnderflowBound::mixed`]):
//!
//! ```text
//! absolute, relative  ->  0, relative + 4 absolute / w
//! ```
//!
//! A product of numbers below one has at most the sum of its factors' errors. The division by 2ᵉ scales the absolute
//! part alone, which is all that makes a bound grow:
//!
//! ```text
//! absolute = 2⁻ᵉ (Σ_j absolute_j + TINY),     relative = Σ_j relative_j
//! ```
//!
//! At the root, `relative + absolute / ψ_y` bounds the relative error that underflow caused in P(X|y). Where that is too
//! much, the sample is computed again in f64, in log space if need be (`circuit/underflow.rs`).

use pulp::Simd;

/// Mantissas below this are not trusted. Far above the smallest f32 (1e-38), so that a derivative, at most its
/// inverse, can be summed over a batch in f32.
pub const TINY: f32 = 1e-34;

/// What underflow may have taken from a row: at most `absolute + relative · m` from a mantissa m.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UnderflowBound {
    /// The part that does not depend on the mantissa.
    pub absolute: f32,
    /// The part that is a share of it.
    pub relative: f32,
}

impl UnderflowBound {
    /// Of a row that may have lost whatever lies below [`TINY`]; of one that is not known at all.
    pub fn of_leaf(is_known: bool) -> Self {
        Self {
            absolute: if is_known { TINY } else { f32::INFINITY },
            relative: 0.0,
        }
    }

    /// The bound of ψ = W φ, from that of φ, where `least` is the least number of W. Relative to ψ if that is next to
    /// nothing, else as it is.
    #[inline(always)]
    pub fn mixed(self, least: f32) -> Self {
        const NEARLY_NOTHING: f32 = 1e-9;
        let relative = 4.0 * self.absolute / least; // ψ ≥ ½ least; the other 2 is for rounding
        if relative <= NEARLY_NOTHING {
            return Self {
                absolute: 0.0,
                relative: self.relative + relative,
            };
        }
        self // also where it is NaN
    }

    /// What may be missing of a number of at most `largest`.
    pub fn of_number(self, largest: f32) -> f32 {
        self.absolute + self.relative * largest
    }

    /// The bound of a product of factors that are at most one.
    #[inline(always)]
    pub(super) fn times(self, other: Self) -> Self {
        Self {
            absolute: self.absolute + other.absolute,
            relative: self.relative + other.relative,
        }
    }
}

/// e and 2⁻ᵉ such that `2⁻ᵉ top` lies in [½, 1); (0, 1) for what is not a normal number.
#[inline(always)]
pub fn power_of_two(top: f32) -> (i32, f32) {
    if !(f32::MIN_POSITIVE..f32::INFINITY).contains(&top) {
        return (0, 1.0);
    }
    let exponent = (top.to_bits() >> 23) as i32 - 126;
    (exponent, f32::from_bits(((127 - exponent) as u32) << 23))
}

/// Scale, bound and divisor of rows.
#[derive(Default)]
pub struct Scales<'a> {
    /// Log-scale of each row.
    pub log_scale: &'a mut [f64],
    /// What underflow may have taken, at most.
    pub underflow_bound: &'a mut [UnderflowBound],
    /// 2⁻ᵉ.
    pub inverse: &'a mut [f32],
}

impl Scales<'_> {
    /// Notes what became of a row, with the log-scales of its factors.
    #[inline(always)]
    pub(super) fn put(
        &mut self,
        row: usize,
        scaled: Scaled,
        log_scales: impl Iterator<Item = f64>,
    ) {
        let start = f64::from(scaled.exponent) * std::f64::consts::LN_2;
        self.log_scale[row] = log_scales.fold(start, |sum, log_scale| sum + log_scale);
        self.underflow_bound[row] = scaled.underflow_bound;
        self.inverse[row] = scaled.inverse;
    }
}

/// What scaling has done to a row.
#[derive(Clone, Copy)]
pub(super) struct Scaled {
    pub exponent: i32, // Σ e
    pub underflow_bound: UnderflowBound,
    pub inverse: f32, // the last 2⁻ᵉ
}

/// Brings the largest number of a row into [½, 1).
#[inline(always)]
pub(super) fn rescale<S: Simd>(simd: S, row: &mut [S::f32s], top: f32, before: Scaled) -> Scaled {
    let (exponent, inverse) = power_of_two(top);
    let factor = simd.splat_f32s(inverse);
    row.iter_mut()
        .for_each(|value| *value = simd.mul_f32s(*value, factor));
    let taken = if top < f32::MIN_POSITIVE {
        f32::INFINITY
    } else {
        TINY
    };
    Scaled {
        exponent: before.exponent + exponent,
        underflow_bound: UnderflowBound {
            absolute: (before.underflow_bound.absolute + taken) * inverse,
            ..before.underflow_bound
        },
        inverse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_is_exact() {
        for top in [1e-37f32, 0.3, 0.5, 0.999, 1.0, 15.9] {
            let (exponent, scale) = power_of_two(top);
            assert!((0.5..1.0).contains(&(top * scale)), "{top}");
            assert_eq!(f64::from(scale), 2f64.powi(-exponent));
        }
        assert_eq!(power_of_two(0.0), (0, 1.0));
        assert_eq!(power_of_two(1e-40), (0, 1.0));
    }
    #[test]
    fn a_bound_is_the_sum_of_both_parts() {
        let bound = UnderflowBound {
            absolute: 1.0,
            relative: 0.5,
        };
        assert_eq!(bound.of_number(4.0), 3.0);
    }

    #[test]
    fn what_mixing_leaves_is_relative_where_it_is_nearly_nothing() {
        let bound = UnderflowBound {
            absolute: 1e-20,
            relative: 1e-10,
        };
        let mixed = bound.mixed(1e-8);
        assert_eq!(mixed.absolute, 0.0);
        assert!((mixed.relative / 1.04e-10 - 1.0).abs() < 1e-6);
        let kept = bound.mixed(1e-12);
        assert_eq!((kept.absolute, kept.relative), (1e-20, 1e-10));
    }

    #[test]
    fn a_product_has_what_its_factors_lost() {
        let bound = |absolute, relative| UnderflowBound { absolute, relative };
        assert_eq!(bound(1.0, 0.5).times(bound(2.0, 0.25)), bound(3.0, 0.75));
        let before = Scaled {
            exponent: 3,
            underflow_bound: bound(2e-34, 0.5),
            inverse: 1.0,
        };
        let scaled = |top| rescale(pulp::Scalar::new(), &mut [top], top, before);
        let (half, nothing) = (scaled(0.25), scaled(0.0));
        assert_eq!((half.exponent, half.inverse), (2, 2.0));
        assert_eq!(half.underflow_bound, bound(2.0 * (2e-34 + TINY), 0.5));
        assert_eq!(nothing.underflow_bound, bound(f32::INFINITY, 0.5));
        assert!(
            scaled(f32::MIN_POSITIVE)
                .underflow_bound
                .absolute
                .is_finite()
        );
    }
}
