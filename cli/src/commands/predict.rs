//! `sumout predict`: class, posterior and log-likelihood of every row, however many there are.

use crate::options::device::DeviceArgs;
use crate::options::input::{Input, KeepArgs};
use crate::terminal::user_error::warn as say;
use anyhow::Result;
use std::path::PathBuf;
use sumout::Model;
use sumout::arithmetic::math::log_sum_exp;
use sumout::queries::predictor::{argmax_rows, softmax_rows};
use sumout_data::atomic_file::check_apart;
use sumout_data::cells::{Field, FieldKind, Value, Written};
use sumout_data::layout::Layout;
use sumout_data::model_files;
use sumout_data::model_files::layout_of;
use sumout_data::model_files::{FARTHEST, TOO_FAR};
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
    /// Where answers go: .csv, .jsonl, .npy or .parquet; `-` is standard output as CSV
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: String,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Predicts chunk by chunk.
pub fn run(args: &Args) -> Result<()> {
    let format = OutputFormat::of(&args.out)?;
    check_apart(
        &args.out,
        &[
            &args.input.data,
            args.input.labels_file(),
            &args.model.to_string_lossy(),
        ],
    )?;
    let mut predictor = args
        .device
        .choice()
        .predictor(model_files::load(&args.model)?)?;
    let classes = predictor.model().structure.classes;
    let rows = args
        .input
        .open_unlabelled(predictor.model(), args.keep.keep())?;
    let kept: Vec<Field> = rows
        .layout
        .kept
        .iter()
        .map(|kept| kept.field.clone())
        .collect();
    let mut out = None;
    let mut far = Far::default();
    for chunk in rows {
        let chunk = chunk?;
        // Rows that are files are named, where text can be written.
        let named = !chunk.files.is_empty() && format != OutputFormat::Npy;
        let out = match &mut out {
            Some(out) => out,
            None => out.insert(Output::create(
                &args.out,
                format,
                fields(predictor.model(), &kept, named),
                None,
            )?),
        };
        let mut posterior = predictor.log_joint(&chunk.values, &[(0, 0)])?;
        let log_likelihood: Vec<f64> = posterior.chunks_exact(classes).map(log_sum_exp).collect();
        far.count(chunk.first, &log_likelihood);
        softmax_rows(&mut posterior, &predictor.model().log_prior);
        let predicted = argmax_rows(&posterior, classes);
        for (row, posterior) in posterior.chunks_exact(classes).enumerate() {
            let file = named.then(|| Value::Text(&chunk.files[row]));
            let kept = chunk.kept[row * kept.len()..][..kept.len()]
                .iter()
                .map(Written::value);
            let head = kept
                .chain(file)
                .chain([Value::Whole(predicted[row] as i64)]);
            let tail = posterior
                .iter()
                .chain([&log_likelihood[row]])
                .map(|&number| Value::Double(number));
            out.row(&head.chain(tail).collect::<Vec<_>>())?;
        }
    }
    far.say();
    match out {
        Some(out) => out.finish()?,
        None => Output::create(
            &args.out,
            format,
            fields(predictor.model(), &kept, false),
            None,
        )?
        .finish()?,
    }
    Ok(())
}

/// Rows too far from all that was learned.
#[derive(Clone, Default)]
pub struct Far {
    first: Option<usize>, // counted from one
    rows: usize,
}

impl Far {
    /// Looks at the log-likelihoods of rows from `first` on.
    pub fn count(&mut self, first: usize, log_likelihood: &[f64]) {
        let far = |&(_, log): &(usize, &f64)| log.abs() > FARTHEST;
        for (row, _) in log_likelihood.iter().enumerate().filter(far) {
            self.first.get_or_insert(first + row + 1);
            self.rows += 1;
        }
    }

    /// Warns, if there was one.
    pub fn say(&self) {
        let Some(first) = self.first else { return };
        let rows = if self.rows == 1 {
            "".to_owned()
        } else {
            format!(" (the first of {})", self.rows)
        };
        say(&format!("row {first}{rows} is {TOO_FAR}"));
    }
}

/// Columns that are kept, then the answers; an answer whose name is taken is called "predicted_" and its name.
fn fields(model: &Model, kept: &[Field], named: bool) -> Vec<Field> {
    let Layout { classes, .. } = layout_of(model);
    let kind = if classes.is_empty() {
        FieldKind::Whole
    } else {
        FieldKind::Category(classes)
    };
    let posterior =
        (0..model.structure.classes).map(|class| format!("p_{}", model.class_name(class)));
    let numbers = posterior
        .chain(["log_likelihood".to_owned()])
        .map(|name| Field::new(name, FieldKind::Double));
    let file = named.then(|| Field::new("file", FieldKind::Text));
    let answers = file
        .into_iter()
        .chain([Field::new("class", kind)])
        .chain(numbers);
    let mut fields = kept.to_vec();
    for mut answer in answers {
        while kept.iter().any(|kept| kept.name == answer.name) {
            answer.name.insert_str(0, "predicted_");
        }
        fields.push(answer);
    }
    fields
}
