//! Trees from specifications: grids of patches and pooling windows, or groups of columns.

use crate::error::{Error, Result};
use crate::structure::Structure;
use crate::structure::tree::{Kind, LARGEST, Level, OUTSIDE, Position, Sharing, Tree};
use serde::{Deserialize, Serialize};

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
        Self {
            window: (window, window),
            channels,
            sharing,
        }
    }

    /// A level that joins everything that is left, of any size.
    pub fn all(channels: usize, sharing: Sharing) -> Self {
        Self {
            window: (usize::MAX, usize::MAX),
            channels,
            sharing,
        }
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
    /// An image of one number per pixel without a border, patches of 2 × 2 with 32 components, Gaussian leaves that all
    /// patches share, and no levels yet.
    pub fn new(height: usize, width: usize) -> Self {
        Self {
            height,
            width,
            channels: 1,
            frame: (height, width),
            grid_shift: (0, 0),
            patch: (2, 2),
            components: 32,
            leaf_sharing: Sharing::Shared,
            kind: Kind::Gaussian,
            levels: Vec::new(),
        }
    }

    /// One tree of this specification.
    pub fn structure(&self, classes: usize) -> Result<Structure> {
        Structure::images(std::slice::from_ref(self), classes)
    }
}

/// Cuts the frame into patches and pools them; nodes with nothing of the frame under them do not exist.
pub(crate) fn image_tree(spec: &ImageSpec) -> Result<Tree> {
    check_image(spec)?;
    let (ph, pw) = spec.patch;
    let mut grid = NodeGrid {
        height: (spec.frame.0 + spec.grid_shift.0).div_ceil(ph),
        width: (spec.frame.1 + spec.grid_shift.1).div_ceil(pw),
        node_at: Vec::new(),
    };
    let mut positions = Vec::new();
    for (gy, gx) in grid.cells() {
        let inputs = patch_inputs(spec, gy, gx);
        let exists = inputs.iter().any(|&input| input != OUTSIDE);
        grid.node_at.push(exists.then_some(positions.len() as u32));
        if exists {
            positions.push(Position { inputs, family: 0 });
        }
    }
    let own = spec.leaf_sharing == Sharing::Own;
    let families = if own { positions.len() } else { 1 };
    if families > 1 {
        let numbered = positions.iter_mut().enumerate();
        numbered.for_each(|(index, position)| position.family = index as u32);
    }
    let mut levels = Vec::new();
    for level in &spec.levels {
        let (built, coarser) = pool(level, &grid);
        levels.push(built);
        grid = coarser;
    }
    let family = vec![spec.kind; ph * pw * spec.channels];
    Ok(Tree {
        components: spec.components,
        families: vec![family; families],
        positions,
        levels,
    })
}

/// Sizes that make sense.
fn check_image(spec: &ImageSpec) -> Result<()> {
    let wrong = |text: String| Err(Error::Structure(text));
    let (ph, pw) = spec.patch;
    let is_empty = |level: &LevelSpec| level.window.0 == 0 || level.window.1 == 0;
    if ph == 0 || pw == 0 || spec.levels.iter().any(is_empty) {
        return wrong("patches and windows must be at least 1×1".into());
    }
    if spec.frame.0 == 0 || spec.frame.1 == 0 {
        return wrong("the image has no pixels".into());
    }
    let (shift, frame) = (spec.grid_shift, spec.frame);
    if shift.0 > frame.0 || shift.1 > frame.1 {
        return wrong(format!(
            "the grid is shifted by {shift:?}, further than the frame of {frame:?}"
        ));
    }
    if ph.saturating_mul(pw).saturating_mul(spec.channels) > LARGEST {
        return wrong(format!(
            "a patch of {ph}×{pw}×{} numbers is too large",
            spec.channels
        ));
    }
    Ok(())
}

/// A grid of nodes, some of which do not exist.
struct NodeGrid {
    height: usize,
    width: usize,
    node_at: Vec<Option<u32>>, // by cell, row-major
}

impl NodeGrid {
    /// Row and column of all cells.
    fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let width = self.width;
        (0..self.height).flat_map(move |y| (0..width).map(move |x| (y, x)))
    }
}

fn patch_inputs(spec: &ImageSpec, gy: usize, gx: usize) -> Vec<u32> {
    let (ph, pw) = spec.patch;
    let mut inputs = Vec::with_capacity(ph * pw * spec.channels);
    for y in 0..ph {
        for x in 0..pw {
            let row = (gy * ph + y)
                .checked_sub(spec.grid_shift.0)
                .filter(|&row| row < spec.frame.0);
            let column = (gx * pw + x)
                .checked_sub(spec.grid_shift.1)
                .filter(|&column| column < spec.frame.1);
            for channel in 0..spec.channels {
                inputs.push(match (row, column) {
                    (Some(row), Some(column)) => {
                        ((row * spec.frame.1 + column) * spec.channels + channel) as u32
                    }
                    _ => OUTSIDE,
                });
            }
        }
    }
    inputs
}

/// One level over a grid of nodes, and the grid above it.
fn pool(spec: &LevelSpec, grid: &NodeGrid) -> (Level, NodeGrid) {
    let (h, w) = (
        spec.window.0.min(grid.height),
        spec.window.1.min(grid.width),
    );
    let (height, width) = (grid.height.div_ceil(h), grid.width.div_ceil(w));
    let mut windows = vec![Vec::new(); height * width];
    let mut weight_of = Vec::new();
    let mut pattern_index = std::collections::BTreeMap::new();
    for ((y, x), node) in grid.cells().zip(&grid.node_at) {
        let Some(node) = *node else {
            continue;
        };
        windows[(y / h) * width + x / w].push(node);
        let cell = match spec.sharing {
            Sharing::Own => (y, x),
            Sharing::Shared => (0, 0),
            Sharing::Pattern(ph, pw) => (y % ph.max(1), x % pw.max(1)),
        };
        let next = pattern_index.len() as u32;
        weight_of.push(*pattern_index.entry(cell).or_insert(next));
    }
    let mut nodes = 0..;
    let node_at = windows.iter().map(|window: &Vec<u32>| {
        let exists = !window.is_empty();
        exists.then(|| nodes.next().unwrap_or_default())
    });
    let coarser = NodeGrid {
        height,
        width,
        node_at: node_at.collect(),
    };
    windows.retain(|window| !window.is_empty());
    let level = Level {
        channels: spec.channels,
        weight_of,
        children: windows,
    };
    (level, coarser)
}

/// Levels at each of which `window` neighbours meet; the last `apart` of the nodes stay alone until the top.
pub(crate) fn column_levels(
    groups: usize,
    apart: usize,
    window: usize,
    channels: &[usize],
) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut nodes = groups;
    while nodes > 1 || levels.is_empty() {
        let all: Vec<u32> = (0..nodes as u32).collect();
        let (others, alone) = all.split_at(nodes.saturating_sub(apart));
        let mut children: Vec<Vec<u32>> = others.chunks(window).map(<[u32]>::to_vec).collect();
        match &mut children[..] {
            [top] => top.extend_from_slice(alone),
            _ => children.extend(alone.iter().map(|&node| vec![node])),
        }
        nodes = children.len();
        levels.push(Level {
            channels: channels[levels.len().min(channels.len() - 1)],
            weight_of: all,
            children,
        });
    }
    levels
}

/// Groups of columns under these levels.
pub(crate) fn column_tree(
    kinds: &[Kind],
    groups: &[Vec<u32>],
    components: usize,
    levels: Vec<Level>,
) -> Result<Tree> {
    let mut families = Vec::new();
    let mut positions = Vec::new();
    let count = kinds.len();
    for (index, group) in groups.iter().enumerate() {
        let mut family = Vec::with_capacity(group.len());
        for &column in group {
            let wrong = || format!("group {index} names column {column}, there are {count}");
            let kind = kinds.get(column as usize).copied();
            family.push(kind.ok_or_else(|| Error::Structure(wrong()))?);
        }
        families.push(family);
        positions.push(Position {
            inputs: group.clone(),
            family: index as u32,
        });
    }
    Ok(Tree {
        components,
        families,
        positions,
        levels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_meets_the_others_at_the_top() {
        let children = |groups, apart| -> Vec<Vec<Vec<u32>>> {
            let levels = column_levels(groups, apart, 2, &[3]);
            levels.into_iter().map(|level| level.children).collect()
        };
        assert_eq!(children(3, 1), [vec![vec![0, 1, 2]]]);
        let (first, second) = (vec![vec![0, 1], vec![2, 3], vec![4]], vec![vec![0, 1, 2]]);
        assert_eq!(children(5, 1), [first, second]);
        assert_eq!(
            children(3, 0),
            [vec![vec![0, 1], vec![2]], vec![vec![0, 1]]]
        );
        assert_eq!(children(1, 1), [vec![vec![0]]], "nothing to predict from");
    }
}
