//! Leaves that learn on the GPU (`leaves.cu`).

use crate::error::Result;
use crate::gpu::enabled::args::{LeavesArgs, UpdateArgs};
use crate::gpu::enabled::circuit::Circuit;
use crate::gpu::enabled::device_buffers::Buffer;
use crate::gpu::enabled::kernels::Kernel;
use crate::gpu::enabled::layout::padded_channels;
use crate::gpu::enabled::leaf_buffers::LeafBuffers;
use crate::layers::leaf::{Coordinate, Family};
use crate::structure::Tree;
use crate::training::memory::Moments;
use cudarc::driver::DeviceRepr;

// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for LearnArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for LearnStep {}

#[repr(C)]
#[derive(Clone, Copy)]
struct LearnArgs {
    leaves: LeavesArgs,
    tables: u64,
    logits: u64,
    first: u64,
    second: u64,
    sums: u64,
    position_sums: u64,
    sum_offset: u64,
    member_first: u64,
    members: u64,
    floor: f32,
    coordinates: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct LearnStep {
    learn: LearnArgs,
    update: UpdateArgs,
}

/// One tree's leaves.
pub(crate) struct LeafStep {
    logits: Buffer<f32>,
    first: Buffer<f32>,
    second: Buffer<f32>,
    sums: Buffer<f64>,
    position_sums: Buffer<i32>,
    sum_offset: Buffer<i32>,
    member_first: Buffer<i32>,
    members: Buffer<i32>,
    coordinates: usize,
    floor: f32,
}

impl LeafStep {
    /// `moments` by family, coordinate.
    pub fn new(
        circuit: &mut Circuit,
        t: usize,
        families: &[Family],
        moments: &[Vec<Moments>],
        floor: f32,
    ) -> Result<Self> {
        let plan = SumPlan::new(&circuit.structure.trees[t], families);
        let tables = Tables::new(&circuit.trees[t].leaves, families, moments);
        let gpu = &mut circuit.gpu;
        Ok(Self {
            logits: gpu.upload(&tables.logits)?,
            first: gpu.upload(&tables.first)?,
            second: gpu.upload(&tables.second)?,
            sums: gpu.allocate(plan.total as usize)?,
            position_sums: gpu.upload(&plan.position_sums)?,
            coordinates: plan.sum_offset.len(),
            sum_offset: gpu.upload(&plan.sum_offset)?,
            member_first: gpu.upload(&plan.member_first)?,
            members: gpu.upload(&plan.members)?,
            floor: 0.5 * floor.ln(),
        })
    }

    fn args(&self, circuit: &Circuit, t: usize, samples: usize) -> LearnArgs {
        LearnArgs {
            leaves: circuit.leaves_args(t, circuit.rows, samples),
            tables: circuit.trees[t].leaves.tables.at,
            logits: self.logits.at,
            first: self.first.at,
            second: self.second.at,
            sums: self.sums.at,
            position_sums: self.position_sums.at,
            sum_offset: self.sum_offset.at,
            member_first: self.member_first.at,
            members: self.members.at,
            floor: self.floor,
            coordinates: self.coordinates as i32,
        }
    }

    /// Flows of the leaves from their derivatives.
    pub fn flow(&self, circuit: &Circuit, t: usize, samples: usize) -> Result<()> {
        let layer = &circuit.trees[t].layers[0];
        let numbers = layer.nodes * circuit.rows * padded_channels(layer.channels);
        circuit.gpu.launch(
            Kernel::LeafFlow.on(numbers.div_ceil(256), 256),
            &self.args(circuit, t, samples),
        )
    }

    /// Sums the flows and moves the leaves.
    pub fn step(
        &self,
        circuit: &Circuit,
        t: usize,
        samples: usize,
        update: UpdateArgs,
    ) -> Result<()> {
        let learn = self.args(circuit, t, samples);
        let threads = (circuit.trees[t].layers[0].channels.next_multiple_of(32) as u32).min(256);
        circuit.gpu.launch(
            Kernel::LeafSums.on(circuit.trees[t].layers[0].nodes, threads),
            &learn,
        )?;
        circuit.gpu.launch(
            Kernel::LeafUpdate.on(self.coordinates, threads),
            &LearnStep { learn, update },
        )
    }

    /// Brings families and their memory back.
    pub fn fetch(
        &self,
        circuit: &Circuit,
        t: usize,
        families: &mut [Family],
        moments: &mut [Vec<Moments>],
    ) -> Result<()> {
        let gpu = &circuit.gpu;
        let leaves = &circuit.trees[t].leaves;
        let (tables, logits) = (gpu.fetch(leaves.tables)?, gpu.fetch(self.logits)?);
        let (first, second) = (gpu.fetch(self.first)?, gpu.fetch(self.second)?);
        for (f, family) in families.iter_mut().enumerate() {
            let m = family.components;
            for (k, coordinate) in family.coordinates.iter_mut().enumerate() {
                let at = leaves.offsets[f][k];
                match coordinate {
                    Coordinate::Gaussian { mean, log_sigma } => {
                        for (d, table) in tables[at..at + 4 * m].chunks_exact(4).enumerate() {
                            (mean[d], log_sigma[d]) = (table[0], table[3]);
                        }
                    }
                    Coordinate::Discrete { logits: free } => {
                        let count = free.len();
                        free.copy_from_slice(&logits[at..at + count]);
                    }
                }
                let memory = &mut moments[f][k];
                let length = memory.first.len();
                memory.first.copy_from_slice(&first[at..at + length]);
                memory.second.copy_from_slice(&second[at..at + length]);
            }
        }
        Ok(())
    }
}

/// Where sums over samples lie, and which positions add to them.
#[derive(Default)]
struct SumPlan {
    sum_offset: Vec<i32>, // by coordinate of all families: its sums within those of a position
    member_first: Vec<i32>, // by coordinate: the first of its positions among `members`; and the end
    members: Vec<i32>,      // positions
    position_sums: Vec<i32>, // by position: where its sums start
    total: i32,
}

impl SumPlan {
    fn new(tree: &Tree, families: &[Family]) -> Self {
        let mut plan = Self {
            member_first: vec![0],
            ..Self::default()
        };
        let lengths = families.iter().enumerate();
        let lengths: Vec<i32> = lengths
            .map(|(f, family)| plan.add_family(tree, f, family))
            .collect();
        for position in &tree.positions {
            plan.position_sums.push(plan.total);
            plan.total += lengths[position.family as usize];
        }
        plan
    }

    /// Returns how many sums a position of the family has.
    fn add_family(&mut self, tree: &Tree, f: usize, family: &Family) -> i32 {
        let own = (0i32..).zip(&tree.positions);
        let own = own.filter(|(_, position)| position.family as usize == f);
        let own: Vec<i32> = own.map(|(i, _)| i).collect();
        let mut length = 0;
        for coordinate in &family.coordinates {
            self.sum_offset.push(length);
            length += match coordinate {
                Coordinate::Gaussian { .. } => 3 * tree.components as i32,
                Coordinate::Discrete { logits } => logits.len() as i32,
            };
            self.members.extend_from_slice(&own);
            self.member_first.push(self.members.len() as i32);
        }
        length
    }
}

/// Free parameters and the rule's memory, laid out as the tables of densities are.
struct Tables {
    logits: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Tables {
    fn new(leaves: &LeafBuffers, families: &[Family], moments: &[Vec<Moments>]) -> Self {
        let zeros = || vec![0.0; leaves.tables.len];
        let mut tables = Self {
            logits: zeros(),
            first: zeros(),
            second: zeros(),
        };
        for (f, family) in families.iter().enumerate() {
            for (k, coordinate) in family.coordinates.iter().enumerate() {
                let at = leaves.offsets[f][k];
                if let Coordinate::Discrete { logits } = coordinate {
                    tables.logits[at..at + logits.len()].copy_from_slice(logits);
                }
                let Moments { first, second, .. } = &moments[f][k];
                tables.first[at..at + first.len()].copy_from_slice(first);
                tables.second[at..at + second.len()].copy_from_slice(second);
            }
        }
        tables
    }
}
