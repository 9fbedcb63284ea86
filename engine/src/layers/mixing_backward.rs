//! The way back through a mixing, `dφ(a) = Σ_c W[c,a] dψ(c)`.
//!
//! Wᵀ is made when it is needed, 32 columns at a time: kept beside W, it would cost more in memory traffic than its shuffles
//! do.

use crate::arithmetic::amx::{self, DERIVATIVE, Left, Parts, Right, RightSide, Target};
use crate::arithmetic::matmul::{HALF, PANEL, Panel, Product, Then, padded, panels};
use crate::arithmetic::transpose::transpose_block;
use crate::layers::simplex::Simplex;
use pulp::Arch;
use std::cell::RefCell;

impl Simplex {
    /// dφ = Wᵀ dψ for `count` rows: dψ is (count, padded C), dφ is (count, padded A).
    pub fn backward(
        &self,
        arch: Arch,
        matrix: usize,
        count: usize,
        dpsi: &[f32],
        dphi: &mut [f32],
    ) {
        let shape = MixingShape {
            rows: self.rows,
            columns: self.columns,
        };
        let parts = &mut [BackwardRows { count, dpsi, dphi }];
        let panels = self.matrix_panels(matrix);
        backward(arch, shape, &panels, parts, Parts::Three);
    }
}

/// The shape of a matrix that mixes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MixingShape {
    /// C.
    pub rows: usize,
    /// A.
    pub columns: usize,
}

/// Rows that one matrix mixed, on their way back: dψ is (count, padded C) and dφ is (count, padded A).
pub(crate) struct BackwardRows<'a> {
    pub count: usize,
    pub dpsi: &'a [f32],
    pub dphi: &'a mut [f32],
}

// Columns of one matrix turned into lines. One for each thread.
thread_local! {
    static TURNED: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// dφ = Wᵀ dψ for all rows of one matrix, given by its panels.
pub(crate) fn backward(
    arch: Arch,
    shape: MixingShape,
    weights: &[&[f32]],
    parts: &mut [BackwardRows<'_>],
    exactness: Parts,
) {
    let width = padded(shape.columns);
    let done = backward_on_tiles(shape, weights, parts, exactness);
    for panel in panels(width).filter(|panel| panel.first >= done) {
        TURNED.with_borrow_mut(|turned| {
            turned.resize(padded(shape.rows) * panel.width, 0.0);
            turn_columns(weights, shape.columns, panel, turned);
            backward_panel(arch, shape, panel, turned, parts);
        });
    }
}

/// Some columns of dφ, from the same columns of W turned into lines.
fn backward_panel(
    arch: Arch,
    shape: MixingShape,
    panel: Panel,
    turned: &[f32],
    parts: &mut [BackwardRows<'_>],
) {
    for part in parts.iter_mut().filter(|part| part.count > 0) {
        arch.dispatch(Product {
            rows: part.count,
            depth: shape.rows,
            a: part.dpsi,
            a_row: padded(shape.rows),
            a_step: 1,
            b: turned,
            b_step: panel.width,
            out: &mut part.dphi[panel.first..],
            out_row: padded(shape.columns),
            columns: panel.width,
            then: Then::Replace,
            next: &[],
        });
    }
}

/// The panels that tiles multiply, if there are tiles; returns how many columns those are.
fn backward_on_tiles(
    shape: MixingShape,
    panels: &[&[f32]],
    parts: &mut [BackwardRows<'_>],
    exactness: Parts,
) -> usize {
    let width = padded(shape.columns);
    if !amx::suits(shape.rows, width) {
        return 0;
    }
    amx::with_left(|left| multiply_on_tiles(left, shape, panels, parts, exactness));
    width / PANEL * PANEL
}

/// Those panels, with a left side whose memory is used again.
fn multiply_on_tiles(
    left: &mut Left,
    MixingShape { rows, columns }: MixingShape,
    panels: &[&[f32]],
    parts: &mut [BackwardRows<'_>],
    exactness: Parts,
) {
    const SCALE: f32 = (1u64 << 24) as f32; // the least weight's parts are not too small then
    let (c_padded, width) = (padded(rows), padded(columns));
    let dpsi: Vec<_> = parts
        .iter()
        .flat_map(|part| part.dpsi.chunks_exact(c_padded).take(part.count))
        .collect();
    left.rows(exactness, c_padded, &dpsi, DERIVATIVE);
    let dphi = parts
        .iter_mut()
        .flat_map(|part| part.dphi.chunks_exact_mut(width).take(part.count));
    let mut dphi: Vec<_> = dphi.collect();
    let right = RightSide {
        panels: width / PANEL,
        numbers: Right::Turned { columns, panels },
        scale: SCALE,
        next: [&[], &[]],
    };
    let target = Target {
        rows: &mut dphi,
        then: Then::Replace,
    };
    amx::multiply(left, right, target);
}

/// Some columns a of a matrix in panels, as lines (padded C, width); zero beyond A.
fn turn_columns(weights: &[&[f32]], columns: usize, some: Panel, turned: &mut [f32]) {
    let Panel { first: a, width } = some;
    for (panel, c0) in weights.iter().zip((0..).step_by(PANEL)) {
        let c_panel = panel.len() / columns;
        for (i, j) in (0..width)
            .step_by(HALF)
            .flat_map(|i| (0..c_panel).step_by(HALF).map(move |j| (i, j)))
        {
            let lines = &panel[(a + i).min(columns) * c_panel..];
            let to = &mut turned[(c0 + j) * width + i..];
            if a + i + HALF <= columns {
                transpose_block(&lines[j..], c_panel, to, width);
            } else {
                let mut block = [0.0; HALF * HALF];
                let lines = lines.chunks_exact(c_panel).map(|line| &line[j..j + HALF]);
                block
                    .chunks_exact_mut(HALF)
                    .zip(lines)
                    .for_each(|(to, line)| to.copy_from_slice(line));
                transpose_block(&block, HALF, to, width);
            }
        }
    }
}
