//! A training run on a GPU: the circuit, the data, and the buffers that its steps read and write.

use crate::device::Precision;
use crate::error::Result;
use crate::gpu::enabled::args::{Cost, Dropping, Numbers, RowsArgs};
use crate::gpu::enabled::circuit::{Abilities, Circuit, HostModel};
use crate::gpu::enabled::device_buffers::{Buffer, Gpu, Graph};
use crate::layers::weights::Prepared;
use crate::model::Model;
use crate::training::data::Data;
use crate::training::gpu::enabled::data_rows::DataRows;
use crate::training::gpu::enabled::dropping::{drop_buffers, smooth_channels};
use crate::training::gpu::enabled::gradients::{Gradients, Moving};
use crate::training::gpu::enabled::leaf_step::LeafStep;
use crate::training::gpu::enabled::underflow::UnderflowGuard;
use crate::training::settings::Settings;
use std::collections::HashMap;

/// Steps sent at once, at most.
const SLOTS: usize = 64;
/// Numbers of rows that are sent ahead where the data do not stay on the GPU, at most.
const STAGED: usize = 1 << 26;

/// What the steps that were sent read and write.
pub(super) struct StepBuffers {
    pub numbers: Buffer<Numbers>, // by step
    pub picks: Buffer<u32>,       // by step, row
    pub clock: Buffer<u32>,       // the step that runs
    pub label: Buffer<i32>,       // by row of the batch, as the next three
    pub weight: Buffer<f32>,
    pub cost: Buffer<Cost>,
    pub rechecked: Buffer<u8>,
    pub costs: Buffer<Cost>, // by step
}

impl StepBuffers {
    fn new(gpu: &mut Gpu, batch: usize, rows: usize) -> Result<Self> {
        Ok(Self {
            numbers: gpu.allocate(SLOTS)?,
            picks: gpu.allocate(SLOTS * batch)?,
            clock: gpu.allocate(1)?,
            label: gpu.allocate(rows)?,
            weight: gpu.allocate(rows)?,
            cost: gpu.allocate(rows)?,
            rechecked: gpu.allocate(rows)?,
            costs: gpu.allocate(SLOTS)?,
        })
    }
}

/// [`Placing`] on the GPU.
pub(super) struct PlacingBuffers {
    pub places: Buffer<i32>,
    pub offset: Buffer<f32>,
    pub scale: Buffer<f32>,
    pub shifts: usize,
}

/// A training run on a GPU.
pub struct GpuTraining {
    pub(super) circuit: Circuit,
    pub(super) settings: Settings,
    pub(super) width: usize,
    pub(super) first: Buffer<f32>,
    pub(super) second: Buffer<f32>,
    pub(super) buffers: StepBuffers,
    pub(super) placing: PlacingBuffers,
    pub(super) dropping: Buffer<Dropping>,
    pub(super) smooth: Buffer<u8>, // by channel of an image that is turned: whether it is interpolated; nothing where none is
    pub(super) gradients: Gradients,
    pub(super) moving: Buffer<RowsArgs>,
    pub(super) moving_rows: usize,
    pub(super) guard: UnderflowGuard,
    pub(super) leaves: Vec<LeafStep>, // by tree; empty where leaves stay as they are
    pub(super) data_rows: DataRows,
    pub(super) graphs: HashMap<u64, Graph>, // by where values lie
    pub(super) slots: usize,                // sent and not yet looked at
}

/// Where numbers of a row go, and how they are scaled.
pub struct Placing<'a> {
    /// (shifts, width): places in the frame, −1 outside.
    pub places: &'a [i32],
    /// (width).
    pub offset: &'a [f32],
    /// (width).
    pub scale: &'a [f32],
}

impl GpuTraining {
    /// Puts a run on a GPU.
    pub fn new(
        device: (usize, Precision),
        model: &Model,
        prepared: &Prepared,
        settings: &Settings,
        placing: &Placing<'_>,
    ) -> Result<Self> {
        let s = &model.structure;
        let host = HostModel {
            structure: s,
            weights: &model.weights,
            prepared,
            log_prior: &model.log_prior,
        };
        let abilities = Abilities {
            backward: true,
            leaves: settings.leaf_rate > 0.0,
        };
        let mut circuit = Circuit::new(device, host, settings.batch, abilities)?;
        let (rows, total, width) = (circuit.rows, circuit.places.total, s.width());
        let dropping = drop_buffers(&mut circuit, settings)?;
        circuit.set_top_layers()?;
        let guard = UnderflowGuard::new(&mut circuit, settings.batch)?;
        let (gradients, moving) = Gradients::new(&mut circuit)?;
        let gpu = &mut circuit.gpu;
        let mut training = Self {
            first: gpu.allocate(total)?,
            second: gpu.allocate(total)?,
            buffers: StepBuffers::new(gpu, settings.batch, rows)?,
            data_rows: DataRows::new(gpu, width)?,
            placing: PlacingBuffers {
                places: gpu.upload(placing.places)?,
                offset: gpu.upload(placing.offset)?,
                scale: gpu.upload(placing.scale)?,
                shifts: placing.places.len() / width,
            },
            dropping: gpu.upload(&dropping)?,
            smooth: if settings.turns() {
                gpu.upload(&smooth_channels(s))?
            } else {
                Buffer::none()
            },
            gradients,
            moving: Buffer::none(),
            moving_rows: moving.iter().map(|all| all.place.all_rows()).sum(),
            guard,
            leaves: Vec::new(),
            graphs: HashMap::new(),
            slots: 0,
            settings: settings.clone(),
            width,
            circuit,
        };
        training.set_moving(&moving)?;
        Ok(training)
    }

    /// Tells the update kernel what moves.
    fn set_moving(&mut self, moving: &[Moving]) -> Result<()> {
        let (mut all, mut before) = (Vec::with_capacity(moving.len()), 0);
        for own in moving {
            all.push(self.rows_args(own, before));
            before += own.place.all_rows();
        }
        self.moving = self.circuit.gpu.upload(&all)?;
        Ok(())
    }

    /// Rows that move, with this many before them.
    fn rows_args(&self, own: &Moving, before: usize) -> RowsArgs {
        let (place, circuit) = (own.place, &self.circuit);
        let at = |buffer: Buffer<f32>| buffer.part(place.first, place.len()).at;
        let sums = self.gradients.sums.part(own.sums, own.parts * place.len());
        RowsArgs {
            weights: at(circuit.weights),
            first: at(self.first),
            second: at(self.second),
            rounded: circuit.rounded.map_or(0, at),
            sums: sums.at,
            counts: at(self.guard.counts),
            least: circuit.least.part(place.before, place.all_rows()).at,
            stride: place.len() as u64,
            rows: place.all_rows() as i32,
            real: own.columns as i32,
            wide: place.padded as i32,
            parts: own.parts as i32,
            before: before as i32,
            padding: 0,
        }
    }

    /// Bytes of activations: all, and what of them the backward pass reads.
    pub fn activation_bytes(&self) -> (usize, usize) {
        self.circuit.activation_bytes()
    }

    /// Keeps the data on the GPU if they fit there and into `max_bytes`.
    pub fn keep_data(&mut self, data: &Data<'_>, max_bytes: usize) -> Result<()> {
        self.data_rows
            .keep_all(&mut self.circuit.gpu, data, max_bytes)
    }

    /// Rows are sent as they are needed from now on.
    pub fn forget_data(&mut self) {
        self.data_rows.forget();
    }

    /// Steps that can be sent at once.
    pub fn max_steps(&self) -> usize {
        if self.data_rows.resident.is_some() {
            SLOTS
        } else {
            (STAGED / (self.settings.batch * self.width)).clamp(1, SLOTS)
        }
    }
}
