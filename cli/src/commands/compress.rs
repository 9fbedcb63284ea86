//! `sumout compress`: the same model in a file of about half the size.

use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use sumout_data::model_files;

/// Write a model into a file of about half the size
///
/// Mixing weights have 16 bits there instead of 32. All commands read such a file. Answers change
/// a little, and accuracy hardly: compare with `sumout evaluate`. A compressed model cannot be
/// trained further.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// The small model file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Reads the model and writes it with fewer bits.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let before = model_files::bytes(&args.model)?.len();
    let small = model_files::load(&args.model)?.to_small_bytes()?;
    model_files::save(&args.out, &small)?;
    let path = args.out.display();
    writeln!(
        out,
        "wrote {path}: {} bytes instead of {before}",
        small.len()
    )?;
    Ok(())
}
