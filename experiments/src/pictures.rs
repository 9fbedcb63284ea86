//! `pictures`: the paper's figures as SVG files: accuracy curves, samples of every class, what neurons stand for.

use crate::curves;
use crate::tables::records;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use sumout::queries::explain::{Neuron, View};
use sumout::queries::predictor::Predictor;
use sumout::random::{Purpose, Stream};
use sumout_data::model_files;
use sumout_report::picture::{Picture, base64};

/// The model that is drawn; `run` of this experiment leaves it beside its results.
const MODEL: &str = "mnist-ht";

const SIDE: usize = 28;

/// Samples of every class.
const SAMPLES: usize = 12;

/// Layers shown, from the top.
const LAYERS: usize = 3;

/// Neurons of a layer, rows and columns; shared by its nodes.
const NEURONS: usize = 8;

/// Writes all pictures into the folder.
pub fn run(folder: &Path) -> Result<()> {
    let records = records(folder)?;
    let save = |name: &str, svg: String| model_files::save(&folder.join(name), svg.as_bytes());
    save("iid.svg", curves::iid(&records))?;
    save("squares.svg", curves::squares(&records))?;
    let path = folder.join("results").join(format!("{MODEL}.sumout"));
    if !path.exists() {
        eprintln!(
            "no {}: `run {MODEL}` makes it; samples.svg and neurons.svg stay as they are",
            path.display()
        );
        return Ok(());
    }
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut predictor = Predictor::new(sumout::model::model_file::from_bytes(&bytes)?);
    save("samples.svg", samples(&mut predictor)?)?;
    Ok(save("neurons.svg", neurons(&mut predictor)?)?)
}

/// A row of samples from P(X|y) for every class.
fn samples(predictor: &mut Predictor) -> Result<String> {
    const CELL: usize = 46;
    let classes = predictor.model().structure.classes;
    let mut svg = start(SAMPLES * CELL, classes * CELL, "Samples of every class");
    for class in 0..classes {
        let drawn = predictor.sample(SAMPLES, Some(class), 1)?;
        for (i, row) in drawn.rows.chunks_exact(SIDE * SIDE).enumerate() {
            image(&mut svg, row, (i * CELL + 2, class * CELL + 2), CELL - 4)?;
        }
    }
    Ok(svg + "</svg>\n")
}

/// A square for each of the top layers, the top one first. A node has its part of the square, and there samples from
/// channels of it that are drawn at random.
fn neurons(predictor: &mut Predictor) -> Result<String> {
    const CELL: usize = 34;
    const GAP: usize = 20;
    const SIZE: usize = NEURONS * CELL;
    let top = predictor.model().structure.trees[0].levels.len();
    let mut svg = start(
        LAYERS * (SIZE + GAP) - GAP,
        SIZE,
        "What neurons of the top three layers stand for",
    );
    for place in 0..LAYERS {
        let (layer, left) = (top - place, place * (SIZE + GAP));
        let tree = &predictor.model().structure.trees[0];
        let (nodes, channels) = (tree.nodes(layer), tree.channels(layer));
        let across = nodes.isqrt(); // nodes of a layer are a square
        let share = NEURONS / across;
        let mut random = Stream::new(1, Purpose::Sampling, layer as u32, 0);
        for node in 0..nodes {
            for i in 0..share * share {
                let neuron = Neuron {
                    tree: 0,
                    layer,
                    node,
                    channel: random.below(channels),
                };
                let drawn = predictor.explain(
                    neuron,
                    View::Samples {
                        count: 1,
                        seed: i as u64,
                    },
                )?;
                let (y, x) = (
                    node / across * share + i / share,
                    node % across * share + i % share,
                );
                image(
                    &mut svg,
                    &drawn,
                    (left + x * CELL + 1, y * CELL + 1),
                    CELL - 2,
                )?;
            }
        }
        for line in 1..across {
            let at = line * share * CELL;
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {at}h{SIZE}M{} 0v{SIZE}\" stroke=\"#d55e00\" stroke-width=\"1.5\"/>",
                left + at
            );
        }
    }
    Ok(svg + "</svg>\n")
}

fn start(width: usize, height: usize, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    )
}

/// A picture of what is not NaN, in a square.
fn image(svg: &mut String, row: &[f32], (x, y): (usize, usize), size: usize) -> Result<()> {
    let data = base64(&Picture::drawn(row, SIDE).to_png()?);
    writeln!(
        svg,
        "<image x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" preserveAspectRatio=\"none\" \
         style=\"image-rendering: pixelated\" href=\"data:image/png;base64,{data}\"/>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{size}\" height=\"{size}\" fill=\"none\" stroke=\"#ccc\" stroke-width=\"0.5\"/>"
    )?;
    Ok(())
}
