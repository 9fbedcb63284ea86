//! Elementary functions: exp and 1/√x on vectors, log Σ exp in f64, argmax.

use pulp::Simd;

/// exp of numbers up to 88, to 2 units in the last place; 0 below −87.
///
/// Tried: a scalar version inlined into loops. It vectorised in some of them only (`docs/numerics.md`).
#[inline(always)]
pub fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let splat = |value: f32| simd.splat_f32s(value);
    let magic = splat(12_582_912.0); // 1.5·2²³: adding it rounds to a whole number, which the low bits then hold
    let shifted = simd.mul_add_e_f32s(x, splat(std::f32::consts::LOG2_E), magic);
    let n = simd.sub_f32s(shifted, magic);
    let r = simd.mul_add_e_f32s(n, splat(-0.693_359_4), x); // less n ln 2, in two parts
    let r = simd.mul_add_e_f32s(n, splat(2.121_944_4e-4), r);
    let mut p = splat(1.987_569_1e-4);
    for coefficient in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        p = simd.mul_add_e_f32s(p, r, splat(coefficient));
    }
    let value = simd.add_f32s(simd.mul_add_e_f32s(p, simd.mul_f32s(r, r), r), splat(1.0));
    let exponent = simd.add_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(127));
    let power = simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23))); // 2ⁿ
    simd.select_f32s(
        simd.less_than_f32s(x, splat(-87.0)),
        splat(0.0),
        simd.mul_f32s(value, power),
    )
}

/// 1/√x of positive numbers, to 2 units in the last place: a guess from the bits, then three Newton steps, so
/// that neither the processor's slow root nor its slow division is waited for.
#[inline(always)]
pub fn inverse_root<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let half_bits = simd.wrapping_dyn_shr_u32s(simd.transmute_u32s_f32s(x), simd.splat_u32s(1));
    let mut y = simd.transmute_f32s_u32s(simd.sub_u32s(simd.splat_u32s(0x5f37_59df), half_bits));
    let minus_half_x = simd.mul_f32s(simd.splat_f32s(-0.5), x);
    for _ in 0..3 {
        let correction =
            simd.mul_add_e_f32s(simd.mul_f32s(minus_half_x, y), y, simd.splat_f32s(1.5));
        y = simd.mul_f32s(y, correction);
    }
    y
}

/// `log Σ exp(x)`; −∞ for an empty slice.
pub fn log_sum_exp(logs: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        top
    } else {
        top + logs.iter().map(|log| (log - top).exp()).sum::<f64>().ln()
    }
}

/// Where the largest number is; the first where several are equal, and 0 where nothing is larger than the first (NaN).
pub fn argmax<T: PartialOrd>(numbers: &[T]) -> usize {
    let better = |best: usize, i: usize| if numbers[i] > numbers[best] { i } else { best };
    (1..numbers.len()).fold(0, better)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::instructions::arch;
    use pulp::WithSimd;

    struct Exp<'a>(&'a mut [f32]);

    impl WithSimd for Exp<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let (vectors, tail) = S::as_mut_simd_f32s(self.0);
            assert!(tail.is_empty());
            vectors.iter_mut().for_each(|x| *x = exp(simd, *x));
        }
    }

    struct Root<'a>(&'a mut [f32]);

    impl WithSimd for Root<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            S::as_mut_simd_f32s(self.0)
                .0
                .iter_mut()
                .for_each(|x| *x = inverse_root(simd, *x));
        }
    }

    #[test]
    fn inverse_roots() {
        let x: Vec<f32> = (0..4096)
            .map(|i| 1e-30 * 1.035f32.powi(i))
            .filter(|x| x.is_finite())
            .take(4000)
            .collect();
        let x = &x[..x.len() / 16 * 16];
        let mut ours = x.to_vec();
        arch().dispatch(Root(&mut ours));
        for (&x, &ours) in x.iter().zip(&ours) {
            let exact = 1.0 / f64::from(x).sqrt();
            assert!(
                (f64::from(ours) / exact - 1.0).abs() < 3e-7,
                "{x} {ours} {exact}"
            );
        }
    }

    #[test]
    fn the_first_of_the_largest() {
        assert_eq!(argmax(&[1.0, 3.0, 3.0, f64::NAN, 2.0]), 1);
        assert_eq!(argmax(&[f32::NEG_INFINITY; 2]), 0);
        assert_eq!(argmax::<f64>(&[]), 0);
    }

    #[test]
    fn exponential() {
        let x: Vec<f32> = (0..200_000)
            .map(|i| -(i as f32) * 5e-4)
            .chain([-1e30; 15])
            .chain([f32::NEG_INFINITY])
            .collect();
        let mut ours = x.clone();
        arch().dispatch(Exp(&mut ours));
        for (&x, &ours) in x.iter().zip(&ours) {
            let (ours, exact) = (f64::from(ours), f64::from(x).exp());
            let allowed = if x < -87.0 { 1.7e-38 } else { exact * 2.5e-7 };
            assert!((ours - exact).abs() <= allowed, "{x} {ours} {exact}");
        }
        let mut zeros = [0.0; 16];
        arch().dispatch(Exp(&mut zeros));
        assert_eq!(zeros, [1.0; 16]);
    }
}
