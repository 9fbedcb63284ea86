//! `sumout bench`: how fast this machine trains and scores a preset on random images, and what it could do at most.

use crate::options::device::DeviceArgs;
use anyhow::{Context, Result};
use rayon::prelude::*;
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use sumout::Model;
use sumout::arithmetic::matmul::arch;
use sumout::circuit::activations::{Activations, Keep};
use sumout::circuit::outputs::Outputs;
use sumout::circuit::underflow::UnderflowFallback;
use sumout::device::{Device, Precision};
use sumout::gpu::Scoring;
use sumout::layers::mixing::{Mixing, Simplex};
use sumout::layers::weights::Prepared;
use sumout::random::{Purpose, Stream};
use sumout::recipes::presets::{Preset, preset};
use sumout::rows::batch::Batch;
use sumout::training::data::Data;
use sumout::training::settings::Settings;
use sumout::training::trainer::{Proceed, Trainer};
use sumout_data::error::mistake;

/// Measure how fast this machine trains and scores a preset
///
/// Jobs: train (everything observed), train-preset (with the preset's random holes), score, and limit: the best rate of
/// large matrix products with the engine's own kernel, in GFLOP/s.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which model
    #[arg(long, default_value = "mnist-ht")]
    preset: String,
    /// So many times its components and channels
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    wider: usize,
    /// Rows of a batch
    #[arg(long, value_name = "ROWS", default_value_t = 128)]
    batch: usize,
    #[command(flatten)]
    device: DeviceArgs,
    /// Rounds of each job, of which the fastest counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Steps of a round
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Print a line of JSON for each job
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    peer: &'static str,
    job: &'static str,
    device: String,
    batch: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gflop_per_s: Option<f64>,
}

/// Measures and prints.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let mut preset = preset(&args.preset)?;
    for tree in &mut preset.structure.trees {
        tree.components *= args.wider;
        tree.levels
            .iter_mut()
            .for_each(|level| level.channels *= args.wider);
    }
    preset.structure.check()?;
    if !(1..=65536).contains(&args.batch) || args.rounds == 0 || args.steps == 0 {
        return Err(mistake(
            "expected a batch from 1 to 65536 rows, and at least one round of one step",
        ));
    }
    let (device, precision) = args.device.choice().ready(Precision::Tf32)?;
    let edges = preset.structure.multiply_adds();
    if !args.json {
        let what = match device {
            Device::Cpu => format!("{} threads", rayon::current_num_threads()),
            Device::Cuda(_) => format!("{device} in {precision:?}"),
        };
        writeln!(out, "{} on {what}, batches of {}", args.preset, args.batch)?;
    }
    let mut say = |job, seconds: f64, products: Option<f64>| -> Result<()> {
        let rate = |count: f64| (10.0 * count / seconds).round() / 10.0;
        let line = Line {
            peer: "sumout",
            job,
            device: device.to_string(),
            batch: args.batch,
            samples_per_s: products.is_none().then(|| rate(args.batch as f64)),
            edges: products.is_none().then_some(edges),
            gflop_per_s: products.map(|flops| rate(flops / 1e9)),
        };
        match (args.json, line.gflop_per_s) {
            (true, _) => writeln!(out, "{}", serde_json::to_string(&line)?)?,
            (false, Some(gflop_per_s)) => writeln!(out, "{job:<13} {gflop_per_s:>10.1} GFLOP/s")?,
            (false, None) => {
                writeln!(out, "{job:<13} {:>10.1} samples/s", rate(args.batch as f64))?
            }
        }
        out.flush().context("standard output")
    };
    let random = RandomImages::new(&preset, args.batch);
    let holes = Settings {
        batch: args.batch,
        steps: 1_000_000,
        ..preset.settings.clone()
    };
    let open = Settings {
        drop_inputs: 0.0,
        drop_nodes: vec![],
        shift: 0,
        ..holes.clone()
    };
    if let Device::Cuda(ordinal) = device {
        say(
            "train",
            train_on_card(args, &random, open, (device, precision))?,
            None,
        )?;
        say(
            "train-preset",
            train_on_card(args, &random, holes, (device, precision))?,
            None,
        )?;
        return say(
            "score",
            score_on_card(args, &random, (ordinal, precision))?,
            None,
        );
    }
    say("train", train(args, &random, open)?, None)?;
    say("train-preset", train(args, &random, holes)?, None)?;
    say("score", score(args, &random), None)?;
    let (seconds, flops) = limit(args);
    say("limit", seconds, Some(flops))
}

/// Images of noise, in bytes.
struct RandomImages {
    model: Model,
    values: Vec<f32>,
    labels: Vec<i64>,
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
            .map(|row| (row % preset.structure.classes) as i64)
            .collect();
        Self {
            model,
            values,
            labels,
        }
    }
}

/// Seconds of one call, in the fastest round.
fn best_of(args: &Args, mut job: impl FnMut() -> Result<()>) -> Result<f64> {
    (0..5.min(args.steps)).try_for_each(|_| job())?; // buffers are made, caches warm
    let mut best = f64::INFINITY;
    for _ in 0..args.rounds {
        let start = Instant::now();
        (0..args.steps).try_for_each(|_| job())?;
        best = best.min(start.elapsed().as_secs_f64() / args.steps as f64);
    }
    Ok(best)
}

fn train(args: &Args, random: &RandomImages, settings: Settings) -> Result<f64> {
    let data = Data::new(&random.values, &random.labels);
    let mut trainer = Trainer::new(random.model.clone(), settings, &data)?;
    best_of(args, || Ok(trainer.advance(&data).map(drop)?))
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
    let scored = best_of(args, || {
        model.fill(rows, (0, 0), &mut frame);
        activations.forward(&model.structure, &prepared, &frame, &[], Keep::Scores);
        activations.recheck_scores(&model.structure, &model.weights, &guard, &frame);
        Ok(())
    });
    scored.unwrap_or(f64::INFINITY) // scoring cannot fail
}

/// Seconds of a step on a GPU that has the data.
fn train_on_card(
    args: &Args,
    random: &RandomImages,
    settings: Settings,
    on: (Device, Precision),
) -> Result<f64> {
    let data = Data::new(&random.values, &random.labels);
    let mut trainer = Trainer::new(random.model.clone(), settings, &data)?;
    trainer.use_device(on.0, on.1)?;
    trainer.look_every(args.steps);
    let (mut start, mut best, mut rounds) = (Instant::now(), f64::INFINITY, 0);
    trainer.run(&data, None, &mut |_, progress| {
        if progress.step.is_multiple_of(args.steps) {
            if rounds > 0 {
                best = best.min(start.elapsed().as_secs_f64() / args.steps as f64);
            }
            (start, rounds) = (Instant::now(), rounds + 1);
        }
        if rounds > args.rounds {
            Proceed::Stop
        } else {
            Proceed::Continue
        }
    })?;
    Ok(best)
}

/// Seconds of scoring one batch that lies on a GPU; scores stay there.
fn score_on_card(args: &Args, random: &RandomImages, on: (usize, Precision)) -> Result<f64> {
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
    model.fill(
        &random.values[..args.batch * model.structure.width()],
        (0, 0),
        &mut frame,
    );
    scoring.load(&frame)?;
    let round = Args {
        steps: 1,
        ..args.clone()
    };
    let seconds = best_of(&round, || {
        (0..args.steps).try_for_each(|_| scoring.queue(Outputs::Scores))?;
        Ok(scoring.wait()?)
    })?;
    Ok(seconds / args.steps as f64)
}

/// Seconds and operations of the fastest large product of the engine's own kernel: 2048 rows, 2048 channels out, and
/// as many in, or fewer. Not the widest is the fastest everywhere, because the kernel keeps a panel of all channels in.
fn limit(args: &Args) -> (f64, f64) {
    const SIDE: usize = 2048;
    const ROWS: usize = 256; // of a task, so that a panel is used often before the next one comes
    let args = Args {
        steps: args.steps.min(5),
        ..args.clone()
    };
    let arch = arch();
    let measure = |depth: usize| {
        let simplex = Simplex::new(&Mixing::random(1, SIDE, depth, 1.0, (1, 0)));
        let (phi, mut psi) = (vec![0.5; SIDE * depth], vec![0.0; SIDE * SIDE]);
        let measured = best_of(&args, || {
            let rows = psi
                .par_chunks_mut(ROWS * SIDE)
                .zip(phi.par_chunks(ROWS * depth));
            rows.for_each(|(psi, phi)| simplex.forward(arch, 0, ROWS, phi, psi));
            Ok(())
        });
        (
            measured.unwrap_or(f64::INFINITY),
            2.0 * (SIDE * SIDE * depth) as f64,
        ) // a product cannot fail
    };
    let rate = |&(seconds, flops): &(f64, f64)| flops / seconds;
    let all = [256, 512, 1024, SIDE].map(measure);
    all.into_iter()
        .max_by(|a, b| rate(a).total_cmp(&rate(b)))
        .unwrap_or((f64::INFINITY, 0.0))
}
