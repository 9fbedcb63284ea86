//! `sumout man`: the manual as pages of man.

use anyhow::Result;
use clap::Command;
use std::path::PathBuf;
use sumout_data::error::file_error;

/// Write the manual, a page of man for each command
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder for sumout.1, sumout-train.1, …
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
}

/// Writes the pages of this command line.
pub fn run(args: &Args, command: Command) -> Result<()> {
    let made = std::fs::create_dir_all(&args.out);
    made.map_err(|error| file_error("make the folder", &args.out, error))?;
    let written = clap_mangen::generate_to(command, &args.out);
    Ok(written.map_err(|error| file_error("write into", &args.out, error))?)
}
