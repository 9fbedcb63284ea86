//! What the kernel that fills a batch needs to know: which layers are summed out, and which channels are interpolated.

use crate::error::Result;
use crate::gpu::enabled::args::Dropping;
use crate::gpu::enabled::circuit::Circuit;
use crate::structure::{Kind, Structure};
use crate::training::settings::Settings;

/// Of each channel of an image, whether its numbers are interpolated when it is turned.
pub(super) fn smooth_channels(s: &Structure) -> Vec<u8> {
    let channels = s.frame.as_ref().map_or(0, |frame| frame.channels);
    s.row_kinds()[..channels]
        .iter()
        .map(|&kind| (kind == Kind::Gaussian).into())
        .collect()
}

/// Buffers for the masks of layers that training sums out, and how to sample them.
pub(super) fn drop_buffers(circuit: &mut Circuit, settings: &Settings) -> Result<Vec<Dropping>> {
    let (mut all, mut first) = (Vec::new(), 0);
    let rows = circuit.rows;
    for tree in &mut circuit.trees {
        for (l, &p) in settings
            .drop_nodes
            .iter()
            .enumerate()
            .filter(|(l, p)| **p > 0.0 && *l < tree.layer_of.len())
        {
            let layer = &mut tree.layers[tree.layer_of[l]];
            layer.drop = circuit.gpu.allocate(layer.nodes * rows)?;
            let below = p * 4_294_967_296.0;
            all.push(Dropping {
                drop: layer.drop.at,
                below,
                first,
                nodes: layer.nodes as i32,
            });
            first += layer.nodes as i32;
        }
    }
    Ok(all)
}
