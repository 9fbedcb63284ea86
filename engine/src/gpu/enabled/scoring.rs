//! Questions on a GPU: scores, flows to the leaves, activations.

use crate::arithmetic::tasks::for_each_task;
use crate::circuit::outputs::{GpuScores, Outputs};
use crate::device::Precision;
use crate::error::Result;
use crate::gpu::enabled::args::RootArgs;
use crate::gpu::enabled::circuit::{Abilities, Circuit, HostModel};
use crate::gpu::enabled::device_buffers::{Buffer, Graph};
use crate::gpu::enabled::kernels::failed;
use crate::gpu::enabled::layout::{LayerBuffers, TreeBuffers, padded_channels, padded_rows};
use crate::gpu::enabled::passes::ForwardOutputs;
use crate::layers::scaled_rows::power_of_two;
use crate::layers::weights::{Prepared, Weights};
use crate::rows::batch::Batch;
use crate::structure::Structure;
use cudarc::driver::PinnedHostSlice;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A model on a GPU that answers questions.
pub struct Scoring {
    circuit: Circuit,
    graphs: HashMap<RecordedPass, Graph>,
    frames: [Buffer<f32>; 2], // rows are put into one while the other is computed
    staging: PinnedHostSlice<f32>, // on the host, from where the GPU copies fastest
    loaded: Loaded,           // the last rows that were put on the GPU
    samples: usize,           // of the last pass
}

/// What a recorded pass depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RecordedPass {
    loaded: Loaded,
    outputs: Outputs,
}

/// Rows on the GPU.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Loaded {
    frame: usize,
    samples: usize,
}

impl Scoring {
    /// Puts a model on a GPU with buffers for this many samples. With `down`, it also gives activations and flows.
    pub fn new(
        device: (usize, Precision),
        structure: &Structure,
        weights: &Weights,
        prepared: &Prepared,
        samples: usize,
        down: bool,
    ) -> Result<Self> {
        let prior = vec![0.0; structure.classes];
        let model = HostModel {
            structure,
            weights,
            prepared,
            log_prior: &prior,
        };
        let abilities = Abilities {
            backward: down,
            leaves: down,
        };
        let mut circuit = Circuit::new(device, model, samples, abilities)?;
        let other = circuit.gpu.allocate(circuit.frame.len)?;
        let staging = circuit.gpu.pinned(other.len)?;
        circuit.gpu.wait()?; // rows are copied beside the work, which must not clear them afterwards
        Ok(Self {
            frames: [circuit.frame, other],
            staging,
            loaded: Loaded::default(),
            circuit,
            graphs: HashMap::new(),
            samples: 0,
        })
    }

    /// Puts rows of the frame on the GPU, for the pass that is queued next. The pass before it may still run; those
    /// before that must be done.
    pub fn load(&mut self, batch: &Batch) -> Result<()> {
        self.loaded = Loaded {
            frame: 1 - self.loaded.frame,
            samples: batch.rows,
        };
        let fail = |error| failed("copying to the GPU", error);
        let numbers = batch.rows * batch.width;
        let staging = &mut self.staging.as_mut_slice().map_err(fail)?[..numbers];
        let rows = staging.chunks_exact_mut(batch.width).enumerate().collect();
        for_each_task(numbers, rows, |(b, to): (usize, &mut [f32])| {
            to.copy_from_slice(batch.row(b));
        });
        let frame = self.frames[self.loaded.frame];
        self.circuit.gpu.send_beside(frame, staging)
    }

    /// Queues the forward pass.
    pub fn queue(&mut self, outputs: Outputs) -> Result<()> {
        let Loaded { frame, samples } = self.loaded;
        self.samples = samples;
        self.circuit.frame = self.frames[frame];
        let circuit = &self.circuit;
        let flows = outputs == Outputs::Flows;
        let forward = ForwardOutputs {
            dense: flows,
            leaves: outputs != Outputs::Scores,
            others: flows,
        };
        let pass = RecordedPass {
            loaded: self.loaded,
            outputs,
        };
        let graph = match self.graphs.entry(pass) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let pass = circuit.gpu.record(|_| circuit.score(samples, forward))?;
                new.insert(pass)
            }
        };
        circuit.gpu.replay(graph)
    }

    /// Until all that was queued is done.
    pub fn wait(&self) -> Result<()> {
        self.circuit.gpu.wait()
    }

    /// Scores of the rows.
    pub fn scores(&self) -> Result<GpuScores> {
        let (circuit, gpu, samples) = (&self.circuit, &self.circuit.gpu, self.samples);
        let (k, k_wide) = (
            circuit.structure.classes,
            padded_channels(circuit.structure.classes),
        );
        let psi = gpu.fetch(circuit.psi.part(0, samples * k_wide))?;
        Ok(GpuScores {
            score: gpu.fetch(circuit.score.part(0, samples * k))?,
            psi: psi
                .chunks_exact(k_wide)
                .flat_map(|row| &row[..k])
                .copied()
                .collect(),
            underflow_bound: gpu.fetch(circuit.underflow_bound.part(0, samples))?,
            relative_bound: gpu.fetch(circuit.relative_bound.part(0, samples * k))?,
            factor: gpu.fetch(circuit.factor.part(0, samples * circuit.trees.len()))?,
        })
    }

    /// φ·dφ of every position, by tree (N, B, M), from output gradients (B, K).
    pub fn flows(&self, output_gradients: &[f32]) -> Result<Vec<Vec<f32>>> {
        let (circuit, gpu, samples) = (&self.circuit, &self.circuit.gpu, self.samples);
        gpu.send(circuit.output_gradients, output_gradients)?;
        circuit.root(&RootArgs {
            down: 1,
            ..circuit.root_args(samples)
        })?;
        circuit.backward(samples, true)?;
        circuit
            .trees
            .iter()
            .map(|tree| self.leaf_flow(tree))
            .collect()
    }

    /// φ·dφ of one tree's positions, (N, B, M).
    fn leaf_flow(&self, tree: &TreeBuffers) -> Result<Vec<f32>> {
        let (gpu, layer) = (&self.circuit.gpu, &tree.layers[0]);
        let (rows, width) = (padded_rows(self.samples), padded_channels(layer.channels));
        let all = layer.nodes * rows * width;
        let (phi, dphi) = (
            gpu.fetch(layer.phi.part(0, all))?,
            gpu.fetch(layer.dphi.part(0, all))?,
        );
        let mut flow = Vec::with_capacity(layer.nodes * self.samples * layer.channels);
        for i in 0..layer.nodes {
            for b in 0..self.samples {
                let start = (i * rows + b) * width;
                flow.extend((start..start + layer.channels).map(|at| phi[at] * dphi[at]));
            }
        }
        Ok(flow)
    }

    /// φ of every layer, by tree, layer: (nodes, B, C), divided so that the largest is near one; 1 where summed out.
    pub fn activations(&self) -> Result<Vec<Vec<Vec<f32>>>> {
        let mut all = Vec::new();
        for tree in &self.circuit.trees {
            let layers = tree.layer_of.iter().map(|&layer| &tree.layers[layer]);
            all.push(
                layers
                    .map(|layer| self.layer_phi(layer))
                    .collect::<Result<_>>()?,
            );
        }
        Ok(all)
    }

    /// φ of one layer, (nodes, B, C).
    fn layer_phi(&self, layer: &LayerBuffers) -> Result<Vec<f32>> {
        let (gpu, channels) = (&self.circuit.gpu, layer.channels);
        let (rows, width) = (padded_rows(self.samples), padded_channels(channels));
        let phi = gpu.fetch(layer.phi.part(0, layer.nodes * rows * width))?;
        let top = gpu.fetch(layer.top.part(0, layer.nodes * rows))?;
        let mut values = Vec::with_capacity(layer.nodes * self.samples * channels);
        for node in 0..layer.nodes {
            for at in (node * rows..).take(self.samples) {
                if top[at] < 0 {
                    values.extend(std::iter::repeat_n(1.0, channels));
                    continue;
                }
                let (_, by) = power_of_two(f32::from_bits(top[at] as u32));
                let row = &phi[at * width..][..channels];
                values.extend(row.iter().map(|phi| phi * by));
            }
        }
        Ok(values)
    }
}
