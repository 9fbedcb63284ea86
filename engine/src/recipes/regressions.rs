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

/// The ways: the least variance of a standardised number. It is small where y follows closely from x, and large where
/// noise must not be learned by heart.
///
/// All that is here was chosen on tables that the benchmark does not judge: columns of vehicle, vowel, magic and segment
/// (KEEL), three made-up functions, schools, colleges and houses (AER, ISLR, Ecdat), with 0 to 35 % of the cells
/// missing. That held-out rows choose the floor is worth 0.3 nats on average, most where y is nearly known. Training for
/// y alone gains 0.02 of RMSE/σ over the density of the whole row (β = 1), a penalty of 1e-4 over 1e-3 gains 0.03,
/// which is all of it for functions of independent columns. Other holes, batches, rates, components and channels, eight
/// trees, and a fourth way with β = 0.5 gained nothing that held for most tables.
const FLOORS: [f32; 3] = [0.3, 0.1, 0.03];

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
    let preset = |floor: f32| Preset {
        structure: structure.clone(),
        settings: for_target(&settings, target, floor),
        scaling: scaling.clone(),
    };
    Ok(FLOORS.map(preset).to_vec())
}

/// The settings of a table with classes, for a target instead.
fn for_target(classes: &Settings, target: usize, floor: f32) -> Settings {
    Settings {
        target: Some(target),
        penalty: 1e-4,
        spread: 1.0,
        leaves: LeafStart {
            floor,
            ..classes.leaves
        },
        ..classes.clone()
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
