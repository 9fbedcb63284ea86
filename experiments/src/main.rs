//! `experiments`: the paper's experiments again, with what it compares with.
//!
//! ```sh
//! cargo run --release -p experiments -- run knn        # experiments/knn.toml → experiments/results/knn.json
//! cargo run --release -p experiments -- tables         # the tables of experiments/README.md from those files
//! ```
//!
//! Modules stand in the order in which they use each other; then the methods, one file each.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people to watch"
)]

mod columns;
mod mnist;
mod plan;
mod results;
mod side_by_side;
mod knn;
mod tmm;
#[cfg_attr(
    not(feature = "networks"),
    allow(dead_code, reason = "nets are trained on them")
)]
mod holes;
#[cfg_attr(not(feature = "networks"), path = "lenet_disabled.rs")]
mod lenet;
mod robust;
mod pairs;
mod experiment;
mod paper;
mod crossed;
mod paired;
mod tables;
mod curves;
mod pictures;

use anyhow::Result;
use clap::Parser;
use std::path::PathBuf;
use sumout_data::devices::DeviceChoice;

/// The paper's experiments again, with what it compares with
#[derive(Debug, Parser)]
struct Args {
    /// The folder with plans and results
    #[arg(long, global = true, default_value = "experiments")]
    folder: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run experiments; what results/NAME.json has already is not run again
    Run(Run),
    /// Write the tables of README.md anew from the result files
    Tables,
    /// Draw accuracy curves, samples and neurons anew
    Pictures,
}

#[derive(Debug, clap::Args)]
struct Run {
    /// NAME.toml says what each is
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// MNIST: a name that `sumout data get` knows, or a folder with its four files
    #[arg(long, default_value = "mnist")]
    data: String,
    /// Throw away what was there and run all of it
    #[arg(long)]
    again: bool,
    /// Seeds that run side by side, and within a seed, nets or linear programs
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// cpu, cuda, cuda:1 (the second GPU), or auto (the first GPU that can be used, else the CPU)
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// How a GPU multiplies: f32, or tf32 on its tensor cores [default: tf32 to train, else f32]
    #[arg(long, value_name = "PRECISION")]
    precision: Option<String>,
}

impl Run {
    fn choice(&self) -> DeviceChoice {
        DeviceChoice {
            device: self.device.clone(),
            precision: self.precision.clone(),
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    match &args.command {
        Command::Run(run) => experiment::run(&args.folder, run),
        Command::Tables => tables::run(&args.folder),
        Command::Pictures => pictures::run(&args.folder),
    }
}
