//! The steps of a training run on a GPU. A step is one recorded graph. The host sends, for some steps ahead, which rows
//! they take and the numbers of the rule, and fetches losses when they are to be reported.

use crate::error::Result;
use crate::gpu::enabled::args::{Cost, FillArgs, FinishArgs, Numbers, RootArgs, UpdateArgs};
use crate::gpu::enabled::kernels::Kernel;
use crate::gpu::enabled::layout::padded_rows;
use crate::gpu::enabled::passes::ForwardOutputs;
use crate::training::data::Data;
use crate::training::gpu::enabled::data_rows::RowAddresses;
use crate::training::gpu::enabled::gpu_training::GpuTraining;
use crate::training::loss::{Loss, share_of};
use crate::training::optimizer::{Rule, Step};

impl GpuTraining {
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
            least: circuit.least.at,
            by: circuit.level_by.at,
            levels: circuit.level_rows.at,
            samples: samples as i32,
            padding: 0,
        };
        gpu.launch(Kernel::Finish.on(1 + circuit.level_by.len, 1024), &finish)
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
