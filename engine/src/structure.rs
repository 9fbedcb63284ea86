//! The blueprint: which numbers form the local structures and how the tree joins them (paper, section 2).
//!
//! A [`Structure`] is data. Every [`Tree`] covers every input once; its positions are the local structures
//! x₁…x_N, and each [`Level`] mixes the channels of every node and multiplies the nodes of a window:
//!
//! ```text
//! mixing    ψˡ_j(c) = Σ_a Wˡ_j[c,a] φˡ⁻¹_j(a)
//! product   φˡ_p(c) = Π_{j child of p} ψˡ_j(c)
//! classes   P(X|y)  = Σ_t Σ_a W_top[y,(t,a)] φ_t(a)
//! ```
//!
//! One level over everything is CP, several are HT, and CP whose channels are the classes themselves
//! ([`ClassRows::Identity`]) is rank 1 for each class. Several trees stand side by side under one class root.
//!
//! ```
//! use sumout::structure::{ImageSpec, LevelSpec, Sharing, Structure};
//! let spec = ImageSpec {
//!     levels: vec![LevelSpec::square(2, 8, Sharing::Shared), LevelSpec::square(2, 16, Sharing::Own)],
//!     ..ImageSpec::new(8, 8, 1, (2, 2), 4)
//! };
//! let structure = Structure::image(&spec, 10).unwrap();
//! assert_eq!(structure.width(), 64);
//! assert_eq!(structure.weights(), 8 * 4 + 4 * 16 * 8 + 10 * 16);
//! ```

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A coordinate of a position that lies outside the frame: always missing.
pub const OUTSIDE: u32 = u32::MAX;

/// The most channels, components, classes and categories: whole numbers up to here are exact in f32.
pub const LARGEST: usize = 1 << 24;

/// The most numbers of one model, so that no product of sizes overflows: 2⁴⁰, or what an address reaches.
const MOST_NUMBERS: u128 = if usize::BITS < 64 { usize::MAX as u128 / 64 } else { 1 << 40 };

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

/// Where an image lies in its frame. The border of the frame is missing; shifts move the image within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Rows of the image.
    pub height: usize,
    /// Columns of the image.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
    /// Rows of the frame.
    pub frame_height: usize,
    /// Columns of the frame.
    pub frame_width: usize,
}

impl Frame {
    /// Rows above the image and columns left of it.
    pub fn margin(&self) -> (usize, usize) {
        ((self.frame_height - self.height) / 2, (self.frame_width - self.width) / 2)
    }
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

    /// For each matrix, the nodes of the layer below that it mixes.
    pub fn nodes_of(&self) -> Vec<Vec<usize>> {
        let mut nodes = vec![Vec::new(); self.matrices()];
        self.weight_of.iter().enumerate().for_each(|(node, &matrix)| nodes[matrix as usize].push(node));
        nodes
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
        if layer == 0 { self.components } else { self.levels[layer - 1].channels }
    }

    /// Nodes of layer 0 (N) and of each level.
    pub fn nodes(&self, layer: usize) -> usize {
        if layer == 0 { self.positions.len() } else { self.levels[layer - 1].children.len() }
    }

    /// Channels of the node at the top.
    pub fn top_channels(&self) -> usize {
        self.channels(self.levels.len())
    }
}

/// How the class root reads the tops of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassRows {
    /// `P(X|y) = Σ_a W_top[y,a] φ(a)`.
    Mixing,
    /// `P(X|y) = φ(y)`: one tree whose top channels are the classes.
    Identity,
}

/// The blueprint of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Structure {
    /// The kind of every number of the frame.
    pub kinds: Vec<Kind>,
    /// For images and sequences: how a row of data lies in the frame. `None` for tables.
    pub frame: Option<Frame>,
    /// The trees, side by side under the class root.
    pub trees: Vec<Tree>,
    /// K.
    pub classes: usize,
    /// How the classes read the trees.
    pub class_rows: ClassRows,
}

/// One level of an image's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSpec {
    /// Rows and columns of nodes that are multiplied together.
    pub window: (usize, usize),
    /// Channels.
    pub channels: usize,
    /// How the mixing matrices are shared.
    pub sharing: Sharing,
}

impl LevelSpec {
    /// A level with a square window.
    pub fn square(window: usize, channels: usize, sharing: Sharing) -> Self {
        Self { window: (window, window), channels, sharing }
    }

    /// A level that joins everything that is left, of any size.
    pub fn all(channels: usize, sharing: Sharing) -> Self {
        Self { window: (usize::MAX, usize::MAX), channels, sharing }
    }
}

/// What an image's tree is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSpec {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
    /// Rows and columns of the frame; at least those of the image.
    pub frame: (usize, usize),
    /// How far the grid of patches is moved up and left; windows move with it.
    pub grid_shift: (usize, usize),
    /// Rows and columns of a patch.
    pub patch: (usize, usize),
    /// M.
    pub components: usize,
    /// One leaf family for all patches, or one for each.
    pub leaf_sharing: Sharing,
    /// What a pixel's number can be.
    pub kind: Kind,
    /// From the leaves up.
    pub levels: Vec<LevelSpec>,
}

impl ImageSpec {
    /// An image without a border, Gaussian leaves that all patches share, and no levels yet.
    pub fn new(height: usize, width: usize, channels: usize, patch: (usize, usize), components: usize) -> Self {
        Self {
            height,
            width,
            channels,
            frame: (height, width),
            grid_shift: (0, 0),
            patch,
            components,
            leaf_sharing: Sharing::Shared,
            kind: Kind::Gaussian,
            levels: Vec::new(),
        }
    }
}

impl Structure {
    /// One tree over an image.
    pub fn image(spec: &ImageSpec, classes: usize) -> Result<Self> {
        Self::images(std::slice::from_ref(spec), classes)
    }

    /// Several trees over the same image: other patches, other windows, shifted grids.
    pub fn images(specs: &[ImageSpec], classes: usize) -> Result<Self> {
        let first = specs.first().ok_or(Error::Empty { what: "tree" })?;
        let frame = Frame {
            height: first.height,
            width: first.width,
            channels: first.channels,
            frame_height: first.frame.0,
            frame_width: first.frame.1,
        };
        for spec in specs {
            let same = (spec.height, spec.width, spec.channels, spec.frame, spec.kind);
            if same != (first.height, first.width, first.channels, first.frame, first.kind) {
                return Err(Error::Structure("all trees must cover the same image and frame".into()));
            }
        }
        if frame.height > frame.frame_height || frame.width > frame.frame_width {
            return Err(Error::Structure(format!(
                "the frame ({}×{}) must hold the image ({}×{})",
                frame.frame_height, frame.frame_width, frame.height, frame.width
            )));
        }
        let numbers = [frame.frame_height, frame.frame_width, frame.channels]
            .iter()
            .try_fold(1usize, |product, &side| product.checked_mul(side))
            .filter(|&numbers| numbers < OUTSIDE as usize)
            .ok_or_else(|| Error::Structure("the frame is too large".into()))?;
        let trees = specs.iter().map(image_tree).collect::<Result<_>>()?;
        let structure = Self {
            kinds: vec![first.kind; numbers],
            frame: Some(frame),
            trees,
            classes,
            class_rows: ClassRows::Mixing,
        };
        structure.check()?;
        Ok(structure)
    }

    /// One tree over a sequence of `length` steps of `channels` numbers; levels are (window, channels, sharing).
    pub fn sequence(
        length: usize,
        channels: usize,
        patch: usize,
        components: usize,
        levels: &[(usize, usize, Sharing)],
        classes: usize,
    ) -> Result<Self> {
        let levels = levels.iter().map(|&(w, channels, sharing)| LevelSpec { window: (1, w), channels, sharing });
        let spec =
            ImageSpec { levels: levels.collect(), ..ImageSpec::new(1, length, channels, (1, patch), components) };
        Self::image(&spec, classes)
    }

    /// One tree over the columns of a table. `groups` are the local structures in the order in which `window`
    /// neighbours meet at each level, until one node is left; level l has `channels[l]` channels, and the last entry
    /// serves all levels above. Leaf families and mixing matrices are never shared.
    pub fn columns(
        kinds: &[Kind],
        groups: &[Vec<u32>],
        window: usize,
        components: usize,
        channels: &[usize],
        classes: usize,
    ) -> Result<Self> {
        Self::column_trees(kinds, &[groups.to_vec()], window, components, channels, classes)
    }

    /// Several trees over the same columns, each with its own groups and order.
    pub fn column_trees(
        kinds: &[Kind],
        orders: &[Vec<Vec<u32>>],
        window: usize,
        components: usize,
        channels: &[usize],
        classes: usize,
    ) -> Result<Self> {
        if window < 2 || channels.is_empty() {
            return Err(Error::Structure("columns need a window of at least 2 and at least one level".into()));
        }
        let trees = orders.iter().map(|groups| column_tree(kinds, groups, window, components, channels));
        let structure = Self {
            kinds: kinds.to_vec(),
            frame: None,
            trees: trees.collect::<Result<_>>()?,
            classes,
            class_rows: ClassRows::Mixing,
        };
        structure.check()?;
        Ok(structure)
    }

    /// The same with [`ClassRows::Identity`]: the top channels are the classes.
    pub fn with_identity_classes(mut self) -> Result<Self> {
        self.class_rows = ClassRows::Identity;
        self.check()?;
        Ok(self)
    }

    /// Numbers in a row of data.
    pub fn width(&self) -> usize {
        self.frame.map_or(self.kinds.len(), |f| f.height * f.width * f.channels)
    }

    /// D: numbers in the frame.
    pub fn frame_len(&self) -> usize {
        self.kinds.len()
    }

    /// For every number of a row of data, its place in the frame when the image is moved down and right by `shift`;
    /// [`OUTSIDE`] where it leaves the frame.
    pub fn placement(&self, shift: (isize, isize)) -> Vec<u32> {
        let Some(f) = self.frame else { return (0..self.kinds.len() as u32).collect() };
        let (top, left) = f.margin();
        let mut places = Vec::with_capacity(self.width());
        for y in 0..f.height {
            for x in 0..f.width {
                let row = (top + y).checked_add_signed(shift.0).filter(|&row| row < f.frame_height);
                let column = (left + x).checked_add_signed(shift.1).filter(|&column| column < f.frame_width);
                for channel in 0..f.channels {
                    places.push(match (row, column) {
                        (Some(row), Some(column)) => ((row * f.frame_width + column) * f.channels + channel) as u32,
                        _ => OUTSIDE,
                    });
                }
            }
        }
        places
    }

    /// The kind of every number of a row of data.
    pub fn row_kinds(&self) -> Vec<Kind> {
        self.placement((0, 0)).iter().map(|&place| self.kinds[place as usize]).collect()
    }

    /// Columns of the class rows: the tops of all trees side by side.
    pub fn root_channels(&self) -> usize {
        self.trees.iter().map(Tree::top_channels).sum()
    }

    /// Simplex weights, class rows included (they are none when [`ClassRows::Identity`]).
    pub fn weights(&self) -> usize {
        let levels = self
            .trees
            .iter()
            .flat_map(|t| (1..=t.levels.len()).map(|l| t.levels[l - 1].matrices() * t.channels(l) * t.channels(l - 1)));
        levels.sum::<usize>() + self.class_weights()
    }

    fn class_weights(&self) -> usize {
        if self.class_rows == ClassRows::Mixing { self.classes * self.root_channels() } else { 0 }
    }

    /// Multiply-adds of the mixing products for one complete sample, going up.
    pub fn multiply_adds(&self) -> usize {
        let levels = self
            .trees
            .iter()
            .flat_map(|t| (1..=t.levels.len()).map(|l| t.nodes(l - 1) * t.channels(l) * t.channels(l - 1)));
        levels.sum::<usize>() + self.class_weights()
    }

    /// A table of levels, channels, weights and multiply-adds, for people.
    pub fn inspect(&self) -> String {
        let mut text = String::new();
        let inputs = match self.frame {
            Some(f) => {
                format!("{}×{}×{} in a frame of {}×{}", f.height, f.width, f.channels, f.frame_height, f.frame_width)
            }
            None => format!("{} columns", self.kinds.len()),
        };
        let _ = writeln!(text, "inputs   {inputs}\nclasses  {}", self.classes);
        for (index, tree) in self.trees.iter().enumerate() {
            let sizes: Vec<usize> = tree.positions.iter().map(|p| p.inputs.len()).collect();
            let (least, most) = (sizes.iter().min().unwrap_or(&0), sizes.iter().max().unwrap_or(&0));
            let size = if least == most { format!("{most}") } else { format!("{least} to {most}") };
            let families = tree.families.len();
            let _ = writeln!(
                text,
                "tree {index}\n  level   nodes  channels  matrices       weights  multiply-adds\n  leaves {:6} {:9}  (structures of {size} numbers, {families} leaf {})",
                tree.positions.len(),
                tree.components,
                if families == 1 { "family" } else { "families" },
            );
            for l in 1..=tree.levels.len() {
                let matrix = tree.channels(l) * tree.channels(l - 1);
                let matrices = tree.levels[l - 1].matrices();
                let _ = writeln!(
                    text,
                    "  {l:<6} {:6} {:9} {matrices:9} {:13} {:14}",
                    tree.nodes(l),
                    tree.channels(l),
                    matrices * matrix,
                    tree.nodes(l - 1) * matrix
                );
            }
        }
        let weights = self.class_weights();
        let _ = writeln!(text, "class rows {:38} {weights:14}", weights);
        let _ = writeln!(text, "total      {:38} {:14}", self.weights(), self.multiply_adds());
        text
    }

    /// Says what is wrong with a blueprint that does not describe a model. Constructors and the file reader call it.
    pub fn check(&self) -> Result<()> {
        let wrong = |text: String| Err(Error::Structure(text));
        if self.classes == 0 || self.trees.is_empty() || self.kinds.is_empty() {
            return wrong("a model needs at least one input, one tree and one class".into());
        }
        if let Some(f) = self.frame {
            let numbers = f.frame_height.checked_mul(f.frame_width).and_then(|n| n.checked_mul(f.channels));
            if f.height > f.frame_height || f.width > f.frame_width || numbers != Some(self.kinds.len()) {
                return wrong(format!("the frame must hold the image and have {} numbers", self.kinds.len()));
            }
            if self.width() == 0 {
                return wrong("the image has no pixels".into());
            }
        }
        if self.kinds.len() >= OUTSIDE as usize || self.classes > LARGEST {
            return wrong(format!("{} inputs or {} classes are too many", self.kinds.len(), self.classes));
        }
        let kinds = self.kinds.iter().chain(self.trees.iter().flat_map(|tree| tree.families.iter().flatten()));
        for kind in kinds {
            if let Kind::Categorical(n) = kind
                && !(1..=LARGEST).contains(&(*n as usize))
            {
                return wrong(format!("a categorical input needs 1 to {LARGEST} categories, got {n}"));
            }
        }
        for (index, tree) in self.trees.iter().enumerate() {
            check_tree(tree, &self.kinds).map_err(|text| Error::Structure(format!("tree {index}: {text}")))?;
        }
        let root = self.trees.iter().map(|tree| tree.top_channels() as u128).sum::<u128>() * self.classes as u128;
        if self.trees.iter().map(numbers).sum::<u128>() + root > MOST_NUMBERS {
            return wrong(format!("more than {MOST_NUMBERS} numbers to learn and compute"));
        }
        if self.class_rows == ClassRows::Identity && (self.trees.len(), self.root_channels()) != (1, self.classes) {
            return wrong(format!(
                "identity class rows need one tree with as many top channels as classes ({}), got {} tree(s) with {}",
                self.classes,
                self.trees.len(),
                self.root_channels()
            ));
        }
        Ok(())
    }
}

fn check_tree(tree: &Tree, kinds: &[Kind]) -> std::result::Result<(), String> {
    if tree.components == 0 || tree.levels.is_empty() || tree.levels.iter().any(|l| l.channels == 0) {
        return Err("components, levels and channels must be at least 1".into());
    }
    if tree.levels.iter().map(|l| l.channels).chain([tree.components]).any(|size| size > LARGEST) {
        return Err(format!("components and channels must be at most {LARGEST}"));
    }
    let mut covered = vec![false; kinds.len()];
    for (index, position) in tree.positions.iter().enumerate() {
        let family =
            tree.families.get(position.family as usize).ok_or("a position names a family that is not there")?;
        if family.is_empty() {
            return Err(format!("position {index} has no inputs"));
        }
        if family.len() != position.inputs.len() {
            return Err(format!("position {index} has {} inputs, its family {}", position.inputs.len(), family.len()));
        }
        for (&input, kind) in position.inputs.iter().zip(family).filter(|(input, _)| **input != OUTSIDE) {
            let known = kinds.get(input as usize).ok_or(format!("position {index} names input {input}"))?;
            if known != kind || std::mem::replace(&mut covered[input as usize], true) {
                return Err(format!("input {input} must be covered once, by a coordinate of its kind"));
            }
        }
    }
    if let Some(input) = covered.iter().position(|&c| !c) {
        return Err(format!("input {input} is not covered"));
    }
    for l in 1..=tree.levels.len() {
        let level = &tree.levels[l - 1];
        let below = tree.nodes(l - 1);
        let mut seen = vec![false; below];
        for &child in level.children.iter().flatten() {
            if child as usize >= below || std::mem::replace(&mut seen[child as usize], true) {
                return Err(format!("level {l}: child {child} is not there or has two parents"));
            }
        }
        if seen.contains(&false) || level.children.iter().any(Vec::is_empty) || level.weight_of.len() != below {
            return Err(format!("level {l}: every node needs a parent, a matrix and, above the leaves, children"));
        }
        if let Some(matrix) = level.weight_of.iter().find(|&&matrix| matrix as usize >= below) {
            return Err(format!("level {l}: matrix {matrix} for {below} nodes"));
        }
    }
    match tree.nodes(tree.levels.len()) {
        1 => Ok(()),
        nodes => Err(format!("the last level must leave one node, it leaves {nodes}")),
    }
}

/// Numbers that a tree learns, and multiply-adds of one sample; in u128, because any file may say any size.
fn numbers(tree: &Tree) -> u128 {
    let values = |kind: &Kind| if let Kind::Categorical(n) = kind { u128::from(*n) } else { 2 };
    let leaves = tree.families.iter().flatten().map(values).sum::<u128>() * tree.components as u128;
    let mixing = |l: usize| tree.nodes(l - 1) as u128 * tree.channels(l) as u128 * tree.channels(l - 1) as u128;
    leaves + (1..=tree.levels.len()).map(mixing).sum::<u128>()
}

/// Cuts the frame into patches and pools them; nodes with nothing of the frame under them do not exist.
fn image_tree(spec: &ImageSpec) -> Result<Tree> {
    let (ph, pw) = spec.patch;
    if ph == 0 || pw == 0 || spec.levels.iter().any(|l| l.window.0 == 0 || l.window.1 == 0) {
        return Err(Error::Structure("patches and windows must be at least 1×1".into()));
    }
    let mut grid = ((spec.frame.0 + spec.grid_shift.0).div_ceil(ph), (spec.frame.1 + spec.grid_shift.1).div_ceil(pw));
    let mut node_at = Vec::new(); // grid cell → node of the layer, row-major
    let mut positions = Vec::new();
    for gy in 0..grid.0 {
        for gx in 0..grid.1 {
            let inputs = patch_inputs(spec, gy, gx);
            let exists = inputs.iter().any(|&input| input != OUTSIDE);
            node_at.push(exists.then_some(positions.len() as u32));
            if exists {
                positions.push(Position { inputs, family: 0 });
            }
        }
    }
    let families = match spec.leaf_sharing {
        Sharing::Own => positions.len(),
        _ => 1,
    };
    if families > 1 {
        positions.iter_mut().enumerate().for_each(|(index, position)| position.family = index as u32);
    }
    let mut levels = Vec::new();
    for level in &spec.levels {
        let (built, coarser, coarser_grid) = pool(level, &node_at, grid);
        levels.push(built);
        (node_at, grid) = (coarser, coarser_grid);
    }
    let family = vec![spec.kind; ph * pw * spec.channels];
    Ok(Tree { components: spec.components, families: vec![family; families], positions, levels })
}

fn patch_inputs(spec: &ImageSpec, gy: usize, gx: usize) -> Vec<u32> {
    let (ph, pw) = spec.patch;
    let mut inputs = Vec::with_capacity(ph * pw * spec.channels);
    for y in 0..ph {
        for x in 0..pw {
            let row = (gy * ph + y).checked_sub(spec.grid_shift.0).filter(|&row| row < spec.frame.0);
            let column = (gx * pw + x).checked_sub(spec.grid_shift.1).filter(|&column| column < spec.frame.1);
            for channel in 0..spec.channels {
                inputs.push(match (row, column) {
                    (Some(row), Some(column)) => ((row * spec.frame.1 + column) * spec.channels + channel) as u32,
                    _ => OUTSIDE,
                });
            }
        }
    }
    inputs
}

type Grid = (usize, usize);

/// One level over a grid of nodes, some of which do not exist.
fn pool(spec: &LevelSpec, node_at: &[Option<u32>], grid: Grid) -> (Level, Vec<Option<u32>>, Grid) {
    let (h, w) = (spec.window.0.min(grid.0), spec.window.1.min(grid.1));
    let coarser = (grid.0.div_ceil(h), grid.1.div_ceil(w));
    let mut windows = vec![Vec::new(); coarser.0 * coarser.1];
    let mut weight_of = Vec::new();
    let mut pattern_index = std::collections::BTreeMap::new();
    for y in 0..grid.0 {
        for x in 0..grid.1 {
            let Some(node) = node_at[y * grid.1 + x] else { continue };
            windows[(y / h) * coarser.1 + x / w].push(node);
            let cell = match spec.sharing {
                Sharing::Own => (y, x),
                Sharing::Shared => (0, 0),
                Sharing::Pattern(ph, pw) => (y % ph.max(1), x % pw.max(1)),
            };
            let next = pattern_index.len() as u32;
            weight_of.push(*pattern_index.entry(cell).or_insert(next));
        }
    }
    let mut nodes = 0;
    let node_at = windows.iter().map(|window| {
        (!window.is_empty()).then(|| {
            nodes += 1;
            nodes - 1
        })
    });
    let node_at = node_at.collect();
    windows.retain(|window| !window.is_empty());
    (Level { channels: spec.channels, weight_of, children: windows }, node_at, coarser)
}

fn column_tree(
    kinds: &[Kind],
    groups: &[Vec<u32>],
    window: usize,
    components: usize,
    channels: &[usize],
) -> Result<Tree> {
    let mut families = Vec::new();
    let mut positions = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let kind_of = |&column: &u32| {
            kinds.get(column as usize).copied().ok_or_else(|| {
                Error::Structure(format!("group {index} names column {column}, there are {}", kinds.len()))
            })
        };
        families.push(group.iter().map(kind_of).collect::<Result<Vec<_>>>()?);
        positions.push(Position { inputs: group.clone(), family: index as u32 });
    }
    let mut levels = Vec::new();
    let mut nodes = positions.len() as u32;
    while nodes > 1 || levels.is_empty() {
        let all: Vec<u32> = (0..nodes).collect();
        let children: Vec<Vec<u32>> = all.chunks(window).map(<[u32]>::to_vec).collect();
        nodes = children.len() as u32;
        let channels = channels[levels.len().min(channels.len() - 1)];
        levels.push(Level { channels, weight_of: all, children });
    }
    Ok(Tree { components, families, positions, levels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_stick_out_have_fewer_children() {
        let spec = ImageSpec {
            levels: vec![LevelSpec::square(2, 3, Sharing::Own), LevelSpec::all(4, Sharing::Own)],
            ..ImageSpec::new(5, 3, 1, (2, 2), 2)
        };
        let tree = &Structure::image(&spec, 2).unwrap().trees[0];
        assert_eq!(tree.positions.len(), 3 * 2);
        assert_eq!(tree.positions[1].inputs, [2, OUTSIDE, 5, OUTSIDE]);
        assert_eq!(tree.levels[0].children, [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(tree.levels[1].children, [[0, 1]]);
    }

    #[test]
    fn a_shifted_grid_covers_every_pixel_and_drops_empty_nodes() {
        let spec = ImageSpec {
            grid_shift: (2, 3),
            levels: vec![LevelSpec::square(2, 3, Sharing::Pattern(2, 2)), LevelSpec::all(4, Sharing::Own)],
            ..ImageSpec::new(6, 6, 1, (2, 2), 2)
        };
        let structure = Structure::image(&spec, 2).unwrap();
        assert!(structure.trees[0].positions.iter().all(|p| p.inputs.iter().any(|&i| i != OUTSIDE)));
        assert_eq!(structure.trees[0].positions.len(), 3 * 4);
        assert_eq!(structure.trees[0].levels[0].matrices(), 4);
    }

    #[test]
    fn placement_moves_the_image_in_the_frame() {
        let spec = ImageSpec {
            frame: (4, 4),
            levels: vec![LevelSpec::all(2, Sharing::Own)],
            ..ImageSpec::new(2, 2, 1, (2, 2), 2)
        };
        let structure = Structure::image(&spec, 1).unwrap();
        assert_eq!(structure.placement((0, 0)), [5, 6, 9, 10]);
        assert_eq!(structure.placement((1, -1)), [8, 9, 12, 13]);
        assert_eq!(structure.placement((2, 0)), [13, 14, OUTSIDE, OUTSIDE]);
    }

    #[test]
    fn columns_meet_until_one_node_is_left() {
        let kinds = [Kind::Gaussian, Kind::Bernoulli, Kind::Categorical(3), Kind::Gaussian, Kind::Gaussian];
        let groups = [vec![0, 2], vec![1], vec![3], vec![4]];
        let structure = Structure::columns(&kinds, &groups, 2, 3, &[4, 5], 2).unwrap();
        let tree = &structure.trees[0];
        assert_eq!(tree.families[0], [Kind::Gaussian, Kind::Categorical(3)]);
        assert_eq!((tree.levels.len(), tree.channels(1), tree.channels(2)), (2, 4, 5));
    }
}
