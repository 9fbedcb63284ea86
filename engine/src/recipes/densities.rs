//! What suits the density of a table: several ways to learn it, of which rows that are held out choose one.
//!
//! No single way is best everywhere. Which columns share a leaf and which nodes meet first decides, and that differs
//! from table to table: where all columns hang together a little (ratings), single columns in wide windows win; where
//! some depend on each other strongly (census answers), clusters of a Chow–Liu tree do; where there is little but
//! neighbours (a strand of DNA), small clusters and few channels.

use crate::error::Result;
use crate::recipes::chow_liu::{clusters, mean, ordered_clusters};
use crate::recipes::column_order::{Shared, dependences, pair_order};
use crate::recipes::presets::Preset;
use crate::recipes::tables::{self, ColumnPlan, standardise_unless};
use crate::structure::Kind;
use crate::training::data::Data;
use crate::training::leaf_init::LeafStart;
use crate::training::optimizer::Schedule;
use crate::training::settings::Settings;
use crate::training::stop::Stop;

/// Steps of a trial.
pub(crate) const TRIAL_STEPS: usize = 500;

/// The order in which clusters of columns meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The most dependent are paired first.
    Pairs,
    /// Neighbours in the Chow–Liu tree stay together.
    Tree,
}

/// A way to learn a density.
struct Way {
    largest_cluster: usize, // columns that may share a leaf
    order: Order,
    window: usize,
    components: usize,
    channels: &'static [usize],
    spread: f64,
    penalty: f64,
    drop_inputs: f64,
}

/// Single columns.
const SINGLE: Way = Way {
    largest_cluster: 1,
    order: Order::Pairs,
    window: 8,
    components: 8,
    channels: &[64],
    spread: 1.0,
    penalty: 1e-3,
    drop_inputs: 0.0,
};

/// Clusters of the Chow–Liu tree.
const CLUSTERS: Way = Way {
    largest_cluster: 6,
    order: Order::Tree,
    window: 4,
    components: 24,
    spread: 2.0,
    ..SINGLE
};

/// Small clusters and few channels.
const CHAINS: Way = Way {
    largest_cluster: 3,
    order: Order::Tree,
    window: 2,
    channels: &[8, 12],
    penalty: 0.0,
    drop_inputs: 0.2,
    ..SINGLE
};

/// Chosen on the validation files of nine binary sets (`docs/densities.md`).
const WAYS: [Way; 4] = [
    SINGLE,
    CLUSTERS,
    Way {
        order: Order::Pairs,
        ..CLUSTERS
    },
    CHAINS,
];

/// The least variance of a standardised number. It was chosen on eight tables for the error of imputed values:
/// likelihood alone would make it as small as it may be wherever values repeat.
const FLOOR: f32 = 0.04;

/// Numbers are learned with some of them summed out: imputed numbers are then better on three of five tables
/// of KEEL.
const HOLES_IN_NUMBERS: f64 = 0.3;

/// Sizes that take the place of those of every way.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sizes {
    pub components: Option<usize>,
    pub channels: Option<usize>,
}

/// The ways to learn the density of (n, kinds) values, each with settings for a trial; the first suits most tables.
pub(crate) fn candidates(kinds: &[Kind], data: &Data<'_>, sizes: Sizes) -> Result<Vec<Preset>> {
    let (values, stop) = (&*data.values, &data.stop);
    let shared = dependences(kinds, values, stop);
    let scaling = standardise_unless(stop, kinds, values);
    let mut found: Vec<Preset> = Vec::new();
    for way in &WAYS {
        stop.check()?;
        let plan = way.plan(kinds.len(), shared.as_ref(), sizes, stop);
        let structure = plan.structure_unless(stop, kinds, values, 1)?;
        if found.iter().all(|other| other.structure != structure) {
            let mut settings = way.settings();
            if is_of_numbers(kinds) {
                settings.drop_inputs = settings.drop_inputs.max(HOLES_IN_NUMBERS);
            }
            found.push(Preset {
                structure,
                settings,
                scaling: scaling.clone(),
            });
        }
    }
    Ok(found)
}

/// Whether at least half of the columns are numbers.
fn is_of_numbers(kinds: &[Kind]) -> bool {
    let numbers = kinds.iter().filter(|kind| **kind == Kind::Gaussian);
    2 * numbers.count() >= kinds.len()
}

/// Where clusters of the rows should stand beside the trees, how these start: tables of numbers that are not large.
///
/// On vehicle, vowel and bands of KEEL the error of imputed numbers falls from .484, .504 and .925 to .442, .493 and
/// .912, and held-out likelihood rises on the first two.
pub(crate) fn clusters_beside(kinds: &[Kind], values: &[f32]) -> Option<LeafStart> {
    let start = tables::clusters(kinds, values).filter(|_| is_of_numbers(kinds));
    start.map(|start| LeafStart {
        floor: FLOOR,
        ..start
    })
}

impl Way {
    fn plan(&self, width: usize, shared: Option<&Shared>, sizes: Sizes, stop: &Stop) -> ColumnPlan {
        let single = || (0..width as u32).map(|column| vec![column]).collect();
        let channels = sizes.channels.map(|channels| vec![channels]);
        ColumnPlan {
            components: sizes.components.unwrap_or(self.components),
            channels: channels.unwrap_or_else(|| self.channels.to_vec()),
            window: self.window,
            groups: Some(shared.map_or_else(single, |shared| self.groups(shared, stop))),
        }
    }

    /// The clusters of columns in the order in which they meet.
    fn groups(&self, shared: &Shared, stop: &Stop) -> Vec<Vec<u32>> {
        if self.order == Order::Tree {
            return ordered_clusters(shared, self.largest_cluster);
        }
        let groups = clusters(shared, self.largest_cluster);
        let at = |place: u32| groups[place as usize].clone();
        let order = pair_order(mean(shared, &groups), stop);
        order.into_iter().map(at).collect()
    }

    /// Settings of a trial.
    fn settings(&self) -> Settings {
        Settings {
            steps: TRIAL_STEPS,
            batch: 256,
            rate: 0.05,
            schedule: Schedule::Cosine,
            generative: 1.0,
            penalty: self.penalty,
            drop_inputs: self.drop_inputs,
            spread: self.spread,
            leaf_rate: 1.0,
            leaves: LeafStart {
                floor: FLOOR,
                ..LeafStart::default()
            },
            validate_every: TRIAL_STEPS / 10,
            ..Settings::default()
        }
    }
}

/// Steps of the longer trial of the best way.
pub(crate) fn long_steps(rows: usize, batch: usize) -> usize {
    const EPOCHS: usize = 30;
    (EPOCHS * rows / batch.max(1)).clamp(2_000, 20_000)
}

/// How many trees are trained apart and put side by side: four of them are worth 0.1 to 0.6 nats on all nine sets.
pub(crate) fn trees(rows: usize) -> usize {
    if rows < 200_000 { 4 } else { 2 }
}
