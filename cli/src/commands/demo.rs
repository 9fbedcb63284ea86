//! `sumout demo`: a minute of training, a table, and a page; or the first hour with a table. It needs nothing but this
//! program.

use crate::demo::table::Step;
use crate::demo::{comparison, recipe, table, training};
use crate::terminal::user_error::user_error;
use anyhow::Result;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use sumout::Predictor;
use sumout_data::atomic_file::Staged;
use sumout_data::error::file_error;
use sumout_data::layout::{ReadOptions, Split, Table};
use sumout_data::{digits, model_files};
use sumout_report::{accuracy, gallery, page, readme_picture};

/// Train on the built-in digits, test with missing pixels, and write a report to look at
///
/// Takes about a minute on two cores and needs no files. The same seed prints the same table, with
/// any number of threads. With --table, a small table with missing values instead: the commands
/// that train, evaluate, predict, impute and report are shown and run one after the other.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder for report.html and model.sumout, or for the table and what is made from it
    #[arg(long, value_name = "FOLDER", default_value = "sumout-demo")]
    out: PathBuf,
    /// A table of penguins instead of digits, command by command
    #[arg(long)]
    table: bool,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Total number of steps
    #[arg(long, hide = true)]
    steps: Option<usize>,
    /// Number of test images
    #[arg(long, hide = true)]
    images: Option<usize>,
    /// Also draw the picture of the README
    #[arg(long, hide = true, value_name = "PNG")]
    picture: Option<PathBuf>,
}

/// The tour of a table: its files are written here, its commands are for the caller to run. None without `--table`.
pub fn tour(args: &Args) -> Result<Option<Vec<Step>>> {
    if !args.table {
        return Ok(None);
    }
    prepare(&args.out, &args.out.join("penguins.csv"))?;
    table::write_files(&args.out)?;
    Ok(Some(table::steps(&args.out, args.seed)))
}

/// Trains, tests, prints the table, writes the page and the model.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    let (report, path) = (args.out.join("report.html"), args.out.join("model.sumout"));
    prepare(&args.out, &report)?;
    let train = read(Split::Train)?;
    let mut test = read(Split::Test)?;
    keep(&mut test, args.images);
    let mut settings = recipe::settings(args.seed)?;
    settings.steps = args.steps.unwrap_or(settings.steps);
    let (rows, steps, batch) = (train.rows(), settings.steps, settings.batch);
    note(&format!(
        "Training on {rows} digits: {steps} steps of {batch} images"
    ));
    let model = training::train(&train, settings)?;
    model_files::save(&path, &model.to_bytes()?)?;
    let mut predictor = Predictor::new(model)?;
    note(&format!(
        "Testing on {} other digits with holes",
        test.rows()
    ));
    let scores = comparison::compare(args.seed, &train, &test, &mut predictor)?;
    let run = page::Run {
        folder: &args.out.display().to_string(),
        trained_on: rows,
        steps,
        seed: args.seed,
    };
    let page = page::write(&mut predictor, &test, &scores, &run)?;
    model_files::save(&report, page.as_bytes())?;
    if let Some(picture) = &args.picture {
        let completions = gallery::completions(&mut predictor, &test, args.seed)?;
        model_files::save(picture, &readme_picture::draw(&completions)?)?;
    }
    accuracy::print(&scores, out)?;
    let (report, path) = (report.display(), path.display());
    writeln!(
        out,
        "\nwrote {report}  (open it in a browser)\nwrote {path}"
    )?;
    Ok(())
}

/// Makes the folder, and checks that it can be written to, before a minute of training.
fn prepare(folder: &Path, report: &Path) -> Result<()> {
    if folder.exists() && !folder.is_dir() {
        return Err(user_error(format!(
            "cannot make the folder {}: there is a file of that name",
            folder.display()
        )));
    }
    fs::create_dir_all(folder).map_err(|error| file_error("make the folder", folder, error))?;
    Ok(Staged::create(report).map(drop)?)
}

fn read(split: Split) -> Result<Table> {
    let request = ReadOptions {
        split,
        ..ReadOptions::default()
    };
    Ok(sumout_data::read(digits::NAME, &request)?)
}

/// Keeps the first images only.
fn keep(test: &mut Table, images: Option<usize>) {
    let Some(images) = images else { return };
    test.values.truncate(images * test.layout.width);
    if let Some(labels) = &mut test.labels {
        labels.truncate(images);
    }
}

/// A line for people who watch.
fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
