//! What the guard kernel needs: the tree as it is, and scratch for some samples at a time (`guard.cu`).

use crate::error::Result;
use crate::gpu::enabled::args::{LeavesArgs, RootArgs};
use crate::gpu::enabled::circuit::Circuit;
use crate::gpu::enabled::device_buffers::Buffer;
use crate::gpu::enabled::kernels::Kernel;
use crate::structure::Tree;
use cudarc::driver::DeviceRepr;

/// Bytes that the guard may take of the gpu, at most; a block of it needs buffer for one sample and for all counts.
const MOST_BYTES: usize = 4 << 30;

// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for GuardArgs {}

#[repr(C)]
#[derive(Clone, Copy)]
struct GuardLayer {
    phi: u64,
    e: u64,
    flow: u64,
    scale: u64,
    psi: u64,
    drop: u64,
    weights: u64,
    matrix: u64,
    first: u64,
    children: u64,
    counts: u64,
    nodes: i32,
    channels: i32,
    above_nodes: i32,
    above_channels: i32,
    wide: i32,
    padding: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct GuardTree {
    leaves: LeavesArgs,
    first: i32,
    levels: i32,
    left: i32,
    padding: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct GuardArgs {
    root: RootArgs,
    trees: u64,
    layers: u64,
    scratch: u64,
    counts: u64,
    guarded: u64,
    stride: u64,
    count_stride: u64,
    class_counts: u64,
    tops: u64,
    log_root: u64,
    seeds: u64,
    to_leaves: i32,
}

/// What the guard kernel works in.
pub(crate) struct UnderflowGuard {
    trees: Buffer<GuardTree>,
    layers: Buffer<GuardLayer>,
    scratch: Buffer<f64>,
    /// (blocks, all weights): flows of the samples that a block computed again.
    pub counts: Buffer<f32>,
    /// (blocks): whether it did.
    pub guarded: Buffer<i32>,
    offsets: [u64; 3], // tops, log_root, seeds
    stride: usize,
    pub blocks: usize,
}

impl UnderflowGuard {
    /// Masks of dropped nodes must be there already.
    pub fn new(circuit: &mut Circuit, samples: usize) -> Result<Self> {
        let mut used = 0;
        let mut take = |numbers: usize| {
            used += numbers;
            (used - numbers) as u64
        };
        let (mut layers, mut trees) = (Vec::new(), Vec::new());
        for t in 0..circuit.trees.len() {
            let first = layers.len() as i32;
            let leaves = circuit.leaves_args(t, circuit.rows, samples);
            let tree = circuit.structure.trees[t].clone();
            for l in 0..=tree.levels.len() {
                layers.push(guard_layer(circuit, t, &tree, l, &mut take)?);
            }
            let left = circuit.places.left[t] as i32;
            trees.push(GuardTree {
                leaves,
                first,
                levels: tree.levels.len() as i32,
                left,
                padding: 0,
            });
        }
        let (columns, classes) = (circuit.places.classes.padded, circuit.structure.classes);
        let offsets = [take(2 * columns), take(classes), take(classes)];
        let total = circuit.places.total;
        let most = MOST_BYTES.min(circuit.gpu.free()? / 8) / (8 * used + 4 * total);
        let blocks = most.clamp(1, samples.min(circuit.gpu.processors()));
        let gpu = &mut circuit.gpu;
        Ok(Self {
            trees: gpu.upload(&trees)?,
            layers: gpu.upload(&layers)?,
            scratch: gpu.allocate(blocks * used)?,
            counts: gpu.allocate(blocks * total)?,
            guarded: gpu.allocate(blocks)?,
            offsets,
            stride: used,
            blocks,
        })
    }

    pub fn launch(&self, circuit: &Circuit, root: &RootArgs, to_leaves: bool) -> Result<()> {
        let [tops, log_root, seeds] = self.offsets;
        let args = GuardArgs {
            root: *root,
            trees: self.trees.at,
            layers: self.layers.at,
            scratch: self.scratch.at,
            counts: self.counts.at,
            guarded: self.guarded.at,
            stride: self.stride as u64,
            count_stride: circuit.places.total as u64,
            class_counts: circuit.places.classes.first as u64,
            tops,
            log_root,
            seeds,
            to_leaves: i32::from(to_leaves),
        };
        circuit
            .gpu
            .launch(Kernel::Guard.on(self.blocks, 256), &args)
    }
}

fn guard_layer(
    circuit: &mut Circuit,
    t: usize,
    tree: &Tree,
    l: usize,
    take: &mut impl FnMut(usize) -> u64,
) -> Result<GuardLayer> {
    let (nodes, channels) = (tree.nodes(l), tree.channels(l));
    let layer = &circuit.trees[t].layers[circuit.trees[t].layer_of[l]];
    let mut made = GuardLayer {
        phi: take(nodes * channels),
        e: take(nodes * channels),
        flow: take(nodes * channels),
        scale: take(nodes),
        psi: 0,
        drop: layer.drop.at,
        weights: 0,
        matrix: 0,
        first: 0,
        children: 0,
        counts: 0,
        nodes: nodes as i32,
        channels: channels as i32,
        above_nodes: 0,
        above_channels: 0,
        wide: 0,
        padding: 0,
    };
    if let Some(level) = tree.levels.get(l) {
        let place = circuit.places.levels[t][l];
        let mut first = vec![0i32];
        level
            .children
            .iter()
            .for_each(|own| first.push(first[first.len() - 1] + own.len() as i32));
        let children: Vec<i32> = level
            .children
            .iter()
            .flatten()
            .map(|&child| child as i32)
            .collect();
        made.psi = take(nodes * level.channels);
        made.weights = circuit.weights.part(place.first, place.len()).at;
        made.matrix = circuit.trees[t].matrix[l].at;
        made.first = circuit.gpu.upload(&first)?.at;
        made.children = circuit.gpu.upload(&children)?.at;
        made.counts = place.first as u64;
        made.above_nodes = level.children.len() as i32;
        made.above_channels = level.channels as i32;
        made.wide = place.padded as i32;
    }
    Ok(made)
}
