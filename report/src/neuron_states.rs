//! What neurons stand for: the channels that are used most, from the patch in the middle of the
//! image up to the root.

use anyhow::Result;
use sumout::Model;
use sumout::Predictor;
use sumout::queries::{Neuron, View};

/// Neurons per level.
pub const SHOWN: usize = 6;

/// Samples per neuron.
pub const SAMPLES: usize = 3;

/// Samples in the average of a neuron.
pub const AVERAGED: usize = 200;

/// A node on the way up, and its neurons.
#[derive(Clone, Debug)]
pub struct NodeStates {
    /// 0 for the leaves.
    pub layer: usize,
    /// Nodes of the layer.
    pub nodes: usize,
    /// Channels per node.
    pub channels: usize,
    /// The most used ones, the most used first.
    pub neurons: Vec<NeuronState>,
}

/// What a channel stands for. Rows are NaN for pixels that are not below it.
#[derive(Clone, Debug)]
pub struct NeuronState {
    /// How often it is used.
    pub probability: f64,
    /// The average of [`AVERAGED`] samples.
    pub average: Vec<f32>,
    /// The first [`SAMPLES`] of them.
    pub samples: Vec<Vec<f32>>,
}

/// Nodes from the leaf that holds the pixel up to the root of the first tree: one for every layer.
fn way_up(model: &Model, pixel: usize) -> Vec<usize> {
    let tree = &model.structure.trees[0];
    let place = model.structure.placement((0, 0))[pixel];
    let leaf = tree
        .positions
        .iter()
        .position(|p| p.inputs.contains(&place));
    let mut way: Vec<usize> = leaf.into_iter().collect();
    for level in &tree.levels {
        let below = way.last().map_or(0, |&node| node as u32);
        let mut nodes = level.children.iter();
        way.extend(nodes.position(|children| children.contains(&below)));
    }
    way
}

/// How often each channel of the nodes on the way is used, by layer.
fn usage(predictor: &Predictor, way: &[usize]) -> Result<Vec<Vec<f64>>> {
    let node = |(layer, &node): (usize, &usize)| Neuron {
        tree: 0,
        layer,
        node,
        channel: 0,
    };
    let nodes = way.iter().enumerate().map(node);
    let usage = nodes.map(|node| predictor.channel_usage(node));
    Ok(usage.collect::<sumout::Result<_>>()?)
}

/// The neurons above one pixel, from the leaves up.
pub fn above(predictor: &mut Predictor, pixel: usize, seed: u64) -> Result<Vec<NodeStates>> {
    let way = way_up(predictor.model(), pixel);
    let usage = usage(predictor, &way)?;
    let mut all = Vec::new();
    for (layer, (&node, usage)) in way.iter().zip(&usage).enumerate() {
        let mut order: Vec<usize> = (0..usage.len()).collect();
        order.sort_by(|&a, &b| usage[b].total_cmp(&usage[a]));
        let mut neurons = Vec::new();
        for &channel in order.iter().take(SHOWN) {
            let neuron = Neuron {
                tree: 0,
                layer,
                node,
                channel,
            };
            neurons.push(state_of(predictor, neuron, usage[channel], seed)?);
        }
        all.push(NodeStates {
            layer,
            nodes: predictor.model().structure.trees[0].nodes(layer),
            channels: usage.len(),
            neurons,
        });
    }
    Ok(all)
}

fn state_of(
    predictor: &mut Predictor,
    neuron: Neuron,
    probability: f64,
    seed: u64,
) -> Result<NeuronState> {
    let width = predictor.model().structure.width();
    let view = View::Samples {
        count: AVERAGED,
        seed,
    };
    let rows = predictor.explain(neuron, view)?;
    let samples = rows.iter().take(SAMPLES);
    Ok(NeuronState {
        probability,
        average: average(rows.as_slice(), width),
        samples: samples.map(<[f32]>::to_vec).collect(),
    })
}

/// The mean of rows (n, width), column by column. Pixels are clipped as they are in a picture.
fn average(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x.clamp(0.0, 255.0); // NaN stays NaN
        }
    }
    let count = (rows.len() / width) as f32;
    sums.iter().map(|sum| sum / count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::structure::{ImageSpec, LevelSpec, Sharing};

    #[test]
    fn the_way_up_and_how_often_channels_are_used() {
        let spec = ImageSpec {
            levels: vec![
                LevelSpec::square(2, 5, Sharing::Own),
                LevelSpec::square(2, 6, Sharing::Own),
            ],
            components: 4,
            ..ImageSpec::new(8, 8)
        };
        let model = Model::random(spec.structure(3).unwrap(), 2.0, 1);
        let pixel = 5 * 8 + 2; // patch (2, 1) of 4×4, node (1, 0) of 2×2
        assert_eq!(way_up(&model, pixel), [9, 2, 0]);
        let mut predictor = Predictor::new(model).unwrap();
        let usage = usage(&predictor, &[9, 2, 0]).unwrap();
        assert_eq!(usage.iter().map(Vec::len).collect::<Vec<_>>(), [4, 5, 6]);
        assert!(
            usage
                .iter()
                .all(|layer| (layer.iter().sum::<f64>() - 1.0).abs() < 1e-5)
        );
        // With nothing observed, responsibilities are the same probabilities.
        let nothing = [f32::NAN; 64];
        let nothing = predictor.model().rows(&nothing).unwrap();
        let expected = predictor.responsibilities(nothing, None).unwrap();
        assert!(
            usage[0]
                .iter()
                .zip(&expected[0].as_slice()[9 * 4..])
                .all(|(a, &b)| (a - f64::from(b)).abs() < 1e-5)
        );
        let nodes = above(&mut predictor, pixel, 1).unwrap();
        let below = |node: &NodeStates| {
            node.neurons[0]
                .average
                .iter()
                .filter(|x| !x.is_nan())
                .count()
        };
        assert_eq!(nodes.iter().map(below).collect::<Vec<_>>(), [4, 16, 64]);
        assert_eq!(average(&[-10.0, f32::NAN, 30.0, f32::NAN], 2)[0], 15.0);
        assert_eq!(
            (nodes[0].nodes, nodes[1].channels, nodes[0].neurons.len()),
            (16, 5, 4)
        );
    }
}
