//! How a model lies on the GPU.

use crate::device::Precision;
use crate::error::Result;
use crate::gpu::enabled::args::LayerArgs;
use crate::gpu::enabled::device_buffers::{Buffer, Gpu};
use crate::gpu::enabled::leaf_buffers::LeafBuffers;
use crate::layers::leaf::{Coordinate, Family};
use crate::layers::mixing::Mixing;
use crate::layers::weights::Weights;
use crate::structure::{Level, Structure, Tree};

/// Children that one window multiplies; larger ones are cut and joined afterwards.
const WINDOW: usize = 4;

/// Channels in a row: the real ones and zeros up to a multiple of 8.
pub(crate) fn padded_channels(channels: usize) -> usize {
    channels.next_multiple_of(8)
}

/// Rows of a batch: up to a multiple of 64.
pub(crate) fn padded_rows(samples: usize) -> usize {
    samples.next_multiple_of(64).max(64)
}

/// One layer of nodes.
pub(crate) struct LayerBuffers {
    pub nodes: usize,
    pub channels: usize,
    pub phi: Buffer<f32>,
    pub dphi: Buffer<f32>,
    pub top: Buffer<i32>,
    pub scale: Buffer<f64>,
    pub underflow_bound: Buffer<[f32; 2]>, // absolute, relative
    pub drop: Buffer<u8>,
}

impl LayerBuffers {
    pub fn args(&self) -> LayerArgs {
        LayerArgs {
            phi: self.phi.at,
            dphi: self.dphi.at,
            top: self.top.at,
            scale: self.scale.at,
            lost: self.underflow_bound.at,
            drop: self.drop.at,
            nodes: self.nodes as i32,
            real: self.channels as i32,
            wide: padded_channels(self.channels) as i32,
            end: 0,
        }
    }
}

/// From one layer to the next: a product of windows, after mixing or without.
pub(crate) struct Stage {
    /// The level that is mixed (from 1), or none where products are joined.
    pub level: Option<usize>,
    pub below: usize,
    pub above: usize,
    pub child: Buffer<i32>,
    pub parent: Buffer<i32>,
    pub others: Buffer<f32>,
}

/// One tree on the GPU.
pub(crate) struct TreeBuffers {
    pub layers: Vec<LayerBuffers>,
    pub stages: Vec<Stage>,
    /// Where layer l of the structure is among `layers`.
    pub layer_of: Vec<usize>,
    /// By level: the matrix of each node below.
    pub matrix: Vec<Buffer<i32>>,
    pub leaves: LeafBuffers,
    /// The first level can be computed with its leaves.
    pub first: bool,
}

/// Where the matrices of a level lie among all weights: (matrices, rows, padded columns).
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub first: usize,
    pub matrices: usize,
    pub rows: usize,
    pub padded: usize,
    /// Rows of the levels before.
    pub before: usize,
}

impl Place {
    pub fn len(&self) -> usize {
        self.all_rows() * self.padded
    }

    /// Rows of all its matrices.
    pub fn all_rows(&self) -> usize {
        self.matrices * self.rows
    }
}

/// Where everything that is mixed lies.
pub(crate) struct Places {
    pub levels: Vec<Vec<Place>>, // by tree, level
    pub classes: Place,
    pub left: Vec<usize>, // by tree: first column of the class rows
    pub total: usize,
    pub rows: usize,
}

/// Where the next level will lie.
#[derive(Default)]
struct End {
    numbers: usize,
    rows: usize,
}

impl End {
    /// The place of a level, after those before it.
    fn place(&mut self, matrices: usize, rows: usize, padded: usize) -> Place {
        let place = Place {
            first: self.numbers,
            matrices,
            rows,
            padded,
            before: self.rows,
        };
        self.numbers += place.len();
        self.rows += place.all_rows();
        place
    }
}

impl Places {
    pub fn new(s: &Structure) -> Self {
        let mut end = End::default();
        let mut level = |tree: &Tree, l: usize| {
            let columns = padded_channels(tree.channels(l - 1));
            end.place(tree.levels[l - 1].matrices(), tree.channels(l), columns)
        };
        let mut levels: Vec<Vec<Place>> = Vec::new();
        for tree in &s.trees {
            levels.push((1..=tree.levels.len()).map(|l| level(tree, l)).collect());
        }
        let mut left = Vec::new();
        let mut columns = 0;
        for tree in &s.trees {
            left.push(columns);
            columns += padded_channels(tree.top_channels());
        }
        let classes = end.place(1, s.classes, columns);
        Self {
            levels,
            classes,
            left,
            total: end.numbers,
            rows: end.rows,
        }
    }

    /// Calls `each(place of the level among the GPU's numbers, tree and level or none for classes, matrix, c, a)`.
    pub fn for_each(
        &self,
        s: &Structure,
        mut each: impl FnMut(usize, Option<(usize, usize)>, usize, usize, usize),
    ) {
        for (t, tree) in s.trees.iter().enumerate() {
            for (l, place) in self.levels[t].iter().enumerate() {
                for (matrix, c) in
                    (0..place.matrices).flat_map(|m| (0..place.rows).map(move |c| (m, c)))
                {
                    let start = place.first + (matrix * place.rows + c) * place.padded;
                    (0..tree.channels(l)).for_each(|a| each(start + a, Some((t, l)), matrix, c, a));
                }
            }
        }
        for c in 0..self.classes.rows {
            let mut column = 0;
            for (t, tree) in s.trees.iter().enumerate() {
                let start = self.classes.first + c * self.classes.padded + self.left[t];
                for a in 0..tree.top_channels() {
                    each(start + a, None, 0, c, column);
                    column += 1;
                }
            }
        }
    }

    /// One of three sets of numbers in the shape of the weights, as the GPU reads it.
    pub fn gather(
        &self,
        s: &Structure,
        number: impl Fn(Option<(usize, usize)>, usize, usize, usize) -> f32,
    ) -> Vec<f32> {
        let mut all = vec![0.0; self.total];
        self.for_each(s, |at, which, matrix, c, a| {
            all[at] = number(which, matrix, c, a)
        });
        all
    }
}

/// What a tree keeps on the GPU.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// What the backward pass needs.
    pub backward: bool,
    /// Leaf activations, also where the first level could be computed without.
    pub leaves: bool,
    /// The first level is computed with its leaves.
    pub first: bool,
    /// Channels of the top are the classes.
    pub identity: bool,
}

/// Whether a tree's first level can be computed with its leaves, in one kernel.
pub(crate) fn fits_one_kernel(tree: &Tree, families: &[Family], precision: Precision) -> bool {
    let normal = |c: &Coordinate| matches!(c, Coordinate::Gaussian { .. });
    let small = |family: &Family| {
        let coordinates = &family.coordinates;
        family.components <= 32 && coordinates.len() <= 4 && coordinates.iter().all(normal)
    };
    let windows = |level: &Level| level.children.iter().all(|own| own.len() <= WINDOW);
    precision == Precision::Tf32
        && families.iter().all(small)
        && tree.levels.first().is_some_and(windows)
}

/// Makes the buffers of one tree, layer by layer.
pub(crate) struct TreeBuilder<'a> {
    pub gpu: &'a mut Gpu,
    /// Rows of a batch.
    pub rows: usize,
    pub kept: Kept,
    /// Numbers in the one buffer of all tops.
    pub tops: &'a mut usize,
}

impl TreeBuilder<'_> {
    /// All buffers of a tree.
    pub fn build(&mut self, tree: &Tree, families: &[Family]) -> Result<TreeBuffers> {
        let mut made = TreeBuffers {
            layers: Vec::new(),
            stages: Vec::new(),
            layer_of: vec![0],
            matrix: Vec::new(),
            leaves: LeafBuffers::new(self.gpu, tree, families)?,
            first: self.kept.first,
        };
        let without_leaves = self.kept.first && !self.kept.leaves;
        let leaf_rows = if without_leaves { 0 } else { self.rows };
        self.add_layer(&mut made, tree.nodes(0), tree.components, leaf_rows)?;
        for (l, level) in tree.levels.iter().enumerate() {
            let matrix: Vec<i32> = level.weight_of.iter().map(|&m| m as i32).collect();
            made.matrix.push(self.gpu.upload(&matrix)?);
            if self.kept.identity && l + 1 == tree.levels.len() {
                self.add_class_level(&mut made, l + 1, level)?;
            } else {
                self.add_level(&mut made, l + 1, level)?;
            }
            made.layer_of.push(made.layers.len() - 1);
        }
        Ok(made)
    }

    /// The level below a class root that multiplies, with a scale for each class.
    fn add_class_level(&mut self, made: &mut TreeBuffers, l: usize, level: &Level) -> Result<()> {
        let windows: Vec<Vec<u32>> = level.children[0].iter().map(|&child| vec![child]).collect();
        self.add_stage(made, Some(l), &windows, level.channels)?;
        self.add_layer(made, 1, level.channels, self.rows)
    }

    /// A level in one stage, or in several where a window has more than [`WINDOW`] children.
    fn add_level(&mut self, made: &mut TreeBuffers, l: usize, level: &Level) -> Result<()> {
        let mut groups: Vec<Vec<u32>> = level.children.clone();
        let mut mixing = Some(l);
        loop {
            // Every window of at most four, in the order of its parent.
            let cut = |group: &Vec<u32>| group.chunks(WINDOW).map(<[u32]>::to_vec).collect();
            let windows: Vec<Vec<u32>> = groups.iter().flat_map::<Vec<_>, _>(cut).collect();
            self.add_stage(made, mixing, &windows, level.channels)?;
            if windows.len() == groups.len() {
                return Ok(());
            }
            let mut next = 0;
            for group in &mut groups {
                let count = group.len().div_ceil(WINDOW) as u32;
                *group = (next..next + count).collect();
                next += count;
            }
            mixing = None;
        }
    }

    fn add_layer(
        &mut self,
        made: &mut TreeBuffers,
        nodes: usize,
        channels: usize,
        rows: usize,
    ) -> Result<()> {
        let numbers = nodes * rows * padded_channels(channels);
        *self.tops += nodes * rows;
        made.layers.push(LayerBuffers {
            nodes,
            channels,
            phi: self.gpu.allocate(numbers)?,
            dphi: if self.kept.backward {
                self.gpu.allocate(numbers)?
            } else {
                Buffer::none()
            },
            top: Buffer::none(), // all together, see `set_tops`
            scale: self.gpu.allocate(nodes * rows)?,
            underflow_bound: self.gpu.allocate(nodes * rows)?,
            drop: Buffer::none(),
        });
        Ok(())
    }

    fn add_stage(
        &mut self,
        made: &mut TreeBuffers,
        level: Option<usize>,
        windows: &[Vec<u32>],
        channels: usize,
    ) -> Result<()> {
        let below = made.layers.len() - 1;
        let nodes = made.layers[below].nodes;
        let mut child = vec![-1i32; windows.len() * WINDOW];
        let mut parent = vec![0i32; nodes];
        for (p, window) in windows.iter().enumerate() {
            for (k, &j) in window.iter().enumerate() {
                child[p * WINDOW + k] = j as i32;
                parent[j as usize] = p as i32;
            }
        }
        self.add_layer(made, windows.len(), channels, self.rows)?;
        let others = self.kept.backward && made.layers[below].phi.len > 0;
        made.stages.push(Stage {
            level,
            below,
            above: below + 1,
            child: self.gpu.upload(&child)?,
            parent: self.gpu.upload(&parent)?,
            others: if others {
                self.gpu
                    .allocate(nodes * self.rows * padded_channels(channels))?
            } else {
                Buffer::none()
            },
        });
        Ok(())
    }
}

impl TreeBuffers {
    /// Gives every layer its part of the one buffer that is cleared before each pass.
    pub fn set_tops(&mut self, tops: Buffer<i32>, rows: usize, first: &mut usize) {
        for layer in self.layers.iter_mut().filter(|layer| layer.phi.len > 0) {
            layer.top = tops.part(*first, layer.nodes * rows);
            *first += layer.nodes * rows;
        }
    }
}

/// Families of every tree.
pub(crate) fn families(weights: &Weights) -> impl Iterator<Item = &[Family]> {
    weights.trees.iter().map(|tree| &tree.families[..])
}

/// Where a number of a mixing lies in its panels.
pub(crate) fn mixing_of(weights: &Weights, which: Option<(usize, usize)>) -> &Mixing {
    which.map_or(&weights.classes, |(t, l)| &weights.trees[t].levels[l])
}
