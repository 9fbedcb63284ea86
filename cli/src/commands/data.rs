//! `sumout data`: lists data sets and downloads them.

use crate::terminal::download_progress::{DownloadBar, place, words};
use crate::terminal::user_error::user_error;
use anyhow::Result;
use std::io::{self, Write};
use std::path::Path;
use sumout_data::atomic_file::Staged;
use sumout_data::catalog::download;
use sumout_data::catalog::download::Ways;
use sumout_data::catalog::sets as catalog;
use sumout_data::catalog::sets::SETS;
use sumout_data::digits;
use sumout_data::error::file_error;

/// Prints a line for every data set.
pub fn list(out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "{:<14} {:>6} + {:<6}  {:<22} what",
        "name", "train", "test", "where"
    )?;
    let about = "some of MNIST's handwritten digits, 28×28 grey";
    writeln!(
        out,
        "{:<14} {:>6} + {:<6}  {:<22} {about}",
        digits::NAME,
        5000,
        1000,
        "in this program"
    )?;
    for set in SETS {
        let place =
            download::on_this_machine(set).map_or("not on this machine", |(_, at)| place(at));
        let (train, test) = set.rows;
        writeln!(
            out,
            "{:<14} {train:>6} + {test:<6}  {place:<22} {} ({})",
            set.name, set.about, set.licence
        )?;
    }
    writeln!(
        out,
        "\n`sumout data get NAME` downloads one; `--data NAME` uses it."
    )?;
    Ok(())
}

/// Downloads a data set and prints its folder. Progress goes to `log`.
pub fn get(
    name: &str,
    to: Option<&Path>,
    out: &mut impl Write,
    log: &mut impl Write,
) -> Result<()> {
    if name == digits::NAME {
        return get_digits(to, out, log);
    }
    let Some(set) = catalog::find(name) else {
        let names: Vec<&str> = [digits::NAME]
            .into_iter()
            .chain(SETS.iter().map(|set| set.name))
            .collect();
        return Err(user_error(format!(
            "data set: expected {}, got '{name}'",
            names.join(", ")
        )));
    };
    let mut bar = DownloadBar::default();
    let folder = download::get(set, to, &Ways::usual(set), &mut |step| {
        bar.step(&step);
        let line = words(set.name, &step);
        let _ = line.map(|line| writeln!(log, "{line}")); // a line that cannot be written does not matter
    })?;
    writeln!(out, "{}", folder.display())?;
    Ok(())
}

/// The digits need no download, but can be written to a folder.
fn get_digits(to: Option<&Path>, out: &mut impl Write, log: &mut impl Write) -> Result<()> {
    let Some(folder) = to else {
        let _ = writeln!(
            log,
            "the digits are in this program: use them with --data {}",
            digits::NAME
        );
        writeln!(out, "{}", digits::NAME)?;
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| file_error("make the folder", folder, error))?;
    for file in [false, true].into_iter().flat_map(digits::files) {
        let path = folder.join(file.name);
        let mut staged = Staged::create(&path)?;
        staged
            .write_all(file.bytes)
            .map_err(|error: io::Error| file_error("write", &path, error))?;
        staged.commit()?;
    }
    writeln!(out, "{}", folder.display())?;
    Ok(())
}
