//! dW of every level and of the class rows, in tiles (`down.cu`).

use crate::error::Result;
use crate::gpu::enabled::args::LayerArgs;
use crate::gpu::enabled::circuit::Circuit;
use crate::gpu::enabled::device_buffers::{Buffer, Gpu};
use crate::gpu::enabled::kernels::Kernel;
use crate::gpu::enabled::layout::{Place, padded_channels};
use crate::gpu::enabled::leaf_level::{FirstGradient, FirstGradientPlan};
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

/// Matrices that move.
pub(crate) struct Moving {
    /// Columns that are not padding.
    pub columns: usize,
    /// Where they lie among the weights.
    pub place: Place,
    /// Where their dW starts among the sums.
    pub sums: usize,
    /// Into how many parts it is cut.
    pub parts: usize,
}

/// One shape of the dW kernel.
struct Tile {
    kernel: Kernel,
    threads: u32,
    c: usize,
    a: usize,
    samples: usize, // of one step
}

static TILES: [Tile; 5] = [
    Tile {
        kernel: Kernel::GradientSmall,
        threads: 128,
        c: 32,
        a: 32,
        samples: 16,
    },
    Tile {
        kernel: Kernel::GradientFlat,
        threads: 256,
        c: 64,
        a: 32,
        samples: 16,
    },
    Tile {
        kernel: Kernel::GradientLarge,
        threads: 256,
        c: 64,
        a: 64,
        samples: 16,
    },
    Tile {
        kernel: Kernel::GradientTall,
        threads: 256,
        c: 128,
        a: 64,
        samples: 32,
    },
    Tile {
        kernel: Kernel::GradientHuge,
        threads: 256,
        c: 128,
        a: 128,
        samples: 16,
    },
];

/// The shape for a matrix: small ones for little work, else as large as the matrix fills.
fn tile_of(circuit: &Circuit, place: Place) -> usize {
    let kind = match (place.rows >= 128, place.padded) {
        _ if circuit.rows < 512 => 0,
        (true, 128..) => 4,
        (true, 64..) => 3,
        (_, 33..) => 2,
        _ => 1,
    };
    if circuit.gpu.has(TILES[kind].kernel) {
        kind
    } else {
        0
    }
}

/// All dW, ready to be computed.
pub(crate) struct Gradients {
    sources: Buffer<Source>,
    parts: Vec<(&'static Tile, Buffer<Part>)>,
    firsts: Vec<FirstGradient>, // of levels that are computed with their leaves
    /// dW, in the parts of its sums.
    pub sums: Buffer<f32>,
}

impl Gradients {
    pub fn new(circuit: &mut Circuit) -> Result<(Self, Vec<Moving>)> {
        let Cut {
            sources,
            parts,
            firsts,
            moving,
            sums,
        } = Cut::new(circuit)?;
        let gpu = &mut circuit.gpu;
        let (sources, parts) = (gpu.upload(&sources)?, keep_parts(gpu, &parts)?);
        Ok((
            Self {
                sources,
                parts,
                firsts,
                sums: gpu.allocate(sums)?,
            },
            moving,
        ))
    }

    pub fn launch(&self, circuit: &Circuit, samples: usize) -> Result<()> {
        let (gpu, rows) = (&circuit.gpu, circuit.rows);
        for (tile, parts) in &self.parts {
            let gradient = GradientArgs {
                sources: self.sources.at,
                parts: parts.at,
                sums: self.sums.at,
                rows: rows as i32,
            };
            gpu.launch(tile.kernel.on(parts.len, tile.threads), &gradient)?;
        }
        for first in &self.firsts {
            let leaf_level = circuit.leaf_level(first.tree, rows, samples);
            leaf_level.gradient(first, self.sums)?;
        }
        Ok(())
    }
}

fn keep_parts(gpu: &mut Gpu, parts: &[Vec<Part>; 5]) -> Result<Vec<(&'static Tile, Buffer<Part>)>> {
    let used = TILES
        .iter()
        .zip(parts)
        .filter(|(_, parts)| !parts.is_empty());
    used.map(|(tile, parts)| Ok((tile, gpu.upload(parts)?)))
        .collect()
}

/// All dW, cut into tiles and, where few tiles sum over many samples, into parts of the sum.
#[derive(Default)]
struct Cut {
    sources: Vec<Source>,
    parts: [Vec<Part>; 5], // by shape
    firsts: Vec<FirstGradient>,
    moving: Vec<Moving>,
    sums: usize, // how many there are
}

impl Cut {
    fn new(circuit: &mut Circuit) -> Result<Self> {
        let mut cut = Self::default();
        for t in 0..circuit.trees.len() {
            for stage in 0..circuit.trees[t].stages.len() {
                cut.add_level(circuit, t, stage)?;
            }
        }
        if circuit.structure.class_rows == ClassRows::Mixing {
            cut.add_classes(circuit)?;
        }
        Ok(cut)
    }

    /// A stage of a tree, if it mixes.
    fn add_level(&mut self, circuit: &mut Circuit, t: usize, stage: usize) -> Result<()> {
        let stage = &circuit.trees[t].stages[stage];
        let Some(l) = stage.level else { return Ok(()) };
        let (below, above) = (
            &circuit.trees[t].layers[stage.below],
            &circuit.trees[t].layers[stage.above],
        );
        let (place, level) = (
            circuit.places.levels[t][l - 1],
            &circuit.structure.trees[t].levels[l - 1],
        );
        let channels = circuit.structure.trees[t].channels(l - 1);
        if below.phi.len == 0 {
            let plan = FirstGradientPlan {
                tree: t,
                level,
                place,
                sums: self.sums,
                rows: circuit.rows,
            };
            let first = FirstGradient::new(&mut circuit.gpu, &plan)?;
            self.move_by(channels, place, first.parts);
            self.firsts.push(first);
            return Ok(());
        }
        let mut nodes_of = vec![Vec::new(); level.matrices()];
        level
            .weight_of
            .iter()
            .enumerate()
            .for_each(|(node, &matrix)| nodes_of[matrix as usize].push(node as i32));
        let counts: Vec<usize> = nodes_of.iter().map(Vec::len).collect();
        let mut first = vec![0i32];
        counts
            .iter()
            .for_each(|count| first.push(first[first.len() - 1] + *count as i32));
        let source = Source {
            below: below.args(),
            above: above.args(),
            others: stage.others.at,
            factor: 0,
            parent: stage.parent.at,
            nodes: circuit.gpu.upload(&nodes_of.concat())?.at,
            first: circuit.gpu.upload(&first)?.at,
            stride: 0,
            columns: place.padded as i32,
        };
        let splits = splits_of(circuit, place, counts.iter().copied().max().unwrap_or(1));
        self.add(circuit, source, place, &counts, splits, 0);
        self.move_by(channels, place, splits);
        Ok(())
    }

    /// The class rows, a stretch of columns for each tree.
    fn add_classes(&mut self, circuit: &mut Circuit) -> Result<()> {
        let (place, classes) = (circuit.places.classes, circuit.structure.classes);
        let (zero, bounds) = (
            circuit.gpu.upload(&[0i32])?,
            circuit.gpu.upload(&[0i32, 1])?,
        );
        let splits = splits_of(circuit, place, 1);
        for (t, tree) in circuit.trees.iter().enumerate() {
            let top = tree.layers[tree.layers.len() - 1].args();
            let source = Source {
                below: top,
                above: LayerArgs {
                    dphi: circuit.dpsi.at,
                    real: classes as i32,
                    wide: padded_channels(classes) as i32,
                    ..top
                },
                others: 0,
                factor: circuit.factor.at + 4 * t as u64,
                parent: zero.at,
                nodes: zero.at,
                first: bounds.at,
                stride: circuit.trees.len() as i32,
                columns: place.padded as i32,
            };
            self.add(circuit, source, place, &[1], splits, circuit.places.left[t]);
        }
        self.move_by(place.padded, place, splits);
        Ok(())
    }

    /// The tiles of one source; `nodes` are those of each matrix, and its columns start at `left`.
    fn add(
        &mut self,
        circuit: &Circuit,
        source: Source,
        place: Place,
        nodes: &[usize],
        splits: usize,
        left: usize,
    ) {
        let kind = tile_of(circuit, place);
        let (tile, rows) = (&TILES[kind], circuit.rows);
        let (c_tiles, a_tiles) = (
            place.rows.div_ceil(tile.c),
            (source.below.wide as usize).div_ceil(tile.a),
        );
        // Parts of siblings side by side: they read the same dφ.
        for (split, (matrix, &nodes)) in
            (0..splits).flat_map(|split| nodes.iter().enumerate().map(move |n| (split, n)))
        {
            let steps = nodes * (rows / tile.samples);
            let each = steps.div_ceil(splits);
            for (c, a) in (0..c_tiles).flat_map(|c| (0..a_tiles).map(move |a| (c, a))) {
                self.parts[kind].push(Part {
                    source: self.sources.len() as i32,
                    matrix: matrix as i32,
                    c: (c * tile.c) as i32,
                    a: (a * tile.a) as i32,
                    from: (split * each).min(steps) as i32,
                    until: ((split + 1) * each).min(steps) as i32,
                    out: (self.sums
                        + split * place.len()
                        + matrix * place.rows * place.padded
                        + left) as u64,
                });
            }
        }
        self.sources.push(source);
    }

    /// Notes that matrices move by the next sums, in this many parts.
    fn move_by(&mut self, columns: usize, place: Place, parts: usize) {
        self.moving.push(Moving {
            columns,
            place,
            sums: self.sums,
            parts,
        });
        self.sums += parts * place.len();
    }
}

/// Into how many parts the sums of a place are cut: for each level as many blocks as run at once.
fn splits_of(circuit: &Circuit, place: Place, nodes: usize) -> usize {
    let tile = &TILES[tile_of(circuit, place)];
    let tiles = place.matrices * place.rows.div_ceil(tile.c) * place.padded.div_ceil(tile.a);
    (2 * circuit.gpu.processors() / tiles).clamp(
        1,
        (nodes * (circuit.rows / tile.samples)).div_ceil(8).max(1),
    )
}
