//! Structures by name: [`Structure::table`], [`Structure::image`] and [`Structure::sequence`].
//!
//! ```
//! use sumout::structure::Sharing;
//! use sumout::{Kind, Structure};
//! let table = Structure::table(&[Kind::Gaussian; 13]).components(24).channels([128]).classes(3).build()?;
//! let image = Structure::image(8, 8).components(4).level(2, 8, Sharing::Own).level(2, 16, Sharing::Own).build()?;
//! let sequence = Structure::sequence(100).components(8).level(10, 16, Sharing::Shared).level(10, 32, Sharing::Own);
//! assert_eq!((table.width(), image.width(), sequence.build()?.width()), (13, 64, 100));
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::structure::tree::{Kind, Sharing};
use crate::structure::tree_layout::{ImageSpec, LevelSpec, column_levels, column_tree};
use crate::structure::{ClassRows, Structure};

impl Structure {
    /// Trees over the columns of a table, of these kinds.
    pub fn table(kinds: &[Kind]) -> TableBuilder {
        TableBuilder {
            kinds: kinds.to_vec(),
            trees: vec![(0..kinds.len() as u32).map(|column| vec![column]).collect()],
            window: 8,
            components: 24,
            channels: vec![128],
            classes: 1,
            last_apart: false,
        }
    }

    /// A tree over images of this many rows and columns of pixels. It needs at least one level.
    pub fn image(height: usize, width: usize) -> ImageBuilder {
        ImageBuilder {
            spec: ImageSpec::new(height, width),
            classes: 1,
        }
    }

    /// A tree over sequences of this many steps. It needs at least one level.
    pub fn sequence(length: usize) -> SequenceBuilder {
        let spec = ImageSpec {
            patch: (1, 1),
            ..ImageSpec::new(1, length)
        };
        SequenceBuilder { spec, classes: 1 }
    }
}

/// What [`Structure::table`] begins: one tree, each column a local structure, 24 components, 128 channels, one class.
/// Leaf families and mixing matrices are never shared.
#[derive(Clone, Debug)]
pub struct TableBuilder {
    kinds: Vec<Kind>,
    trees: Vec<Vec<Vec<u32>>>,
    window: usize,
    components: usize,
    channels: Vec<usize>,
    classes: usize,
    last_apart: bool,
}

impl TableBuilder {
    /// The local structures, in the order in which neighbours meet.
    pub fn groups(self, groups: impl IntoIterator<Item = impl Into<Vec<u32>>>) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        self.trees([groups])
    }

    /// Several trees side by side, each with its own local structures in its own order.
    pub fn trees(self, trees: impl IntoIterator<Item = Vec<Vec<u32>>>) -> Self {
        Self {
            trees: trees.into_iter().collect(),
            ..self
        }
    }

    /// How many neighbours meet at each level, until one node is left.
    pub fn window(self, window: usize) -> Self {
        Self { window, ..self }
    }

    /// The last local structure of every tree meets the others at the top only, as a class does.
    pub fn last_apart(self) -> Self {
        Self {
            last_apart: true,
            ..self
        }
    }

    /// M: components of every leaf family.
    pub fn components(self, components: usize) -> Self {
        Self { components, ..self }
    }

    /// Channels of each level; the last entry serves all levels above.
    pub fn channels(self, channels: impl Into<Vec<usize>>) -> Self {
        Self {
            channels: channels.into(),
            ..self
        }
    }

    /// K.
    pub fn classes(self, classes: usize) -> Self {
        Self { classes, ..self }
    }

    /// The structure, checked.
    pub fn build(self) -> Result<Structure> {
        if self.window < 2 || self.channels.is_empty() {
            return Err(Error::Structure(
                "columns need a window of at least 2 and at least one level".into(),
            ));
        }
        let apart = usize::from(self.last_apart);
        let tree = |groups: &Vec<Vec<u32>>| {
            let levels = column_levels(groups.len(), apart, self.window, &self.channels);
            column_tree(&self.kinds, groups, self.components, levels)
        };
        let structure = Structure {
            trees: self.trees.iter().map(tree).collect::<Result<_>>()?,
            kinds: self.kinds,
            frame: None,
            classes: self.classes,
            class_rows: ClassRows::Mixing,
        };
        structure.check()?;
        Ok(structure)
    }
}

/// What [`Structure::image`] begins: patches of 2 × 2 pixels of one number each, 32 components, no border, one class.
#[derive(Clone, Debug)]
pub struct ImageBuilder {
    spec: ImageSpec,
    classes: usize,
}

impl ImageBuilder {
    fn with(mut self, change: impl FnOnce(&mut ImageSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Numbers in a pixel.
    pub fn channels(self, channels: usize) -> Self {
        self.with(|spec| spec.channels = channels)
    }

    /// Rows and columns of the frame, in whose middle the image lies.
    pub fn frame(self, height: usize, width: usize) -> Self {
        self.with(|spec| spec.frame = (height, width))
    }

    /// Rows and columns of a patch.
    pub fn patch(self, height: usize, width: usize) -> Self {
        self.with(|spec| spec.patch = (height, width))
    }

    /// M: components of every leaf family.
    pub fn components(self, components: usize) -> Self {
        self.with(|spec| spec.components = components)
    }

    /// One leaf family for all patches, or one for each.
    pub fn leaf_sharing(self, sharing: Sharing) -> Self {
        self.with(|spec| spec.leaf_sharing = sharing)
    }

    /// What a pixel's number can be.
    pub fn kind(self, kind: Kind) -> Self {
        self.with(|spec| spec.kind = kind)
    }

    /// One more level, which joins `window` × `window` nodes.
    pub fn level(self, window: usize, channels: usize, sharing: Sharing) -> Self {
        let level = LevelSpec::square(window, channels, sharing);
        self.with(|spec| spec.levels.push(level))
    }

    /// K.
    pub fn classes(self, classes: usize) -> Self {
        Self { classes, ..self }
    }

    /// The structure, checked.
    pub fn build(self) -> Result<Structure> {
        self.spec.structure(self.classes)
    }
}

/// What [`Structure::sequence`] begins: steps of one number, each a local structure, 32 components, one class.
#[derive(Clone, Debug)]
pub struct SequenceBuilder {
    spec: ImageSpec,
    classes: usize,
}

impl SequenceBuilder {
    fn with(mut self, change: impl FnOnce(&mut ImageSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Numbers in a step.
    pub fn channels(self, channels: usize) -> Self {
        self.with(|spec| spec.channels = channels)
    }

    /// Steps in a local structure.
    pub fn patch(self, steps: usize) -> Self {
        self.with(|spec| spec.patch = (1, steps))
    }

    /// M: components of every leaf family.
    pub fn components(self, components: usize) -> Self {
        self.with(|spec| spec.components = components)
    }

    /// What a number can be.
    pub fn kind(self, kind: Kind) -> Self {
        self.with(|spec| spec.kind = kind)
    }

    /// One more level, which joins `window` neighbours.
    pub fn level(self, window: usize, channels: usize, sharing: Sharing) -> Self {
        let level = LevelSpec {
            window: (1, window),
            channels,
            sharing,
        };
        self.with(|spec| spec.levels.push(level))
    }

    /// K.
    pub fn classes(self, classes: usize) -> Self {
        Self { classes, ..self }
    }

    /// The structure, checked.
    pub fn build(self) -> Result<Structure> {
        self.spec.structure(self.classes)
    }
}
