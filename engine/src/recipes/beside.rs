//! What stands beside the trees of a table: clusters, and clusters whose numbers depend on each other where rows that are
//! held out say so.

use crate::error::Result;
use crate::model::Model;
use crate::recipes::presets::Preset;
use crate::structure::Kind;
use crate::training::class_clusters::class_clusters;
use crate::training::correlated_clusters::{clusters_of_class, correlated_clusters};
use crate::training::data::{Data, Split};
use crate::training::leaf_init::LeafStart;
use crate::training::trainer::{Measure, Trainer, set_prior};
use std::sync::Arc;

/// Rows and columns of numbers for which clusters with factors are tried.
const ROWS: std::ops::Range<usize> = 60..10_000;
const NUMBERS: std::ops::RangeInclusive<usize> = 2..=128;

/// So many clusters with factors in a class are tried.
const SIZES: [usize; 3] = [1, 4, 12];

/// Numbers of all covariances, at most: more would take minutes.
const MOST_NUMBERS: usize = 1_000_000;

/// What stands beside the trees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beside {
    /// How clusters start.
    pub leaves: LeafStart,
    /// Whether there are clusters whose columns are independent.
    pub independent: bool,
    /// At most so many clusters with factors in a class; 0 for none.
    pub correlated: usize,
}

impl Beside {
    /// Clusters without factors.
    pub fn independent(leaves: LeafStart) -> Self {
        Self {
            leaves,
            independent: true,
            correlated: 0,
        }
    }

    /// Clusters with factors alone.
    pub fn correlated(leaves: LeafStart, most: usize) -> Self {
        Self {
            leaves,
            independent: false,
            correlated: most,
        }
    }

    /// The clusters, in the columns, scaling, classes and prior of a model.
    pub fn models(&self, like: &Model, data: &Data<'_>, seed: u64) -> Result<Vec<Model>> {
        let mut models = Vec::new();
        if self.independent {
            models.push(class_clusters(like, data, &self.leaves, seed)?);
        }
        if self.correlated > 0 {
            let (start, most) = (&self.leaves, self.correlated);
            models.push(correlated_clusters(like, data, start, most, seed)?);
        }
        Ok(models)
    }
}

/// Whether clusters with factors may suit a table of these kinds and so many rows.
pub(crate) fn may_correlate(kinds: &[Kind], rows: usize) -> bool {
    let numbers = kinds.iter().filter(|kind| **kind == Kind::Gaussian);
    NUMBERS.contains(&numbers.count()) && ROWS.contains(&rows)
}

/// Rows to try clusters with.
pub(crate) struct Trial<'a> {
    pub preset: &'a Preset,
    pub prior: Option<&'a [f64]>,
    pub rows: Split<'a>,
}

impl<'a> Trial<'a> {
    /// How many clusters with factors a class should have: none, unless they say more of the rows that are held out than
    /// `best`, and than other clusters if these stand beside the trees.
    pub fn factors(&self, beside: &Beside, best: Option<f64>) -> Result<usize> {
        let mut best = best.unwrap_or(f64::NEG_INFINITY);
        if beside.independent {
            best = best.max(self.score(&Beside::independent(beside.leaves))?);
        }
        let (mut chosen, mut before) = (0, 0);
        for most in SIZES {
            let each = clusters_of_class(&self.rows.train, self.preset.structure.classes, most);
            if each == before || each * self.covariance_numbers() > MOST_NUMBERS {
                break;
            }
            before = each;
            let score = self.score(&Beside::correlated(beside.leaves, most))?;
            if score > best {
                (best, chosen) = (score, most);
            }
        }
        Ok(chosen)
    }

    /// Numbers of a covariance for every class.
    fn covariance_numbers(&self) -> usize {
        let structure = &self.preset.structure;
        let kinds = structure.row_kinds().into_iter();
        let numbers = kinds.filter(|kind| *kind == Kind::Gaussian).count();
        structure.classes * numbers.pow(2)
    }

    /// How clusters of the rows score on those that are held out, as trials of trees are scored.
    fn score(&self, beside: &Beside) -> Result<f64> {
        let Preset {
            structure,
            settings,
            scaling,
        } = self.preset;
        let mut like = Model::random(structure.clone(), 0.0, settings.seed);
        like.scaling = scaling.clone();
        match self.prior {
            Some(prior) => like.set_prior(prior)?,
            None => set_prior(&mut like, &settings.prior, &self.rows.train)?,
        }
        let data = Arc::new(self.rows.train.clone());
        let models = beside.models(&like, &data, settings.seed)?;
        let mut trainer = Trainer::assemble(Model::mixture(models)?, settings.clone(), data)?;
        trainer.best_by = Measure::LogLoss;
        trainer.validate(&self.rows.held_out);
        Ok(trainer.best.map_or(f64::NEG_INFINITY, |best| best.score))
    }
}
