//! What suits a table of which one column of numbers is to be predicted from the others.

use crate::error::{Error, Result};
use crate::recipes::column_order::order_columns;
use crate::recipes::densities::Sizes;
use crate::recipes::presets::Preset;
use crate::recipes::tables;
use crate::structure::{Kind, Structure};
use crate::training::settings::Settings;

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
    Ok(vec![Preset {
        structure: structure(kinds, values, target, sizes)?,
        settings: Settings {
            target: Some(target),
            ..tables::settings(kinds, values)
        },
        scaling: tables::standardise(kinds, values),
    }])
}

/// A tree in which the target meets the other columns at the top, as a class does.
fn structure(kinds: &[Kind], values: &[f32], target: usize, sizes: Sizes) -> Result<Structure> {
    let order = order_columns(kinds, values).into_iter();
    let others = order.filter(|&column| column as usize != target);
    Structure::table(kinds)
        .groups(others.chain([target as u32]).map(|column| vec![column]))
        .last_apart()
        .components(sizes.components.unwrap_or(24))
        .channels([sizes.channels.unwrap_or(128)])
        .build()
}

/// How many trees suit this many rows.
pub(crate) fn trees(rows: usize) -> usize {
    tables::trees(rows)
}
