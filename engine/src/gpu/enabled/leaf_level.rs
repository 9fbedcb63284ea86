//! The first level in one with its leaves (`first.cu`): which trees it fits, and how its dW is shared out.

use crate::device::Precision;
use crate::error::Result;
use crate::gpu::enabled::args::{LayerArgs, LeavesArgs};
use crate::gpu::enabled::circuit::Circuit;
use crate::gpu::enabled::device_buffers::{Card, Room};
use crate::gpu::enabled::layout::Place;
use crate::layers::leaf::{Coordinate, Family};
use crate::structure::Tree;
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

/// Whether a tree's first level can be computed with its leaves.
pub(crate) fn fits(tree: &Tree, families: &[Family], precision: Precision) -> bool {
    let small = |family: &Family| {
        let normal = |c: &Coordinate| matches!(c, Coordinate::Gaussian { .. });
        family.components <= 32
            && family.coordinates.len() <= 4
            && family.coordinates.iter().all(normal)
    };
    let windows = |tree: &Tree| {
        tree.levels
            .first()
            .is_some_and(|level| level.children.iter().all(|own| own.len() <= 4))
    };
    precision == Precision::Tf32 && families.iter().all(small) && windows(tree)
}

impl Circuit {
    fn first_args(&self, t: usize, rows: usize, samples: usize, shares: usize) -> FirstArgs {
        let tree = &self.trees[t];
        FirstArgs {
            leaves: self.leaves_args(t, rows, samples),
            above: tree.layers[1].args(),
            weights: self.level_weights(t, 1).at,
            child: tree.stages[0].child.at,
            matrix: tree.matrix[0].at,
            tops: 0,
            top_count: 0,
            shares: shares as i32,
        }
    }

    /// From the frame to the first products of tree t.
    pub fn first_up(&self, t: usize, rows: usize, samples: usize) -> Result<()> {
        let above = &self.trees[t].layers[1];
        let tiles = above.nodes * above.channels.div_ceil(COLUMNS);
        let shares = (8 * self.processors() / tiles).clamp(1, rows / 64); // twice as many as run at once: some have less to do
        let mut args = self.first_args(t, rows, samples, shares);
        if self.clears_tops() {
            let layers = &self.trees[t].layers[2..];
            args.tops = layers.first().map_or(0, |layer| layer.top.at);
            args.top_count = layers.iter().map(|layer| layer.top.len as i32).sum();
        }
        self.card.launch("first_up", &args, tiles * shares, 128)
    }

    /// Whether the first level of the one tree, with its leaves, also clears the tops of those above it. Its own it writes
    /// whole.
    pub fn clears_tops(&self) -> bool {
        self.trees.len() == 1 && self.trees[0].first && self.trees[0].layers[1].channels <= COLUMNS
    }
}

/// dW of one tree's first level, ready to be computed.
pub(crate) struct FirstGradient {
    tree: usize,
    shares: Room<Share>,
    windows: Room<i32>,
}

impl FirstGradient {
    /// Shares the work out; sums start at `sums`. Returns also into how many parts they are cut.
    pub fn new(
        circuit: &mut Circuit,
        t: usize,
        place: Place,
        sums: usize,
    ) -> Result<(Self, usize)> {
        let (shares, windows, parts) = share_out(circuit, t, place, sums);
        let card = &mut circuit.card;
        Ok((
            Self {
                tree: t,
                shares: card.keep(&shares)?,
                windows: card.keep(&windows)?,
            },
            parts,
        ))
    }

    pub fn launch(
        &self,
        circuit: &Circuit,
        card: &Card,
        samples: usize,
        sums: Room<f32>,
    ) -> Result<()> {
        let first = circuit.first_args(self.tree, circuit.rows, samples, 1);
        let args = GradientArgs {
            first,
            shares: self.shares.at,
            windows: self.windows.at,
            sums: sums.at,
        };
        card.launch(
            "first_gradient",
            &args,
            self.shares.len,
            (128 * SETS) as u32,
        )
    }
}

/// Windows with the same matrices are summed together, by so many blocks as their number deserves.
fn share_out(
    circuit: &Circuit,
    t: usize,
    place: Place,
    sums: usize,
) -> (Vec<Share>, Vec<i32>, usize) {
    let level = &circuit.structure.trees[t].levels[0];
    let mut groups: BTreeMap<[i32; 4], Vec<i32>> = BTreeMap::new();
    for (p, children) in level.children.iter().enumerate() {
        let mut matrices = [-1; 4];
        children
            .iter()
            .zip(&mut matrices)
            .for_each(|(&j, m)| *m = level.weight_of[j as usize] as i32);
        groups.entry(matrices).or_default().push(p as i32);
    }
    let c_tiles = level.channels.div_ceil(COLUMNS);
    let run = if circuit.rows > 2048 { 16 } else { 4 }; // steps between which leaves are not read again
    let (mut shares, mut windows, mut next) = (Vec::new(), Vec::new(), vec![0; place.matrices]);
    for (matrix, own) in groups {
        let blocks = circuit.processors() * own.len() / (level.children.len() * c_tiles);
        let most = (own.len() * (circuit.rows / TILE).div_ceil(run)).div_ceil(SETS);
        let count = blocks.clamp(1, most.max(1));
        for share in 0..count {
            let mut out = [0; 4];
            for (m, out) in matrix.iter().zip(&mut out).filter(|(m, _)| **m >= 0) {
                let m = *m as usize;
                *out = (sums + next[m] * place.len() + m * place.rows * place.wide) as u64;
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
    (shares, windows, next.into_iter().max().unwrap_or(1))
}
