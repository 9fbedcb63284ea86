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
    let (ph, pw) = spec.patch;
    if ph == 0
        || pw == 0
        || spec
            .levels
            .iter()
            .any(|l| l.window.0 == 0 || l.window.1 == 0)
    {
        return Err(Error::Structure(
            "patches and windows must be at least 1×1".into(),
        ));
    }
    if spec.frame.0 == 0 || spec.frame.1 == 0 {
        return Err(Error::Structure("the image has no pixels".into()));
    }
    if spec.grid_shift.0 > spec.frame.0 || spec.grid_shift.1 > spec.frame.1 {
        let (shift, frame) = (spec.grid_shift, spec.frame);
        return Err(Error::Structure(format!(
            "the grid is shifted by {shift:?}, further than the frame of {frame:?}"
        )));
    }
    if ph.saturating_mul(pw).saturating_mul(spec.channels) > LARGEST {
        return Err(Error::Structure(format!(
            "a patch of {ph}×{pw}×{} numbers is too large",
            spec.channels
        )));
    }
    let mut grid = (
        (spec.frame.0 + spec.grid_shift.0).div_ceil(ph),
        (spec.frame.1 + spec.grid_shift.1).div_ceil(pw),
    );
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
        positions
            .iter_mut()
            .enumerate()
            .for_each(|(index, position)| position.family = index as u32);
    }
    let mut levels = Vec::new();
    for level in &spec.levels {
        let (built, coarser, coarser_grid) = pool(level, &node_at, grid);
        levels.push(built);
        (node_at, grid) = (coarser, coarser_grid);
    }
    let family = vec![spec.kind; ph * pw * spec.channels];
    Ok(Tree {
        components: spec.components,
        families: vec![family; families],
        positions,
        levels,
    })
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
            let Some(node) = node_at[y * grid.1 + x] else {
                continue;
            };
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
    (
        Level {
            channels: spec.channels,
            weight_of,
            children: windows,
        },
        node_at,
        coarser,
    )
}

/// Groups of columns, `window` neighbours meeting at each level.
pub(crate) fn column_tree(
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
                Error::Structure(format!(
                    "group {index} names column {column}, there are {}",
                    kinds.len()
                ))
            })
        };
        families.push(group.iter().map(kind_of).collect::<Result<Vec<_>>>()?);
        positions.push(Position {
            inputs: group.clone(),
            family: index as u32,
        });
    }
    let mut levels = Vec::new();
    let mut nodes = positions.len() as u32;
    while nodes > 1 || levels.is_empty() {
        let all: Vec<u32> = (0..nodes).collect();
        let children: Vec<Vec<u32>> = all.chunks(window).map(<[u32]>::to_vec).collect();
        nodes = children.len() as u32;
        let channels = channels[levels.len().min(channels.len() - 1)];
        levels.push(Level {
            channels,
            weight_of: all,
            children,
        });
    }
    Ok(Tree {
        components,
        families,
        positions,
        levels,
    })
}
