//! `experiments`: a reproduction of the paper's experiments and baselines.
//!
//! ```sh
//! cargo run --release -p experiments -- run knn   # plans/knn.toml → results/knn.json
//! cargo run --release -p experiments -- tables    # the tables of README.md, from the result files
//! ```
//!
//! Modules stand in the order in which they use each other: data in, one file per method, then
//! tables and figures.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people to watch"
)]

mod parallel;
mod arrays;
mod inputs;
mod experiment;
mod results;
mod methods;
mod summary;
mod run;
mod prepare;

use anyhow::Result;
use clap::Parser;
use std::path::PathBuf;
use summary::{pictures, readme_tables};

/// A reproduction of the paper's experiments and baselines
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
    /// Run experiments; runs that are in the result file already are not repeated
    Run(run::RunArgs),
    /// Write a data set as arrays, for the scripts in `rivals`
    Prepare(prepare::PrepareArgs),
    /// Write the tables of the README files again, from the result files
    Tables,
    /// Draw accuracy curves, samples and neurons again
    Pictures,
}

fn main() -> Result<()> {
    let args = Args::parse();
    match &args.command {
        Command::Run(run) => run::run(&args.folder, run),
        Command::Prepare(prepare) => prepare::run(prepare),
        Command::Tables => readme_tables::run(&args.folder),
        Command::Pictures => pictures::run(&args.folder),
    }
}
