//! What is learned: leaf families, the mixing matrices of every level, the class rows.

use crate::error::{Error, Result};
use crate::layers::leaf::Family;
use crate::layers::leaf_kernel::LeafKernel;
use crate::layers::mixing::Mixing;
use crate::layers::simplex::Simplex;
use crate::structure::{ClassRows, Kind, Level, Structure};

/// The learned numbers of one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeWeights {
    /// Leaf families.
    pub families: Vec<Family>,
    /// One entry per level.
    pub levels: Vec<Mixing>,
}

/// The learned numbers of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// By tree.
    pub trees: Vec<TreeWeights>,
    /// W_top: one matrix, K × (tops of all trees); the identity where the structure says so.
    pub classes: Mixing,
}

impl Weights {
    /// Standard normal leaves, and logits sampled from a normal distribution of the given spread.
    pub fn random(structure: &Structure, spread: f64, seed: u64) -> Self {
        let mut item = 0;
        let mut draw = |matrices, rows, columns| {
            item += 1;
            Mixing::random(matrices, rows, columns, spread, (seed, item))
        };
        let classes = match structure.class_rows {
            ClassRows::Mixing => draw(1, structure.classes, structure.root_channels()),
            ClassRows::Identity => Mixing::identity(structure.classes),
        };
        let mut trees = Vec::with_capacity(structure.trees.len());
        for tree in &structure.trees {
            let family = |kinds: &Vec<Kind>| Family::new(kinds, tree.components);
            let mut level = |(level, l): (&Level, usize)| {
                draw(level.matrices(), tree.channels(l + 1), tree.channels(l))
            };
            trees.push(TreeWeights {
                families: tree.families.iter().map(family).collect(),
                levels: tree.levels.iter().zip(0..).map(&mut level).collect(),
            });
        }
        Self { trees, classes }
    }

    /// Whether the numbers of some leaf depend on each other.
    pub(crate) fn have_factors(&self) -> bool {
        let mut families = self.trees.iter().flat_map(|tree| &tree.families);
        families.any(|family| family.factors.is_some())
    }

    /// An error where a GPU cannot compute the leaves.
    pub(crate) fn check_for_gpu(&self, ordinal: usize) -> Result<()> {
        match self.have_factors() {
            false => Ok(()),
            true => Err(Error::Setting {
                name: "device",
                expected: "cpu: leaves with factors are computed on the processor only",
                got: format!("cuda:{ordinal}"),
            }),
        }
    }
}

/// The same numbers as the kernels read them.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// By tree, family.
    pub leaves: Vec<Vec<LeafKernel>>,
    /// By tree, level.
    pub levels: Vec<Vec<Simplex>>,
    /// W_top.
    pub classes: Simplex,
}

impl Prepared {
    /// Prepares all weights.
    pub fn new(weights: &Weights) -> Self {
        Self {
            leaves: weights
                .trees
                .iter()
                .map(|t| t.families.iter().map(LeafKernel::new).collect())
                .collect(),
            levels: weights
                .trees
                .iter()
                .map(|t| t.levels.iter().map(Simplex::new).collect())
                .collect(),
            classes: Simplex::new(&weights.classes),
        }
    }
}
