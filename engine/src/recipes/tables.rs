//! What suits a table: from its kinds of columns, its rows and its classes to a structure, settings and scaling.
//!
//! ```
//! use sumout::Kind;
//! use sumout::recipes::tables::{ColumnPlan, settings, standardise};
//! let hole = f32::NAN;
//! let kinds = [Kind::Gaussian, Kind::Categorical(2)];
//! let values = [170.0, 1.0, 182.0, hole, hole, 0.0, 165.0, 0.0]; // 4 rows: a number and one of 2 categories
//! let structure = ColumnPlan::for_rows(4).structure(&kinds, &values, 2)?;
//! assert_eq!((structure.width(), settings(&kinds, &values).steps), (2, 800));
//! assert_eq!(standardise(&kinds, &values).scale[1], 1.0); // categories stay as they are
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::Result;
use crate::model::Scaling;
use crate::random::{Purpose, Stream};
use crate::recipes::chow_liu::ordered_clusters;
use crate::recipes::column_order::{Shared, dependences, order_unless, pair_order};
use crate::structure::{Kind, Structure};
use crate::training::leaf_init::LeafStart;
use crate::training::optimizer::Schedule;
use crate::training::settings::{Prior, Settings};
use crate::training::stop::Stop;
use std::ops::RangeInclusive;

const FEW: usize = 1_000;
const SOME: usize = 4_000;
const LARGE: usize = 10_000;
const MANY: usize = 100_000;

/// Trees over columns: how many components and channels, and in which order columns meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPlan {
    /// M.
    pub components: usize,
    /// Of each level; the last serves all above.
    pub channels: Vec<usize>,
    /// How many neighbours meet at each level.
    pub window: usize,
    /// The local structures, in the order in which they meet; `None` to learn it.
    pub groups: Option<Vec<Vec<u32>>>,
}

impl ColumnPlan {
    /// What suits this many rows: the more there are, the more can be told apart.
    pub fn for_rows(rows: usize) -> Self {
        let (components, channels) = if rows < FEW { (6, 48) } else { (24, 128) };
        Self {
            components,
            channels: vec![channels],
            window: 8,
            groups: None,
        }
    }

    /// What suits this many rows of so many classes: two need less, where time is short ([`quick`]).
    pub(crate) fn for_classes(rows: usize, classes: usize) -> Self {
        let plan = Self::for_rows(rows);
        if !(LARGE..MANY).contains(&rows) || classes > 2 {
            return plan;
        }
        Self {
            components: 16,
            channels: vec![64],
            ..plan
        }
    }

    /// The structure over the columns of (n, kinds) values.
    pub fn structure(&self, kinds: &[Kind], values: &[f32], classes: usize) -> Result<Structure> {
        self.structure_unless(&Stop::default(), kinds, values, classes)
    }

    /// The same, or an error if it is to stop.
    pub(crate) fn structure_unless(
        &self,
        stop: &Stop,
        kinds: &[Kind],
        values: &[f32],
        classes: usize,
    ) -> Result<Structure> {
        let learned = || single_columns(order_unless(stop, kinds, values));
        let groups = self.groups.clone().unwrap_or_else(learned);
        stop.check()?;
        Structure::table(kinds)
            .groups(groups)
            .window(self.window)
            .components(self.components)
            .channels(self.channels.clone())
            .classes(classes)
            .build()
    }
}

/// What a tree of a table with classes looks like.
enum Shape {
    /// Single columns; the most dependent are paired first.
    Pairs,
    /// Clusters of dependent columns share a leaf; so many meet at a level.
    Clusters(usize),
    /// Single columns in a random order.
    Shuffled,
}

/// The shapes of the first trees, the second, and so on.
///
/// Trees of several shapes err in other places. On the twenty tables of KEEL that recipes were chosen on, they have a
/// log-loss of .455 where trees of one shape have .472.
const SHAPES: [Shape; 4] = [
    Shape::Pairs,
    Shape::Clusters(4),
    Shape::Shuffled,
    Shape::Clusters(8),
];

/// Columns that share a leaf at most.
const LARGEST_CLUSTER: usize = 6;

impl ColumnPlan {
    /// Plans of so many trees that stand side by side, each with another shape, from a plan that leaves it open.
    pub(crate) fn shapes(
        self,
        kinds: &[Kind],
        values: &[f32],
        trees: usize,
        seed: u64,
        stop: &Stop,
    ) -> Vec<Self> {
        let Some(shared) = dependences(kinds, values, stop) else {
            return vec![self];
        };
        let plan = |(tree, shape): (usize, &Shape)| {
            let random = Stream::new(seed, Purpose::Shuffle, 1, tree as u32);
            self.shaped(shape, &shared, random, stop)
        };
        SHAPES.iter().enumerate().take(trees).map(plan).collect()
    }

    /// This plan with the groups of a shape, from the dependences of the columns.
    fn shaped(&self, shape: &Shape, shared: &Shared, mut random: Stream, stop: &Stop) -> Self {
        let groups = match shape {
            Shape::Pairs => single_columns(pair_order(shared.clone(), stop)),
            Shape::Clusters(_) => stop.unless(|| ordered_clusters(shared, LARGEST_CLUSTER)),
            Shape::Shuffled => single_columns(random.permutation(shared.len())),
        };
        let window = match shape {
            Shape::Clusters(window) => *window,
            Shape::Pairs | Shape::Shuffled => self.window,
        };
        Self {
            groups: Some(groups),
            window,
            ..self.clone()
        }
    }
}

/// Every column a group of its own, in this order.
fn single_columns(order: Vec<u32>) -> Vec<Vec<u32>> {
    order.into_iter().map(|column| vec![column]).collect()
}

/// Numbers get mean 0 and variance 1 over what is observed, but for gross outliers; categories stay as they are.
pub fn standardise(kinds: &[Kind], values: &[f32]) -> Scaling {
    standardise_unless(&Stop::default(), kinds, values)
}

/// The same; anything, if it is to stop.
pub(crate) fn standardise_unless(stop: &Stop, kinds: &[Kind], values: &[f32]) -> Scaling {
    let width = kinds.len();
    let mut scaling = Scaling {
        offset: vec![0.0; width],
        scale: vec![1.0; width],
        ..Scaling::default()
    };
    for (column, _) in kinds
        .iter()
        .enumerate()
        .filter(|(_, kind)| **kind == Kind::Gaussian)
        .take_while(|_| !stop.is_requested())
    {
        let cells = values.iter().skip(column).step_by(width);
        let observed: Vec<f32> = cells.filter(|x| !x.is_nan()).copied().collect();
        let near = without_outliers(&observed);
        let near = observed.iter().filter(|x| near.contains(x));
        let seen = || near.clone().map(|&x| f64::from(x));
        let count = seen().count().max(1) as f64;
        let mean = seen().sum::<f64>() / count;
        let variance = seen().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let farthest = observed.iter().map(|&x| (f64::from(x) - mean).abs());
        let farthest = farthest.fold(0.0, f64::max);
        let scale = (1.0 / variance.sqrt()).min(FARTHEST / farthest) as f32;
        scaling.offset[column] = mean as f32;
        if scale.is_finite() {
            scaling.scale[column] = scale.max(f32::MIN_POSITIVE); // a constant column keeps its own unit
        }
    }
    scaling
}

/// No number is farther from the mean than this, in units of the model: its square must be a number.
const FARTHEST: f64 = 1e9;

/// Where the numbers of a column lie, but for gross outliers: these are thirty times as far from the median as the middle
/// half is wide, and would make all else look alike.
fn without_outliers(observed: &[f32]) -> RangeInclusive<f32> {
    const FAR: f32 = 30.0;
    let mut numbers = observed.to_vec();
    let at = |of: usize| observed.len() * of / 4;
    let mut quarter = |of| *numbers.select_nth_unstable_by(at(of), f32::total_cmp).1;
    let everything = f32::NEG_INFINITY..=f32::INFINITY;
    if observed.is_empty() {
        return everything;
    }
    let (low, middle, high) = (quarter(1), quarter(2), quarter(3));
    let far = FAR * (high - low);
    match far > 0.0 {
        true => middle - far..=middle + far,
        false => everything,
    }
}

/// How many models suit this many rows, trained apart and put side by side by [`Model::mixture`](crate::Model::mixture):
/// what one learns by heart, the others do not.
pub fn trees(rows: usize) -> usize {
    match rows {
        0..FEW => 3,
        FEW..SOME => 4,
        SOME..MANY => 3,
        _ => 1,
    }
}

/// Where the clusters of the classes ([`class_clusters`](crate::training::class_clusters)) should stand beside this many
/// rows' trees with half of the weight, how these start.
///
/// On the tables of KEEL that recipes were chosen on they are worth most where classes are many and rows few
/// (vowel with half of the cells missing: 84 % instead of 63 %). Larger tables do without: texture would gain, magic would lose a point.
pub fn clusters(kinds: &[Kind], values: &[f32]) -> Option<LeafStart> {
    let rows = values.len() / kinds.len().max(1);
    (rows < SOME).then(|| LeafStart {
        floor: FLOOR,
        ..LeafStart::default()
    })
}

/// How trees and clusters, side by side, are trained on together for a short while: gently, and to tell classes apart
/// from the few numbers that many holes leave. With the holes that trees are trained with they gain half as much.
///
/// Chosen where the [`clusters`] were, among some 50 settings, after better densities had gained less. It gains 0.6 on
/// held-out rows of digits with nine in ten numbers missing and 0.5 with three in four, 0.4 on wine's and breast
/// cancer's, 0.3 on MNIST images made to look like digits, and nothing on waveforms, made-up clusters and iris. Faster
/// rates lose where little is missing; larger batches gain 0.1 more and take three times as long. The generative weight
/// stays: without it (β = 0) posteriors are too sure of themselves. On twelve tables of KEEL, two splits each, β = 0.1 has
/// a lower log-loss on complete rows where it matters (vehicle .60 instead of .76, libras .77 and .84, led7digit 1.07 and
/// 1.21, vowel .46 and .48; elsewhere level within .01) and gains up to 1.1 points of accuracy.
pub fn finish(trees: &Settings, clusters: LeafStart) -> Settings {
    Settings {
        steps: finish_steps(trees.steps),
        rate: trees.rate / 8.0,
        drop_inputs: (1.8 * trees.drop_inputs).min(0.9),
        drop_varied: false,
        leaves: LeafStart {
            floor: clusters.floor.min(trees.leaves.floor),
            ..clusters
        },
        ..trees.clone()
    }
}

/// Steps of trees and clusters together, after so many of each tree.
pub(crate) fn finish_steps(trees: usize) -> usize {
    trees.div_ceil(8)
}

/// The least variance of a standardised number. Of the thirteen tables of KEEL on which 0.15 or 0.3 had
/// been chosen before, nine have a lower log-loss with it; in the mean of all twenty it falls from .472 to .447.
const FLOOR: f32 = 0.05;

/// Settings that suit tables (n, kinds) of 100 to 1,000,000 rows.
///
/// Rate, generative weight and holes, like the sizes of [`ColumnPlan::for_rows`], were chosen on splits of digits, iris,
/// wine, breast cancer and made-up tables, some of which the benchmark of the Python package judges. Steps, penalty and
/// the leaves' rate were chosen later on tables that it does not judge, and all of it once more on twenty tables of KEEL
/// (`docs/benchmarks.md`). What helps most is the penalty λ, which keeps a model from learning
/// noise by heart; that it fades from 10,000 rows on is a guess. The rate below 1,000 rows came last: 0.02 in place of 0.05
/// lowers the log-loss of complete rows on all nine tables of KEEL of that size that were tried, by up to 11 % (search 10).
pub fn settings(kinds: &[Kind], values: &[f32]) -> Settings {
    let rows = values.len() / kinds.len().max(1);
    let batch = if rows < MANY { 128 } else { 512 };
    let (steps, rate, penalty) = match rows {
        0..FEW => (800, 0.02, 2e-3),
        FEW..SOME => (600, 0.05, 1e-3),
        _ => (
            (25 * rows / batch).clamp(1_000, 10_000),
            0.05,
            1e-3 * (1e4 / rows as f64).min(1.0),
        ),
    };
    Settings {
        steps,
        batch,
        rate,
        schedule: Schedule::Cosine,
        generative: 0.1,
        penalty,
        drop_inputs: 0.5,
        drop_varied: true,
        spread: 0.3,
        leaf_rate: 1.0,
        leaves: LeafStart {
            floor: FLOOR,
            ..LeafStart::default()
        },
        prior: Prior::Labels,
        validate_every: steps / 10,
        ..Settings::default()
    }
}

/// Fewer and larger steps for tables with more columns than a third of their rows: where so much can be learned by heart,
/// long training does so (`docs/lab-notes/tables.md`, search 12).
///
/// Very wide tables get broad leaves too, and weights that start far from each other (search 14): many columns together
/// are sure of a class, however little each of them says.
pub(crate) fn wide(usual: Settings, rows: usize, width: usize) -> Settings {
    const LEAST: usize = 100;
    const FAST: f64 = 0.05;
    const BROAD: f32 = 0.5;
    let steps = (usual.steps * rows).div_ceil(3 * width.max(1));
    let steps = steps.max(LEAST).min(usual.steps);
    let faster = (usual.rate * usual.steps as f64 / steps as f64).min(FAST);
    let (mut spread, mut leaves) = (usual.spread, usual.leaves);
    if is_very_wide(rows, width) {
        (spread, leaves.floor) = (1.0, BROAD);
    }
    Settings {
        steps,
        rate: usual.rate.max(faster),
        spread,
        leaves,
        validate_every: steps / 10,
        ..usual
    }
}

/// Whether a table has many columns, and more than half as many as rows. Such a table with classes does without clusters:
/// of so many columns, trees and clusters say so different things that one of them alone decides.
pub(crate) fn is_very_wide(rows: usize, width: usize) -> bool {
    const MOST: usize = 128;
    width > MOST && rows < 2 * width
}

/// Settings for tables whose classes follow from the columns almost without noise, such as positions of chess: sharper
/// and longer. Rows that are held out say whether a table is one of them; on others these would learn noise by heart.
///
/// Nothing where rows are too few to ask, or so many that a trial would cost more than it is worth.
pub(crate) fn sharp(smooth: &Settings, rows: usize) -> Option<Settings> {
    if !(FEW..LARGE).contains(&rows) {
        return None;
    }
    let steps = 2 * smooth.steps;
    Some(Settings {
        steps,
        generative: 0.01,
        penalty: 0.0,
        drop_inputs: 0.25,
        spread: 1.0,
        validate_every: steps / 10,
        ..smooth.clone()
    })
}

/// Settings for tables of 10,000 to 100,000 rows: few steps at a high rate, between smooth and sharp, without a trial.
///
/// As boosting's time does, the steps grow with rows and classes. How it was chosen:
/// `docs/lab-notes/tables.md`, search 7.
pub(crate) fn quick(smooth: &Settings, rows: usize, classes: usize) -> Option<Settings> {
    if !(LARGE..MANY).contains(&rows) {
        return None;
    }
    let steps = (rows / 40).clamp(350, 800) * classes.min(4);
    Some(Settings {
        steps,
        rate: 0.1,
        generative: 0.03,
        drop_inputs: 0.25,
        leaves: LeafStart {
            structures: 4_000,
            means: 2,
            rounds: 4,
            ..smooth.leaves
        },
        validate_every: steps / 10,
        ..smooth.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_standardised_and_categories_are_not() {
        let kinds = [Kind::Gaussian, Kind::Categorical(2), Kind::Gaussian];
        let values = [1.0, 0.0, 7.0, f32::NAN, 1.0, 7.0, 5.0, 0.0, f32::NAN];
        let scaling = standardise(&kinds, &values);
        assert_eq!(
            (scaling.offset, scaling.scale),
            (vec![3.0, 0.0, 7.0], vec![0.5, 1.0, 1.0])
        );
        let huge = standardise(&[Kind::Gaussian], &[3e38, -3e38]);
        assert!(3e38 * huge.scale[0] < 10.0, "{huge:?}");
    }

    #[test]
    fn settings_are_valid_for_any_number_of_rows() {
        for rows in [0, 1, 100, 3_000, 5_000, 50_000, 1_000_000] {
            settings(&[Kind::Gaussian], &vec![0.0; rows])
                .check()
                .unwrap();
        }
    }

    #[test]
    fn large_tables_are_learned_quickly() {
        let usual = settings(&[Kind::Gaussian], &[0.0; 20_000]);
        let of = |rows: usize, classes: usize| quick(&usual, rows, classes);
        assert!(of(LARGE - 1, 2).is_none() && of(MANY, 2).is_none());
        let steps = |rows: usize, classes: usize| of(rows, classes).unwrap().steps;
        assert_eq!(
            (steps(LARGE, 2), steps(20_000, 2), steps(20_000, 5)),
            (700, 1_000, 2_000)
        );
        assert_eq!(steps(MANY - 1, 100), 3_200);
        of(20_000, 2).unwrap().check().unwrap();
        assert!(sharp(&usual, LARGE).is_none() && sharp(&usual, LARGE - 1).is_some());
        let channels = |rows, classes| ColumnPlan::for_classes(rows, classes).channels[0];
        assert_eq!(
            (channels(LARGE, 2), channels(LARGE, 3), channels(MANY, 2)),
            (64, 128, 128)
        );
    }

    #[test]
    fn the_finish_follows_what_trees_are_given() {
        let trees = settings(&[Kind::Gaussian], &[0.0; 1_500]);
        let last = finish(
            &trees,
            LeafStart {
                floor: 0.02,
                ..LeafStart::default()
            },
        );
        last.check().unwrap();
        assert_eq!(
            (last.steps, last.drop_inputs, last.drop_varied),
            (75, 0.9, false)
        );
        assert_eq!(
            (last.generative, last.leaves.floor, last.penalty),
            (trees.generative, 0.02, trees.penalty)
        );
        let whole = Settings {
            steps: 1,
            drop_inputs: 0.0,
            ..trees
        }; // no holes were wanted
        let last = finish(
            &whole,
            LeafStart {
                floor: 9.0,
                ..LeafStart::default()
            },
        );
        assert_eq!(
            (last.steps, last.drop_inputs, last.leaves.floor),
            (1, 0.0, whole.leaves.floor)
        );
    }

    #[test]
    fn clusters_stand_beside_the_trees_of_small_tables_only() {
        let has = |rows: usize| clusters(&[Kind::Gaussian], &vec![0.0; rows]).is_some();
        assert_eq!((has(3_999), has(4_000)), (true, false));
    }

    #[test]
    fn trees_side_by_side_have_other_shapes() {
        let kinds = [Kind::Gaussian; 12];
        let mut random = Stream::new(1, Purpose::Sampling, 0, 0);
        let row = |_| {
            let hidden: Vec<f64> = (0..6).map(|_| random.normal()).collect();
            let noise: Vec<f64> = (0..12).map(|_| 0.3 * random.normal()).collect();
            (0..12).map(move |c| (hidden[c / 2] + noise[c]) as f32)
        };
        let values: Vec<f32> = (0..300).flat_map(row).collect();
        let plans = ColumnPlan::for_rows(300).shapes(&kinds, &values, 4, 1, &Stop::default());
        assert_eq!(plans.len(), 4);
        for (i, plan) in plans.iter().enumerate() {
            let mut columns = plan.groups.clone().unwrap().concat();
            columns.sort_unstable();
            assert_eq!(columns, (0..12).collect::<Vec<_>>());
            assert!(plans[..i].iter().all(|other| other != plan), "{plans:?}");
        }
        assert_eq!(
            ColumnPlan::for_rows(300)
                .shapes(&kinds, &values, 9, 1, &Stop::default())
                .len(),
            4
        );
    }

    #[test]
    fn wide_tables_train_for_fewer_steps() {
        let usual = || settings(&[Kind::Gaussian], &[0.0; 90]);
        let of = |rows, width| wide(usual(), rows, width);
        let steps = |rows, width| of(rows, width).steps;
        assert_eq!((steps(90, 30), steps(90, 1)), (800, 800));
        assert_eq!(
            (steps(90, 60), steps(90, 120), steps(90, 2_000)),
            (400, 200, 100)
        );
        assert_eq!(
            (of(90, 30).rate, of(90, 60).rate, of(90, 120).rate),
            (0.02, 0.04, 0.05)
        );
        assert_eq!(of(90, 120).validate_every, 20);
        let short = Settings {
            steps: 30,
            ..usual()
        };
        assert_eq!(wide(short, 100, 2_000).steps, 30);
    }

    #[test]
    fn very_wide_tables_have_broad_leaves() {
        let usual = settings(&[Kind::Gaussian], &[0.0; 300]);
        let floor = |rows, width| wide(usual.clone(), rows, width).leaves.floor;
        let floors = [(300, 128), (300, 150), (300, 151)].map(|(rows, width)| floor(rows, width));
        assert_eq!(floors, [FLOOR, FLOOR, 0.5]);
        assert_eq!(wide(usual.clone(), 300, 151).spread, 1.0);
        assert!(!is_very_wide(100, 128) && is_very_wide(100, 129));
    }

    #[test]
    fn gross_outliers_leave_the_scale_as_it_is() {
        let usual: Vec<f32> = (0..99).map(|i| (i as f32 * 0.7).sin()).collect();
        let scaled = |more: f32| standardise(&[Kind::Gaussian], &[&usual[..], &[more]].concat());
        let (without, with) = (scaled(f32::NAN), scaled(9_999.0));
        assert_eq!(without, with);
        assert_ne!(without, scaled(3.0));
        let far = scaled(1e30);
        assert!((far.scale[0] / 1e-21 - 1.0).abs() < 1e-3, "{far:?}");
        let mostly_zero: Vec<f32> = (0..100).map(|i| f32::from(i > 90) * 1e3).collect();
        let scale = standardise(&[Kind::Gaussian], &mostly_zero).scale[0];
        assert!((scale * 286.2 - 1.0).abs() < 1e-3, "{scale}"); // the standard deviation of all
    }
}
