//! Leaves that learn on the gpu (`leaves.cu`).

use crate::error::Result;
use crate::gpu::enabled::args::{LeavesArgs, UpdateArgs};
use crate::gpu::enabled::circuit::Circuit;
use crate::gpu::enabled::device_buffers::Buffer;
use crate::gpu::enabled::kernels::Kernel;
use crate::gpu::enabled::layout::padded_channels;
use crate::layers::leaf::{Coordinate, Family};
use crate::training::optimizer::Moments;
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
pub(crate) struct Learning {
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

impl Learning {
    /// `moments` by family, coordinate.
    pub fn new(
        circuit: &mut Circuit,
        t: usize,
        families: &[Family],
        moments: &[Vec<Moments>],
        floor: f32,
    ) -> Result<Self> {
        let tree = circuit.structure.trees[t].clone();
        let (tables, m) = (circuit.trees[t].leaves.tables.len, tree.components);
        let offsets = circuit.trees[t].leaves.offsets.clone();
        let (mut logits, mut first, mut second) =
            (vec![0.0; tables], vec![0.0; tables], vec![0.0; tables]);
        let (mut sum_offset, mut lengths) = (Vec::new(), Vec::new());
        let (mut member_first, mut members) = (vec![0i32], Vec::new());
        for (f, family) in families.iter().enumerate() {
            let own: Vec<i32> = (0i32..)
                .zip(&tree.positions)
                .filter(|(_, p)| p.family as usize == f)
                .map(|(i, _)| i)
                .collect();
            let mut length = 0;
            for (k, coordinate) in family.coordinates.iter().enumerate() {
                let at = offsets[f][k];
                if let Coordinate::Discrete { logits: free } = coordinate {
                    logits[at..at + free.len()].copy_from_slice(free);
                }
                let memory = &moments[f][k];
                first[at..at + memory.first.len()].copy_from_slice(&memory.first);
                second[at..at + memory.second.len()].copy_from_slice(&memory.second);
                sum_offset.push(length);
                length += match coordinate {
                    Coordinate::Gaussian { .. } => 3 * m as i32,
                    Coordinate::Discrete { logits } => logits.len() as i32,
                };
                members.extend_from_slice(&own);
                member_first.push(members.len() as i32);
            }
            lengths.push(length);
        }
        let mut position_sums = Vec::new();
        let mut total = 0;
        for position in &tree.positions {
            position_sums.push(total);
            total += lengths[position.family as usize];
        }
        let gpu = &mut circuit.gpu;
        Ok(Self {
            logits: gpu.upload(&logits)?,
            first: gpu.upload(&first)?,
            second: gpu.upload(&second)?,
            sums: gpu.allocate(total as usize)?,
            position_sums: gpu.upload(&position_sums)?,
            coordinates: sum_offset.len(),
            sum_offset: gpu.upload(&sum_offset)?,
            member_first: gpu.upload(&member_first)?,
            members: gpu.upload(&members)?,
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
