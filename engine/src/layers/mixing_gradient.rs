//! The derivative by W: `dW[c,a] = Σ_b dψ_b(c) φ_b(a)`, panel by panel, as `mixing.rs` keeps W.

use crate::arithmetic::amx::{self, DERIVATIVE, Left, Parts, Right};
use crate::arithmetic::matmul::{HALF, PANEL, Product, Then, padded, panels};
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

/// Rows that one matrix mixed, ready to be summed panel by panel.
pub struct Mixed<'a> {
    columns: usize,
    width: usize,
    segments: Vec<Segment<'a>>,
    tiles: Option<(&'a Left, &'a [&'a [f32]])>, // φ turned and cut, and the rows of dψ
}

/// Makes segments of a matrix of `columns` columns and padded `width` rows ready.
pub fn with_mixed<'a>(
    (columns, width): (usize, usize),
    segments: impl Iterator<Item = Segment<'a>>,
    work: impl FnOnce(&Mixed<'_>),
) {
    let segments: Vec<_> = segments.filter(|segment| segment.count > 0).collect();
    if !amx::suits(columns, width) {
        return work(&Mixed {
            columns,
            width,
            segments,
            tiles: None,
        });
    }
    const SCALE: f32 = (1u64 << 24) as f32; // φ may be as small as dψ is large
    amx::with_left(|left| {
        let a_wide = padded(columns);
        let rows = |segment: &Segment<'a>| segment.phi.chunks_exact(a_wide).take(segment.count);
        let phi: Vec<_> = segments.iter().flat_map(rows).collect();
        let dpsi = |segment: &Segment<'a>| segment.dpsi.chunks_exact(width).take(segment.count);
        let dpsi: Vec<_> = segments.iter().flat_map(dpsi).collect();
        left.columns(Parts::Two, a_wide, &phi, SCALE);
        work(&Mixed {
            columns,
            width,
            segments,
            tiles: Some((left, &dpsi)),
        });
    });
}

impl Mixed<'_> {
    /// dW of one panel into the scratch, `dW[c,a] = Σ_b dψ(b,c) φ(b,a)`, in the order of the segments. What is needed
    /// next is fetched meanwhile.
    pub fn gradient(
        &self,
        arch: Arch,
        (c, wide): (usize, usize),
        scratch: &mut Scratch,
        next: [&[f32]; 2],
    ) {
        let &Self { columns, width, .. } = self;
        let Scratch { gradient, pack } = scratch;
        if self.segments.is_empty() {
            gradient.clear();
            gradient.resize(columns * wide, 0.0);
            return;
        }
        if let (Some((left, dpsi)), PANEL) = (self.tiles, wide) {
            gradient.resize(padded(columns) * wide, 0.0);
            let mut rows: Vec<_> = gradient.chunks_exact_mut(wide).collect();
            let right = Right::Rows {
                rows: dpsi,
                column: c,
            };
            amx::multiply(
                left,
                (1, right, DERIVATIVE),
                (&mut rows, Then::Replace),
                next,
            );
            return gradient.truncate(columns * wide);
        }
        gradient.resize(columns * wide, 0.0);
        let mut next = next.into_iter();
        for (index, &segment) in self.segments.iter().enumerate() {
            let then = if index == 0 { Then::Replace } else { Then::Add };
            let next = next.next().unwrap_or_default();
            put_gradient(
                arch,
                (columns, width, c, wide),
                segment,
                (gradient, then),
                pack,
                next,
            );
        }
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
        put_gradient(
            arch,
            (columns, width, c, wide),
            segment,
            to,
            &mut scratch.pack,
            &[],
        );
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
fn pack_panel<'a, const W: usize>(
    segment: &Segment<'_>,
    width: usize,
    c: usize,
    pack: &'a mut Vec<f32>,
) -> &'a [f32] {
    pack.resize(segment.count * W, 0.0);
    for (to, from) in pack
        .as_chunks_mut::<W>()
        .0
        .iter_mut()
        .zip(segment.dpsi.chunks(width))
    {
        to.copy_from_slice(&from[c..c + W]);
    }
    pack
}
