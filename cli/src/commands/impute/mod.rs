//! `sumout impute`: fills holes with their exact mean or median, the mode, or a sample, for any number of
//! rows.

mod output;

use crate::options::device::DeviceArgs;
use crate::options::input::{Drawn, Input};
use crate::options::open_model::OpenModel;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use clap::ValueEnum;
use output::{Filled, FilledOutput, OutputPaths};
use std::path::PathBuf;
use sumout::Predictor;
use sumout::queries::How;
use sumout::random::seed_at;
use sumout::structure::Kind;
use sumout_data::atomic_file::check_apart;
use sumout_data::layout::{Chunk, Keep};

/// What holes are filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FillWith {
    /// The mean, given the observed values; for a category, the most probable one
    Mean,
    /// The median, given the observed values: the number with the least expected absolute error; for a category, the
    /// most probable one
    Median,
    /// The value in the most likely assignment of hidden variables and missing values together
    Mode,
    /// A random sample, given the observed values
    Sample,
}

impl From<FillWith> for How {
    fn from(how: FillWith) -> Self {
        match how {
            FillWith::Mean => Self::Mean,
            FillWith::Median => Self::Median,
            FillWith::Mode => Self::Mode,
            FillWith::Sample => Self::Sample,
        }
    }
}

/// Fill in missing values, given the observed ones
///
/// All ways are exact. The mode is that of the missing values and the hidden variables
/// together, not of the missing values alone. Only columns that the model knows are filled in. All
/// other cells and columns stay as they were written, in their order. In a column of whole
/// numbers, the mean may be a decimal number. A class is not filled in: use
/// `sumout predict` for that.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    #[command(flatten)]
    pub(crate) input: Input,
    /// What to fill in
    #[arg(long, value_enum, default_value_t = FillWith::Mean)]
    how: FillWith,
    /// Assume that all rows have this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Assume that each row has the class of its label
    #[arg(long, conflicts_with = "class")]
    given_labels: bool,
    /// Also write the variance of each number that is filled in, given the observed values, to this
    /// file
    #[arg(long, value_name = "FILE")]
    variance: Option<String>,
    /// Also write the probabilities of the categories of each cell that is filled in, given the
    /// observed values, to this file: a column such as `p_colour=red` for each category
    #[arg(long, value_name = "FILE")]
    probabilities: Option<String>,
    #[command(flatten)]
    out: Drawn,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Fills chunk by chunk.
pub fn run(args: &Args) -> Result<()> {
    check_side_files(args)?;
    let inputs = [args.input.data.as_str(), args.input.labels_file()];
    let model = OpenModel::open(&args.model, &args.device, &args.out.out, &inputs)?;
    let class = model.class(args.class.as_ref())?;
    let OpenModel {
        format,
        mut predictor,
    } = model;
    let keep = if format.holds_only_numbers() {
        Keep::Nothing
    } else {
        Keep::All
    };
    let kinds = predictor.model().structure.row_kinds();
    let has_categories = kinds
        .iter()
        .any(|kind| matches!(kind, Kind::Categorical(_)));
    if args.probabilities.is_some() && !has_categories {
        let sentence = "--probabilities: expected a model with categories, got numbers only";
        return Err(user_error(sentence));
    }
    let rows = if args.given_labels {
        args.input.open(predictor.model(), keep)?
    } else {
        args.input.open_unlabelled(predictor.model(), keep)?
    };
    let paths = OutputPaths {
        input: &args.input.data,
        out: &args.out.out,
        variance: args.variance.as_deref(),
        probabilities: args.probabilities.as_deref(),
    };
    let mut out = FilledOutput::create(&paths, format, &args.input.notation()?, &rows.layout)?;
    for chunk in rows {
        let chunk = chunk?;
        let filled = if args.given_labels {
            fill_by_label(args, &mut predictor, &chunk)?
        } else {
            fill(args, &mut predictor, &chunk.values, class, chunk.first)?
        };
        out.write(&chunk, &filled)?;
    }
    out.finish()
}

/// The files of variances and probabilities must not be any other file.
fn check_side_files(args: &Args) -> Result<()> {
    let (data, labels) = (&args.input.data, args.input.labels_file());
    let model = args.model.to_string_lossy();
    let mut others = vec![data, labels, &model, &args.out.out];
    let variance = ("--variance", &args.variance);
    for (flag, path) in [variance, ("--probabilities", &args.probabilities)] {
        let Some(path) = path else { continue };
        if path == "-" && others[3..].contains(&"-") {
            return Err(user_error(format!(
                "{flag} -: another output uses standard output already; give one of them a file"
            )));
        }
        check_apart(path, &others)?;
        others.push(path);
    }
    Ok(())
}

fn fill(
    args: &Args,
    predictor: &mut Predictor,
    rows: &[f32],
    class: Option<usize>,
    first: usize,
) -> Result<Filled> {
    let variances = if args.variance.is_some() {
        variances(predictor, rows, class)?
    } else {
        Vec::new()
    };
    let probabilities = if args.probabilities.is_some() {
        probabilities(predictor, rows, class)?
    } else {
        Vec::new()
    };
    let rows = predictor.model().rows(rows)?;
    let seed = seed_at(args.out.seed, first);
    let values = predictor.impute(rows, args.how.into(), class, seed)?;
    Ok(Filled {
        values: values.into_vec(),
        variances,
        probabilities,
    })
}

/// P(x_m = v given x_o) of every category side by side.
fn probabilities(
    predictor: &mut Predictor,
    rows: &[f32],
    class: Option<usize>,
) -> Result<Vec<f32>> {
    let kinds = predictor.model().structure.row_kinds();
    let is_category = |column: &usize| matches!(kinds[*column], Kind::Categorical(_));
    let columns: Vec<usize> = (0..kinds.len()).filter(is_category).collect();
    let asked = predictor.model().rows(rows)?;
    let parts = predictor.impute_probabilities(asked, &columns, class)?;
    let mut all = Vec::new();
    for (row, cells) in rows.chunks_exact(kinds.len()).enumerate() {
        for (part, &column) in parts.iter().zip(&columns) {
            let seen = !cells[column].is_nan();
            let shown = |&p: &f32| if seen { f32::NAN } else { p };
            all.extend(part.row(row).iter().map(shown));
        }
    }
    Ok(all)
}

/// Var[x_m given x_o] of numbers; a category has none.
fn variances(predictor: &mut Predictor, rows: &[f32], class: Option<usize>) -> Result<Vec<f32>> {
    let imputed = predictor.impute_mean(predictor.model().rows(rows)?, class)?;
    let mut variances = imputed.variance.into_vec();
    let structure = &predictor.model().structure;
    let width = structure.width();
    let number =
        |column: usize| structure.frame.is_some() || structure.kinds[column] == Kind::Gaussian;
    for (at, variance) in variances.iter_mut().enumerate() {
        if !rows[at].is_nan() || !number(at % width) {
            *variance = f32::NAN;
        }
    }
    Ok(variances)
}

/// Fills the rows of one class at a time, and puts them back in their places.
fn fill_by_label(args: &Args, predictor: &mut Predictor, chunk: &Chunk) -> Result<Filled> {
    let Some(labels) = &chunk.labels else {
        return Err(user_error(format!(
            "--given-labels: expected labels in {}, got none",
            args.input.data
        )));
    };
    let classes = predictor.model().structure.classes;
    let width = predictor.model().structure.width();
    let mut filled = Filled {
        values: Vec::new(),
        variances: Vec::new(),
        probabilities: Vec::new(),
    };
    for label in -1..classes as i64 {
        let rows: Vec<usize> = (0..labels.len())
            .filter(|&row| labels[row] == label)
            .collect();
        let values: Vec<f32> = rows
            .iter()
            .flat_map(|&row| &chunk.values[row * width..][..width])
            .copied()
            .collect();
        let first = chunk.first + (label + 1) as usize; // a seed per class; a chunk has more rows than classes
        let answers = fill(args, predictor, &values, usize::try_from(label).ok(), first)?;
        let n = labels.len();
        put_back(&answers.values, &rows, n, &mut filled.values);
        put_back(&answers.variances, &rows, n, &mut filled.variances);
        put_back(&answers.probabilities, &rows, n, &mut filled.probabilities);
    }
    Ok(filled)
}

/// Copies the numbers of some rows to their places among n rows.
fn put_back(numbers: &[f32], rows: &[usize], n: usize, to: &mut Vec<f32>) {
    if numbers.is_empty() {
        return;
    }
    let stride = numbers.len() / rows.len();
    to.resize(n * stride, f32::NAN);
    for (numbers, &row) in numbers.chunks_exact(stride).zip(rows) {
        to[row * stride..][..stride].copy_from_slice(numbers);
    }
}
