//! `sumout impute`: fills holes with their exact mean, the mode, or a sample, for any number of
//! rows.

use crate::options::device::DeviceArgs;
use crate::options::input::{Drawn, Input};
use crate::options::open_model::OpenModel;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use clap::ValueEnum;
use std::path::PathBuf;
use sumout::Predictor;
use sumout::random::seed_at;
use sumout::structure::Kind;
use sumout_data::atomic_file::check_apart;
use sumout_data::cells::{Field, FieldKind, Value, Written};
use sumout_data::layout::{Chunk, Keep, Layout};
use sumout_data::output::{Output, OutputFormat, fields_of};

/// What holes are filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FillWith {
    /// The mean, given the observed values; for a category, the most probable one
    Mean,
    /// The value in the most likely assignment of hidden variables and missing values together
    Mode,
    /// A random sample, given the observed values
    Sample,
}

/// Fill in missing values, given the observed ones
///
/// All three ways are exact. The mode is that of the missing values and the hidden variables
/// together, not of the missing values alone. Only columns that the model knows are filled in. All
/// other cells and columns stay as they were written, in their order. In a column of whole
/// numbers, the mean may be a decimal number. The target is not filled in: use
/// `sumout predict` for that.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    #[command(flatten)]
    input: Input,
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
    #[command(flatten)]
    out: Drawn,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Fills chunk by chunk.
pub fn run(args: &Args) -> Result<()> {
    check_variance_file(args)?;
    let inputs = [args.input.data.as_str(), args.input.labels_file()];
    let model = OpenModel::open(&args.model, &args.device, &args.out.out, &inputs)?;
    let class = model.class(args.class.as_ref())?;
    let OpenModel {
        format,
        mut predictor,
    } = model;
    // Arrays and pictures hold the numbers of the model and nothing else.
    let keep = if matches!(format, OutputFormat::Npy | OutputFormat::Png) {
        Keep::Nothing
    } else {
        Keep::All
    };
    let rows = if args.given_labels {
        args.input.open(predictor.model(), keep)?
    } else {
        args.input.open_unlabelled(predictor.model(), keep)?
    };
    let mut out = FilledOutput::create(args, format, &rows.layout)?;
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

/// The file of variances must not be any other file.
fn check_variance_file(args: &Args) -> Result<()> {
    let Some(variance) = &args.variance else {
        return Ok(());
    };
    if variance == "-" && args.out.out == "-" {
        return Err(user_error(
            "--variance -: --out uses standard output already; give one of them a file",
        ));
    }
    let (data, labels) = (&args.input.data, args.input.labels_file());
    let model = args.model.to_string_lossy();
    Ok(check_apart(
        variance,
        &[data, labels, &model, &args.out.out],
    )?)
}

/// The output, and the file of variances if there is one.
struct FilledOutput {
    layout: Layout,
    cells: Vec<Cell>,
    out: Output,
    variances: Option<Output>,
}

impl FilledOutput {
    fn create(args: &Args, format: OutputFormat, layout: &Layout) -> Result<Self> {
        let variances = match &args.variance {
            Some(path) => Some(create_variances(path, layout)?),
            None => None,
        };
        let cells = cells_of(layout);
        let fields = cells.iter().map(|cell| cell.field.clone()).collect();
        Ok(Self {
            layout: layout.clone(),
            out: Output::create(&args.out.out, format, fields, layout.image())?,
            cells,
            variances,
        })
    }

    fn write(&mut self, chunk: &Chunk, filled: &Filled) -> Result<()> {
        let (width, kept) = (self.layout.width, self.layout.kept.len());
        for (row, numbers) in filled.values.chunks_exact(width).enumerate() {
            let kept = &chunk.kept[row * kept..][..kept];
            let value = |cell: &Cell| cell_value(&cell.source, numbers, kept, &self.layout);
            let values: Vec<Value<'_>> = self.cells.iter().map(value).collect();
            self.out.row(&values)?;
        }
        if let Some(out) = &mut self.variances {
            out.numbers(&filled.variances)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        self.variances.map_or(Ok(()), Output::finish)?;
        Ok(self.out.finish()?)
    }
}

/// The file of variances: one number for each number of a row; empty where nothing was filled in.
fn create_variances(path: &str, layout: &Layout) -> Result<Output> {
    let number = |field: Field| Field::new(field.name, FieldKind::Single);
    let fields = fields_of(layout).into_iter().map(number).collect();
    Ok(Output::create(path, OutputFormat::of(path)?, fields, None)?)
}

/// A column of the output.
struct Cell {
    field: Field,
    source: Source,
}

/// Where a cell of the output comes from.
enum Source {
    /// A number of the row.
    Number(usize),
    /// A column of the input; its holes are filled if the model knows it.
    Kept(usize),
}

/// The columns of the output: those of the input in their order, then others that the model knows.
fn cells_of(layout: &Layout) -> Vec<Cell> {
    let known = fields_of(layout);
    let mut cells = Vec::new();
    for (at, kept) in layout.kept.iter().enumerate() {
        let kind = match kept.column {
            Some(column) => with_more_digits(known[column].kind.clone()),
            None => kept.field.kind.clone(),
        };
        cells.push(Cell {
            field: Field::new(&kept.field.name, kind),
            source: Source::Kept(at),
        });
    }
    for (column, field) in known.into_iter().enumerate() {
        if !layout.kept.iter().any(|kept| kept.column == Some(column)) {
            cells.push(Cell {
                field,
                source: Source::Number(column),
            });
        }
    }
    cells
}

/// A number that was written in decimals can have more digits than 32 bits hold.
fn with_more_digits(kind: FieldKind) -> FieldKind {
    match kind {
        FieldKind::Single => FieldKind::Double,
        other => other,
    }
}

fn cell_value<'a>(
    source: &Source,
    numbers: &[f32],
    kept: &'a [Written],
    layout: &Layout,
) -> Value<'a> {
    match *source {
        Source::Number(column) => Value::Single(numbers[column]),
        Source::Kept(at) => match (&kept[at], layout.kept[at].column) {
            (Written::Missing, Some(column)) => Value::Double(in_decimals(numbers[column])),
            (written, _) => written.value(),
        },
    }
}

/// A number of 32 bits with the digits that tell it from others, as the service writes it, without the noise behind them.
fn in_decimals(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(number.into())
}

/// Rows without holes, and the variance of each number that was filled in, NaN for the rest.
struct Filled {
    values: Vec<f32>,
    variances: Vec<f32>,
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
        vec![f32::NAN; rows.len()]
    };
    let rows = predictor.model().rows(rows)?;
    let values = match args.how {
        FillWith::Mean => predictor.impute_mean(rows, class)?.mean,
        FillWith::Mode => predictor.impute_mode(rows, class)?,
        FillWith::Sample => predictor.sample_given(rows, class, seed_at(args.out.seed, first))?,
    };
    let values = values.into_vec();
    Ok(Filled { values, variances })
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
        values: chunk.values.clone(),
        variances: chunk.values.clone(),
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
        for (i, &row) in rows.iter().enumerate() {
            filled.values[row * width..][..width]
                .copy_from_slice(&answers.values[i * width..][..width]);
            filled.variances[row * width..][..width]
                .copy_from_slice(&answers.variances[i * width..][..width]);
        }
    }
    Ok(filled)
}
