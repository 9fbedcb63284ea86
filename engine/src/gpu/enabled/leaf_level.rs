//! The first level in one with its leaves (`first.cu`), and how its dW is shared out.

use crate::error::Result;
use crate::gpu::enabled::args::{LayerArgs, LeavesArgs};
use crate::gpu::enabled::device_buffers::{Buffer, Gpu};
use crate::gpu::enabled::kernels::Kernel;
use crate::gpu::enabled::layout::{Place, TreeBuffers};
use crate::structure::Level;
use cudarc::driver::DeviceRepr;
use std::collections::BTreeMap;

/// Channels of a tile, samples of a step of dW, and sets of warps that share a block's samples.
const COLUMNS: usize = 64;
const TILE: usize = 16;
const SETS: usize = 2;

// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for FirstArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for GradientArgs {}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FirstArgs {
    leaves: LeavesArgs,
    above: LayerArgs,
    weights: u64,
    child: u64,
    matrix: u64,
    by: u64,
    tops: u64,
    top_count: i32,
    shares: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Share {
    window: i32,
    count: i32,
    share: i32,
    shares: i32,
    run: i32,
    c: i32,
    matrix: [i32; 4],
    out: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct GradientArgs {
    first: FirstArgs,
    shares: u64,
    windows: u64,
    sums: u64,
}

/// The first level of one tree, which is computed together with its leaves.
pub(crate) struct LeafLevel<'a> {
    pub gpu: &'a Gpu,
    pub tree: &'a TreeBuffers,
    pub leaves: LeavesArgs,
    pub weights: Buffer<f32>,
    /// 4 / the least number of all its matrices.
    pub level_by: Buffer<f32>,
}

impl LeafLevel<'_> {
    fn args(&self, shares: usize) -> FirstArgs {
        FirstArgs {
            leaves: self.leaves,
            above: self.tree.layers[1].args(),
            weights: self.weights.at,
            child: self.tree.stages[0].child.at,
            matrix: self.tree.matrix[0].at,
            by: self.level_by.at,
            tops: 0,
            top_count: 0,
            shares: shares as i32,
        }
    }

    /// From the frame to the first products. Also clears the tops of the layers above, if told to.
    pub fn forward(&self, clears_tops: bool) -> Result<()> {
        let above = &self.tree.layers[1];
        let tiles = above.nodes * above.channels.div_ceil(COLUMNS);
        let max_shares = self.leaves.rows as usize / 64;
        let shares = (8 * self.gpu.processors() / tiles).clamp(1, max_shares); // twice as many as run at once: some have less to do
        let mut args = self.args(shares);
        if clears_tops {
            let layers = &self.tree.layers[2..];
            args.tops = layers.first().map_or(0, |layer| layer.top.at);
            args.top_count = layers.iter().map(|layer| layer.top.len as i32).sum();
        }
        self.gpu
            .launch(Kernel::FirstUp.on(tiles * shares, 128), &args)
    }

    /// dW of the level, into `sums`.
    pub fn gradient(&self, work: &FirstGradient, sums: Buffer<f32>) -> Result<()> {
        let args = GradientArgs {
            first: self.args(1),
            shares: work.shares.at,
            windows: work.windows.at,
            sums: sums.at,
        };
        let threads = (128 * SETS) as u32;
        self.gpu
            .launch(Kernel::FirstGradient.on(work.shares.len, threads), &args)
    }
}

/// Whether the first level of these trees, computed with its leaves, can also clear the tops of those above it. Its own
/// it writes whole.
pub(crate) fn clears_tops(trees: &[TreeBuffers]) -> bool {
    trees.len() == 1 && trees[0].first && trees[0].layers[1].channels <= COLUMNS
}

/// How dW of one tree's first level is shared out.
pub(crate) struct FirstGradient {
    /// Its tree.
    pub tree: usize,
    shares: Buffer<Share>,
    windows: Buffer<i32>,
    /// Into how many parts the sums are cut.
    pub parts: usize,
}

/// What the work of dW depends on.
pub(crate) struct FirstGradientPlan<'a> {
    pub tree: usize,
    pub level: &'a Level,
    pub place: Place,
    /// Where its sums start.
    pub sums: usize,
    /// Rows of a batch.
    pub rows: usize,
}

impl FirstGradient {
    /// Shares the work out.
    pub fn new(gpu: &mut Gpu, plan: &FirstGradientPlan<'_>) -> Result<Self> {
        let shared = SharedOut::new(plan, gpu.processors());
        Ok(Self {
            tree: plan.tree,
            shares: gpu.upload(&shared.shares)?,
            windows: gpu.upload(&shared.windows)?,
            parts: shared.parts,
        })
    }
}

/// Windows with the same matrices are summed together, by as many blocks as their number deserves.
struct SharedOut {
    shares: Vec<Share>,
    windows: Vec<i32>,
    parts: usize,
}

impl SharedOut {
    fn new(plan: &FirstGradientPlan<'_>, processors: usize) -> Self {
        let (level, place) = (plan.level, plan.place);
        let c_tiles = level.channels.div_ceil(COLUMNS);
        let run = if plan.rows > 2048 { 16 } else { 4 }; // steps between which leaves are not read again
        let (mut shares, mut windows, mut next) = (Vec::new(), Vec::new(), vec![0; place.matrices]);
        for (matrix, own) in windows_by_matrices(level) {
            let blocks = processors * own.len() / (level.children.len() * c_tiles);
            let max_blocks = (own.len() * (plan.rows / TILE).div_ceil(run)).div_ceil(SETS);
            let count = blocks.clamp(1, max_blocks.max(1));
            for share in 0..count {
                let mut out = [0; 4];
                for (m, out) in matrix.iter().zip(&mut out).filter(|(m, _)| **m >= 0) {
                    let m = *m as usize;
                    let first = plan.sums + next[m] * place.len();
                    *out = (first + m * place.rows * place.padded) as u64;
                    next[m] += 1;
                }
                shares.extend((0..c_tiles).map(|c| Share {
                    window: windows.len() as i32,
                    count: own.len() as i32,
                    share: share as i32,
                    shares: count as i32,
                    run: run as i32,
                    c: (c * COLUMNS) as i32,
                    matrix,
                    out,
                }));
            }
            windows.extend(own);
        }
        let parts = next.into_iter().max().unwrap_or(1);
        Self {
            shares,
            windows,
            parts,
        }
    }
}

/// Windows by the matrices of their children, −1 where a child is not there.
fn windows_by_matrices(level: &Level) -> BTreeMap<[i32; 4], Vec<i32>> {
    let mut groups: BTreeMap<[i32; 4], Vec<i32>> = BTreeMap::new();
    for (p, children) in level.children.iter().enumerate() {
        let mut matrices = [-1; 4];
        for (m, &j) in matrices.iter_mut().zip(children) {
            *m = level.weight_of[j as usize] as i32;
        }
        groups.entry(matrices).or_default().push(p as i32);
    }
    groups
}
