//! The derivative by W: `dW[c,a] = Σ_b dψ_b(c) φ_b(a)`, panel by panel, as `mixing.rs` keeps W.

use crate::kernel::{HALF, PANEL, Product, Then, padded, panels};
use pulp::Arch;

/// Rows that one matrix mixed: φ is (count, padded A) and dψ is (count, padded C).
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    /// Rows.
    pub count: usize,
    /// What went in.
    pub phi: &'a [f32],
    /// The derivative by what came out.
    pub dpsi: &'a [f32],
}

/// Rows of dψ up to this width are read where they lie.
const NARROW: usize = 64;

/// Room for the gradient of one panel.
#[derive(Default)]
pub struct Scratch {
    /// dW of the panel, (A, wide).
    pub gradient: Vec<f32>,
    pack: Vec<f32>, // columns of dψ side by side
}

/// dW of one panel into the scratch, `dW[c,a] = Σ_b dψ(b,c) φ(b,a)`, summed over the segments in their order. What is
/// needed next is fetched meanwhile, one slice a segment.
pub fn gradient_panel<'a>(
    arch: Arch,
    (columns, width, c, wide): (usize, usize, usize, usize),
    segments: impl Iterator<Item = Segment<'a>>,
    scratch: &mut Scratch,
    next: [&[f32]; 2],
) {
    let Scratch { gradient, pack } = scratch;
    gradient.resize(columns * wide, 0.0);
    let mut next = next.into_iter();
    let mut then = Then::Replace;
    for segment in segments.filter(|segment| segment.count > 0) {
        let shape = (columns, width, c, wide);
        put_gradient(arch, shape, segment, (gradient, then), pack, next.next().unwrap_or_default());
        then = Then::Add;
    }
    if then == Then::Replace {
        gradient.fill(0.0);
    }
}

/// Adds the dW of some rows to a matrix in panels.
pub(crate) fn add_gradient(
    arch: Arch,
    (columns, width): (usize, usize),
    segment: Segment<'_>,
    matrix: &mut [f32],
    scratch: &mut Scratch,
) {
    for (c, wide) in panels(width).filter(|_| segment.count > 0) {
        let to = (&mut matrix[c * columns..(c + wide) * columns], Then::Add);
        put_gradient(arch, (columns, width, c, wide), segment, to, &mut scratch.pack, &[]);
    }
}

/// dW of one panel from some rows.
fn put_gradient(
    arch: Arch,
    (columns, width, c, wide): (usize, usize, usize, usize),
    segment: Segment<'_>,
    (out, then): (&mut [f32], Then),
    pack: &mut Vec<f32>,
    next: &[f32],
) {
    let (b, b_step) = match wide {
        _ if width <= NARROW => (&segment.dpsi[c..], width),
        PANEL => (pack_panel::<PANEL>(&segment, width, c, pack), wide),
        _ => (pack_panel::<HALF>(&segment, width, c, pack), wide),
    };
    arch.dispatch(Product {
        rows: columns,
        depth: segment.count,
        a: segment.phi,
        a_row: 1,
        a_step: padded(columns),
        b,
        b_step,
        out,
        out_row: wide,
        columns: wide,
        then,
        next,
    });
}

/// Copies W columns of dψ side by side, so that they do not fight for the same lines of the cache.
fn pack_panel<'a, const W: usize>(segment: &Segment<'_>, width: usize, c: usize, pack: &'a mut Vec<f32>) -> &'a [f32] {
    pack.resize(segment.count * W, 0.0);
    for (to, from) in pack.as_chunks_mut::<W>().0.iter_mut().zip(segment.dpsi.chunks(width)) {
        to.copy_from_slice(&from[c..c + W]);
    }
    pack
}
