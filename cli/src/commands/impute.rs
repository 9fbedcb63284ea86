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
use sumout_data::layout::{Chunk, ColumnKind, Keep, Layout};
use sumout_data::output::{Output, OutputFormat, fields_of, probability_name};

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
    // Arrays and pictures hold the numbers of the model and nothing else.
    let keep = if matches!(format, OutputFormat::Npy | OutputFormat::Png) {
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

/// The output, and the files of variances and probabilities if there are any.
struct FilledOutput {
    layout: Layout,
    cells: Vec<Cell>,
    out: Output,
    variances: Option<Output>,
    probabilities: Option<Output>,
}

impl FilledOutput {
    fn create(args: &Args, format: OutputFormat, layout: &Layout) -> Result<Self> {
        let create = |path: &Option<String>, fields: fn(&Layout) -> Vec<Field>| {
            path.as_ref()
                .map(|path| create_side_file(path, fields(layout)))
        };
        let variances = create(&args.variance, variance_fields).transpose()?;
        let probabilities = create(&args.probabilities, probability_fields).transpose()?;
        let cells = cells_of(layout);
        let fields = cells.iter().map(|cell| cell.field.clone()).collect();
        Ok(Self {
            layout: layout.clone(),
            out: Output::create(&args.out.out, format, fields, layout.image())?,
            cells,
            variances,
            probabilities,
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
        if let Some(out) = &mut self.probabilities {
            out.numbers(&filled.probabilities)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        self.variances.map_or(Ok(()), Output::finish)?;
        self.probabilities.map_or(Ok(()), Output::finish)?;
        Ok(self.out.finish()?)
    }
}

/// A file of numbers about the cells that were filled in; empty where nothing was.
fn create_side_file(path: &str, fields: Vec<Field>) -> Result<Output> {
    Ok(Output::create(path, OutputFormat::of(path)?, fields, None)?)
}

/// One number for each number of a row.
fn variance_fields(layout: &Layout) -> Vec<Field> {
    let number = |field: Field| Field::new(field.name, FieldKind::Single);
    fields_of(layout).into_iter().map(number).collect()
}

/// One number for each category of each column.
fn probability_fields(layout: &Layout) -> Vec<Field> {
    let mut fields = Vec::new();
    for column in &layout.columns {
        if let ColumnKind::Categorical(names) = &column.kind {
            let names = names
                .iter()
                .map(|name| probability_name(&column.name, name));
            fields.extend(names.map(|name| Field::new(name, FieldKind::Single)));
        }
    }
    fields
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

/// Rows without holes, and what is known of each cell that was filled in, NaN for the rest.
struct Filled {
    values: Vec<f32>,        // (n, width)
    variances: Vec<f32>,     // (n, width)
    probabilities: Vec<f32>, // (n, categories of all columns)
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
    let values = match args.how {
        FillWith::Mean => predictor.impute_mean(rows, class)?.mean,
        FillWith::Mode => predictor.impute_mode(rows, class)?,
        FillWith::Sample => predictor.sample_given(rows, class, seed_at(args.out.seed, first))?,
    };
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
