//! What suits a table of which one column of numbers is to be predicted from the others: several ways to learn it, of
//! which rows that are held out choose one by the mean of log P(y | x).

use crate::error::{Error, Result};
use crate::recipes::column_order::order_columns;
use crate::recipes::densities::Sizes;
use crate::recipes::presets::Preset;
use crate::recipes::tables;
use crate::structure::{Kind, Structure};
use crate::training::leaf_init::LeafStart;
use crate::training::settings::Settings;

/// A way to learn.
struct Way {
    /// The least variance of a standardised number: small where y follows closely from x, large where noise must not be
    /// learned by heart.
    floor: f32,
    generative: f64,
    penalty: f64,
}

const WAYS: [Way; 4] = [
    Way {
        floor: 0.3,
        generative: 0.1,
        penalty: 1e-4,
    },
    Way {
        floor: 0.1,
        generative: 0.1,
        penalty: 1e-4,
    },
    Way {
        floor: 0.03,
        generative: 0.1,
        penalty: 1e-4,
    },
    Way {
        floor: 0.3,
        generative: 0.5,
        penalty: 1e-3,
    },
];

/// The ways to learn column `target` of (n, kinds) values.
pub(crate) fn candidates(
    kinds: &[Kind],
    values: &[f32],
    target: usize,
    sizes: Sizes,
) -> Result<Vec<Preset>> {
    if kinds.get(target) != Some(&Kind::Gaussian) {
        let expected = "a column of real numbers";
        return Err(Error::shape("target", expected, format!("column {target}")));
    }
    let structure = structure(kinds, values, target, sizes)?;
    let (settings, scaling) = (
        tables::settings(kinds, values),
        tables::standardise(kinds, values),
    );
    let preset = |way: &Way| Preset {
        structure: structure.clone(),
        settings: way.settings(&settings, target),
        scaling: scaling.clone(),
    };
    Ok(WAYS.iter().map(preset).collect())
}

impl Way {
    /// These settings of a table with classes, for a target instead.
    fn settings(&self, classes: &Settings, target: usize) -> Settings {
        Settings {
            target: Some(target),
            generative: self.generative,
            penalty: self.penalty,
            spread: 1.0,
            leaves: LeafStart {
                floor: self.floor,
                ..classes.leaves
            },
            ..classes.clone()
        }
    }
}

/// A tree in which the target meets the other columns at the top, as a class does.
fn structure(kinds: &[Kind], values: &[f32], target: usize, sizes: Sizes) -> Result<Structure> {
    let order = order_columns(kinds, values).into_iter();
    let others = order.filter(|&column| column as usize != target);
    Structure::table(kinds)
        .groups(others.chain([target as u32]).map(|column| vec![column]))
        .last_apart()
        .components(sizes.components.unwrap_or(24))
        .channels([sizes.channels.unwrap_or(64)])
        .build()
}

/// How many trees suit this many rows.
pub(crate) fn trees(rows: usize) -> usize {
    if rows < 20_000 { 4 } else { 2 }
}
