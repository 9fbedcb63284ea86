//! Leaf families on the GPU: tables of densities, and what each position reads.

use crate::error::Result;
use crate::gpu::enabled::device_buffers::{Buffer, Gpu};
use crate::layers::leaf::{Coordinate, Family, log_peak, log_tables};
use crate::structure::{OUTSIDE, Position, Tree};

/// Leaf families of one tree, position by position.
pub(crate) struct LeafBuffers {
    pub tables: Buffer<f32>,
    pub inputs: Buffer<i32>,
    pub first: Buffer<i32>,
    pub family: Buffer<i32>,
    pub values: Buffer<i32>,
    pub offset: Buffer<i32>,
    /// By family, coordinate: where its table starts.
    pub offsets: Vec<Vec<usize>>,
}

/// Where the tables of all coordinates of all families lie.
#[derive(Default)]
struct Coordinates {
    values: Vec<i32>,         // by coordinate: V, or 0 for a normal one
    offset: Vec<i32>,         // by coordinate: where its table starts
    offsets: Vec<Vec<usize>>, // the same by family, coordinate
    first: Vec<i32>,          // by family: its first coordinate
    length: usize,            // of all tables
}

impl Coordinates {
    fn add_family(&mut self, family: &Family) {
        self.first.push(self.values.len() as i32);
        let mut own = Vec::new();
        for coordinate in &family.coordinates {
            let (values, length) = match coordinate {
                Coordinate::Gaussian { .. } => (0, 4 * family.components),
                Coordinate::Discrete { logits } => (
                    logits.len() / family.components,
                    logits.len().next_multiple_of(4),
                ),
            };
            self.values.push(values as i32);
            self.offset.push(self.length as i32);
            own.push(self.length);
            self.length += length;
        }
        self.offsets.push(own);
    }
}

/// The places of the frame that a position reads; −1 outside.
fn inputs_of(position: &Position) -> impl Iterator<Item = i32> {
    let place = |&input: &u32| if input == OUTSIDE { -1 } else { input as i32 };
    position.inputs.iter().map(place)
}

impl LeafBuffers {
    /// Tables and lists of one tree.
    pub fn new(gpu: &mut Gpu, tree: &Tree, families: &[Family]) -> Result<Self> {
        let mut coordinates = Coordinates::default();
        families
            .iter()
            .for_each(|family| coordinates.add_family(family));
        let (mut inputs, mut first, mut family) = (vec![], vec![0i32], vec![]);
        for position in &tree.positions {
            inputs.extend(inputs_of(position));
            first.push(inputs.len() as i32);
            family.push(coordinates.first[position.family as usize]);
        }
        let made = Self {
            tables: gpu.allocate(coordinates.length)?,
            inputs: gpu.upload(&inputs)?,
            first: gpu.upload(&first)?,
            family: gpu.upload(&family)?,
            values: gpu.upload(&coordinates.values)?,
            offset: gpu.upload(&coordinates.offset)?,
            offsets: coordinates.offsets,
        };
        made.send(gpu, families)?;
        Ok(made)
    }

    /// Puts families on the GPU, as tables.
    pub fn send(&self, gpu: &Gpu, families: &[Family]) -> Result<()> {
        let mut tables = Vec::with_capacity(self.tables.len);
        for family in families {
            family
                .coordinates
                .iter()
                .for_each(|coordinate| write_table(coordinate, family.components, &mut tables));
        }
        gpu.send(self.tables, &tables)
    }
}

/// For each component μ, 1/σ, −log σ − ½ log 2π and log σ; or log-probabilities, (V, M), up to a multiple of 4.
fn write_table(coordinate: &Coordinate, components: usize, to: &mut Vec<f32>) {
    match coordinate {
        Coordinate::Gaussian { mean, log_sigma } => {
            for (&mean, &log_sigma) in mean.iter().zip(log_sigma) {
                let inverse = (-f64::from(log_sigma)).exp();
                to.extend([mean, inverse as f32, log_peak(log_sigma) as f32, log_sigma]);
            }
        }
        Coordinate::Discrete { logits } => {
            let log_prob = log_tables(logits, components);
            to.extend(log_prob.into_iter().map(|log| log as f32));
            to.resize(to.len().next_multiple_of(4), 0.0);
        }
    }
}
