//! Transposing blocks of 16 × 16 numbers, in registers where there are enough of them.
//!
//! Four rounds of interleaving transpose a block: a round takes rows i and i + 8 and makes rows 2i and 2i + 1, the
//! numbers of both by turns. 64 shuffles for 256 numbers.

#[cfg(target_arch = "x86_64")]
use crate::arithmetic::instructions::{Instructions, allowed};
use crate::arithmetic::matmul::HALF;

/// Number (i, j) of a block, `from[i·from_row + j]`, becomes number (j, i) of the other, `to[j·to_row + i]`.
pub fn transpose_block(from: &[f32], from_row: usize, to: &mut [f32], to_row: usize) {
    const LAST: usize = HALF - 1;
    assert!(from.len() >= LAST * from_row + HALF && to.len() >= LAST * to_row + HALF);
    #[cfg(target_arch = "x86_64")]
    if allowed() >= Instructions::Avx512 && std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the machine has these instructions, and the slices hold 16 rows of 16 numbers.
        return unsafe { turn_in_registers(from.as_ptr(), from_row, to.as_mut_ptr(), to_row) };
    }
    for i in 0..HALF {
        for j in 0..HALF {
            to[j * to_row + i] = from[i * from_row + j];
        }
    }
}

/// # Safety
/// Both pointers must be good for 16 rows of 16 numbers at those distances.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn turn_in_registers(
    from: *const f32,
    from_row: usize,
    to: *mut f32,
    to_row: usize,
) {
    use std::arch::x86_64::{
        _mm512_loadu_ps, _mm512_permutex2var_ps, _mm512_setr_epi32, _mm512_storeu_ps,
    };
    let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    // SAFETY: row i lies inside by this function's contract.
    let mut rows: [_; HALF] =
        std::array::from_fn(|i| unsafe { _mm512_loadu_ps(from.add(i * from_row)) });
    for _ in 0..4 {
        let before = rows;
        for i in 0..HALF / 2 {
            rows[2 * i] = _mm512_permutex2var_ps(before[i], low, before[i + 8]);
            rows[2 * i + 1] = _mm512_permutex2var_ps(before[i], high, before[i + 8]);
        }
    }
    for (j, row) in rows.into_iter().enumerate() {
        // SAFETY: row j lies inside by this function's contract.
        unsafe { _mm512_storeu_ps(to.add(j * to_row), row) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let (from_row, to_row) = (21, 17);
        let from: Vec<f32> = (0..16 * from_row).map(|i| i as f32).collect();
        let mut to = vec![-1.0; 16 * to_row];
        transpose_block(&from, from_row, &mut to, to_row);
        for (j, row) in to.chunks(to_row).enumerate() {
            let column: Vec<f32> = (0..16).map(|i| (i * from_row + j) as f32).collect();
            assert_eq!(row[..16], column);
            assert!(row[16..].iter().all(|&x| x == -1.0));
        }
    }
}
