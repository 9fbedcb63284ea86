//! The derivative by W: `dW[c,a] = Σ_b dψ_b(c) φ_b(a)`, panel by panel, as `mixing.rs` keeps W.

use crate::arithmetic::amx::{self, DERIVATIVE, Left, Parts, Right, RightSide, Target};
use crate::arithmetic::matmul::{HALF, PANEL, Panel, Product, Then, padded, panels};
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

/// Scratch for the gradient of one panel.
#[derive(Default)]
pub struct Scratch {
    /// dW of the panel, (A, width).
    pub gradient: Vec<f32>,
    pack: Vec<f32>, // columns of dψ side by side
}

impl Scratch {
    /// dW of so many numbers as the sum of several.
    pub fn sum<'a>(&mut self, length: usize, several: impl Iterator<Item = &'a [f32]>) {
        self.gradient.clear();
        self.gradient.resize(length, 0.0);
        for numbers in several {
            let both = self.gradient.iter_mut().zip(numbers);
            both.for_each(|(to, number)| *to += number);
        }
    }
}

/// The shape of a matrix in panels.
#[derive(Clone, Copy, Debug)]
pub struct MatrixShape {
    /// A.
    pub columns: usize,
    /// Padded C.
    pub padded_rows: usize,
}

/// Rows that one matrix mixed, ready to be summed panel by panel.
pub struct Mixed<'a> {
    shape: MatrixShape,
    segments: Vec<Segment<'a>>,
    tiles: Option<TileOperands<'a>>,
}

/// φ turned and cut, and the rows of dψ.
struct TileOperands<'a> {
    phi: &'a Left,
    dpsi: &'a [&'a [f32]],
}

/// Makes segments of a matrix ready.
pub fn with_mixed<'a>(
    shape: MatrixShape,
    segments: impl Iterator<Item = Segment<'a>>,
    work: impl FnOnce(&Mixed<'_>),
) {
    let segments: Vec<_> = segments.filter(|segment| segment.count > 0).collect();
    if !amx::suits(shape.columns, shape.padded_rows) {
        return work(&Mixed {
            shape,
            segments,
            tiles: None,
        });
    }
    amx::with_left(|left| with_tiles(left, shape, segments, work));
}

/// The same for tiles, with a left side whose memory is used again.
fn with_tiles(
    left: &mut Left,
    shape: MatrixShape,
    segments: Vec<Segment<'_>>,
    work: impl FnOnce(&Mixed<'_>),
) {
    const SCALE: f32 = (1u64 << 24) as f32; // φ may be as small as dψ is large
    let a_padded = padded(shape.columns);
    let (mut phi, mut dpsi) = (Vec::new(), Vec::new());
    for Segment {
        count,
        phi: from,
        dpsi: d,
    } in &segments
    {
        phi.extend(from.chunks_exact(a_padded).take(*count));
        dpsi.extend(d.chunks_exact(shape.padded_rows).take(*count));
    }
    left.columns(Parts::Two, a_padded, &phi, SCALE);
    work(&Mixed {
        shape,
        segments,
        tiles: Some(TileOperands {
            phi: left,
            dpsi: &dpsi,
        }),
    });
}

impl Mixed<'_> {
    /// dW of one panel into the scratch, `dW[c,a] = Σ_b dψ(b,c) φ(b,a)`, in the order of the segments. What is needed
    /// next is fetched meanwhile.
    pub fn gradient(&self, arch: Arch, panel: Panel, scratch: &mut Scratch, next: [&[f32]; 2]) {
        let Scratch { gradient, pack } = scratch;
        let length = self.shape.columns * panel.width;
        if self.segments.is_empty() {
            gradient.clear();
            gradient.resize(length, 0.0);
            return;
        }
        if let (Some(tiles), PANEL) = (&self.tiles, panel.width) {
            gradient.resize(padded(self.shape.columns) * panel.width, 0.0);
            tiles.gradient(panel, gradient, next);
            return gradient.truncate(length);
        }
        gradient.resize(length, 0.0);
        let mut next = next.into_iter();
        for (index, segment) in self.segments.iter().enumerate() {
            let then = if index == 0 { Then::Replace } else { Then::Add };
            let product = PanelGradient {
                shape: self.shape,
                panel,
                then,
                next: next.next().unwrap_or_default(),
            };
            product.compute(arch, segment, gradient, pack);
        }
    }
}

impl TileOperands<'_> {
    fn gradient(&self, panel: Panel, gradient: &mut [f32], next: [&[f32]; 2]) {
        let mut rows: Vec<_> = gradient.chunks_exact_mut(panel.width).collect();
        let right = RightSide {
            panels: 1,
            numbers: Right::Rows {
                rows: self.dpsi,
                column: panel.first,
            },
            scale: DERIVATIVE,
            next,
        };
        let target = Target {
            rows: &mut rows,
            then: Then::Replace,
        };
        amx::multiply(self.phi, right, target);
    }
}

/// Adds the dW of some rows to a matrix in panels.
pub(crate) fn add_gradient(
    arch: Arch,
    shape: MatrixShape,
    segment: Segment<'_>,
    matrix: &mut [f32],
    scratch: &mut Scratch,
) {
    for panel in panels(shape.padded_rows).filter(|_| segment.count > 0) {
        let product = PanelGradient {
            shape,
            panel,
            then: Then::Add,
            next: &[],
        };
        let end = panel.first + panel.width;
        let out = &mut matrix[panel.first * shape.columns..end * shape.columns];
        product.compute(arch, &segment, out, &mut scratch.pack);
    }
}

/// dW of one panel from some rows.
struct PanelGradient<'a> {
    shape: MatrixShape,
    panel: Panel,
    then: Then,
    next: &'a [f32], // what is needed next
}

impl PanelGradient<'_> {
    fn compute(&self, arch: Arch, segment: &Segment<'_>, out: &mut [f32], pack: &mut Vec<f32>) {
        let (row_length, Panel { first, width }) = (self.shape.padded_rows, self.panel);
        let (b, b_step) = match width {
            _ if row_length <= NARROW => (&segment.dpsi[first..], row_length),
            PANEL => (pack_panel::<PANEL>(segment, row_length, first, pack), width),
            _ => (pack_panel::<HALF>(segment, row_length, first, pack), width),
        };
        arch.dispatch(Product {
            rows: self.shape.columns,
            depth: segment.count,
            a: segment.phi,
            a_row: 1,
            a_step: padded(self.shape.columns),
            b,
            b_step,
            out,
            out_row: width,
            columns: width,
            then: self.then,
            next: self.next,
        });
    }
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
