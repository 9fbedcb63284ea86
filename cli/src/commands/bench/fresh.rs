//! Jobs on random images, with fresh weights of a preset.

use crate::commands::bench::Args;
use crate::commands::bench::report::{Reporter, RowsJob};
use anyhow::Result;
use std::io::Write;
use sumout::internals::{
    Activations, Batch, Keep, Outputs, Prepared, Scoring, UnderflowFallback, fill,
};
use sumout::random::{Purpose, Stream};
use sumout::recipes::Preset;
use sumout::training::Data;
use sumout::{Device, Model, Precision, Settings, Trainer};

/// Trains and scores.
pub fn jobs<W: Write>(
    args: &Args,
    preset: &Preset,
    on: (Device, Precision),
    reporter: &mut Reporter<'_, W>,
) -> Result<()> {
    let random = RandomImages::new(preset, args.batch);
    let holes = Settings {
        batch: args.batch,
        steps: 1_000_000,
        ..preset.settings.clone()
    };
    let no_holes = Settings {
        drop_inputs: 0.0,
        drop_nodes: vec![],
        shift: 0,
        ..holes.clone()
    };
    let job = |job: &'static str, seconds: f64| RowsJob {
        job,
        rows: args.batch,
        seconds,
        edges: preset.structure.multiply_adds(),
        computed_again: None,
    };
    let mut report = |name, seconds| reporter.rows(&job(name, seconds));
    report("train", train(args, &random, no_holes, on)?)?;
    report("train-preset", train(args, &random, holes, on)?)?;
    let seconds = match on {
        (Device::Cpu, _) => score(args, &random),
        (Device::Cuda(ordinal), precision) => score_on_gpu(args, &random, (ordinal, precision))?,
    };
    report("score", seconds)
}

/// Images of random bytes.
struct RandomImages {
    model: Model,
    values: Vec<f32>,
    labels: Vec<Option<usize>>,
}

impl RandomImages {
    fn new(preset: &Preset, batch: usize) -> Self {
        let mut random = Stream::new(1, Purpose::Sampling, 0, 0);
        let rows = 4 * batch.max(256);
        let mut model = Model::random(preset.structure.clone(), 1.0, 1);
        model.scaling = preset.scaling.clone();
        let values = (0..rows * preset.structure.width())
            .map(|_| random.below(256) as f32)
            .collect();
        let labels = (0..rows)
            .map(|row| Some(row % preset.structure.classes))
            .collect();
        Self {
            model,
            values,
            labels,
        }
    }

    fn trainer(&self, settings: Settings) -> Result<Trainer<'_>> {
        let (structure, scaling) = (self.model.structure.clone(), self.model.scaling.clone());
        let data = Data::new(self.model.rows(&self.values)?, &self.labels);
        Ok(Trainer::start(structure, scaling, settings, data)?)
    }
}

/// Seconds per step.
fn train(
    args: &Args,
    random: &RandomImages,
    settings: Settings,
    (device, precision): (Device, Precision),
) -> Result<f64> {
    let mut trainer = random.trainer(settings)?;
    trainer.use_device(device, precision)?;
    args.timing().best_step(&mut trainer)
}

fn score(args: &Args, random: &RandomImages) -> f64 {
    let model = &random.model;
    let prepared = Prepared::new(&model.weights);
    let (mut activations, mut frame, guard) = (
        Activations::new(),
        Batch::default(),
        UnderflowFallback::default(),
    );
    let rows = &random.values[..args.batch * model.structure.width()];
    let mut score = || {
        fill(model, rows, &mut frame);
        activations.forward(&model.structure, &prepared, &frame, &[], Keep::Scores);
        activations.recheck_scores(&model.structure, &model.weights, &guard, &frame);
    };
    let scored = args.timing().best_of(|| {
        score();
        Ok(())
    });
    scored.unwrap_or(f64::INFINITY) // scoring cannot fail
}

/// Seconds for scoring a batch that is on a GPU already; scores stay there.
fn score_on_gpu(args: &Args, random: &RandomImages, on: (usize, Precision)) -> Result<f64> {
    let model = &random.model;
    let prepared = Prepared::new(&model.weights);
    let mut scoring = Scoring::new(
        on,
        &model.structure,
        &model.weights,
        &prepared,
        args.batch,
        false,
    )?;
    let mut frame = Batch::default();
    let rows = &random.values[..args.batch * model.structure.width()];
    fill(model, rows, &mut frame);
    scoring.load(&frame)?;
    let mut timing = args.timing();
    timing.steps = 1;
    let seconds = timing.best_of(|| {
        (0..args.steps).try_for_each(|_| scoring.queue(Outputs::Scores))?;
        Ok(scoring.wait()?)
    })?;
    Ok(seconds / args.steps as f64)
}
