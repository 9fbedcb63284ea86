//! Training with the run on a GPU: steps are queued some at a time, and their losses come back together.

use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::layers::leaf_kernel::LeafKernel;
use crate::layers::weights::{Prepared, Weights};
use crate::structure::OUTSIDE;
use crate::training::data::Data;
use crate::training::gpu::{GpuTraining, Placing};
use crate::training::loss::Loss;
use crate::training::memory::Memory;
use crate::training::step_randomness::pick;
use crate::training::trainer::{Progress, Trainer};
use std::ops::ControlFlow;

impl Trainer<'_> {
    /// Moves the run to a device. On a GPU the same seed takes the same rows and holes as on the processor.
    pub fn use_device(&mut self, device: Device, precision: Precision) -> Result<()> {
        self.sync_from_gpu()?;
        self.gpu = None;
        let Device::Cuda(ordinal) = device else {
            return Ok(());
        };
        if self.settings.target.is_some() {
            return Err(Error::Setting {
                name: "device",
                expected: "cpu: a column is learned to be predicted on the processor only",
                got: format!("cuda:{ordinal}"),
            });
        }
        self.model.weights.check_for_gpu(ordinal)?;
        let place = |place: u32| if place == OUTSIDE { -1 } else { place as i32 };
        let places: Vec<i32> = self
            .placements
            .iter()
            .flatten()
            .map(|column| place(column.place))
            .collect();
        let offset: Vec<f32> = self.placements[0]
            .iter()
            .map(|column| column.offset)
            .collect();
        let scale: Vec<f32> = self.placements[0]
            .iter()
            .map(|column| column.scale)
            .collect();
        let placing = Placing {
            places: &places,
            offset: &offset,
            scale: &scale,
        };
        let mut gpu = GpuTraining::new(
            (ordinal, precision),
            &self.model,
            &self.prepared,
            &self.settings,
            &placing,
        )?;
        let memory = &self.memory;
        gpu.set_memory(&self.model.weights, |which| {
            which.map_or(&memory.classes, |(t, l)| &memory.levels[t][l])
        })?;
        gpu.learn_leaves(&self.model.weights, &memory.families)?;
        self.gpu = Some(gpu);
        Ok(())
    }

    /// Keeps at most this many bytes of data on a GPU; larger data are sent as they are needed.
    #[doc(hidden)]
    pub fn limit_gpu_bytes(&mut self, max_bytes: usize) {
        self.max_gpu_bytes = max_bytes;
    }

    /// Bytes of activations on a GPU: all that are held, and what of them the backward pass reads.
    #[doc(hidden)]
    pub fn activation_bytes(&self) -> Option<(usize, usize)> {
        self.gpu.as_ref().map(GpuTraining::activation_bytes)
    }

    /// Copies what a GPU has moved back to the host, so that [`Trainer::model`] sees it.
    pub fn sync_from_gpu(&mut self) -> Result<()> {
        if let Some((prepared, memory, weights)) = self.fetched()? {
            (self.prepared, self.memory, self.model.weights) = (prepared, memory, weights);
        }
        Ok(())
    }

    /// W, the rule's memory and the leaves as a GPU has them; nothing where there is none.
    pub(crate) fn fetched(&self) -> Result<Option<(Prepared, Memory, Weights)>> {
        let Some(gpu) = &self.gpu else {
            return Ok(None);
        };
        let (mut prepared, mut memory, mut weights) = (
            self.prepared.clone(),
            self.memory.clone(),
            self.model.weights.clone(),
        );
        gpu.fetch_leaves(&mut weights, &mut memory.families)?;
        for (tables, tree) in prepared.leaves.iter_mut().zip(&weights.trees) {
            *tables = tree.families.iter().map(LeafKernel::new).collect();
        }
        let mut numbers: Vec<Vec<Vec<f32>>> = prepared
            .levels
            .iter()
            .map(|tree| tree.iter().map(|s| s.weights().to_vec()).collect())
            .collect();
        let mut class_numbers = prepared.classes.weights().to_vec();
        gpu.fetch(&weights, |which, at, [w, first, second]| {
            let numbers = which.map_or(&mut class_numbers, |(t, l)| &mut numbers[t][l]);
            let moments = memory.moments_mut(which);
            (numbers[at], moments.first[at], moments.second[at]) = (w, first, second);
        })?;
        for (simplex, numbers) in prepared
            .levels
            .iter_mut()
            .flatten()
            .zip(numbers.iter().flatten())
        {
            simplex.set_weights(numbers);
        }
        prepared.classes.set_weights(&class_numbers);
        Ok(Some((prepared, memory, weights)))
    }

    /// Rows of the next `count` steps.
    fn picks(&mut self, data: &Data<'_>, count: usize) -> Vec<u32> {
        let (rows, batch, seed) = (
            data.values.len() / self.model.structure.width(),
            self.settings.batch,
            self.settings.seed,
        );
        let places = self.step * batch..(self.step + count) * batch;
        places
            .map(|place| pick(&mut self.order, seed, place, rows) as u32)
            .collect()
    }

    /// Queues steps and waits for their losses.
    fn steps_on_gpu(&mut self, data: &Data<'_>, count: usize) -> Result<Vec<Loss>> {
        let picks = self.picks(data, count);
        let Some(gpu) = &mut self.gpu else {
            return Ok(Vec::new());
        };
        gpu.advance(data, self.step, &picks)?;
        let mut losses = Vec::with_capacity(count);
        for (loss, rechecked) in gpu.losses()? {
            let objective = loss.objective(self.settings.generative);
            if !objective.is_finite() {
                return Err(Error::Diverged {
                    step: self.step,
                    loss: objective,
                });
            }
            self.step += 1;
            self.recomputed += rechecked;
            losses.push(loss);
        }
        Ok(losses)
    }

    pub(crate) fn advance_on_gpu(&mut self, data: &Data<'_>) -> Result<Loss> {
        if let Some(gpu) = &mut self.gpu {
            gpu.forget_data(); // a run may have left others there
        }
        let losses = self.steps_on_gpu(data, 1)?;
        losses
            .first()
            .copied()
            .ok_or_else(|| Error::Device("no step was taken".into()))
    }

    /// As [`Trainer::run_with`]; `on_progress` is called for up to `report_every` steps at once, the last of which is
    /// the trainer's.
    pub(crate) fn run_on_gpu(
        &mut self,
        data: &Data<'_>,
        validation: Option<&Data<'_>>,
        on_progress: &mut dyn FnMut(&Self, &Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        if let Some(gpu) = &mut self.gpu {
            gpu.keep_data(data, self.max_gpu_bytes)?;
        }
        let (steps, every) = (self.settings.steps, self.settings.validate_every);
        let max_steps = self.gpu.as_ref().map_or(1, GpuTraining::max_steps);
        let mut stop = false;
        while self.step < steps && !stop {
            let mut until = (self.step / self.report_every + 1).saturating_mul(self.report_every);
            if validation.is_some() {
                until = until.min((self.step / every + 1) * every);
            }
            let first = self.step;
            let losses =
                self.steps_on_gpu(data, until.min(steps).min(first + max_steps) - first)?;
            let due = self.step.is_multiple_of(every) || self.step == steps;
            let validated = match validation.filter(|_| due) {
                Some(set) => {
                    self.sync_from_gpu()?;
                    Some(self.validate(set))
                }
                None => None,
            };
            for (step, loss) in (first + 1..).zip(losses) {
                let validation = validated.filter(|_| step == self.step);
                let objective = loss.objective(self.settings.generative);
                stop |= on_progress(
                    self,
                    &Progress {
                        step,
                        steps,
                        loss,
                        objective,
                        validation,
                    },
                )
                .is_break();
            }
        }
        self.sync_from_gpu()
    }
}
