//! `sumout bench`: how fast this machine trains and scores: fresh weights on random images, a
//! trained model on real rows, and its limit.

mod timing;
mod report;
mod fresh;
mod trained;
mod limit;

use crate::options::device::DeviceArgs;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use report::Reporter;
use std::io::Write;
use std::path::PathBuf;
use sumout::recipes::{Preset, preset};
use sumout::training::check_memory;
use sumout::{Device, Precision};
use timing::Timing;

/// Measure how fast this machine trains and scores
///
/// Jobs on random images, with fresh weights of a preset: train (nothing missing), train-preset
/// (with the preset's random holes) and score. Jobs on real rows, with a trained model: predict,
/// likelihoods (of every class), shifts (sums over nine shifts of an image), train-10% and
/// train-50% (steps in which this share of the values is summed out). They also print the share of
/// the rows that were computed again in 64 bits. The last job is limit, the best rate of large
/// matrix products with the engine's own kernel, in GFLOP/s.
///
/// With --model and --data, only the jobs on real rows run.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which preset
    #[arg(long, default_value = "mnist-ht")]
    preset: String,
    /// Multiply its components and channels by this number
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    wider: usize,
    /// A trained model to measure instead; needs --data
    #[arg(long, value_name = "FILE", requires = "data")]
    model: Option<PathBuf>,
    /// Rows for that model, as in `sumout predict`
    #[arg(long, value_name = "DATA", requires = "model")]
    data: Option<String>,
    /// Training steps on the built-in digits before the jobs on real rows
    #[arg(long, value_name = "STEPS", default_value_t = 500)]
    digits_steps: usize,
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

impl Args {
    fn timing(&self) -> Timing {
        Timing {
            rounds: self.rounds,
            steps: self.steps,
        }
    }
}

/// Measures and prints.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let preset = widened(args)?;
    check(args)?;
    let (device, precision) = args.device.choice().ready(Precision::Tf32)?;
    check_memory(&preset.structure, &preset.settings, device)?;
    let mut reporter = Reporter {
        json: args.json,
        batch: args.batch,
        device,
        out,
    };
    let on = (device, precision);
    if let (Some(model), Some(data)) = (&args.model, &args.data) {
        let subject = trained::given(model, data)?;
        reporter.start(&model.display().to_string(), precision)?;
        return trained::jobs(args, &subject, on, &mut reporter);
    }
    reporter.start(&args.preset, precision)?;
    fresh::jobs(args, &preset, on, &mut reporter)?;
    trained::jobs(args, &trained::digits(args, on)?, on, &mut reporter)?;
    match device {
        Device::Cpu => reporter.products("limit", &limit::limit(&args.timing())),
        Device::Cuda(_) => Ok(()),
    }
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
    preset.settings.batch = args.batch;
    Ok(preset)
}

fn check(args: &Args) -> Result<()> {
    let counts = [args.rounds, args.steps, args.digits_steps];
    if !(1..=65536).contains(&args.batch) || counts.contains(&0) {
        return Err(user_error(
            "expected a batch from 1 to 65536 rows, and at least one round of one step",
        ));
    }
    Ok(())
}
