//! `pictures`: the paper's figures as SVG files: accuracy curves, nets on holes that they were not
//! trained on, completions, samples of every class, what neurons stand for.

use crate::inputs::mnist::SIDE;
use crate::inputs::test_masks;
use crate::results::{Record, records};
use crate::summary::svg::{self, Square, draw_image};
use crate::summary::{completions, curves, few_labels, heat_map, image_sets, speech};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use sumout::Predictor;
use sumout::queries::{Neuron, View};
use sumout::random::{Purpose, Stream};
use sumout_data::model_files;
use sumout_report::picture::Picture;

/// The model that is drawn. `run` of this experiment saves it beside its results.
const MODEL: &str = "mnist-ht";

/// Samples of every class.
const SAMPLES: usize = 12;

/// Layers shown, from the top.
const LAYERS: usize = 3;

/// Rows and columns of neurons in a layer's square; the nodes share them.
const NEURONS: usize = 8;

/// Writes all figures into the folder `figures`.
pub fn run(folder: &Path) -> Result<()> {
    let records = records(folder)?;
    let figures = folder.join("figures");
    let save = |name: &str, svg: String| model_files::save(&figures.join(name), svg.as_bytes());
    save("iid.svg", curves::iid(&records))?;
    save("squares.svg", curves::squares(&records))?;
    if let Some(nets) = heat_map::cross_trained_nets(&records) {
        save("nets.svg", nets)?;
    }
    for (name, svg) in charts_of_sets(&records) {
        if let Some(svg) = svg {
            save(name, svg)?;
        }
    }
    let completed = folder.join("results").join("completions");
    for (name, figure) in [
        ("completions.svg", completions::DIGITS),
        ("eth80-completions.svg", completions::THINGS),
    ] {
        if let Some(svg) = figure.drawn(&completed)? {
            save(name, svg)?;
        }
    }
    let path = folder.join("results").join(format!("{MODEL}.sumout"));
    if !path.exists() {
        eprintln!(
            "no {}: `run {MODEL}` writes it; samples.svg and neurons.svg stay as they are",
            path.display()
        );
        return Ok(());
    }
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut predictor = Predictor::new(sumout::Model::from_bytes(&bytes)?)?;
    save("samples.svg", samples(&mut predictor)?)?;
    Ok(save("neurons.svg", neurons(&mut predictor)?)?)
}

/// Charts of the other data sets by the names of their files, and of few labels; none where there are no results.
fn charts_of_sets(records: &[Record]) -> Vec<(&'static str, Option<String>)> {
    let iid = |set, title| image_sets::curves(records, set, test_masks::iid(), title);
    let squares = |set, title| image_sets::curves(records, set, test_masks::squares(), title);
    vec![
        (
            "fashion-iid.svg",
            iid(
                "fashion-mnist",
                "Fashion-MNIST: accuracy in % when pixels are missing",
            ),
        ),
        (
            "fashion-squares.svg",
            squares(
                "fashion-mnist",
                "Fashion-MNIST: accuracy in % when squares are missing",
            ),
        ),
        (
            "norb-iid.svg",
            iid("norb", "small NORB: accuracy in % when pixels are missing"),
        ),
        (
            "norb-squares.svg",
            squares("norb", "small NORB: accuracy in % when squares are missing"),
        ),
        (
            "eth80-iid.svg",
            iid("eth80", "ETH-80: accuracy in % when pixels are missing"),
        ),
        (
            "eth80-squares.svg",
            squares("eth80", "ETH-80: accuracy in % when squares are missing"),
        ),
        (
            "speech-timit.svg",
            speech::curves(records, "timit", "Phones of TIMIT: accuracy in %"),
        ),
        (
            "speech-arctic.svg",
            speech::curves(records, "arctic", "Phones of one speaker: accuracy in %"),
        ),
        (
            "few-labels.svg",
            few_labels::curves(records, false, "Few labels: accuracy in %"),
        ),
        (
            "few-labels-half.svg",
            few_labels::curves(
                records,
                true,
                "Few labels, half of the pixels missing: accuracy in %",
            ),
        ),
    ]
}

/// A row of samples from P(X|y) for every class.
fn samples(predictor: &mut Predictor) -> Result<String> {
    const CELL: usize = 46;
    let classes = predictor.model().structure.classes;
    let mut svg = svg::start(
        (SAMPLES * CELL) as f64,
        (classes * CELL) as f64,
        "Samples of every class",
    );
    for class in 0..classes {
        let samples = predictor.sample(SAMPLES, Some(class), 1)?;
        for (i, row) in samples.rows.iter().enumerate() {
            let place = Square {
                x: i * CELL + 2,
                y: class * CELL + 2,
                size: CELL - 4,
            };
            draw_image(&mut svg, &Picture::drawn(row, SIDE), &place)?;
        }
    }
    Ok(svg + "</svg>\n")
}

/// Width of a neuron's picture.
const CELL: usize = 34;

/// Width of a layer's square.
const SIZE: usize = NEURONS * CELL;

/// A square for each of the top layers, the top one first.
fn neurons(predictor: &mut Predictor) -> Result<String> {
    const GAP: usize = 20;
    let top = predictor.model().structure.trees[0].levels.len();
    let mut svg = svg::start(
        (LAYERS * (SIZE + GAP) - GAP) as f64,
        SIZE as f64,
        "What neurons of the top three layers stand for",
    );
    for place in 0..LAYERS {
        draw_layer(&mut svg, predictor, top - place, place * (SIZE + GAP))?;
    }
    Ok(svg + "</svg>\n")
}

/// One layer. Each node has its part of the square, with samples from randomly chosen channels of
/// it.
fn draw_layer(
    svg: &mut String,
    predictor: &mut Predictor,
    layer: usize,
    left: usize,
) -> Result<()> {
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
            let view = View::Samples {
                count: 1,
                seed: i as u64,
            };
            let row = predictor.explain(neuron, view)?;
            let place = Square {
                x: left + (node % across * share + i % share) * CELL + 1,
                y: (node / across * share + i / share) * CELL + 1,
                size: CELL - 2,
            };
            draw_image(svg, &Picture::drawn(row.as_slice(), SIDE), &place)?;
        }
    }
    for line in 1..across {
        let (y, x) = (line * share * CELL, left + line * share * CELL);
        writeln!(
            svg,
            "<path d=\"M{left} {y}h{SIZE}M{x} 0v{SIZE}\" stroke=\"#d55e00\" stroke-width=\"1.5\"/>"
        )?;
    }
    Ok(())
}
