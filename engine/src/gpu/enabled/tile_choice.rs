//! Which shape of tiles a mixing runs on: as large as gives nearly every multiprocessor something to do.

use crate::gpu::enabled::device_buffers::Gpu;
use crate::gpu::enabled::kernels::{Kernel, Launch};
use crate::gpu::enabled::layout::{LayerBuffers, padded_channels};

/// For a forward pass; `others` says whether products of siblings are kept.
pub(crate) fn choose_forward(
    gpu: &Gpu,
    channels_below: usize,
    above: &LayerBuffers,
    rows: usize,
    others: bool,
) -> Launch {
    let tiles = |high, side| tile_count(above, rows, high, side);
    let enough = |blocks| is_enough(gpu, blocks);
    let even = rows.is_multiple_of(128);
    let deep = channels_below >= 128 && even;
    if !others && even && enough(tiles(128, 64) / 2) {
        Kernel::ScoreUp.on(tiles(128, 64).min(2 * gpu.processors()), 256)
    } else if deep && gpu.has(Kernel::MixUpHuge) && enough(tiles(128, 64)) {
        Kernel::MixUpHuge.on(tiles(128, 64), 512)
    } else if channels_below <= 32 && enough(tiles(64, 64)) {
        Kernel::MixUpFlat.on(tiles(32, 64), 128)
    } else if enough(tiles(64, 64)) || !gpu.has(Kernel::MixUpSmall) {
        Kernel::MixUpLarge.on(tiles(64, 64), 256)
    } else {
        Kernel::MixUpSmall.on(tiles(32, 32), 128)
    }
}

/// For a backward pass.
pub(crate) fn choose_backward(gpu: &Gpu, below: &LayerBuffers, rows: usize) -> Launch {
    let tiles = |high, side| tile_count(below, rows, high, side);
    let enough = |blocks| is_enough(gpu, blocks);
    let even = rows.is_multiple_of(128);
    let huge = padded_channels(below.channels) >= 128 && gpu.has(Kernel::MixDownHuge);
    if even && huge && enough(tiles(128, 128)) {
        Kernel::MixDownHuge.on(tiles(128, 128), 256)
    } else if even && enough(tiles(128, 64)) {
        Kernel::MixDownTall.on(tiles(128, 64), 256)
    } else {
        Kernel::MixDownSmall.on(tiles(32, 32), 128)
    }
}

/// Tiles of `high` samples and `side` channels that cover a layer.
fn tile_count(layer: &LayerBuffers, rows: usize, high: usize, side: usize) -> usize {
    layer.nodes * (rows / high) * padded_channels(layer.channels).div_ceil(side)
}

/// Whether this many blocks give nearly every multiprocessor something to do.
fn is_enough(gpu: &Gpu, blocks: usize) -> bool {
    8 * blocks >= 7 * gpu.processors()
}
