//! What the rule of the optimiser remembers from step to step.

use crate::layers::leaf::Family;
use crate::layers::leaf_statistics::Statistics;
use crate::layers::mixing::Mixing;
use crate::layers::weights::{TreeWeights, Weights};

/// Two numbers of memory for each free parameter. SGD and EM use the first alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// First moment, momentum, or EM's running counts.
    pub first: Vec<f32>,
    /// Second moment.
    pub second: Vec<f32>,
}

impl Moments {
    /// Zeros.
    pub fn new(length: usize) -> Self {
        Self {
            first: vec![0.0; length],
            second: vec![0.0; length],
        }
    }
}

/// Memory of the rule, in the shape of the weights.
#[derive(Clone)]
pub(crate) struct Memory {
    pub levels: Vec<Vec<Moments>>, // by tree, level
    pub classes: Moments,
    pub families: Vec<Vec<Vec<Moments>>>, // by tree, family, coordinate; empty where leaves are frozen
}

impl Memory {
    /// Zeros; of the leaves only if they learn.
    pub fn new(weights: &Weights, leaves_learn: bool) -> Self {
        let moments = |mixing: &Mixing| Moments::new(mixing.logits.len());
        let levels = |tree: &TreeWeights| tree.levels.iter().map(moments).collect();
        let families = |tree: &TreeWeights| tree.families.iter().map(of_family).collect();
        let learning = if leaves_learn {
            &weights.trees[..]
        } else {
            &[]
        };
        Self {
            levels: weights.trees.iter().map(levels).collect(),
            classes: moments(&weights.classes),
            families: learning.iter().map(families).collect(),
        }
    }

    /// Those of a level, or of the class rows.
    pub fn moments_mut(&mut self, which: Option<(usize, usize)>) -> &mut Moments {
        match which {
            Some((t, l)) => &mut self.levels[t][l],
            None => &mut self.classes,
        }
    }
}

/// Zeros for every free parameter of a family, by coordinate.
fn of_family(family: &Family) -> Vec<Moments> {
    let gradient = Statistics::new(family).gradient(family);
    let free = gradient.iter().map(|free| Moments::new(free.len()));
    free.collect()
}
