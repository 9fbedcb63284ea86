//! The part of a plan that says how the columns of a table are steps in time.

use crate::rows::layout::{Layout, Table};
use serde::Deserialize;
use sumout::recipes::sequences::{self, SequenceShape};
use sumout::structure::{ImageSpec, LevelSpec, Sharing};

/// `[sequence]`; what is left out suits the data.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SequenceTable {
    channels: Option<usize>,
    frame: Option<usize>,
    patch: Option<usize>,
    components: Option<usize>,
    levels: Option<Vec<SequenceLevel>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SequenceLevel {
    window: usize,
    channels: usize,
    sharing: Sharing,
}

impl SequenceTable {
    /// For rows of this layout, if they are whole steps.
    fn spec(&self, layout: &Layout) -> Option<ImageSpec> {
        let (width, shape) = (layout.width, layout.shape);
        let usual = shape.map_or(1, |shape| shape.channels);
        let channels = self.channels.unwrap_or(usual);
        let length = width
            .checked_div(channels)
            .filter(|n| n * channels == width)?;
        let mut spec = sequences::spec(SequenceShape { length, channels });
        spec.frame.1 = self.frame.unwrap_or(spec.frame.1);
        spec.patch.1 = self.patch.unwrap_or(spec.patch.1);
        spec.components = self.components.unwrap_or(spec.components);
        let level = |l: &SequenceLevel| LevelSpec {
            window: (1, l.window),
            channels: l.channels,
            sharing: l.sharing,
        };
        spec.levels = match &self.levels {
            Some(levels) => levels.iter().map(level).collect(),
            None => sequences::levels(spec.frame.1.div_ceil(spec.patch.1.max(1))),
        };
        Some(spec)
    }
}

/// A tree for each part of the plan, or the one that suits the data, for rows of this layout, if they are whole steps.
pub fn specs(planned: &[SequenceTable], layout: &Layout) -> Option<Vec<ImageSpec>> {
    if planned.is_empty() {
        return SequenceTable::default().spec(layout).map(|spec| vec![spec]);
    }
    planned.iter().map(|part| part.spec(layout)).collect()
}

/// Whether rows are sequences: images of one row, such as sounds.
pub fn is_sequence(table: &Table) -> bool {
    table.layout.shape.is_some_and(|shape| shape.height == 1)
}
