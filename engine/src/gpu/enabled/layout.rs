//! How a model lies on the card.

use crate::error::Result;
use crate::gpu::enabled::args::LayerArgs;
use crate::gpu::enabled::device_buffers::{Card, Room};
use crate::layers::leaf::{Coordinate, Family, log_peak, log_tables};
use crate::layers::mixing::Mixing;
use crate::layers::weights::Weights;
use crate::structure::{OUTSIDE, Structure, Tree};

/// Children that one window multiplies; larger ones are cut and joined afterwards.
const WINDOW: usize = 4;

/// Channels in a row: the real ones and zeros up to a multiple of 8.
pub(crate) fn wide(channels: usize) -> usize {
    channels.next_multiple_of(8)
}

/// Rows of a batch: up to a multiple of 64.
pub(crate) fn padded_rows(samples: usize) -> usize {
    samples.next_multiple_of(64).max(64)
}

/// One layer of nodes.
pub(crate) struct LayerRooms {
    pub nodes: usize,
    pub channels: usize,
    pub phi: Room<f32>,
    pub dphi: Room<f32>,
    pub top: Room<i32>,
    pub scale: Room<f64>,
    pub lost: Room<f32>,
    pub drop: Room<u8>,
}

impl LayerRooms {
    pub fn args(&self) -> LayerArgs {
        LayerArgs {
            phi: self.phi.at,
            dphi: self.dphi.at,
            top: self.top.at,
            scale: self.scale.at,
            lost: self.lost.at,
            drop: self.drop.at,
            nodes: self.nodes as i32,
            real: self.channels as i32,
            wide: wide(self.channels) as i32,
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
    pub child: Room<i32>,
    pub parent: Room<i32>,
    pub others: Room<f32>,
}

/// Leaf families of one tree, position by position.
pub(crate) struct LeafRooms {
    pub tables: Room<f32>,
    pub inputs: Room<i32>,
    pub first: Room<i32>,
    pub family: Room<i32>,
    pub values: Room<i32>,
    pub offset: Room<i32>,
    /// By family, coordinate: where its table starts.
    pub offsets: Vec<Vec<usize>>,
}

/// One tree on the card.
pub(crate) struct TreeRooms {
    pub layers: Vec<LayerRooms>,
    pub stages: Vec<Stage>,
    /// Where layer l of the structure is among `layers`.
    pub layer_of: Vec<usize>,
    /// By level: the matrix of each node below.
    pub matrix: Vec<Room<i32>>,
    pub leaves: LeafRooms,
    /// The first level can be computed with its leaves.
    pub first: bool,
}

/// Where the matrices of a level lie among all weights: (matrices, rows, wide).
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub first: usize,
    pub matrices: usize,
    pub rows: usize,
    pub wide: usize,
}

impl Place {
    pub fn len(&self) -> usize {
        self.matrices * self.rows * self.wide
    }
}

/// Where everything that is mixed lies.
pub(crate) struct Places {
    pub levels: Vec<Vec<Place>>, // by tree, level
    pub classes: Place,
    pub left: Vec<usize>, // by tree: first column of the class rows
    pub total: usize,
}

impl Places {
    pub fn new(s: &Structure) -> Self {
        let mut total = 0;
        let mut place = |matrices, rows, wide| {
            let place = Place {
                first: total,
                matrices,
                rows,
                wide,
            };
            total += place.len();
            place
        };
        let level = |tree: &Tree, l: usize| {
            (
                tree.levels[l - 1].matrices(),
                tree.channels(l),
                wide(tree.channels(l - 1)),
            )
        };
        let mut levels = Vec::new();
        for tree in &s.trees {
            let all = (1..=tree.levels.len()).map(|l| level(tree, l));
            levels.push(
                all.map(|(matrices, rows, wide)| place(matrices, rows, wide))
                    .collect(),
            );
        }
        let mut left = Vec::new();
        let mut columns = 0;
        for tree in &s.trees {
            left.push(columns);
            columns += wide(tree.top_channels());
        }
        let classes = place(1, s.classes, columns);
        Self {
            levels,
            classes,
            left,
            total,
        }
    }

    /// Calls `each(place of the level in the card's numbers, tree and level or none for classes, matrix, c, a)`.
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
                    let start = place.first + (matrix * place.rows + c) * place.wide;
                    (0..tree.channels(l)).for_each(|a| each(start + a, Some((t, l)), matrix, c, a));
                }
            }
        }
        for c in 0..self.classes.rows {
            let mut column = 0;
            for (t, tree) in s.trees.iter().enumerate() {
                let start = self.classes.first + c * self.classes.wide + self.left[t];
                for a in 0..tree.top_channels() {
                    each(start + a, None, 0, c, column);
                    column += 1;
                }
            }
        }
    }

    /// One of three sets of numbers in the shape of the weights, as the card wants it.
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

/// What a tree has room for.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// What goes down.
    pub down: bool,
    /// Leaf activations, also where the first level could be computed without.
    pub leaves: bool,
    /// The first level is computed with its leaves.
    pub first: bool,
    /// Channels of the top are the classes.
    pub identity: bool,
}

impl TreeRooms {
    /// Room for `rows` samples.
    pub fn new(
        card: &mut Card,
        tree: &Tree,
        weights: &[Family],
        rows: usize,
        Kept {
            down,
            leaves,
            first,
            identity,
        }: Kept,
        tops: &mut usize,
    ) -> Result<Self> {
        let families = LeafRooms::new(card, tree, weights)?;
        let (layers, stages, layer_of, matrix) = (Vec::new(), Vec::new(), vec![0], Vec::new());
        let mut made = Self {
            layers,
            stages,
            layer_of,
            matrix,
            leaves: families,
            first,
        };
        let leaf_rows = if first && !leaves { 0 } else { rows };
        made.add_layer(card, tree.nodes(0), tree.components, leaf_rows, down, tops)?;
        for (l, level) in tree.levels.iter().enumerate() {
            let matrix: Vec<i32> = level.weight_of.iter().map(|&m| m as i32).collect();
            made.matrix.push(card.keep(&matrix)?);
            let mut groups: Vec<Vec<u32>> = level.children.clone();
            let mut mixing = Some(l + 1);
            if identity && l + 1 == tree.levels.len() {
                // The class root multiplies, with a scale for each class.
                let windows: Vec<Vec<u32>> = groups[0].iter().map(|&child| vec![child]).collect();
                made.add_stage(card, mixing, &windows, level.channels, rows, down, tops)?;
                made.add_layer(card, 1, level.channels, rows, down, tops)?;
                made.layer_of.push(made.layers.len() - 1);
                break;
            }
            loop {
                // Every window of at most four, in the order of its parent.
                let windows: Vec<Vec<u32>> = groups
                    .iter()
                    .flat_map(|g| g.chunks(WINDOW).map(<[u32]>::to_vec))
                    .collect();
                made.add_stage(card, mixing, &windows, level.channels, rows, down, tops)?;
                if windows.len() == groups.len() {
                    break;
                }
                let mut next = 0;
                for group in &mut groups {
                    let count = group.len().div_ceil(WINDOW) as u32;
                    *group = (next..next + count).collect();
                    next += count;
                }
                mixing = None;
            }
            made.layer_of.push(made.layers.len() - 1);
        }
        Ok(made)
    }

    fn add_layer(
        &mut self,
        card: &mut Card,
        nodes: usize,
        channels: usize,
        rows: usize,
        down: bool,
        tops: &mut usize,
    ) -> Result<()> {
        let numbers = nodes * rows * wide(channels);
        *tops += nodes * rows;
        self.layers.push(LayerRooms {
            nodes,
            channels,
            phi: card.room(numbers)?,
            dphi: if down {
                card.room(numbers)?
            } else {
                Room::none()
            },
            top: Room::none(), // all together, see `set_tops`
            scale: card.room(nodes * rows)?,
            lost: card.room(nodes * rows)?,
            drop: Room::none(),
        });
        Ok(())
    }

    fn add_stage(
        &mut self,
        card: &mut Card,
        level: Option<usize>,
        windows: &[Vec<u32>],
        channels: usize,
        rows: usize,
        down: bool,
        tops: &mut usize,
    ) -> Result<()> {
        let below = self.layers.len() - 1;
        let nodes = self.layers[below].nodes;
        let mut child = vec![-1i32; windows.len() * WINDOW];
        let mut parent = vec![0i32; nodes];
        for (p, window) in windows.iter().enumerate() {
            for (k, &j) in window.iter().enumerate() {
                child[p * WINDOW + k] = j as i32;
                parent[j as usize] = p as i32;
            }
        }
        self.add_layer(card, windows.len(), channels, rows, down, tops)?;
        self.stages.push(Stage {
            level,
            below,
            above: below + 1,
            child: card.keep(&child)?,
            parent: card.keep(&parent)?,
            others: if down && self.layers[below].phi.len > 0 {
                card.room(nodes * rows * wide(channels))?
            } else {
                Room::none()
            },
        });
        Ok(())
    }

    /// Gives every layer its part of the one room that is cleared before each pass.
    pub fn set_tops(&mut self, tops: Room<i32>, rows: usize, first: &mut usize) {
        for layer in self.layers.iter_mut().filter(|layer| layer.phi.len > 0) {
            layer.top = tops.part(*first, layer.nodes * rows);
            *first += layer.nodes * rows;
        }
    }
}

impl LeafRooms {
    fn new(card: &mut Card, tree: &Tree, families: &[Family]) -> Result<Self> {
        let (mut values, mut offset, mut offsets, mut first_coordinate) =
            (vec![], vec![], vec![], vec![]);
        let mut next = 0;
        for family in families {
            first_coordinate.push(values.len() as i32);
            let mut own = Vec::new();
            for coordinate in &family.coordinates {
                let (count, length) = match coordinate {
                    Coordinate::Gaussian { .. } => (0, 4 * family.components),
                    Coordinate::Discrete { logits } => (
                        logits.len() / family.components,
                        logits.len().next_multiple_of(4),
                    ),
                };
                values.push(count as i32);
                offset.push(next as i32);
                own.push(next);
                next += length;
            }
            offsets.push(own);
        }
        let (mut inputs, mut first, mut family) = (vec![], vec![0i32], vec![]);
        for position in &tree.positions {
            inputs.extend(
                position
                    .inputs
                    .iter()
                    .map(|&input| if input == OUTSIDE { -1 } else { input as i32 }),
            );
            first.push(inputs.len() as i32);
            family.push(first_coordinate[position.family as usize]);
        }
        let made = Self {
            tables: card.room(next)?,
            inputs: card.keep(&inputs)?,
            first: card.keep(&first)?,
            family: card.keep(&family)?,
            values: card.keep(&values)?,
            offset: card.keep(&offset)?,
            offsets,
        };
        made.send(card, families)?;
        Ok(made)
    }

    /// Puts families on the card, as tables.
    pub fn send(&self, card: &Card, families: &[Family]) -> Result<()> {
        let mut tables = Vec::with_capacity(self.tables.len);
        for family in families {
            family
                .coordinates
                .iter()
                .for_each(|coordinate| write_table(coordinate, family.components, &mut tables));
        }
        card.send(self.tables, &tables)
    }
}

/// For each component μ, 1/σ, −log σ − ½ log 2π and log σ; or log-probabilities, (V, M), up to a multiple of 4.
fn write_table(coordinate: &Coordinate, components: usize, to: &mut Vec<f32>) {
    match coordinate {
        Coordinate::Gaussian { mean, log_sigma } => {
            for (&mean, &log_sigma) in mean.iter().zip(log_sigma) {
                let inverse = (-f64::from(log_sigma)).exp();
                to.extend([mean, inverse as f32, log_peak(log_sigma) as f32, log_sigma]);
            }
        }
        Coordinate::Discrete { logits } => {
            let log_prob = log_tables(logits, components);
            to.extend(log_prob.into_iter().map(|log| log as f32));
            to.resize(to.len().next_multiple_of(4), 0.0);
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
