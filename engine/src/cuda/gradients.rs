//! dW of every level and of the class rows, in tiles (`down.cu`).

use super::args::LayerArgs;
use super::card::{Card, Room};
use super::circuit::Circuit;
use super::first::FirstGradient;
use super::layout::{Place, wide};
use crate::error::Result;
use crate::structure::ClassRows;
use cudarc::driver::DeviceRepr;

// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for GradientArgs {}

#[repr(C)]
#[derive(Clone, Copy)]
struct Part {
    source: i32,
    matrix: i32,
    c: i32,
    a: i32,
    from: i32,
    until: i32,
    out: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Source {
    below: LayerArgs,
    above: LayerArgs,
    others: u64,
    factor: u64,
    parent: u64,
    nodes: u64,
    first: u64,
    stride: i32,
    columns: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct GradientArgs {
    sources: u64,
    parts: u64,
    sums: u64,
    rows: i32,
}

/// What moves: columns of each, its place among the weights, and (first, parts) of its dW among the sums.
pub(super) type Moving = Vec<(usize, Place, (usize, usize))>;

/// One shape of the dW kernel.
struct Tile {
    kernel: &'static str,
    threads: u32,
    c: usize,
    a: usize,
    samples: usize, // of one step
}

static TILES: [Tile; 5] = [
    Tile { kernel: "gradient_small", threads: 128, c: 32, a: 32, samples: 16 },
    Tile { kernel: "gradient_flat", threads: 256, c: 64, a: 32, samples: 16 },
    Tile { kernel: "gradient_large", threads: 256, c: 64, a: 64, samples: 16 },
    Tile { kernel: "gradient_tall", threads: 256, c: 128, a: 64, samples: 32 },
    Tile { kernel: "gradient_huge", threads: 256, c: 128, a: 128, samples: 16 },
];

/// The shape for a matrix: small ones for little work, else as large as the matrix fills.
fn tile_of(rows: usize, c: usize, a: usize) -> usize {
    match (c >= 128, a) {
        _ if rows < 512 => 0,
        (true, 128..) => 4,
        (true, 64..) => 3,
        (_, 33..) => 2,
        _ => 1,
    }
}

/// All dW, ready to be computed.
pub(super) struct Gradients {
    sources: Room<Source>,
    parts: Vec<(&'static Tile, Room<Part>)>,
    firsts: Vec<FirstGradient>, // of levels that are computed with their leaves
    /// dW, in the parts of its sums.
    pub sums: Room<f32>,
}

impl Gradients {
    pub fn new(circuit: &mut Circuit) -> Result<(Self, Moving)> {
        let (sources, parts, firsts, moving, sums) = gradient_parts(circuit, circuit.rows)?;
        let card = &mut circuit.card;
        let (sources, parts) = (card.keep(&sources)?, keep_parts(card, &parts)?);
        Ok((Self { sources, parts, firsts, sums: card.room(sums)? }, moving))
    }

    pub fn launch(&self, circuit: &Circuit, samples: usize) -> Result<()> {
        let (card, rows) = (&circuit.card, circuit.rows);
        for (tile, parts) in &self.parts {
            let gradient =
                GradientArgs { sources: self.sources.at, parts: parts.at, sums: self.sums.at, rows: rows as i32 };
            card.launch(tile.kernel, &gradient, parts.len, tile.threads)?;
        }
        self.firsts.iter().try_for_each(|first| first.launch(circuit, card, samples, self.sums))
    }
}

fn keep_parts(card: &mut Card, parts: &[Vec<Part>; 5]) -> Result<Vec<(&'static Tile, Room<Part>)>> {
    let used = TILES.iter().zip(parts).filter(|(_, parts)| !parts.is_empty());
    used.map(|(tile, parts)| Ok((tile, card.keep(parts)?))).collect()
}

/// Sources, parts by shape, first levels, what moves, and how many sums there are.
type Cut = (Vec<Source>, [Vec<Part>; 5], Vec<FirstGradient>, Moving, usize);

/// Cuts all dW into tiles and, where few tiles sum over many samples, into parts of the sum.
fn gradient_parts(circuit: &mut Circuit, rows: usize) -> Result<Cut> {
    let blocks = 2 * circuit.card.processors(); // for each level: as many as run at once
    let mut parts: [Vec<Part>; 5] = Default::default();
    let (mut sources, mut firsts, mut moving, mut sums) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut add = |source: Source, place: Place, nodes: &[usize], first: usize, splits: usize, left: usize| {
        let kind = tile_of(rows, place.rows, place.wide);
        let tile = &TILES[kind];
        let (c_tiles, a_tiles) = (place.rows.div_ceil(tile.c), (source.below.wide as usize).div_ceil(tile.a));
        // Parts of siblings side by side: they read the same dφ.
        for (split, (matrix, &nodes)) in (0..splits).flat_map(|split| nodes.iter().enumerate().map(move |n| (split, n)))
        {
            let steps = nodes * (rows / tile.samples);
            let each = steps.div_ceil(splits);
            for (c, a) in (0..c_tiles).flat_map(|c| (0..a_tiles).map(move |a| (c, a))) {
                parts[kind].push(Part {
                    source: sources.len() as i32,
                    matrix: matrix as i32,
                    c: (c * tile.c) as i32,
                    a: (a * tile.a) as i32,
                    from: (split * each).min(steps) as i32,
                    until: ((split + 1) * each).min(steps) as i32,
                    out: (first + split * place.len() + matrix * place.rows * place.wide + left) as u64,
                });
            }
        }
        sources.push(source);
    };
    let splits_of = |place: Place, nodes: usize| {
        let tile = &TILES[tile_of(rows, place.rows, place.wide)];
        let tiles = place.matrices * place.rows.div_ceil(tile.c) * place.wide.div_ceil(tile.a);
        (blocks / tiles).clamp(1, (nodes * (rows / tile.samples)).div_ceil(8).max(1))
    };
    for t in 0..circuit.trees.len() {
        let stages: Vec<(usize, usize, usize, u64, u64)> = circuit.trees[t]
            .stages
            .iter()
            .filter_map(|stage| stage.level.map(|l| (l, stage.below, stage.above, stage.others.at, stage.parent.at)))
            .collect();
        for (l, below, above, others, parent) in stages {
            let place = circuit.places.levels[t][l - 1];
            let level = &circuit.structure.trees[t].levels[l - 1];
            let channels = circuit.structure.trees[t].channels(l - 1);
            if circuit.trees[t].layers[below].phi.len == 0 {
                let (first, parts) = FirstGradient::new(circuit, t, place, sums)?;
                firsts.push(first);
                moving.push((channels, place, (sums, parts)));
                sums += parts * place.len();
                continue;
            }
            let mut nodes_of = vec![Vec::new(); level.matrices()];
            level.weight_of.iter().enumerate().for_each(|(node, &matrix)| nodes_of[matrix as usize].push(node));
            let counts: Vec<usize> = nodes_of.iter().map(Vec::len).collect();
            let mut first_node = vec![0i32];
            counts.iter().for_each(|count| first_node.push(first_node[first_node.len() - 1] + *count as i32));
            let nodes: Vec<i32> = nodes_of.iter().flatten().map(|&node| node as i32).collect();
            let (nodes, first_node) = (circuit.card.keep(&nodes)?, circuit.card.keep(&first_node)?);
            let layers = &circuit.trees[t].layers;
            let source = Source {
                below: layers[below].args(),
                above: layers[above].args(),
                others,
                factor: 0,
                parent,
                nodes: nodes.at,
                first: first_node.at,
                stride: 0,
                columns: place.wide as i32,
            };
            let splits = splits_of(place, counts.iter().copied().max().unwrap_or(1));
            add(source, place, &counts, sums, splits, 0);
            moving.push((channels, place, (sums, splits)));
            sums += splits * place.len();
        }
    }
    if circuit.structure.class_rows == ClassRows::Mixing {
        let place = circuit.places.classes;
        let zero = circuit.card.keep(&[0i32])?;
        let bounds = circuit.card.keep(&[0i32, 1])?;
        let splits = splits_of(place, 1);
        for (t, tree) in circuit.trees.iter().enumerate() {
            let top = tree.layers[tree.layers.len() - 1].args();
            let classes = circuit.structure.classes;
            let above = LayerArgs { dphi: circuit.dpsi.at, real: classes as i32, wide: wide(classes) as i32, ..top };
            let source = Source {
                below: top,
                above,
                others: 0,
                factor: circuit.factor.at + 4 * t as u64,
                parent: zero.at,
                nodes: zero.at,
                first: bounds.at,
                stride: circuit.trees.len() as i32,
                columns: place.wide as i32,
            };
            add(source, place, &[1], sums, splits, circuit.places.left[t]);
        }
        moving.push((place.wide, place, (sums, splits)));
        sums += splits * place.len();
    }
    Ok((sources, parts, firsts, moving, sums))
}
