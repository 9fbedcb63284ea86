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
//! Uses: `error`.
//!
//! ```
//! use sumout::structure::{Sharing, Structure};
//! let image = Structure::image(8, 8).patch(2, 2).components(4).classes(10);
//! let structure = image.level(2, 8, Sharing::Shared).level(2, 16, Sharing::Own).build().unwrap();
//! assert_eq!(structure.width(), 64);
//! assert_eq!(structure.weights(), 8 * 4 + 4 * 16 * 8 + 10 * 16);
//! ```

mod tree;
mod tree_layout;
mod builders;
mod summary;

use crate::error::{Error, Result};
use crate::structure::tree::{MAX_NUMBERS, check_tree, numbers};
use crate::structure::tree_layout::image_tree;
use serde::{Deserialize, Serialize};

pub use crate::structure::builders::{ImageBuilder, SequenceBuilder, TableBuilder};
pub use crate::structure::tree::{Kind, LARGEST, Level, OUTSIDE, Position, Sharing, Tree};
pub use crate::structure::tree_layout::{ImageSpec, LevelSpec};

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
        (
            (self.frame_height - self.height) / 2,
            (self.frame_width - self.width) / 2,
        )
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

impl Structure {
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
            let same = (
                spec.height,
                spec.width,
                spec.channels,
                spec.frame,
                spec.kind,
            );
            if same
                != (
                    first.height,
                    first.width,
                    first.channels,
                    first.frame,
                    first.kind,
                )
            {
                return Err(Error::Structure(
                    "all trees must cover the same image and frame".into(),
                ));
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

    /// The same with [`ClassRows::Identity`]: the top channels are the classes.
    pub fn with_identity_classes(mut self) -> Result<Self> {
        self.class_rows = ClassRows::Identity;
        self.check()?;
        Ok(self)
    }

    /// Numbers in a row of data.
    pub fn width(&self) -> usize {
        self.frame
            .map_or(self.kinds.len(), |f| f.height * f.width * f.channels)
    }

    /// D: numbers in the frame.
    pub fn frame_len(&self) -> usize {
        self.kinds.len()
    }

    /// For every number of a row of data, its place in the frame when the image is moved down and right by `shift`;
    /// [`OUTSIDE`] where it leaves the frame.
    pub fn placement(&self, shift: (isize, isize)) -> Vec<u32> {
        let Some(f) = self.frame else {
            return (0..self.kinds.len() as u32).collect();
        };
        let (top, left) = f.margin();
        let mut places = Vec::with_capacity(self.width());
        for y in 0..f.height {
            for x in 0..f.width {
                let row = (top + y)
                    .checked_add_signed(shift.0)
                    .filter(|&row| row < f.frame_height);
                let column = (left + x)
                    .checked_add_signed(shift.1)
                    .filter(|&column| column < f.frame_width);
                for channel in 0..f.channels {
                    places.push(match (row, column) {
                        (Some(row), Some(column)) => {
                            ((row * f.frame_width + column) * f.channels + channel) as u32
                        }
                        _ => OUTSIDE,
                    });
                }
            }
        }
        places
    }

    /// The kind of every number of a row of data.
    pub fn row_kinds(&self) -> Vec<Kind> {
        self.placement((0, 0))
            .iter()
            .map(|&place| self.kinds[place as usize])
            .collect()
    }

    /// Columns of the class rows: the tops of all trees side by side.
    pub fn root_channels(&self) -> usize {
        self.trees.iter().map(Tree::top_channels).sum()
    }

    /// Simplex weights, class rows included (they are none when [`ClassRows::Identity`]).
    pub fn weights(&self) -> usize {
        let levels = self.trees.iter().flat_map(|t| {
            (1..=t.levels.len())
                .map(|l| t.levels[l - 1].matrices() * t.channels(l) * t.channels(l - 1))
        });
        levels.sum::<usize>() + self.class_weights()
    }

    fn class_weights(&self) -> usize {
        if self.class_rows == ClassRows::Mixing {
            self.classes * self.root_channels()
        } else {
            0
        }
    }

    /// Multiply-adds of the mixing products of a forward pass of one complete sample.
    pub fn multiply_adds(&self) -> usize {
        let levels = self.trees.iter().flat_map(|t| {
            (1..=t.levels.len()).map(|l| t.nodes(l - 1) * t.channels(l) * t.channels(l - 1))
        });
        levels.sum::<usize>() + self.class_weights()
    }

    /// Checks that a blueprint describes a model. Constructors and the file reader call it.
    pub fn check(&self) -> Result<()> {
        if self.classes == 0 || self.trees.is_empty() || self.kinds.is_empty() {
            return wrong("a model needs at least one input, one tree and one class");
        }
        if let Some(frame) = &self.frame {
            self.check_frame(frame)?;
        }
        self.check_inputs()?;
        for (index, tree) in self.trees.iter().enumerate() {
            check_tree(tree, &self.kinds).or_else(|text| wrong(format!("tree {index}: {text}")))?;
        }
        self.check_root()
    }

    /// The frame holds the image and has the right size.
    fn check_frame(&self, f: &Frame) -> Result<()> {
        let pixels = f.frame_height.checked_mul(f.frame_width);
        let numbers = pixels.and_then(|pixels| pixels.checked_mul(f.channels));
        let too_small = f.height > f.frame_height || f.width > f.frame_width;
        if too_small || numbers != Some(self.kinds.len()) {
            return wrong(format!(
                "the frame must hold the image and have {} numbers",
                self.kinds.len()
            ));
        }
        if self.width() == 0 {
            return wrong("the image has no pixels");
        }
        Ok(())
    }

    /// Inputs, classes and categories are not too many.
    fn check_inputs(&self) -> Result<()> {
        if self.kinds.len() >= OUTSIDE as usize || self.classes > LARGEST {
            return wrong(format!(
                "{} inputs or {} classes are too many",
                self.kinds.len(),
                self.classes
            ));
        }
        let families = self.trees.iter().flat_map(|tree| &tree.families);
        for kind in self.kinds.iter().chain(families.flatten()) {
            if let Kind::Categorical(n) = kind
                && !(1..=LARGEST).contains(&(*n as usize))
            {
                return wrong(format!(
                    "a categorical input needs 1 to {LARGEST} categories, got {n}"
                ));
            }
        }
        Ok(())
    }

    /// The whole model is not too large, and the class rows fit the trees.
    fn check_root(&self) -> Result<()> {
        let tops = self.trees.iter().map(|tree| tree.top_channels() as u128);
        let root = tops.sum::<u128>() * self.classes as u128;
        if self.trees.iter().map(numbers).sum::<u128>() + root > MAX_NUMBERS {
            return wrong(format!(
                "more than {MAX_NUMBERS} numbers to learn and compute"
            ));
        }
        let identity = self.class_rows == ClassRows::Identity;
        if identity && (self.trees.len(), self.root_channels()) != (1, self.classes) {
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

fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::Structure(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_stick_out_have_fewer_children() {
        let spec = ImageSpec {
            levels: vec![
                LevelSpec::square(2, 3, Sharing::Own),
                LevelSpec::all(4, Sharing::Own),
            ],
            components: 2,
            ..ImageSpec::new(5, 3)
        };
        let tree = &spec.structure(2).unwrap().trees[0];
        assert_eq!(tree.positions.len(), 3 * 2);
        assert_eq!(tree.positions[1].inputs, [2, OUTSIDE, 5, OUTSIDE]);
        assert_eq!(tree.levels[0].children, [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(tree.levels[1].children, [[0, 1]]);
    }

    #[test]
    fn a_shifted_grid_covers_every_pixel_and_drops_empty_nodes() {
        let spec = ImageSpec {
            grid_shift: (2, 3),
            levels: vec![
                LevelSpec::square(2, 3, Sharing::Pattern(2, 2)),
                LevelSpec::all(4, Sharing::Own),
            ],
            components: 2,
            ..ImageSpec::new(6, 6)
        };
        let structure = spec.structure(2).unwrap();
        assert!(
            structure.trees[0]
                .positions
                .iter()
                .all(|p| p.inputs.iter().any(|&i| i != OUTSIDE))
        );
        assert_eq!(structure.trees[0].positions.len(), 3 * 4);
        assert_eq!(structure.trees[0].levels[0].matrices(), 4);
    }

    #[test]
    fn sizes_beyond_reason_are_errors() {
        let level = vec![LevelSpec::all(2, Sharing::Own)];
        let spec = ImageSpec {
            levels: level,
            components: 2,
            ..ImageSpec::new(4, 4)
        };
        let error = |spec: ImageSpec| spec.structure(2).unwrap_err().to_string();
        let shift = error(ImageSpec {
            grid_shift: (usize::MAX, 0),
            ..spec.clone()
        });
        assert!(
            shift.starts_with("structure: the grid is shifted by"),
            "{shift}"
        );
        let patch = error(ImageSpec {
            patch: (1 << 40, 1 << 40),
            ..spec.clone()
        });
        assert!(patch.contains("is too large"), "{patch}");
        let empty = error(ImageSpec {
            patch: (0, 1),
            ..spec.clone()
        });
        assert_eq!(empty, "structure: patches and windows must be at least 1×1");
        let nothing = Structure::sequence(0)
            .components(3)
            .level(2, 5, Sharing::Own)
            .classes(2)
            .build()
            .unwrap_err()
            .to_string();
        assert_eq!(nothing, "structure: the image has no pixels");
        let frame = error(ImageSpec {
            frame: (3, 4),
            ..spec
        });
        assert_eq!(
            frame,
            "structure: the frame (3×4) must hold the image (4×4)"
        );
        assert!(
            Structure::sequence(9)
                .patch(usize::MAX)
                .components(2)
                .level(2, 2, Sharing::Own)
                .classes(2)
                .build()
                .is_err()
        );
    }

    #[test]
    fn placement_moves_the_image_in_the_frame() {
        let spec = ImageSpec {
            frame: (4, 4),
            levels: vec![LevelSpec::all(2, Sharing::Own)],
            components: 2,
            ..ImageSpec::new(2, 2)
        };
        let structure = spec.structure(1).unwrap();
        assert_eq!(structure.placement((0, 0)), [5, 6, 9, 10]);
        assert_eq!(structure.placement((1, -1)), [8, 9, 12, 13]);
        assert_eq!(structure.placement((2, 0)), [13, 14, OUTSIDE, OUTSIDE]);
    }

    #[test]
    fn columns_meet_until_one_node_is_left() {
        let kinds = [
            Kind::Gaussian,
            Kind::Bernoulli,
            Kind::Categorical(3),
            Kind::Gaussian,
            Kind::Gaussian,
        ];
        let groups = [vec![0, 2], vec![1], vec![3], vec![4]];
        let structure = Structure::table(&kinds)
            .groups(groups.clone())
            .window(2)
            .components(3)
            .channels([4, 5])
            .classes(2)
            .build()
            .unwrap();
        let tree = &structure.trees[0];
        assert_eq!(tree.families[0], [Kind::Gaussian, Kind::Categorical(3)]);
        assert_eq!(
            (tree.levels.len(), tree.channels(1), tree.channels(2)),
            (2, 4, 5)
        );
    }
}
