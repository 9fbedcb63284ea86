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
use cudarc::driver::{CudaEvent, PinnedHostSlice, ValidAsZeroBits};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A model on a GPU that answers questions.
pub struct Scoring {
    circuit: Circuit,
    graphs: HashMap<RecordedPass, Graph>,
    slots: [Slot; 2], // rows are put into one while those of the other are computed
    loaded: Loaded,   // the last rows that were put on the GPU
    samples: usize,   // of the last pass
}

/// What one pass reads and gives, in memory that the GPU copies by itself.
struct Slot {
    frame: Buffer<f32>,
    rows: PinnedHostSlice<f32>, // on their way into the frame
    loaded: CudaEvent,          // when they are there
    scores: PinnedHostSlice<f64>,
    psi: PinnedHostSlice<f32>,
    underflow_bound: PinnedHostSlice<f32>,
    relative_bound: PinnedHostSlice<f32>,
    factor: PinnedHostSlice<f32>,
    sent_back: CudaEvent, // when all of these are there
}

/// Scores on their way back, see [`Scoring::send_back`].
#[must_use]
pub struct Returning(Loaded);

/// What a recorded pass depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RecordedPass {
    loaded: Loaded,
    outputs: Outputs,
}

/// Rows on the GPU.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Loaded {
    slot: usize,
    samples: usize,
}

impl Slot {
    fn new(circuit: &Circuit, frame: Buffer<f32>) -> Result<Self> {
        let gpu = &circuit.gpu;
        Ok(Self {
            frame,
            rows: gpu.pinned(frame.len)?,
            loaded: gpu.event()?,
            scores: gpu.pinned(circuit.score.len)?,
            psi: gpu.pinned(circuit.psi.len)?,
            underflow_bound: gpu.pinned(circuit.underflow_bound.len)?,
            relative_bound: gpu.pinned(circuit.relative_bound.len)?,
            factor: gpu.pinned(circuit.factor.len)?,
            sent_back: gpu.event()?,
        })
    }
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
        circuit.gpu.wait()?; // rows are copied beside the work, which must not clear them afterwards
        Ok(Self {
            slots: [
                Slot::new(&circuit, circuit.frame)?,
                Slot::new(&circuit, other)?,
            ],
            loaded: Loaded::default(),
            circuit,
            graphs: HashMap::new(),
            samples: 0,
        })
    }

    /// Sends rows of the frame to the GPU, for the pass that is queued next. The pass before it may still run; those
    /// before that must be done.
    pub fn load(&mut self, batch: &Batch) -> Result<()> {
        self.loaded = Loaded {
            slot: 1 - self.loaded.slot,
            samples: batch.rows,
        };
        let slot = &mut self.slots[self.loaded.slot];
        let fail = |error| failed("copying to the GPU", error);
        slot.loaded.synchronize().map_err(fail)?;
        let numbers = batch.rows * batch.width;
        let staged = &mut slot.rows.as_mut_slice().map_err(fail)?[..numbers];
        let rows = staged.chunks_exact_mut(batch.width).enumerate().collect();
        for_each_task(numbers, rows, |(b, to): (usize, &mut [f32])| {
            to.copy_from_slice(batch.row(b));
        });
        let gpu = &self.circuit.gpu;
        // SAFETY: the rows live as long as the GPU, and are written again only after the event.
        unsafe { gpu.send_beside(slot.frame, staged, &slot.loaded) }
    }

    /// Queues the forward pass.
    pub fn queue(&mut self, outputs: Outputs) -> Result<()> {
        let Loaded { slot, samples } = self.loaded;
        self.samples = samples;
        self.circuit.frame = self.slots[slot].frame;
        let circuit = &self.circuit;
        circuit.gpu.wait_for(&self.slots[slot].loaded)?;
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

    /// Queues the way back of the scores of the last pass. Another pass may be loaded and queued before they are
    /// [taken](Self::scores).
    pub fn send_back(&mut self) -> Result<Returning> {
        let (circuit, samples) = (&self.circuit, self.loaded.samples);
        let (gpu, k) = (&circuit.gpu, circuit.structure.classes);
        let k_wide = padded_channels(k);
        let slot = &mut self.slots[self.loaded.slot];
        // SAFETY: the slot lives as long as the GPU, and is read only after its event.
        unsafe {
            gpu.fetch_later(circuit.score.part(0, samples * k), &mut slot.scores)?;
            gpu.fetch_later(circuit.psi.part(0, samples * k_wide), &mut slot.psi)?;
            gpu.fetch_later(
                circuit.underflow_bound.part(0, samples),
                &mut slot.underflow_bound,
            )?;
            gpu.fetch_later(
                circuit.relative_bound.part(0, samples * k),
                &mut slot.relative_bound,
            )?;
            let factors = samples * circuit.trees.len();
            gpu.fetch_later(circuit.factor.part(0, factors), &mut slot.factor)?;
        }
        gpu.mark(&slot.sent_back)?;
        Ok(Returning(self.loaded))
    }

    /// Scores that were sent back, when they are there.
    pub fn scores(&self, Returning(of): Returning) -> Result<GpuScores> {
        let (slot, trees) = (&self.slots[of.slot], self.circuit.trees.len());
        let (k, samples) = (self.circuit.structure.classes, of.samples);
        let fail = |error| failed("copying from the GPU", error);
        slot.sent_back.synchronize().map_err(fail)?;
        let psi = slot.psi.as_slice().map_err(fail)?;
        let psi = psi.chunks_exact(padded_channels(k)).take(samples);
        let mut mantissas = Vec::with_capacity(samples * k);
        psi.for_each(|row| mantissas.extend_from_slice(&row[..k]));
        Ok(GpuScores {
            score: first_of(&slot.scores, samples * k)?,
            psi: mantissas,
            underflow_bound: first_of(&slot.underflow_bound, samples)?,
            relative_bound: first_of(&slot.relative_bound, samples * k)?,
            factor: first_of(&slot.factor, samples * trees)?,
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

/// The first numbers of a slot.
fn first_of<T: Copy + ValidAsZeroBits>(
    numbers: &PinnedHostSlice<T>,
    count: usize,
) -> Result<Vec<T>> {
    let numbers = numbers.as_slice();
    numbers
        .map(|numbers| numbers[..count].to_vec())
        .map_err(|error| failed("copying from the GPU", error))
}
