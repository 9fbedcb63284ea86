//! `sumout report`: a page about a model and some rows.

use crate::options::device::DeviceArgs;
use crate::options::input::Input;
use crate::terminal::progress::bar;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use std::io::Write;
use std::path::{Path, PathBuf};
use sumout::Model;
use sumout_data::atomic_file::{Staged, check_apart};
use sumout_data::layout::Keep;
use sumout_data::model_files::{self, DATA, SPLIT_FROM};
use sumout_report::model_page::{self, Run, sample::Sample};

/// Cells that are asked about by default: with more columns, fewer rows.
const CELLS: usize = 100_000;

/// Rows by default, at least and at most.
const ROWS: (usize, usize) = (100, 1000);

/// Write a page about a model and some rows: accuracy, columns that matter, surprises
///
/// For a table, the page shows: accuracy against missing cells, and how well missing cells are filled;
/// which columns matter, alone and beyond the others; whether probabilities mean what they say; which
/// cells are surprising in which rows; the tree of columns. For images: accuracy, probabilities and
/// surprising labels. It works with models of classes, of a number, and of neither. Give it rows that the
/// model was not trained on.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    #[command(flatten)]
    pub(crate) input: Input,
    /// Where to write the page, which loads nothing
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Rows to ask about, drawn at random if there are more [default: 1000, fewer with more than 100
    /// columns]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rows: Option<u64>,
    /// Seed of the choice of rows and of the hidden cells
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Asks and writes.
pub fn run(args: &Args, out: &mut impl Write) -> Result<()> {
    check_out(args)?;
    let mut predictor = args
        .device
        .choice()
        .predictor(model_files::load(&args.model)?)?;
    let model = predictor.model();
    let most = args
        .rows
        .map_or_else(|| usual_rows(model), |rows| rows as usize);
    let rows = args.input.open(model, Keep::Nothing)?;
    let sample = Sample::draw(rows, most, args.seed)?;
    if sample.rows() == 0 {
        let data = &args.input.data;
        return Err(user_error(format!(
            "{data}: expected at least one row, got none"
        )));
    }
    let run = Run {
        model: &file_name(&args.model.to_string_lossy()),
        data: &file_name(&args.input.data),
        seed: args.seed,
        trained_on_these: is_trained_on(model, &sample.digest),
    };
    let style = "{bar:24} question {pos} of {len}  time left {eta}";
    let bar = bar(model_page::questions(&predictor), style);
    let page = model_page::write(&mut predictor, &sample, &run, &mut || bar.inc(1))?;
    bar.finish_and_clear();
    model_files::save(&args.out, page.as_bytes())?;
    writeln!(out, "wrote {}  (open it in a browser)", args.out.display())?;
    Ok(())
}

/// Each column of a table is asked about on its own.
fn usual_rows(model: &Model) -> usize {
    match model.structure.frame {
        Some(_) => ROWS.1,
        None => (CELLS / model.structure.width()).clamp(ROWS.0, ROWS.1),
    }
}

/// The page must not replace the model or the data, and its file must be one that can be written: better known before
/// the work.
fn check_out(args: &Args) -> Result<()> {
    let (model, path) = (args.model.to_string_lossy(), args.out.to_string_lossy());
    if path == "-" {
        return Err(user_error(
            "--out: expected a file for the page, got - (standard output)",
        ));
    }
    check_apart(&path, &[&model, &args.input.data, args.input.labels_file()])?;
    Ok(Staged::create(&args.out).map(drop)?)
}

/// The name of a file without its folders, or of a data set.
fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn is_trained_on(model: &Model, digest: &str) -> bool {
    let notes = &model.about.training;
    let known = [DATA, SPLIT_FROM].map(|name| notes.get::<String>(name));
    known.iter().flatten().any(|known| known == digest)
}
