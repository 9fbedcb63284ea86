//! `sumout bench`: how fast this machine trains and scores a preset on random images, and its
//! limit.

use crate::options::device::DeviceArgs;
use crate::terminal::user_error::user_error;
use anyhow::{Context, Result};
use rayon::prelude::*;
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;
use sumout::internals::{
    Activations, Batch, Keep, Mixing, Outputs, Prepared, Scoring, Simplex, UnderflowFallback, arch,
    fill,
};
use sumout::random::{Purpose, Stream};
use sumout::recipes::{Preset, preset};
use sumout::training::Data;
use sumout::{Device, Model, Precision, Settings, Trainer};
use sumout_data::memory;

/// Measure how fast this machine trains and scores a preset
///
/// Jobs: train (nothing missing), train-preset (with the preset's random holes), score, and limit.
/// The limit is the best rate of large matrix products with the engine's own kernel, in GFLOP/s.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which preset
    #[arg(long, default_value = "mnist-ht")]
    preset: String,
    /// Multiply its components and channels by this number
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    wider: usize,
    /// Rows per batch
    #[arg(long, value_name = "ROWS", default_value_t = 128)]
    batch: usize,
    #[command(flatten)]
    device: DeviceArgs,
    /// Rounds per job; the fastest one counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Steps per round
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Print one line of JSON per job
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let preset = widened(args)?;
    check(args)?;
    let (device, precision) = args.device.choice().ready(Precision::Tf32)?;
    let random = RandomImages::new(&preset, args.batch);
    let mut reporter = Reporter {
        args,
        device,
        edges: preset.structure.multiply_adds(),
        out,
    };
    reporter.start(precision)?;
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
    if let Device::Cuda(ordinal) = device {
        let on = (device, precision);
        reporter.rows("train", train_on_gpu(args, &random, no_holes, on)?)?;
        reporter.rows("train-preset", train_on_gpu(args, &random, holes, on)?)?;
        return reporter.rows("score", score_on_gpu(args, &random, (ordinal, precision))?);
    }
    reporter.rows("train", train(args, &random, no_holes)?)?;
    reporter.rows("train-preset", train(args, &random, holes)?)?;
    reporter.rows("score", score(args, &random))?;
    reporter.products("limit", &limit(args))
}

/// The preset, with more components and channels.
fn widened(args: &Args) -> Result<Preset> {
    let mut preset = preset(&args.preset)?;
    for tree in &mut preset.structure.trees {
        tree.components *= args.wider;
        for level in &mut tree.levels {
            level.channels *= args.wider;
        }
    }
    preset.structure.check()?;
    memory::check_training(&preset.structure, args.batch)?;
    Ok(preset)
}

fn check(args: &Args) -> Result<()> {
    if !(1..=65536).contains(&args.batch) || args.rounds == 0 || args.steps == 0 {
        return Err(user_error(
            "expected a batch from 1 to 65536 rows, and at least one round of one step",
        ));
    }
    Ok(())
}

/// A line of JSON.
#[derive(Serialize)]
struct BenchLine {
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

/// Prints one line per job.
struct Reporter<'a, W: Write> {
    args: &'a Args,
    device: Device,
    edges: usize,
    out: &'a mut W,
}

impl<W: Write> Reporter<'_, W> {
    /// The first line, for people.
    fn start(&mut self, precision: Precision) -> Result<()> {
        if self.args.json {
            return Ok(());
        }
        let what = match self.device {
            Device::Cpu => format!("{} threads", rayon::current_num_threads()),
            Device::Cuda(_) => format!("{} in {precision:?}", self.device),
        };
        let (preset, batch) = (&self.args.preset, self.args.batch);
        writeln!(self.out, "{preset} on {what}, batches of {batch}")?;
        Ok(())
    }

    /// A job that goes through a batch in this many seconds.
    fn rows(&mut self, job: &'static str, seconds: f64) -> Result<()> {
        let rate = rate(self.args.batch as f64, seconds);
        let line = BenchLine {
            samples_per_s: Some(rate),
            edges: Some(self.edges),
            ..self.empty_line(job)
        };
        self.print(&line, &format!("{job:<13} {rate:>10.1} samples/s"))
    }

    /// A job of matrix products.
    fn products(&mut self, job: &'static str, measured: &Measured) -> Result<()> {
        let rate = rate(measured.flops / 1e9, measured.seconds);
        let line = BenchLine {
            gflop_per_s: Some(rate),
            ..self.empty_line(job)
        };
        self.print(&line, &format!("{job:<13} {rate:>10.1} GFLOP/s"))
    }

    fn empty_line(&self, job: &'static str) -> BenchLine {
        BenchLine {
            peer: "sumout",
            job,
            device: self.device.to_string(),
            batch: self.args.batch,
            samples_per_s: None,
            edges: None,
            gflop_per_s: None,
        }
    }

    fn print(&mut self, line: &BenchLine, text: &str) -> Result<()> {
        if self.args.json {
            writeln!(self.out, "{}", serde_json::to_string(line)?)?;
        } else {
            writeln!(self.out, "{text}")?;
        }
        self.out.flush().context("standard output")
    }
}

/// Per second, to a tenth.
fn rate(count: f64, seconds: f64) -> f64 {
    (10.0 * count / seconds).round() / 10.0
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

/// Seconds of one call, in the fastest round.
fn best_of(args: &Args, mut job: impl FnMut() -> Result<()>) -> Result<f64> {
    (0..5.min(args.steps)).try_for_each(|_| job())?; // makes buffers and warms caches
    let mut best = f64::INFINITY;
    for _ in 0..args.rounds {
        let start = Instant::now();
        (0..args.steps).try_for_each(|_| job())?;
        best = best.min(start.elapsed().as_secs_f64() / args.steps as f64);
    }
    Ok(best)
}

fn train(args: &Args, random: &RandomImages, settings: Settings) -> Result<f64> {
    let mut trainer = random.trainer(settings)?;
    best_of(args, || Ok(trainer.advance().map(drop)?))
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
        fill(model, rows, &mut frame);
        activations.forward(&model.structure, &prepared, &frame, &[], Keep::Scores);
        activations.recheck_scores(&model.structure, &model.weights, &guard, &frame);
        Ok(())
    });
    scored.unwrap_or(f64::INFINITY) // scoring cannot fail
}

/// Seconds per step on a GPU that has the data.
fn train_on_gpu(
    args: &Args,
    random: &RandomImages,
    settings: Settings,
    (device, precision): (Device, Precision),
) -> Result<f64> {
    let mut trainer = random.trainer(settings)?;
    trainer.use_device(device, precision)?;
    trainer.report_every(args.steps);
    let mut rounds = Rounds {
        start: Instant::now(),
        best: f64::INFINITY,
        done: 0,
    };
    trainer.run_with(|_, progress| rounds.on_step(progress.step, args))?;
    Ok(rounds.best)
}

/// Rounds of steps on a GPU. The first only warms up.
struct Rounds {
    start: Instant,
    best: f64, // seconds per step
    done: usize,
}

impl Rounds {
    fn on_step(&mut self, step: usize, args: &Args) -> ControlFlow<()> {
        if step.is_multiple_of(args.steps) {
            if self.done > 0 {
                let seconds = self.start.elapsed().as_secs_f64() / args.steps as f64;
                self.best = self.best.min(seconds);
            }
            self.start = Instant::now();
            self.done += 1;
        }
        if self.done > args.rounds {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
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

/// Time and operations of a matrix product.
struct Measured {
    seconds: f64,
    flops: f64,
}

/// The fastest large product of the engine's own kernel: 2048 rows, 2048 channels out, and 256 to
/// 2048 channels in. The deepest is not the fastest on every machine, because the kernel keeps a
/// panel of all channels in.
fn limit(args: &Args) -> Measured {
    let args = Args {
        steps: args.steps.min(5),
        ..args.clone()
    };
    let mut best = Measured {
        seconds: f64::INFINITY,
        flops: 0.0,
    };
    for depth in [256, 512, 1024, SIDE] {
        let measured = measure_product(&args, depth);
        if measured.flops / measured.seconds >= best.flops / best.seconds {
            best = measured;
        }
    }
    best
}

/// Rows and channels out of the product.
const SIDE: usize = 2048;

fn measure_product(args: &Args, depth: usize) -> Measured {
    const ROWS: usize = 256; // per task, so that a panel is used often before the next one comes
    let arch = arch();
    let simplex = Simplex::new(&Mixing::random(1, SIDE, depth, 1.0, (1, 0)));
    let (phi, mut psi) = (vec![0.5; SIDE * depth], vec![0.0; SIDE * SIDE]);
    let measured = best_of(args, || {
        let inputs = phi.par_chunks(ROWS * depth);
        let tasks = psi.par_chunks_mut(ROWS * SIDE).zip(inputs);
        tasks.for_each(|(psi, phi)| simplex.forward(arch, 0, ROWS, phi, psi));
        Ok(())
    });
    Measured {
        seconds: measured.unwrap_or(f64::INFINITY), // a product cannot fail
        flops: 2.0 * (SIDE * SIDE * depth) as f64,
    }
}
