//! One tree: local structures, the levels that join them, and what makes a blueprint a model.

use serde::{Deserialize, Serialize};

/// A coordinate of a position that lies outside the frame: always missing.
pub const OUTSIDE: u32 = u32::MAX;

/// The most channels, components, classes and categories: whole numbers up to here are exact in f32.
pub const LARGEST: usize = 1 << 24;

/// The most numbers of one model, so that no product of sizes overflows: 2⁴⁰, or what an address reaches.
pub(crate) const MAX_NUMBERS: u128 = if usize::BITS < 64 {
    usize::MAX as u128 / 64
} else {
    1 << 40
};

/// What one number of the input can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A real number; each component is a normal density.
    Gaussian,
    /// 0 or 1.
    Bernoulli,
    /// A whole number from 0 to n − 1.
    Categorical(u32),
}

/// How a level shares its mixing matrices among the nodes that it mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Every node has its own.
    Own,
    /// One for all nodes.
    Shared,
    /// h × w of them, repeating over the grid.
    Pattern(usize, usize),
}

/// One local structure: the inputs it is made of and the leaf family that describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Indices into the frame (S of them); [`OUTSIDE`] where there is none.
    pub inputs: Vec<u32>,
    /// Which of the tree's families.
    pub family: u32,
}

/// One level: mix every node of the layer below, then multiply the children of each node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// C: channels of every node of this level.
    pub channels: usize,
    /// For each node of the layer below, its mixing matrix.
    pub weight_of: Vec<u32>,
    /// For each node of this level, its children in the layer below.
    pub children: Vec<Vec<u32>>,
}

impl Level {
    /// How many mixing matrices there are.
    pub fn matrices(&self) -> usize {
        self.weight_of.iter().max().map_or(0, |&m| m as usize + 1)
    }

    /// Whether no two nodes share a matrix.
    pub fn is_own(&self) -> bool {
        let mut used = vec![false; self.matrices()];
        self.weight_of
            .iter()
            .all(|&m| !std::mem::replace(&mut used[m as usize], true))
    }
}

/// One tree over all inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// M: components of every leaf family.
    pub components: usize,
    /// The kinds of coordinate of each leaf family.
    pub families: Vec<Vec<Kind>>,
    /// The local structures x₁…x_N.
    pub positions: Vec<Position>,
    /// From the leaves up; the last one has a single node.
    pub levels: Vec<Level>,
}

impl Tree {
    /// Channels of layer 0 (M) and of each level.
    pub fn channels(&self, layer: usize) -> usize {
        if layer == 0 {
            self.components
        } else {
            self.levels[layer - 1].channels
        }
    }

    /// Nodes of layer 0 (N) and of each level.
    pub fn nodes(&self, layer: usize) -> usize {
        if layer == 0 {
            self.positions.len()
        } else {
            self.levels[layer - 1].children.len()
        }
    }

    /// Channels of the node at the top.
    pub fn top_channels(&self) -> usize {
        self.channels(self.levels.len())
    }
}

/// What is wrong with a tree, in words.
type Checked = std::result::Result<(), String>;

/// What is wrong with a tree over inputs of these kinds.
pub(crate) fn check_tree(tree: &Tree, kinds: &[Kind]) -> Checked {
    check_sizes(tree)?;
    check_positions(tree, kinds)?;
    (1..=tree.levels.len()).try_for_each(|l| check_level(tree, l))?;
    match tree.nodes(tree.levels.len()) {
        1 => Ok(()),
        nodes => Err(format!(
            "the last level must leave one node, it leaves {nodes}"
        )),
    }
}

/// Components and channels are neither none nor too many.
fn check_sizes(tree: &Tree) -> Checked {
    let no_channels = tree.levels.iter().any(|level| level.channels == 0);
    if tree.components == 0 || tree.levels.is_empty() || no_channels {
        return Err("components, levels and channels must be at least 1".into());
    }
    let channels = tree.levels.iter().map(|level| level.channels);
    if channels.chain([tree.components]).any(|size| size > LARGEST) {
        return Err(format!("components and channels must be at most {LARGEST}"));
    }
    Ok(())
}

/// Every input is covered once, by a coordinate of its kind.
fn check_positions(tree: &Tree, kinds: &[Kind]) -> Checked {
    let mut covered = vec![false; kinds.len()];
    for (index, position) in tree.positions.iter().enumerate() {
        let family = tree.families.get(position.family as usize);
        let family = family.ok_or("a position names a family that is not there")?;
        if family.is_empty() {
            return Err(format!("position {index} has no inputs"));
        }
        if family.len() != position.inputs.len() {
            return Err(format!(
                "position {index} has {} inputs, its family {}",
                position.inputs.len(),
                family.len()
            ));
        }
        let inputs = position.inputs.iter().zip(family);
        for (&input, kind) in inputs.filter(|(input, _)| **input != OUTSIDE) {
            let known = kinds.get(input as usize);
            let known = known.ok_or(format!("position {index} names input {input}"))?;
            if known != kind || std::mem::replace(&mut covered[input as usize], true) {
                return Err(format!(
                    "input {input} must be covered once, by a coordinate of its kind"
                ));
            }
        }
    }
    match covered.iter().position(|&covered| !covered) {
        Some(input) => Err(format!("input {input} is not covered")),
        None => Ok(()),
    }
}

/// Every node below level l has one parent and a matrix.
fn check_level(tree: &Tree, l: usize) -> Checked {
    let (level, below) = (&tree.levels[l - 1], tree.nodes(l - 1));
    let mut seen = vec![false; below];
    for &child in level.children.iter().flatten() {
        if child as usize >= below || std::mem::replace(&mut seen[child as usize], true) {
            return Err(format!(
                "level {l}: child {child} is not there or has two parents"
            ));
        }
    }
    let no_children = level.children.iter().any(Vec::is_empty);
    if seen.contains(&false) || no_children || level.weight_of.len() != below {
        return Err(format!(
            "level {l}: every node needs a parent, a matrix and, above the leaves, children"
        ));
    }
    match level.weight_of.iter().find(|m| **m as usize >= below) {
        Some(matrix) => Err(format!("level {l}: matrix {matrix} for {below} nodes")),
        None => Ok(()),
    }
}

/// Numbers that a tree learns, and multiply-adds of one sample; in u128, because any file may say any size.
pub(crate) fn numbers(tree: &Tree) -> u128 {
    let values = |kind: &Kind| match kind {
        Kind::Categorical(n) => u128::from(*n),
        Kind::Gaussian | Kind::Bernoulli => 2,
    };
    let leaves = tree.families.iter().flatten().map(values).sum::<u128>() * tree.components as u128;
    let mixing = |l: usize| {
        tree.nodes(l - 1) as u128 * tree.channels(l) as u128 * tree.channels(l - 1) as u128
    };
    leaves + (1..=tree.levels.len()).map(mixing).sum::<u128>()
}
