//! `sumout completions`: a script that completes commands in a shell.

use anyhow::Result;
use clap::Command;
use clap_complete::Shell;
use std::io::Write;

/// Print a script that completes commands in your shell
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script of this command line.
pub fn run(args: &Args, mut command: Command, out: &mut impl Write) -> Result<()> {
    // Into memory first: the generator panics when a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "sumout", &mut script);
    out.write_all(&script)?;
    Ok(())
}
