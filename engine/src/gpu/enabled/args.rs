//! The arguments of the kernels, laid out as in the `.cu` files, where their fields are explained.

use cudarc::driver::DeviceRepr;

// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for MixArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for JoinArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for DownArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for LeavesArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for RootArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for FillArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for UpdateArgs {}
// SAFETY: plain numbers and addresses, the same fields in the same order as in the kernel.
unsafe impl DeviceRepr for FinishArgs {}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LayerArgs {
    pub phi: u64,
    pub dphi: u64,
    pub top: u64,
    pub scale: u64,
    pub lost: u64,
    pub drop: u64,
    pub nodes: i32,
    pub real: i32,
    pub wide: i32,
    pub end: i32, // fills the struct up to what the kernels' compiler makes of it
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MixArgs {
    pub below: LayerArgs,
    pub above: LayerArgs,
    pub weights: u64,
    pub others: u64,
    pub child: u64,
    pub matrix: u64,
    pub by: u64,
    pub rows: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct JoinArgs {
    pub below: LayerArgs,
    pub above: LayerArgs,
    pub others: u64,
    pub child: u64,
    pub rows: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DownArgs {
    pub below: LayerArgs,
    pub above: LayerArgs,
    pub weights: u64,
    pub others: u64,
    pub parent: u64,
    pub matrix: u64,
    pub rows: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LeavesArgs {
    pub layer: LayerArgs,
    pub frame: u64,
    pub tables: u64,
    pub inputs: u64,
    pub first: u64,
    pub family: u64,
    pub values: u64,
    pub offset: u64,
    pub rows: i32,
    pub samples: i32,
    pub frame_len: i32,
    pub dense: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RootArgs {
    pub tops: u64,
    pub left: u64,
    pub weights: u64,
    pub prior: u64,
    pub label: u64,
    pub weight: u64,
    pub numbers: u64,
    pub clock: u64,
    pub psi: u64,
    pub dpsi: u64,
    pub factor: u64,
    pub lost: u64,
    pub score: u64,
    pub cost: u64,
    pub doubtful: u64,
    pub seeds: u64,
    pub doubt: u64,
    pub beta: f64,
    pub columns: i32,
    pub classes: i32,
    pub wide: i32,
    pub trees: i32,
    pub rows: i32,
    pub samples: i32,
    pub down: i32,
    pub likelihood: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Numbers {
    pub step: u32,
    pub rate: f32,
    pub penalty: f32,
    pub from_moment: f32,
    pub from_gradient: f32,
    pub second: f32,
    pub leaf_rate: f32,
    pub by: f32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Dropping {
    pub drop: u64,
    pub below: f64,
    pub first: i32,
    pub nodes: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FillArgs {
    pub clock: u64,
    pub numbers: u64,
    pub picks: u64,
    pub values: u64,
    pub codes: u64,
    pub places: u64,
    pub offset: u64,
    pub scale: u64,
    pub labels: u64,
    pub weights: u64,
    pub frame: u64,
    pub label: u64,
    pub weight: u64,
    pub tops: u64,
    pub dropping: u64,
    pub smooth: u64,
    pub top_count: u64,
    pub seed: u64,
    pub drop: f64,
    pub rotate: f64,
    pub stretch: f64,
    pub width: i32,
    pub frame_len: i32,
    pub samples: i32,
    pub rows: i32,
    pub shifts: i32,
    pub droppings: i32,
    pub varied: i32,
    pub image_height: i32,
    pub image_width: i32,
    pub channels: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RowsArgs {
    pub weights: u64,
    pub first: u64,
    pub second: u64,
    pub rounded: u64,
    pub sums: u64,
    pub counts: u64,
    pub least: u64,
    pub stride: u64,
    pub rows: i32,
    pub real: i32,
    pub wide: i32,
    pub parts: i32,
    pub before: i32,
    pub padding: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UpdateArgs {
    pub all: u64,
    pub numbers: u64,
    pub clock: u64,
    pub guarded: u64,
    pub guard_stride: u64,
    pub beta1: f32,
    pub beta2: f32,
    pub kinds: i32,
    pub rows: i32,
    pub rule: i32,
    pub guards: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    pub discriminative: f64,
    pub generative: f64,
    pub weight: f64,
    pub correct: i32,
    pub labelled: i32,
    pub doubtful: i32,
    pub padding: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FinishArgs {
    pub cost: u64,
    pub sums: u64,
    pub clock: u64,
    pub least: u64,
    pub by: u64,
    pub levels: u64,
    pub samples: i32,
    pub padding: i32,
}
