//! The circuit on a card: up to the class scores, and down.

use crate::device::Precision;
use crate::error::Result;
use crate::gpu::enabled::args::{DownArgs, JoinArgs, LayerArgs, LeavesArgs, MixArgs, RootArgs};
use crate::gpu::enabled::device_buffers::{Card, Room};
use crate::gpu::enabled::layout::{Kept, Places, Stage, TreeRooms, families, padded_rows, wide};
use crate::gpu::enabled::leaf_level::fits;
use crate::layers::weights::{Prepared, Weights};
use crate::structure::{ClassRows, Structure};

/// A model on a card, with room for a batch.
pub(crate) struct Circuit {
    pub card: Card,
    pub structure: Structure,
    pub places: Places,
    pub trees: Vec<TreeRooms>,
    pub weights: Room<f32>,         // all matrices, see `Places`
    pub rounded: Option<Room<f32>>, // the same with the bits that tensor cores read
    pub frame: Room<f32>,           // (B, D)
    pub tops: Room<i32>,            // of all layers
    pub top_layers: Room<LayerArgs>,
    pub left: Room<i32>,
    pub prior: Room<f64>,
    pub psi: Room<f32>,
    pub dpsi: Room<f32>,
    pub factor: Room<f32>,
    pub lost: Room<f32>,
    pub score: Room<f64>,
    pub seeds: Room<f32>,
    pub doubt: Room<f32>,
    pub rows: usize, // B at most, a multiple of 64
    processors: usize,
}

/// What a pass up leaves behind.
#[derive(Clone, Copy)]
pub(crate) struct Climb {
    /// Also nodes with nothing observed below them.
    pub dense: bool,
    /// Leaf activations.
    pub leaves: bool,
    /// Products of siblings, for the way down.
    pub others: bool,
}

impl Circuit {
    /// Puts a model on a card. With `down`, also what goes down; with `leaves`, their activations.
    pub fn new(
        (ordinal, precision): (usize, Precision),
        structure: &Structure,
        weights: &Weights,
        prepared: &Prepared,
        log_prior: &[f64],
        samples: usize,
        (down, leaves): (bool, bool),
    ) -> Result<Self> {
        let mut card = Card::open(ordinal, precision)?;
        let (rows, places, s) = (padded_rows(samples), Places::new(structure), structure);
        let identity = s.class_rows == ClassRows::Identity;
        let (mut trees, mut count) = (Vec::new(), 0);
        for (tree, families) in s.trees.iter().zip(families(weights)) {
            let first = fits(tree, families, precision) && !(identity && tree.levels.len() == 1);
            let kept = Kept {
                down,
                leaves,
                first,
                identity,
            };
            trees.push(TreeRooms::new(
                &mut card, tree, families, rows, kept, &mut count,
            )?);
        }
        let tops = card.room(count)?;
        let mut first = 0;
        trees
            .iter_mut()
            .for_each(|tree| tree.set_tops(tops, rows, &mut first));
        let left: Vec<i32> = places.left.iter().map(|&left| left as i32).collect();
        let k_wide = wide(s.classes);
        let circuit = Self {
            weights: card.room(places.total)?,
            rounded: if precision == Precision::Tf32 {
                Some(card.room(places.total)?)
            } else {
                None
            },
            frame: card.room(rows * s.frame_len())?,
            top_layers: card.room(s.trees.len() + 1)?,
            left: card.keep(&left)?,
            prior: card.keep(log_prior)?,
            psi: card.room(rows * k_wide)?,
            dpsi: card.room(if down { rows * k_wide } else { 0 })?,
            factor: card.room(rows * s.trees.len())?,
            lost: card.room(rows)?,
            score: card.room(rows * s.classes)?,
            seeds: card.room(if down { rows * s.classes } else { 0 })?,
            doubt: card.room(if identity { rows * s.classes } else { 0 })?,
            processors: card.processors(),
            card,
            structure: structure.clone(),
            places,
            trees,
            tops,
            rows,
        };
        circuit.set_weights(prepared)?;
        circuit.set_top_layers()?;
        Ok(circuit)
    }

    /// Puts W on the card.
    pub fn set_weights(&self, prepared: &Prepared) -> Result<()> {
        let simplex = |which: Option<(usize, usize)>| {
            which.map_or(&prepared.classes, |(t, l)| &prepared.levels[t][l])
        };
        let all = self.places.gather(&self.structure, |which, m, c, a| {
            simplex(which).weight(m, c, a)
        });
        self.card.send(self.weights, &all)?;
        let Some(room) = self.rounded else {
            return Ok(());
        };
        // As `kept` in `tiles.cu`.
        let rounded = |w: &f32| f32::from_bits(w.to_bits().wrapping_add(0x1000) & 0xffff_e000);
        self.card
            .send(room, &Vec::from_iter(all.iter().map(rounded)))
    }

    /// Tells the root kernel where the tops of the trees are; again after masks were added.
    pub fn set_top_layers(&self) -> Result<()> {
        let top = |tree: &TreeRooms| tree.layers[tree.layers.len() - 1].args();
        let mut layers: Vec<LayerArgs> = self.trees.iter().map(top).collect();
        if self.structure.class_rows == ClassRows::Identity {
            let tree = &self.trees[0];
            layers.push(tree.layers[tree.layers.len() - 2].args());
        }
        self.card.send(self.top_layers, &layers)
    }

    /// Bytes of activations: all that are held, and what of them the way down reads (φ below a mixing, and the products
    /// of siblings).
    pub fn activation_bytes(&self) -> (usize, usize) {
        let (mut held, mut read) = (0, 0);
        for tree in &self.trees {
            for layer in &tree.layers {
                let rows = layer.top.len + 2 * layer.scale.len + layer.lost.len;
                held += 4 * (layer.phi.len + layer.dphi.len + rows);
                read += 4 * layer.phi.len;
            }
            let others: usize = tree.stages.iter().map(|stage| 4 * stage.others.len).sum();
            (held, read) = (held + others, read + others);
        }
        (held, read)
    }

    /// Multiprocessors.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Whether so many blocks give nearly every multiprocessor something to do.
    fn enough(&self, blocks: usize) -> bool {
        8 * blocks >= 7 * self.processors
    }

    pub fn leaves_args(&self, t: usize, rows: usize, samples: usize) -> LeavesArgs {
        let (tree, leaves) = (&self.trees[t], &self.trees[t].leaves);
        LeavesArgs {
            layer: tree.layers[0].args(),
            frame: self.frame.at,
            tables: leaves.tables.at,
            inputs: leaves.inputs.at,
            first: leaves.first.at,
            family: leaves.family.at,
            values: leaves.values.at,
            offset: leaves.offset.at,
            rows: rows as i32,
            samples: samples as i32,
            frame_len: self.structure.frame_len() as i32,
            dense: 0,
        }
    }

    /// From the frame to the tops of the trees. Needs tops that are cleared.
    pub fn climb(&self, samples: usize, climb: Climb) -> Result<()> {
        let rows = padded_rows(samples);
        for (t, tree) in self.trees.iter().enumerate() {
            let first = tree.first && !climb.leaves;
            if first {
                self.first_up(t, rows, samples)?;
            } else {
                let args = LeavesArgs {
                    dense: climb.dense.into(),
                    ..self.leaves_args(t, rows, samples)
                };
                let leaves = &tree.layers[0];
                let (kernel, threads) = if leaves.channels > 96 {
                    ("leaves_up_wide", 256)
                } else {
                    ("leaves_up", 64)
                };
                self.card
                    .launch(kernel, &args, leaves.nodes * (rows / 64), threads)?;
            }
            for stage in &tree.stages[usize::from(first)..] {
                match stage.level {
                    Some(l) => self.mix_up(t, l, stage, rows, climb.others)?,
                    None => self.join_up(t, stage, rows)?,
                }
            }
        }
        Ok(())
    }

    fn mix_up(&self, t: usize, l: usize, stage: &Stage, rows: usize, others: bool) -> Result<()> {
        let tree = &self.trees[t];
        let (below, above) = (&tree.layers[stage.below], &tree.layers[stage.above]);
        let args = MixArgs {
            below: below.args(),
            above: above.args(),
            weights: self.level_weights(t, l).at,
            others: if others { stage.others.at } else { 0 },
            child: stage.child.at,
            matrix: tree.matrix[l - 1].at,
            rows: rows as i32,
        };
        let channels = wide(above.channels);
        let tiles =
            |high: usize, side: usize| above.nodes * (rows / high) * channels.div_ceil(side);
        let even = rows.is_multiple_of(128);
        let deep = below.channels >= 128 && even;
        match () {
            () if !others && even && self.enough(tiles(128, 64) / 2) => self.card.launch(
                "score_up",
                &args,
                tiles(128, 64).min(2 * self.processors),
                256,
            ),
            () if deep && self.card.has("mix_up_huge") && self.enough(tiles(128, 64)) => {
                self.card.launch("mix_up_huge", &args, tiles(128, 64), 512)
            }
            () if below.channels <= 32 && self.enough(tiles(64, 64)) => {
                self.card.launch("mix_up_flat", &args, tiles(32, 64), 128)
            }
            () if self.enough(tiles(64, 64)) || !self.card.has("mix_up_small") => {
                self.card.launch("mix_up_large", &args, tiles(64, 64), 256)
            }
            () => self.card.launch("mix_up_small", &args, tiles(32, 32), 128),
        }
    }

    fn join_up(&self, t: usize, stage: &Stage, rows: usize) -> Result<()> {
        let layers = &self.trees[t].layers;
        let args = JoinArgs {
            below: layers[stage.below].args(),
            above: layers[stage.above].args(),
            others: stage.others.at,
            child: stage.child.at,
            rows: rows as i32,
        };
        self.card.launch(
            "join_up",
            &args,
            (layers[stage.above].nodes * rows).div_ceil(8),
            256,
        )
    }

    /// W as products of tiles read it.
    pub fn level_weights(&self, t: usize, l: usize) -> Room<f32> {
        let place = self.places.levels[t][l - 1];
        self.rounded
            .unwrap_or(self.weights)
            .part(place.first, place.len())
    }

    /// The arguments of the root kernel, without an objective.
    pub fn root_args(&self, samples: usize) -> RootArgs {
        let place = self.places.classes;
        RootArgs {
            tops: self.top_layers.at,
            left: self.left.at,
            weights: self.weights.part(place.first, place.len()).at,
            prior: self.prior.at,
            label: 0,
            weight: 0,
            numbers: 0,
            clock: 0,
            psi: self.psi.at,
            dpsi: self.dpsi.at,
            factor: self.factor.at,
            lost: self.lost.at,
            score: self.score.at,
            cost: 0,
            doubtful: 0,
            seeds: self.seeds.at,
            doubt: self.doubt.at,
            beta: 0.0,
            columns: place.wide as i32,
            classes: self.structure.classes as i32,
            wide: wide(self.structure.classes) as i32,
            trees: self.trees.len() as i32,
            rows: padded_rows(samples) as i32,
            samples: samples as i32,
            down: 0,
            likelihood: 0,
        }
    }

    pub fn root(&self, args: &RootArgs) -> Result<()> {
        let identity = self.structure.class_rows == ClassRows::Identity;
        self.card.launch(
            if identity { "class_root" } else { "root" },
            args,
            (args.rows as usize).div_ceil(2),
            64,
        )
    }

    /// From dφ of the tops down, to the leaves if they are wanted.
    pub fn descend(&self, samples: usize, to_leaves: bool) -> Result<()> {
        let rows = padded_rows(samples);
        for (t, tree) in self.trees.iter().enumerate() {
            for stage in tree
                .stages
                .iter()
                .rev()
                .filter(|stage| stage.below > 0 || to_leaves)
            {
                let (below, above) = (&tree.layers[stage.below], &tree.layers[stage.above]);
                let args = DownArgs {
                    below: below.args(),
                    above: above.args(),
                    weights: stage.level.map_or(0, |l| self.level_weights(t, l).at),
                    others: stage.others.at,
                    parent: stage.parent.at,
                    matrix: stage.level.map_or(0, |l| tree.matrix[l - 1].at),
                    rows: rows as i32,
                };
                let channels = wide(below.channels);
                let tiles = |high: usize, side: usize| {
                    below.nodes * (rows / high) * channels.div_ceil(side)
                };
                let even = rows.is_multiple_of(128);
                match stage.level {
                    None => {
                        let numbers = below.nodes * rows * channels;
                        self.card
                            .launch("join_down", &args, numbers.div_ceil(256), 256)?;
                    }
                    Some(_)
                        if even
                            && channels >= 128
                            && self.card.has("mix_down_huge")
                            && self.enough(tiles(128, 128)) =>
                    {
                        self.card
                            .launch("mix_down_huge", &args, tiles(128, 128), 256)?;
                    }
                    Some(_) if even && self.enough(tiles(128, 64)) => {
                        self.card
                            .launch("mix_down_tall", &args, tiles(128, 64), 256)?;
                    }
                    Some(_) => self
                        .card
                        .launch("mix_down_small", &args, tiles(32, 32), 128)?,
                }
            }
        }
        Ok(())
    }
}
