//! `sumout explain`: what one neuron stands for.

use crate::options::device::DeviceArgs;
use crate::options::input::Drawn;
use crate::options::open_model::OpenModel;
use anyhow::Result;
use clap::ValueEnum;
use std::path::PathBuf;
use sumout::queries::{Neuron, View};
use sumout_data::model_files::layout_of;
use sumout_data::output::{Output, fields_of};

/// How a neuron is shown.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ShownAs {
    /// Random samples of the inputs below it
    Samples,
    /// The most likely joint assignment of the inputs below it and the hidden variables
    Mode,
}

/// Show what a neuron stands for: samples or the mode of the inputs below it
///
/// Values that are not below the neuron are missing in the output. `sumout inspect MODEL` shows
/// trees, levels, nodes and channels.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model file
    model: PathBuf,
    /// Which tree
    #[arg(long, default_value_t = 0)]
    tree: usize,
    /// 0 for the leaves, 1 for the first level above them, and so on
    #[arg(long)]
    level: usize,
    /// Which node of the level
    #[arg(long, default_value_t = 0)]
    node: usize,
    /// Which channel of the node
    #[arg(long)]
    channel: usize,
    /// How to show it
    #[arg(long, value_enum, default_value_t = ShownAs::Samples)]
    how: ShownAs,
    /// How many samples
    #[arg(long, default_value_t = 16)]
    count: usize,
    #[command(flatten)]
    out: Drawn,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Asks the model and writes the rows.
pub fn run(args: &Args) -> Result<()> {
    let OpenModel {
        format,
        mut predictor,
    } = OpenModel::open(&args.model, &args.device, &args.out.out, &[])?;
    let neuron = Neuron {
        tree: args.tree,
        layer: args.level,
        node: args.node,
        channel: args.channel,
    };
    let view = match args.how {
        ShownAs::Samples => View::Samples {
            count: args.count,
            seed: args.out.seed,
        },
        ShownAs::Mode => View::Mode,
    };
    let rows = predictor.explain(neuron, view)?;
    let layout = layout_of(predictor.model());
    let mut out = Output::create(&args.out.out, format, fields_of(&layout), layout.image())?;
    out.numbers(rows.as_slice())?;
    Ok(out.finish()?)
}
