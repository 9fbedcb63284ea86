//! The way down through a mixing, `dφ(a) = Σ_c W[c,a] dψ(c)`.
//!
//! Wᵀ is made when it is needed, 32 columns a time: kept beside W, it would cost more in memory traffic than its shuffles
//! do.

use crate::arithmetic::amx::{self, DERIVATIVE, Parts, Right};
use crate::arithmetic::matmul::{HALF, PANEL, Product, Then, padded, panels};
use crate::arithmetic::transpose::transpose_block;
use crate::layers::mixing::Simplex;
use pulp::Arch;
use std::cell::RefCell;

impl Simplex {
    /// dφ = Wᵀ dψ for `count` rows: dψ is (count, padded C), dφ is (count, padded A).
    pub fn downward(
        &self,
        arch: Arch,
        matrix: usize,
        count: usize,
        dpsi: &[f32],
        dphi: &mut [f32],
    ) {
        let parts = &mut [Lowered { count, dpsi, dphi }];
        downward(
            arch,
            (self.rows, self.columns),
            &self.matrix_panels(matrix),
            parts,
            Parts::Three,
        );
    }
}

/// Rows that one matrix mixed, on their way down: dψ is (count, padded C) and dφ is (count, padded A).
pub(crate) struct Lowered<'a> {
    pub count: usize,
    pub dpsi: &'a [f32],
    pub dphi: &'a mut [f32],
}

// Columns of one matrix turned into lines. One for each thread.
thread_local! {
    static TURNED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// dφ = Wᵀ dψ for all rows of one matrix, given by its panels.
pub(crate) fn downward(
    arch: Arch,
    (rows, columns): (usize, usize),
    weights: &[&[f32]],
    parts: &mut [Lowered<'_>],
    exactness: Parts,
) {
    let (c_wide, width) = (padded(rows), padded(columns));
    let done = downward_on_tiles((rows, columns), weights, parts, exactness);
    TURNED.with_borrow_mut(|turned| {
        for (a, wide) in panels(width).filter(|&(a, _)| a >= done) {
            turned.resize(c_wide * wide, 0.0);
            turn_columns(weights, columns, a, wide, turned);
            for part in parts.iter_mut().filter(|part| part.count > 0) {
                arch.dispatch(Product {
                    rows: part.count,
                    depth: rows,
                    a: part.dpsi,
                    a_row: c_wide,
                    a_step: 1,
                    b: turned,
                    b_step: wide,
                    out: &mut part.dphi[a..],
                    out_row: width,
                    columns: wide,
                    then: Then::Replace,
                    next: &[],
                });
            }
        }
    });
}

/// The panels that tiles multiply, if there are tiles; returns how many columns those are.
fn downward_on_tiles(
    (rows, columns): (usize, usize),
    panels: &[&[f32]],
    parts: &mut [Lowered<'_>],
    exactness: Parts,
) -> usize {
    let (c_wide, width) = (padded(rows), padded(columns));
    if !amx::suits(rows, width) {
        return 0;
    }
    const SCALE: f32 = (1u64 << 24) as f32; // the least weight's parts are not too small then
    amx::with_left(|left| {
        let dpsi: Vec<_> = parts
            .iter()
            .flat_map(|part| part.dpsi.chunks_exact(c_wide).take(part.count))
            .collect();
        left.rows(exactness, c_wide, &dpsi, DERIVATIVE);
        let dphi = parts
            .iter_mut()
            .flat_map(|part| part.dphi.chunks_exact_mut(width).take(part.count));
        let mut dphi: Vec<_> = dphi.collect();
        let right = Right::Turned { columns, panels };
        amx::multiply(
            left,
            (width / PANEL, right, SCALE),
            (&mut dphi, Then::Replace),
            [&[], &[]],
        );
    });
    width / PANEL * PANEL
}

/// Columns a to a + wide of a matrix in panels, as (padded C, wide); zero beyond A.
fn turn_columns(weights: &[&[f32]], columns: usize, a: usize, wide: usize, turned: &mut [f32]) {
    for (panel, c0) in weights.iter().zip((0..).step_by(PANEL)) {
        let c_panel = panel.len() / columns;
        for (i, j) in (0..wide)
            .step_by(HALF)
            .flat_map(|i| (0..c_panel).step_by(HALF).map(move |j| (i, j)))
        {
            let lines = &panel[(a + i).min(columns) * c_panel..];
            let to = &mut turned[(c0 + j) * wide + i..];
            if a + i + HALF <= columns {
                transpose_block(&lines[j..], c_panel, to, wide);
            } else {
                let mut block = [0.0; HALF * HALF];
                let lines = lines.chunks_exact(c_panel).map(|line| &line[j..j + HALF]);
                block
                    .chunks_exact_mut(HALF)
                    .zip(lines)
                    .for_each(|(to, line)| to.copy_from_slice(line));
                transpose_block(&block, HALF, to, wide);
            }
        }
    }
}
