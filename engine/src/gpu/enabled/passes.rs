//! The passes of a circuit on a GPU: forward to the class scores, and backward.

use crate::error::Result;
use crate::gpu::enabled::args::{DownArgs, JoinArgs, LeavesArgs, MixArgs, RootArgs};
use crate::gpu::enabled::circuit::Circuit;
use crate::gpu::enabled::device_buffers::Buffer;
use crate::gpu::enabled::kernels::Kernel;
use crate::gpu::enabled::layout::{Stage, padded_channels, padded_rows};
use crate::gpu::enabled::leaf_level::{LeafLevel, clears_tops};
use crate::gpu::enabled::tile_choice::{choose_backward, choose_forward};
use crate::structure::ClassRows;

/// What a forward pass leaves behind.
#[derive(Clone, Copy)]
pub(crate) struct ForwardOutputs {
    /// Also nodes with nothing observed below them.
    pub dense: bool,
    /// Leaf activations.
    pub leaves: bool,
    /// Products of siblings, for the backward pass.
    pub others: bool,
}

impl Circuit {
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

    /// The first level of tree t, computed with its leaves.
    pub fn leaf_level(&self, t: usize, rows: usize, samples: usize) -> LeafLevel<'_> {
        LeafLevel {
            gpu: &self.gpu,
            tree: &self.trees[t],
            leaves: self.leaves_args(t, rows, samples),
            weights: self.level_weights(t, 1),
            level_by: self.by_of(t, 1),
        }
    }

    /// Whether a forward pass without leaf activations clears the tops itself.
    pub fn clears_tops(&self) -> bool {
        clears_tops(&self.trees)
    }

    /// From the frame to the tops of the trees. Needs tops that are cleared.
    pub fn forward(&self, samples: usize, outputs: ForwardOutputs) -> Result<()> {
        let rows = padded_rows(samples);
        for (t, tree) in self.trees.iter().enumerate() {
            let first = tree.first && !outputs.leaves;
            if first {
                let leaf_level = self.leaf_level(t, rows, samples);
                leaf_level.forward(self.clears_tops())?;
            } else {
                self.forward_leaves(t, rows, samples, outputs.dense)?;
            }
            for stage in &tree.stages[usize::from(first)..] {
                match stage.level {
                    Some(l) => self.forward_mixing(t, l, stage, rows, outputs.others)?,
                    None => self.forward_join(t, stage, rows)?,
                }
            }
        }
        Ok(())
    }

    fn forward_leaves(&self, t: usize, rows: usize, samples: usize, dense: bool) -> Result<()> {
        let args = LeavesArgs {
            dense: dense.into(),
            ..self.leaves_args(t, rows, samples)
        };
        let leaves = &self.trees[t].layers[0];
        let blocks = leaves.nodes * (rows / 64);
        let launch = if leaves.channels > 96 {
            Kernel::LeavesUpWide.on(blocks, 256)
        } else {
            Kernel::LeavesUp.on(blocks, 64)
        };
        self.gpu.launch(launch, &args)
    }

    fn forward_mixing(
        &self,
        t: usize,
        l: usize,
        stage: &Stage,
        rows: usize,
        others: bool,
    ) -> Result<()> {
        let tree = &self.trees[t];
        let (below, above) = (&tree.layers[stage.below], &tree.layers[stage.above]);
        let args = MixArgs {
            below: below.args(),
            above: above.args(),
            weights: self.level_weights(t, l).at,
            others: if others { stage.others.at } else { 0 },
            child: stage.child.at,
            matrix: tree.matrix[l - 1].at,
            by: self.by_of(t, l).at,
            rows: rows as i32,
        };
        let launch = choose_forward(&self.gpu, below.channels, above, rows, others);
        self.gpu.launch(launch, &args)
    }

    fn forward_join(&self, t: usize, stage: &Stage, rows: usize) -> Result<()> {
        let layers = &self.trees[t].layers;
        let args = JoinArgs {
            below: layers[stage.below].args(),
            above: layers[stage.above].args(),
            others: stage.others.at,
            child: stage.child.at,
            rows: rows as i32,
        };
        let blocks = (layers[stage.above].nodes * rows).div_ceil(8);
        self.gpu.launch(Kernel::JoinUp.on(blocks, 256), &args)
    }

    /// W as products of tiles read it.
    pub fn level_weights(&self, t: usize, l: usize) -> Buffer<f32> {
        let place = self.places.levels[t][l - 1];
        self.rounded
            .unwrap_or(self.weights)
            .part(place.first, place.len())
    }

    /// Where 4 / the least number of all matrices of a level lies.
    fn by_of(&self, t: usize, l: usize) -> Buffer<f32> {
        let before: usize = self.places.levels[..t].iter().map(Vec::len).sum();
        self.level_by.part(before + l - 1, 1)
    }

    /// Queues the forward pass and the root.
    pub fn score(&self, samples: usize, outputs: ForwardOutputs) -> Result<()> {
        if outputs.leaves || !self.clears_tops() {
            self.gpu.set_bytes(self.tops, 0xff)?;
        }
        self.forward(samples, outputs)?;
        self.root(&self.root_args(samples))
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
            lost: self.underflow_bound.at,
            score: self.score.at,
            cost: 0,
            doubtful: 0,
            seeds: self.output_gradients.at,
            doubt: self.relative_bound.at,
            beta: 0.0,
            columns: place.padded as i32,
            classes: self.structure.classes as i32,
            wide: padded_channels(self.structure.classes) as i32,
            trees: self.trees.len() as i32,
            rows: padded_rows(samples) as i32,
            samples: samples as i32,
            down: 0,
            likelihood: 0,
        }
    }

    /// Class scores from the tops of the trees, and dφ of the tops where `args` says so.
    pub fn root(&self, args: &RootArgs) -> Result<()> {
        let kernel = match self.structure.class_rows {
            ClassRows::Identity => Kernel::ClassRoot,
            ClassRows::Mixing => Kernel::Root,
        };
        let blocks = (args.rows as usize).div_ceil(2);
        self.gpu.launch(kernel.on(blocks, 64), args)
    }

    /// From dφ of the tops down, to the leaves if they are wanted.
    pub fn backward(&self, samples: usize, to_leaves: bool) -> Result<()> {
        let rows = padded_rows(samples);
        for (t, tree) in self.trees.iter().enumerate() {
            let stages = tree.stages.iter().rev();
            for stage in stages.filter(|stage| stage.below > 0 || to_leaves) {
                let below = &tree.layers[stage.below];
                let args = DownArgs {
                    below: below.args(),
                    above: tree.layers[stage.above].args(),
                    weights: stage.level.map_or(0, |l| self.level_weights(t, l).at),
                    others: stage.others.at,
                    parent: stage.parent.at,
                    matrix: stage.level.map_or(0, |l| tree.matrix[l - 1].at),
                    rows: rows as i32,
                };
                let launch = match stage.level {
                    Some(_) => choose_backward(&self.gpu, below, rows),
                    None => {
                        let numbers = below.nodes * rows * padded_channels(below.channels);
                        Kernel::JoinDown.on(numbers.div_ceil(256), 256)
                    }
                };
                self.gpu.launch(launch, &args)?;
            }
        }
        Ok(())
    }
}
