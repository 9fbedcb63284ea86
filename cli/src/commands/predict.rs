//! `sumout predict`: class, posterior and log-likelihood of every row, for any number of rows; or the distribution of
//! the number that a model predicts.

use crate::options::device::DeviceArgs;
use crate::options::input::{Input, KeepArgs};
use crate::options::open_model::OpenModel;
use crate::options::quantiles::Quantiles;
use crate::terminal::far_rows::FarRows;
use crate::terminal::user_error::user_error;
use anyhow::Result;
use std::path::PathBuf;
use sumout::queries::Scores;
use sumout::{Model, Predictor};
use sumout_data::cells::{Field, FieldKind, Value, Written};
use sumout_data::layout::{Chunk, ColumnKind};
use sumout_data::model_files::layout_of;
use sumout_data::output::{Output, OutputFormat};

/// Class, posterior and log-likelihood of every row
///
/// A model that was trained with --regression gives the mean, the standard deviation and quantiles of
/// its target, a model without classes the log-likelihood alone.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    keep: KeepArgs,
    /// Where to write the answers: .csv, .jsonl, .npy or .parquet; `-` is standard output as CSV
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: String,
    /// Quantiles to write, separated by commas, for a model that was trained with --regression
    /// [default: 0.05,0.25,0.5,0.75,0.95]
    #[arg(long, value_name = "SHARES")]
    quantiles: Option<Quantiles>,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Predicts chunk by chunk.
pub fn run(args: &Args) -> Result<()> {
    let inputs = [args.input.data.as_str(), args.input.labels_file()];
    let OpenModel {
        format,
        mut predictor,
    } = OpenModel::open(&args.model, &args.device, &args.out, &inputs)?;
    let rows = args
        .input
        .open_unlabelled(predictor.model(), args.keep.keep())?
        .read_ahead();
    let kept: Vec<Field> = rows.layout.kept.iter().map(|k| k.field.clone()).collect();
    let format = format.in_notation(&args.input.notation()?);
    let question = Question::of(args, predictor.model())?;
    let create = |model: &Model, named: bool| {
        let answers = question.fields(model);
        Output::create(&args.out, format, fields(answers, &kept, named), None)
    };
    let mut out = None;
    let mut far = FarRows::default();
    for chunk in rows {
        let chunk = chunk?;
        // Rows that are files are named, if the output can have text.
        let named = !chunk.files.is_empty() && format != OutputFormat::Npy;
        if out.is_none() {
            out = Some(create(predictor.model(), named)?);
        }
        let answers = question.answers(&mut predictor, &chunk, &mut far)?;
        for (row, answers) in answers.into_iter().enumerate() {
            let kept = &chunk.kept[row * kept.len()..][..kept.len()];
            let mut cells: Vec<Value<'_>> = kept.iter().map(Written::value).collect();
            cells.extend(named.then(|| Value::Text(&chunk.files[row])));
            cells.extend(answers);
            if let Some(out) = &mut out {
                out.row(&cells)?;
            }
        }
    }
    far.warn();
    match out {
        Some(out) => out.finish()?,
        None => create(predictor.model(), false)?.finish()?, // no rows: a head without rows
    }
    Ok(())
}

/// What is asked about every row.
enum Question {
    Likelihood,
    Class,
    Number { column: usize, quantiles: Quantiles },
}

impl Question {
    fn of(args: &Args, model: &Model) -> Result<Self> {
        match (model.target(), &args.quantiles) {
            (Some(column), quantiles) => Ok(Self::Number {
                column,
                quantiles: quantiles.clone().unwrap_or_default(),
            }),
            (None, Some(_)) => Err(user_error(format!(
                "--quantiles: expected a model that was trained with --regression, got {}",
                args.model.display()
            ))),
            (None, None) if model.structure.classes == 1 => Ok(Self::Likelihood),
            (None, None) => Ok(Self::Class),
        }
    }

    /// The columns of the answers.
    fn fields(&self, model: &Model) -> Vec<Field> {
        match self {
            Self::Likelihood => vec![likelihood_field()],
            Self::Class => class_fields(model),
            Self::Number { column, quantiles } => number_fields(model, *column, quantiles),
        }
    }

    /// The answers for every row.
    fn answers(
        &self,
        predictor: &mut Predictor,
        chunk: &Chunk,
        far: &mut FarRows,
    ) -> Result<Vec<Vec<Value<'static>>>> {
        let rows = predictor.model().rows(&chunk.values)?;
        match self {
            Self::Likelihood => {
                let logs = predictor.log_marginal(rows)?;
                let cells = |log| vec![Value::Double(log)];
                Ok(logs.into_iter().map(cells).collect())
            }
            Self::Class => {
                let scores = predictor.score(rows)?;
                far.count(chunk.first, &scores.log_marginal, rows.width());
                Ok(class_cells(&scores))
            }
            Self::Number { column, quantiles } => {
                let mixtures = predictor.mixtures(rows, *column, None)?;
                let numbers = quantiles.of(&mixtures);
                let cells = |row| numbers.row(row).iter().map(|&x| Value::Double(x)).collect();
                Ok((0..numbers.rows()).map(cells).collect())
            }
        }
    }
}

/// Class, posterior and log-likelihood of every row.
fn class_cells(scores: &Scores) -> Vec<Vec<Value<'static>>> {
    let mut rows = Vec::new();
    for (row, class) in scores.classes().into_iter().enumerate() {
        let mut cells = vec![Value::Whole(class as i64)];
        let posterior = scores.posterior.row(row).iter();
        cells.extend(posterior.map(|&p| Value::Double(p)));
        cells.push(Value::Double(scores.log_marginal[row]));
        rows.push(cells);
    }
    rows
}

/// Columns that are kept, the name of a row's file, then the answers. An answer whose name is taken gets "predicted_"
/// before its name.
fn fields(answers: Vec<Field>, kept: &[Field], named: bool) -> Vec<Field> {
    let mut fields = kept.to_vec();
    let file = named.then(|| Field::new("file", FieldKind::Text));
    for mut answer in file.into_iter().chain(answers) {
        while kept.iter().any(|kept| kept.name == answer.name) {
            answer.name.insert_str(0, "predicted_");
        }
        fields.push(answer);
    }
    fields
}

/// Mean and quantiles are dates where the target is one; the standard deviation is then in days.
fn number_fields(model: &Model, column: usize, quantiles: &Quantiles) -> Vec<Field> {
    let layout = layout_of(model);
    let kind = match layout.columns.get(column).map(|column| &column.kind) {
        Some(ColumnKind::Date(style)) => FieldKind::Date(*style),
        _ => FieldKind::Double,
    };
    let mut fields = vec![
        Field::new("mean", kind.clone()),
        Field::new("sd", FieldKind::Double),
    ];
    fields.extend(quantiles.names().map(|name| Field::new(name, kind.clone())));
    fields
}

fn class_fields(model: &Model) -> Vec<Field> {
    let classes = layout_of(model).classes;
    let kind = if classes.is_empty() {
        FieldKind::Whole
    } else {
        FieldKind::Category(classes)
    };
    let mut fields = vec![Field::new("class", kind)];
    for class in 0..model.structure.classes {
        let name = format!("p_{}", model.class_name(class));
        fields.push(Field::new(name, FieldKind::Double));
    }
    fields.push(likelihood_field());
    fields
}

fn likelihood_field() -> Field {
    Field::new("log_likelihood", FieldKind::Double)
}
