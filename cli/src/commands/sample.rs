//! `sumout sample`: new rows, drawn from what a model has learned.

use crate::options::device::DeviceArgs;
use crate::options::input::Drawn;
use anyhow::Result;
use std::path::PathBuf;
use sumout::random::seed_at;
use sumout_data::atomic_file::check_apart;
use sumout_data::cells::Value;
use sumout_data::model_files;
use sumout_data::model_files::{class_of, layout_of};
use sumout_data::output::label_field;
use sumout_data::output::{Output, OutputFormat, fields_of};

/// Rows drawn at once.
const PIECE: usize = 1024;

/// Draw new rows from a model
///
/// Where the model has classes, the class of each row is the last column: by its name, or in .npy by its number (0, 1, …).
/// Images in .npy and .png have none.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// How many
    #[arg(long, default_value_t = 16)]
    count: usize,
    /// Of this class only
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    #[command(flatten)]
    out: Drawn,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Draws piece by piece.
pub fn run(args: &Args) -> Result<()> {
    let format = OutputFormat::of(&args.out.out)?;
    check_apart(&args.out.out, &[&args.model.to_string_lossy()])?;
    let mut predictor = args
        .device
        .choice()
        .predictor(model_files::load(&args.model)?)?;
    let class = args
        .class
        .as_ref()
        .map(|name| class_of(predictor.model(), name))
        .transpose()?;
    let layout = layout_of(predictor.model());
    let mut fields = fields_of(&layout);
    let image = layout.shape.is_some() && matches!(format, OutputFormat::Npy | OutputFormat::Png);
    let labelled = !image && predictor.model().structure.classes > 1;
    if labelled {
        fields.push(label_field(
            layout.target.as_deref().unwrap_or("class"),
            &layout,
        ));
    }
    let mut out = Output::create(&args.out.out, format, fields, layout.image())?;
    for first in (0..args.count).step_by(PIECE) {
        let samples = predictor.sample(
            PIECE.min(args.count - first),
            class,
            seed_at(args.out.seed, first),
        )?;
        for (numbers, &class) in samples
            .rows
            .chunks_exact(layout.width)
            .zip(&samples.classes)
        {
            let label = labelled.then_some(Value::Whole(class as i64));
            out.row(
                &numbers
                    .iter()
                    .map(|&x| Value::Single(x))
                    .chain(label)
                    .collect::<Vec<_>>(),
            )?;
        }
    }
    Ok(out.finish()?)
}
