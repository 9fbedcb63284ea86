//! `sumout impute`: fills holes with their exact mean, the mode, or a draw, however many rows there are.

use crate::datasets::{Chunk, Field, FieldKind, Layout, Output, OutputFormat, Value, fields_of};
use crate::devices::Chosen;
use crate::input::Input;
use crate::mistake::mistake;
use crate::models::{self, class_of};
use anyhow::Result;
use clap::ValueEnum;
use std::path::PathBuf;
use sumout::queries::Predictor;

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
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where rows go: .csv, .jsonl, .npy, .png or .parquet; `-` is standard output as CSV
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: String,
    #[command(flatten)]
    chosen: Chosen,
}

/// Fills chunk by chunk.
pub fn run(args: &Args) -> Result<()> {
    let format = OutputFormat::of(&args.out)?;
    let mut predictor = args.chosen.predictor(models::load(&args.model)?)?;
    let class = args.class.as_ref().map(|name| class_of(predictor.model(), name)).transpose()?;
    let rows = args.input.open(predictor.model())?;
    let layout = rows.layout.clone();
    let mut fields = fields_of(&layout);
    // Tables keep their labels; an image is nothing but an image.
    let labels = layout.target.as_ref().filter(|_| layout.shape.is_none());
    fields.extend(labels.map(|name| label_field(name, &layout)));
    let mut out = Output::create(&args.out, format, fields, layout.shape)?;
    for chunk in rows {
        let chunk = chunk?;
        let filled = if args.given_labels {
            fill_by_label(args, &mut predictor, &chunk)?
        } else {
            fill(args, &mut predictor, &chunk.values, class, chunk.first)?
        };
        for (row, numbers) in filled.chunks_exact(layout.width).enumerate() {
            let label = chunk.labels.as_ref().filter(|_| labels.is_some()).map(|labels| label_value(labels[row]));
            out.row(&numbers.iter().map(|&x| Value::Single(x)).chain(label).collect::<Vec<_>>())?;
        }
    }
    out.finish()
}

/// The column of classes in an output.
pub fn label_field(name: &str, layout: &Layout) -> Field {
    let kind = if layout.classes.is_empty() { FieldKind::Whole } else { FieldKind::Category(layout.classes.clone()) };
    Field::new(name, kind)
}

fn label_value(label: i64) -> Value<'static> {
    if label < 0 { Value::Missing } else { Value::Whole(label) }
}

/// A seed of its own for every stretch of rows.
pub fn seed_at(seed: u64, first: usize) -> u64 {
    seed.wrapping_add((first as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) // 2⁶⁴ over the golden ratio: spreads apart
}

fn fill(args: &Args, predictor: &mut Predictor, rows: &[f32], class: Option<usize>, first: usize) -> Result<Vec<f32>> {
    Ok(match args.how {
        How::Mean => predictor.impute_mean(rows, class)?.mean,
        How::Mode => predictor.impute_mode(rows, class)?,
        How::Sample => predictor.sample_given(rows, class, seed_at(args.seed, first))?,
    })
}

/// Rows of one class at a time, put back where they were.
fn fill_by_label(args: &Args, predictor: &mut Predictor, chunk: &Chunk) -> Result<Vec<f32>> {
    let Some(labels) = &chunk.labels else {
        return Err(mistake(format!("--given-labels: expected labels in {}, got none", args.input.data)));
    };
    let classes = predictor.model().structure.classes;
    let width = predictor.model().structure.width();
    let mut filled = chunk.values.clone();
    for label in -1..classes as i64 {
        let rows: Vec<usize> = (0..labels.len()).filter(|&row| labels[row] == label).collect();
        let values: Vec<f32> = rows.iter().flat_map(|&row| &chunk.values[row * width..][..width]).copied().collect();
        let first = chunk.first + (label + 1) as usize; // chunks are longer than there are usually classes
        let answers = fill(args, predictor, &values, usize::try_from(label).ok(), first)?;
        for (&row, answer) in rows.iter().zip(answers.chunks_exact(width)) {
            filled[row * width..][..width].copy_from_slice(answer);
        }
    }
    Ok(filled)
}
