//! `sumout predict`: class, posterior and log-likelihood of every row, for any number of rows.

use crate::options::device::DeviceArgs;
use crate::options::input::{Input, KeepArgs};
use crate::options::open_model::OpenModel;
use crate::terminal::far_rows::FarRows;
use anyhow::Result;
use std::path::PathBuf;
use sumout::Model;
use sumout_data::cells::{Field, FieldKind, Value, Written};
use sumout_data::model_files::layout_of;
use sumout_data::output::{Output, OutputFormat};

/// Class, posterior and log-likelihood of every row
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    keep: KeepArgs,
    /// Where to write the answers: .csv, .jsonl, .npy or .parquet; `-` is standard output as CSV
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: String,
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
    let create = |model: &Model, named: bool| {
        Output::create(&args.out, format, fields(model, &kept, named), None)
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
        let scores = predictor.score(predictor.model().rows(&chunk.values)?)?;
        far.count(chunk.first, &scores.log_marginal);
        for (row, class) in scores.classes().into_iter().enumerate() {
            let answers = (class, scores.posterior.row(row), scores.log_marginal[row]);
            let kept = &chunk.kept[row * kept.len()..][..kept.len()];
            let file = named.then(|| chunk.files[row].as_str());
            if let Some(out) = &mut out {
                out.row(&cells(answers, kept, file))?;
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

/// The cells of a row: columns that are kept, the name of its file, then the answers.
fn cells<'a>(
    answers: (usize, &[f64], f64),
    kept: &'a [Written],
    file: Option<&'a str>,
) -> Vec<Value<'a>> {
    let (class, posterior, log_marginal) = answers;
    let mut cells: Vec<Value<'a>> = kept.iter().map(Written::value).collect();
    cells.extend(file.map(Value::Text));
    cells.push(Value::Whole(class as i64));
    cells.extend(posterior.iter().map(|&p| Value::Double(p)));
    cells.push(Value::Double(log_marginal));
    cells
}

/// Columns that are kept, then the answers. An answer whose name is taken gets "predicted_" before
/// its name.
fn fields(model: &Model, kept: &[Field], named: bool) -> Vec<Field> {
    let mut fields = kept.to_vec();
    for mut answer in answer_fields(model, named) {
        while kept.iter().any(|kept| kept.name == answer.name) {
            answer.name.insert_str(0, "predicted_");
        }
        fields.push(answer);
    }
    fields
}

fn answer_fields(model: &Model, named: bool) -> Vec<Field> {
    let classes = layout_of(model).classes;
    let kind = if classes.is_empty() {
        FieldKind::Whole
    } else {
        FieldKind::Category(classes)
    };
    let mut fields = Vec::new();
    if named {
        fields.push(Field::new("file", FieldKind::Text));
    }
    fields.push(Field::new("class", kind));
    for class in 0..model.structure.classes {
        let name = format!("p_{}", model.class_name(class));
        fields.push(Field::new(name, FieldKind::Double));
    }
    fields.push(Field::new("log_likelihood", FieldKind::Double));
    fields
}
