//! A training run on a GPU. A step is one recorded graph. The host sends, for some steps ahead, which rows they take
//! and the numbers of the rule, and fetches losses when they are to be reported.

use crate::device::Precision;
use crate::error::Result;
use crate::gpu::enabled::args::{
    Cost, Dropping, FillArgs, FinishArgs, Numbers, RootArgs, RowsArgs, UpdateArgs,
};
use crate::gpu::enabled::circuit::{Abilities, Circuit, ForwardOutputs, HostModel};
use crate::gpu::enabled::device_buffers::{Buffer, Gpu, Graph};
use crate::gpu::enabled::kernels::Kernel;
use crate::gpu::enabled::layout::padded_rows;
use crate::layers::weights::Prepared;
use crate::model::Model;
use crate::training::data::Data;
use crate::training::gpu::enabled::data_rows::{DataRows, RowAddresses};
use crate::training::gpu::enabled::dropping::{drop_buffers, smooth_channels};
use crate::training::gpu::enabled::gradients::{Gradients, Moving};
use crate::training::gpu::enabled::leaf_step::LeafStep;
use crate::training::gpu::enabled::underflow::UnderflowGuard;
use crate::training::loss::{Loss, share_of};
use crate::training::optimizer::{Rule, Step};
use crate::training::settings::Settings;
use std::collections::HashMap;

/// Steps sent at once, at most.
const SLOTS: usize = 64;
/// Numbers of rows that are sent ahead where the data do not stay on the GPU, at most.
const STAGED: usize = 1 << 26;

/// What the steps that were sent read and write.
struct StepBuffers {
    numbers: Buffer<Numbers>, // by step
    picks: Buffer<u32>,       // by step, row
    clock: Buffer<u32>,       // the step that runs
    label: Buffer<i32>,       // by row of the batch, as the next three
    weight: Buffer<f32>,
    cost: Buffer<Cost>,
    rechecked: Buffer<u8>,
    costs: Buffer<Cost>, // by step
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
struct PlacingBuffers {
    places: Buffer<i32>,
    offset: Buffer<f32>,
    scale: Buffer<f32>,
    shifts: usize,
}

/// A training run on a GPU.
pub struct GpuTraining {
    pub(super) circuit: Circuit,
    pub(super) settings: Settings,
    width: usize,
    pub(super) first: Buffer<f32>,
    pub(super) second: Buffer<f32>,
    buffers: StepBuffers,
    placing: PlacingBuffers,
    dropping: Buffer<Dropping>,
    smooth: Buffer<u8>, // by channel of an image that is turned: whether it is interpolated; nothing where none is
    gradients: Gradients,
    moving: Buffer<RowsArgs>,
    moving_rows: usize,
    guard: UnderflowGuard,
    pub(super) leaves: Vec<LeafStep>, // by tree; empty where leaves stay as they are
    data_rows: DataRows,
    graphs: HashMap<u64, Graph>, // by where values lie
    slots: usize,                // sent and not yet looked at
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
            moving_rows: moving
                .iter()
                .map(|all| all.place.matrices * all.place.rows)
                .sum(),
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
            before += own.place.matrices * own.place.rows;
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
            least: circuit.least.part(place.before, place.matrices).at,
            stride: place.len() as u64,
            rows: (place.matrices * place.rows) as i32,
            real: own.columns as i32,
            wide: place.padded as i32,
            parts: own.parts as i32,
            before: before as i32,
            height: place.rows as i32,
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

    /// Queues steps from `step` on, each on the rows that `picks` names (steps · B).
    pub fn advance(&mut self, data: &Data<'_>, step: usize, picks: &[u32]) -> Result<()> {
        let batch = self.settings.batch;
        let count = picks.len() / batch;
        let weight_of = |&row: &u32| {
            data.weights
                .get(row as usize)
                .map_or(1.0, |&w| f64::from(w))
        };
        let numbers: Vec<Numbers> = picks
            .chunks_exact(batch)
            .zip(step..)
            .map(|(rows, step)| self.numbers_of(step, rows.iter().map(weight_of).sum()))
            .collect();
        let max_rows = self.max_steps() * batch;
        let gpu = &mut self.circuit.gpu;
        gpu.send(self.buffers.numbers, &numbers)?;
        gpu.send(self.buffers.clock, &[0])?;
        let values = match self.data_rows.resident {
            Some(values) => {
                gpu.send(self.buffers.picks, picks)?;
                values
            }
            None => {
                gpu.send(self.buffers.picks, &Vec::from_iter(0..picks.len() as u32))?;
                self.data_rows.stage(gpu, data, picks, max_rows)?
            }
        };
        if !self.graphs.contains_key(&values.values) {
            let graph = self.circuit.gpu.record(|_| self.step(values))?;
            self.graphs.insert(values.values, graph);
        }
        if let Some(graph) = self.graphs.get_mut(&values.values) {
            (0..count).try_for_each(|_| self.circuit.gpu.replay(graph))?;
        }
        self.slots = count;
        Ok(())
    }

    /// Losses of the steps queued last, and how many of their samples were rechecked.
    pub fn losses(&self) -> Result<Vec<(Loss, usize)>> {
        let costs = self
            .circuit
            .gpu
            .fetch(self.buffers.costs.part(0, self.slots))?;
        let loss = |cost: &Cost| Loss {
            discriminative: cost.discriminative,
            generative: cost.generative,
            correct: cost.correct as usize,
            labelled: cost.labelled as usize,
            rows: self.settings.batch,
            weight: cost.weight,
        };
        Ok(costs
            .iter()
            .map(|cost| (loss(cost), cost.doubtful as usize))
            .collect())
    }

    fn numbers_of(&self, step: usize, weight: f64) -> Numbers {
        let settings = &self.settings;
        let rate = settings.rate * settings.schedule.factor(step, settings.steps);
        let rule = Step::new(settings.rule, rate, settings.penalty, step);
        Numbers {
            step: step as u32,
            rate: rule.rate,
            penalty: rule.penalty,
            from_moment: rule.from_moment,
            from_gradient: rule.from_gradient,
            second: rule.second,
            leaf_rate: (rate * settings.leaf_rate) as f32,
            by: share_of(weight),
        }
    }

    /// One step.
    fn step(&self, values: RowAddresses) -> Result<()> {
        let (circuit, gpu, settings) = (&self.circuit, &self.circuit.gpu, &self.settings);
        let (samples, rows) = (settings.batch, padded_rows(settings.batch));
        let threads = if rows > 2048 { 128 } else { 256 }; // fewer where more blocks wait for memory at once
        gpu.launch(
            Kernel::Fill.on(rows, threads),
            &self.fill_args(values, samples, rows),
        )?;
        let to_leaves = !self.leaves.is_empty();
        circuit.forward(
            samples,
            ForwardOutputs {
                dense: false,
                leaves: to_leaves,
                others: true,
            },
        )?;
        let root = RootArgs {
            label: self.buffers.label.at,
            weight: self.buffers.weight.at,
            numbers: self.buffers.numbers.at,
            clock: self.buffers.clock.at,
            cost: self.buffers.cost.at,
            doubtful: self.buffers.rechecked.at,
            seeds: 0,
            least: circuit.least.at,
            beta: settings.generative,
            down: 1,
            likelihood: i32::from(settings.rule == Rule::Em),
            ..circuit.root_args(samples)
        };
        circuit.root(&root)?;
        circuit.backward(samples, to_leaves)?;
        for (t, leaves) in self.leaves.iter().enumerate() {
            leaves.flow(circuit, t, samples)?;
        }
        self.guard.launch(circuit, &root, to_leaves)?;
        self.gradients.launch(circuit, samples)?;
        gpu.launch(
            Kernel::Update.on(self.moving_rows.div_ceil(8), 256),
            &self.update_args(),
        )?;
        for (t, leaves) in self.leaves.iter().enumerate() {
            leaves.step(circuit, t, samples, self.update_args())?;
        }
        let finish = FinishArgs {
            cost: self.buffers.cost.at,
            sums: self.buffers.costs.at,
            clock: self.buffers.clock.at,
            samples: samples as i32,
        };
        gpu.launch(Kernel::Finish.on(1, 1024), &finish)
    }

    fn fill_args(&self, values: RowAddresses, samples: usize, rows: usize) -> FillArgs {
        let (circuit, settings) = (&self.circuit, &self.settings);
        let image = circuit
            .structure
            .frame
            .as_ref()
            .map_or((0, 0, 0), |f| (f.height, f.width, f.channels));
        FillArgs {
            clock: self.buffers.clock.at,
            numbers: self.buffers.numbers.at,
            picks: self.buffers.picks.at,
            values: values.values,
            codes: values.codes,
            places: self.placing.places.at,
            offset: self.placing.offset.at,
            scale: self.placing.scale.at,
            labels: values.labels,
            weights: values.weights,
            frame: circuit.frame.at,
            label: self.buffers.label.at,
            weight: self.buffers.weight.at,
            tops: circuit.tops.at,
            dropping: self.dropping.at,
            smooth: self.smooth.at,
            least: circuit.least.at,
            by: circuit.level_by.at,
            levels: circuit.level_matrices.at,
            level_count: circuit.level_by.len as i32,
            top_count: circuit.tops.len as u64,
            seed: settings.seed,
            drop: settings.drop_inputs,
            rotate: settings.rotate,
            stretch: settings.stretch,
            width: self.width as i32,
            frame_len: circuit.structure.frame_len() as i32,
            samples: samples as i32,
            rows: rows as i32,
            shifts: self.placing.shifts as i32,
            droppings: self.dropping.len as i32,
            varied: settings.drop_varied.into(),
            image_height: image.0 as i32,
            image_width: image.1 as i32,
            channels: image.2 as i32,
        }
    }

    fn update_args(&self) -> UpdateArgs {
        let (beta1, beta2, rule) = match self.settings.rule {
            Rule::Adam { beta1, beta2 } | Rule::Nadam { beta1, beta2 } => (beta1, beta2, 0),
            Rule::Sgd { momentum } => (momentum, 0.0, 1),
            Rule::Em => (0.0, 0.0, 2),
        };
        UpdateArgs {
            all: self.moving.at,
            numbers: self.buffers.numbers.at,
            clock: self.buffers.clock.at,
            guarded: self.guard.guarded.at,
            guard_stride: self.circuit.places.total as u64,
            beta1,
            beta2,
            kinds: self.moving.len as i32,
            rows: self.moving_rows as i32,
            rule,
            guards: self.guard.blocks as i32,
        }
    }
}
