//! The circuit on a GPU: the model with its buffers, as `passes` compute on it.

use crate::device::Precision;
use crate::error::Result;
use crate::gpu::enabled::args::LayerArgs;
use crate::gpu::enabled::device_buffers::{Buffer, Gpu};
use crate::gpu::enabled::layout::{
    Kept, Place, Places, TreeBuffers, TreeBuilder, families, fits_one_kernel, padded_channels,
    padded_rows,
};
use crate::layers::weights::{Prepared, Weights};
use crate::structure::{ClassRows, Structure};
use std::iter;

/// A model on a GPU, with buffers for a batch.
pub(crate) struct Circuit {
    pub gpu: Gpu,
    pub structure: Structure,
    pub places: Places,
    pub trees: Vec<TreeBuffers>,
    pub weights: Buffer<f32>,         // all matrices, see `Places`
    pub rounded: Option<Buffer<f32>>, // the same with the bits that tensor cores read
    pub least: Buffer<f32>,           // by row of all matrices: its least number
    pub level_by: Buffer<f32>,        // by level, tree after tree: 4 / the least of its matrices
    pub level_rows: Buffer<i32>,      // by level: its first row, and the end
    pub frame: Buffer<f32>,           // (B, D)
    pub tops: Buffer<i32>,            // of all layers
    pub top_layers: Buffer<LayerArgs>,
    pub left: Buffer<i32>,
    pub prior: Buffer<f64>,
    pub psi: Buffer<f32>,
    pub dpsi: Buffer<f32>,
    pub factor: Buffer<f32>,
    pub underflow_bound: Buffer<f32>,
    pub score: Buffer<f64>,
    pub output_gradients: Buffer<f32>,
    pub relative_bound: Buffer<f32>,
    pub rows: usize, // B at most, a multiple of 64
}

/// A model as the host has it.
#[derive(Clone, Copy)]
pub(crate) struct HostModel<'a> {
    pub structure: &'a Structure,
    pub weights: &'a Weights,
    pub prepared: &'a Prepared,
    pub log_prior: &'a [f64],
}

/// What a circuit can do beside scoring.
#[derive(Clone, Copy)]
pub(crate) struct Abilities {
    /// The backward pass.
    pub backward: bool,
    /// Leaf activations.
    pub leaves: bool,
}

impl Circuit {
    /// Puts a model on a GPU.
    pub fn new(
        (ordinal, precision): (usize, Precision),
        model: HostModel<'_>,
        samples: usize,
        abilities: Abilities,
    ) -> Result<Self> {
        let mut gpu = Gpu::open(ordinal, precision)?;
        let (rows, s) = (padded_rows(samples), model.structure);
        let places = Places::new(s);
        let (trees, tops) = tree_buffers(&mut gpu, model, precision, rows, abilities)?;
        let left: Vec<i32> = places.left.iter().map(|&left| left as i32).collect();
        let rounded = precision == Precision::Tf32;
        let level_places = places.levels.iter().flatten().chain([&places.classes]);
        let level_rows: Vec<i32> = level_places.map(|place| place.before as i32).collect();
        let (k, k_padded) = (s.classes, padded_channels(s.classes));
        let if_backward = |numbers: usize| if abilities.backward { numbers } else { 0 };
        let circuit = Self {
            weights: gpu.allocate(places.total)?,
            rounded: rounded.then(|| gpu.allocate(places.total)).transpose()?,
            least: gpu.allocate(places.rows)?,
            level_by: gpu.allocate(level_rows.len() - 1)?,
            level_rows: gpu.upload(&level_rows)?,
            frame: gpu.allocate(rows * s.frame_len())?,
            top_layers: gpu.allocate(s.trees.len() + 1)?,
            left: gpu.upload(&left)?,
            prior: gpu.upload(model.log_prior)?,
            psi: gpu.allocate(rows * k_padded)?,
            dpsi: gpu.allocate(if_backward(rows * k_padded))?,
            factor: gpu.allocate(rows * s.trees.len())?,
            underflow_bound: gpu.allocate(rows)?,
            score: gpu.allocate(rows * k)?,
            output_gradients: gpu.allocate(if_backward(rows * k))?,
            relative_bound: gpu.allocate(rows * k)?,
            gpu,
            structure: s.clone(),
            places,
            trees,
            tops,
            rows,
        };
        circuit.set_weights(model.prepared)?;
        circuit.set_top_layers()?;
        Ok(circuit)
    }

    /// Puts W on the GPU.
    pub fn set_weights(&self, prepared: &Prepared) -> Result<()> {
        let simplex = |which: Option<(usize, usize)>| {
            which.map_or(&prepared.classes, |(t, l)| &prepared.levels[t][l])
        };
        let all = self.places.gather(&self.structure, |which, m, c, a| {
            simplex(which).weight(m, c, a)
        });
        self.gpu.send(self.weights, &all)?;
        let simplexes = prepared.levels.iter().flatten().chain([&prepared.classes]);
        let places = self.places.levels.iter().flatten();
        let mut least = Vec::with_capacity(self.places.rows); // of a row's matrix
        for (simplex, place) in simplexes.zip(places.chain([&self.places.classes])) {
            let rows = |number: f32| iter::repeat_n(number, place.rows);
            least.extend(simplex.least_of_all().flat_map(rows));
        }
        self.gpu.send(self.least, &least)?;
        let of_level = |place: &Place| {
            let own = &least[place.before..][..place.all_rows()];
            4.0 / own.iter().copied().fold(f32::INFINITY, f32::min)
        };
        let level_by: Vec<f32> = self.places.levels.iter().flatten().map(of_level).collect();
        self.gpu.send(self.level_by, &level_by)?;
        let Some(buffer) = self.rounded else {
            return Ok(());
        };
        // As `kept` in `tiles.cu`.
        let rounded = |w: &f32| f32::from_bits(w.to_bits().wrapping_add(0x1000) & 0xffff_e000);
        self.gpu
            .send(buffer, &Vec::from_iter(all.iter().map(rounded)))
    }

    /// Tells the root kernel where the tops of the trees are; again after masks were added.
    pub fn set_top_layers(&self) -> Result<()> {
        let top = |tree: &TreeBuffers| tree.layers[tree.layers.len() - 1].args();
        let mut layers: Vec<LayerArgs> = self.trees.iter().map(top).collect();
        if self.structure.class_rows == ClassRows::Identity {
            let tree = &self.trees[0];
            layers.push(tree.layers[tree.layers.len() - 2].args());
        }
        self.gpu.send(self.top_layers, &layers)
    }

    /// Bytes of activations: all that are held, and what of them the backward pass reads (φ below a mixing, and the products
    /// of siblings).
    pub fn activation_bytes(&self) -> (usize, usize) {
        let (mut held, mut read) = (0, 0);
        for tree in &self.trees {
            for layer in &tree.layers {
                let rows = layer.top.len + 2 * layer.scale.len + 2 * layer.underflow_bound.len;
                held += 4 * (layer.phi.len + layer.dphi.len + rows);
                read += 4 * layer.phi.len;
            }
            let others: usize = tree.stages.iter().map(|stage| 4 * stage.others.len).sum();
            (held, read) = (held + others, read + others);
        }
        (held, read)
    }
}

/// The buffers of all trees, and the one that holds the tops of all their layers.
fn tree_buffers(
    gpu: &mut Gpu,
    model: HostModel<'_>,
    precision: Precision,
    rows: usize,
    abilities: Abilities,
) -> Result<(Vec<TreeBuffers>, Buffer<i32>)> {
    let identity = model.structure.class_rows == ClassRows::Identity;
    let (mut trees, mut count) = (Vec::new(), 0);
    for (tree, families) in model.structure.trees.iter().zip(families(model.weights)) {
        let only_classes = identity && tree.levels.len() == 1;
        let kept = Kept {
            backward: abilities.backward,
            leaves: abilities.leaves,
            first: fits_one_kernel(tree, families, precision) && !only_classes,
            identity,
        };
        let mut builder = TreeBuilder {
            gpu: &mut *gpu,
            rows,
            kept,
            tops: &mut count,
        };
        trees.push(builder.build(tree, families)?);
    }
    let (tops, mut first) = (gpu.allocate(count)?, 0);
    for tree in &mut trees {
        tree.set_tops(tops, rows, &mut first);
    }
    Ok((trees, tops))
}
