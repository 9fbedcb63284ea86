//! `sumout impute`: fills holes with their exact mean, the mode, or a draw, however many rows there are.

use crate::options::device::DeviceArgs;
use crate::options::input::{Drawn, Input};
use crate::terminal::user_error::user_error as mistake;
use anyhow::Result;
use clap::ValueEnum;
use std::path::PathBuf;
use sumout::queries::predictor::Predictor;
use sumout::random::seed_at;
use sumout::structure::Kind;
use sumout_data::atomic_file::check_apart;
use sumout_data::cells::{Field, FieldKind, Value, Written};
use sumout_data::layout::{Chunk, Keep, Layout};
use sumout_data::model_files;
use sumout_data::model_files::class_of;
use sumout_data::output::{Output, OutputFormat, fields_of};

/// What holes are filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// The mean given what is observed; for a category, the most probable one
    Mean,
    /// The value in the most likely assignment of hidden variables and missing values together
    Mode,
    /// A draw given what is observed
    Sample,
}

/// Fill holes given what is observed
///
/// All three are exact. The mode is that of the joint with the hidden variables, not of the missing values alone.
/// Only holes of columns that the model knows are filled: all other cells, and columns that it does not know, stay as they
/// were written, in their order. A column of whole numbers may get a decimal as its mean. The target is not filled:
/// `sumout predict` is for that.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    #[command(flatten)]
    input: Input,
    /// What holes are filled with
    #[arg(long, value_enum, default_value_t = How::Mean)]
    how: How,
    /// Suppose that all rows are of this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Suppose that every row is of the class its label says
    #[arg(long, conflicts_with = "class")]
    given_labels: bool,
    /// Also write the variance of every number that is filled in, given what is observed, to this file
    #[arg(long, value_name = "FILE")]
    variance: Option<String>,
    #[command(flatten)]
    out: Drawn,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Fills chunk by chunk.
pub fn run(args: &Args) -> Result<()> {
    let format = OutputFormat::of(&args.out.out)?;
    let (data, labels, model) = (
        &args.input.data,
        args.input.labels_file(),
        &args.model.to_string_lossy(),
    );
    check_apart(&args.out.out, &[data, labels, model])?;
    if let Some(variance) = &args.variance {
        if variance == "-" && args.out.out == "-" {
            return Err(mistake(
                "--variance -: standard output is taken by --out; give one of them a file",
            ));
        }
        check_apart(variance, &[data, labels, model, &args.out.out])?;
    }
    let mut predictor = args
        .device
        .choice()
        .predictor(model_files::load(&args.model)?)?;
    let class = args
        .class
        .as_ref()
        .map(|name| class_of(predictor.model(), name))
        .transpose()?;
    // Arrays and pictures hold the numbers of the model and nothing else.
    let keep = if matches!(format, OutputFormat::Npy | OutputFormat::Png) {
        Keep::Nothing
    } else {
        Keep::All
    };
    let rows = match args.given_labels {
        true => args.input.open(predictor.model(), keep)?,
        false => args.input.open_unlabelled(predictor.model(), keep)?,
    };
    let layout = rows.layout.clone();
    let cells = cells_of(&layout);
    let fields: Vec<Field> = cells.iter().map(|(field, _)| field.clone()).collect();
    let mut variances = args
        .variance
        .as_ref()
        .map(|path| Variances::create(path, fields_of(&layout)))
        .transpose()?;
    let mut out = Output::create(&args.out.out, format, fields, layout.image())?;
    for chunk in rows {
        let chunk = chunk?;
        let filled = match args.given_labels {
            true => fill_by_label(args, &mut predictor, &chunk)?,
            false => fill(args, &mut predictor, &chunk.values, class, chunk.first)?,
        };
        for row in 0..filled.values.len() / layout.width {
            let numbers = &filled.values[row * layout.width..][..layout.width];
            let kept = &chunk.kept[row * layout.kept.len()..][..layout.kept.len()];
            let cell = |(_, from): &(Field, From)| match *from {
                From::Number(column) => Value::Single(numbers[column]),
                From::Kept(at) => match (&kept[at], layout.kept[at].column) {
                    (Written::Missing, Some(column)) => Value::Double(sensible(numbers[column])),
                    (written, _) => written.value(),
                },
            };
            out.row(&cells.iter().map(cell).collect::<Vec<_>>())?;
        }
        if let Some(variances) = &mut variances {
            variances.write(&filled.variances)?;
        }
    }
    variances.map_or(Ok(()), Variances::finish)?;
    Ok(out.finish()?)
}

/// Where a cell of the output comes from.
enum From {
    /// A number of the row.
    Number(usize),
    /// A column that is handed through; its holes are filled if the model knows it.
    Kept(usize),
}

/// The columns of the output: those of a table as they stand in it, then what the model knows besides.
fn cells_of(layout: &Layout) -> Vec<(Field, From)> {
    let known = fields_of(layout);
    // A number that was written in decimals has more of them than 32 bits hold.
    let wide = |field: &Field| match field.kind {
        FieldKind::Single => Field::new(&field.name, FieldKind::Double),
        _ => field.clone(),
    };
    let mut cells = Vec::new();
    for (at, kept) in layout.kept.iter().enumerate() {
        let kind = kept
            .column
            .map_or_else(|| kept.field.clone(), |column| wide(&known[column]));
        cells.push((Field::new(&kept.field.name, kind.kind), From::Kept(at)));
    }
    let absent = (0..layout.width)
        .filter(|&column| !layout.kept.iter().any(|kept| kept.column == Some(column)));
    cells.extend(absent.map(|column| (known[column].clone(), From::Number(column))));
    cells
}

/// Seven digits: all that 32 bits can vouch for, without the noise behind them.
fn sensible(number: f32) -> f64 {
    format!("{number:.6e}").parse().unwrap_or(number.into())
}

/// The variance of every hole, in a file of its own; what is observed has none.
struct Variances(Output);

impl Variances {
    fn create(path: &str, fields: Vec<Field>) -> Result<Self> {
        let fields = fields
            .into_iter()
            .map(|field| Field::new(field.name, FieldKind::Single))
            .collect();
        Ok(Self(Output::create(
            path,
            OutputFormat::of(path)?,
            fields,
            None,
        )?))
    }

    fn write(&mut self, variances: &[f32]) -> Result<()> {
        Ok(self.0.numbers(variances)?)
    }

    fn finish(self) -> Result<()> {
        Ok(self.0.finish()?)
    }
}

/// Rows without holes, and the variance of what was filled, NaN for the rest.
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
    let variances = match args.variance {
        Some(_) => variances(predictor, rows, class)?,
        None => vec![f32::NAN; rows.len()],
    };
    let values = match args.how {
        How::Mean => predictor.impute_mean(rows, class)?.mean,
        How::Mode => predictor.impute_mode(rows, class)?,
        How::Sample => predictor.sample_given(rows, class, seed_at(args.out.seed, first))?,
    };
    Ok(Filled { values, variances })
}

/// Var[x_m given x_o] of numbers; a category has none.
fn variances(predictor: &mut Predictor, rows: &[f32], class: Option<usize>) -> Result<Vec<f32>> {
    let mut variances = predictor.impute_mean(rows, class)?.variance;
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

/// Rows of one class at a time, put back where they were.
fn fill_by_label(args: &Args, predictor: &mut Predictor, chunk: &Chunk) -> Result<Filled> {
    let Some(labels) = &chunk.labels else {
        return Err(mistake(format!(
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
        let first = chunk.first + (label + 1) as usize; // chunks are longer than there are usually classes
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
