//! `sumout sample`: new rows, sampled from a model.

use crate::options::device::DeviceArgs;
use crate::options::input::Drawn;
use crate::options::open_model::OpenModel;
use anyhow::Result;
use std::path::PathBuf;
use sumout::random::seed_at;
use sumout_data::cells::Value;
use sumout_data::model_files::layout_of;
use sumout_data::output::{Output, fields_of, label_field};

/// Rows that are sampled at once.
const PIECE: usize = 1024;

/// Sample new rows from a model
///
/// If the model has classes, the last column is the class of the row: its name, or in .npy its
/// number (0, 1, …). Images in .npy and .png have no class.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// How many rows
    #[arg(long, default_value_t = 16)]
    count: usize,
    /// Only rows of this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    #[command(flatten)]
    out: Drawn,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Samples piece by piece.
pub fn run(args: &Args) -> Result<()> {
    let model = OpenModel::open(&args.model, &args.device, &args.out.out, &[])?;
    let class = model.class(args.class.as_ref())?;
    let OpenModel {
        format,
        mut predictor,
    } = model;
    let layout = layout_of(predictor.model());
    let is_image = layout.shape.is_some() && format.holds_only_numbers();
    let has_class = !is_image && predictor.model().structure.classes > 1;
    let mut fields = fields_of(&layout);
    if has_class {
        let name = layout.target.as_deref().unwrap_or("class");
        fields.push(label_field(name, &layout));
    }
    let mut out = Output::create(&args.out.out, format, fields, layout.image())?;
    for first in (0..args.count).step_by(PIECE) {
        let count = PIECE.min(args.count - first);
        let samples = predictor.sample(count, class, seed_at(args.out.seed, first))?;
        let rows = samples.rows.iter();
        for (numbers, &class) in rows.zip(&samples.classes) {
            let mut row: Vec<Value<'_>> = numbers.iter().map(|&x| Value::Single(x)).collect();
            row.extend(has_class.then_some(Value::Whole(class as i64)));
            out.row(&row)?;
        }
    }
    Ok(out.finish()?)
}
