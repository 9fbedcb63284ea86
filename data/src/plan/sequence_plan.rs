//! The part of a plan that says how the columns of a table are steps in time.

use serde::Deserialize;
use sumout::recipes::sequences::{self, SequenceShape};
use sumout::structure::{ImageSpec, LevelSpec, Sharing};

/// `[sequence]`; what is left out suits the data.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SequenceTable {
    channels: Option<usize>,
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
    /// For rows of this many columns, if they are whole steps.
    pub fn spec(&self, width: usize) -> Option<ImageSpec> {
        let channels = self.channels.unwrap_or(1);
        let length = width
            .checked_div(channels)
            .filter(|n| n * channels == width)?;
        let mut spec = sequences::spec(SequenceShape { length, channels });
        spec.patch.1 = self.patch.unwrap_or(spec.patch.1);
        spec.components = self.components.unwrap_or(spec.components);
        let level = |l: &SequenceLevel| LevelSpec {
            window: (1, l.window),
            channels: l.channels,
            sharing: l.sharing,
        };
        spec.levels = match &self.levels {
            Some(levels) => levels.iter().map(level).collect(),
            None => sequences::levels(length.div_ceil(spec.patch.1.max(1))),
        };
        Some(spec)
    }
}
