//! What stands beside the trees of a table: clusters, and clusters whose numbers depend on each other where rows that are
//! held out say so.

use crate::error::Result;
use crate::model::Model;
use crate::recipes::presets::Preset;
use crate::recipes::shares::{RowLogs, SHARES, best_share};
use crate::structure::Kind;
use crate::training::class_clusters::class_clusters;
use crate::training::correlated_clusters::{clusters_of_class, correlated_clusters};
use crate::training::data::{Data, Split};
use crate::training::leaf_init::LeafStart;
use crate::training::trainer::{Measure, Trainer, set_prior};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows and columns of numbers for which clusters with factors are tried.
const ROWS: std::ops::Range<usize> = 60..10_000;
const NUMBERS: std::ops::RangeInclusive<usize> = 2..=128;

/// So many clusters with factors in a class are tried.
const SIZES: [usize; 3] = [1, 4, 12];

/// The least variances that clusters with factors leave, of standardised numbers. With classes the first is best: what is
/// narrower is too sure of the class. A density or a regression tries the others too, as columns may follow from each
/// other almost without an error.
const FLOORS: [f64; 3] = [0.02, 0.002, 0.0002];

/// Numbers of all covariances, at most: more would take minutes.
const MOST_NUMBERS: usize = 1_000_000;

/// What stands beside the trees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beside {
    /// How clusters start.
    pub leaves: LeafStart,
    /// Whether there are clusters whose columns are independent.
    pub independent: bool,
    /// Clusters with factors, if there are any.
    pub correlated: Option<Correlated>,
}

/// Clusters with factors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Correlated {
    /// At most so many in a class.
    pub most: usize,
    /// The least variance that factors leave, of standardised numbers.
    pub floor: f64,
    /// Of all probability; equal shares of trees, clusters and these without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl Correlated {
    /// Whether trials can choose it: what a file says may be anything.
    pub fn is_possible(&self) -> bool {
        let is_share = self.share.is_none_or(|share| SHARES.contains(&share));
        SIZES.contains(&self.most) && FLOORS.contains(&self.floor) && is_share
    }
}

impl Beside {
    /// Clusters without factors.
    pub fn independent(leaves: LeafStart) -> Self {
        Self {
            leaves,
            independent: true,
            correlated: None,
        }
    }

    /// Clusters with factors alone.
    pub fn correlated(leaves: LeafStart, correlated: Option<Correlated>) -> Self {
        Self {
            leaves,
            independent: false,
            correlated,
        }
    }

    /// The clusters, in the columns, scaling, classes and prior of a model.
    pub fn models(&self, like: &Model, data: &Data<'_>, seed: u64) -> Result<Vec<Model>> {
        let mut models = Vec::new();
        if self.independent {
            models.push(class_clusters(like, data, &self.leaves, seed)?);
        }
        if let Some(Correlated { most, floor, .. }) = self.correlated {
            let start = &self.leaves;
            models.push(correlated_clusters(like, data, start, (most, floor), seed)?);
        }
        Ok(models)
    }

    /// Trees and clusters side by side.
    pub fn with_trees(&self, trees: Model, data: &Data<'_>, seed: u64) -> Result<Model> {
        let mut all = self.models(&trees, data, seed)?;
        all.insert(0, trees);
        let Some(share) = self.correlated.and_then(|correlated| correlated.share) else {
            return Model::mixture(all);
        };
        let others = all.len() - 1;
        let mut shares = vec![((1.0 - share) / others as f64).ln(); others];
        shares.push(share.ln());
        Model::mixture_of(all, &shares)
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
    /// The clusters with factors that a class should have: none, unless they say more of the rows that are held out than
    /// `best`, and than other clusters if these stand beside the trees. Where there are no classes, what the trees say of
    /// these rows decides their share.
    pub fn factors(
        &self,
        beside: &Beside,
        best: Option<f64>,
        trees: Option<&RowLogs>,
    ) -> Result<Option<Correlated>> {
        let mut best = best.unwrap_or(f64::NEG_INFINITY);
        let mut others: Vec<RowLogs> = trees.cloned().into_iter().collect();
        if beside.independent {
            let clusters = self.model(&Beside::independent(beside.leaves))?;
            if trees.is_some() {
                others.push(self.row_logs(clusters.clone())?);
            }
            best = best.max(self.score(clusters)?);
        }
        let floors = if trees.is_some() {
            &FLOORS
        } else {
            &FLOORS[..1]
        };
        let (mut chosen, mut before) = (None, 0);
        for most in SIZES {
            let each = clusters_of_class(&self.rows.train, self.preset.structure.classes, most);
            if each == before || each * self.covariance_numbers() > MOST_NUMBERS {
                break;
            }
            before = each;
            let mut best_floor = f64::NEG_INFINITY;
            for &floor in floors {
                let share = None;
                let correlated = Some(Correlated { most, floor, share });
                let model = self.model(&Beside::correlated(beside.leaves, correlated))?;
                let score = self.score(model.clone())?;
                if score > best {
                    (best, chosen) = (score, correlated.map(|correlated| (correlated, model)));
                }
                if score <= best_floor {
                    break;
                }
                best_floor = score;
            }
        }
        let Some((mut chosen, model)) = chosen else {
            return Ok(None);
        };
        if trees.is_some() {
            let (own, weights) = (self.row_logs(model)?, &self.rows.held_out.weights);
            chosen.share = best_share(&others, &own, weights);
        }
        Ok(Some(chosen))
    }

    /// What a model says of the rows that are held out.
    fn row_logs(&self, model: Model) -> Result<RowLogs> {
        RowLogs::new(model, &self.rows.held_out, self.preset.settings.target)
    }

    /// Numbers of a covariance for every class.
    fn covariance_numbers(&self) -> usize {
        let structure = &self.preset.structure;
        let kinds = structure.row_kinds().into_iter();
        let numbers = kinds.filter(|kind| *kind == Kind::Gaussian).count();
        structure.classes * numbers.pow(2)
    }

    /// Clusters of the rows.
    fn model(&self, beside: &Beside) -> Result<Model> {
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
        Model::mixture(beside.models(&like, &self.rows.train, settings.seed)?)
    }

    /// How it scores on the rows that are held out, as trials of trees are scored.
    fn score(&self, model: Model) -> Result<f64> {
        let data = Arc::new(self.rows.train.clone());
        let mut trainer = Trainer::assemble(model, self.preset.settings.clone(), data)?;
        trainer.best_by = Measure::LogLoss;
        trainer.validate(&self.rows.held_out);
        Ok(trainer.best.map_or(f64::NEG_INFINITY, |best| best.score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Rows;
    use crate::model::Scaling;
    use crate::queries::Predictor;
    use crate::structure::Structure;
    use crate::training::settings::Settings;

    #[test]
    fn a_file_cannot_ask_for_what_no_trial_chooses() {
        let chosen = Correlated {
            most: 4,
            floor: 0.02,
            share: Some(0.9),
        };
        assert!(chosen.is_possible());
        let share = None;
        assert!(Correlated { share, ..chosen }.is_possible());
        assert!(!Correlated { most: 0, ..chosen }.is_possible());
        let floor = f64::NAN;
        assert!(!Correlated { floor, ..chosen }.is_possible());
        let share = Some(1.0);
        assert!(!Correlated { share, ..chosen }.is_possible());
    }

    #[test]
    fn few_columns_of_numbers_and_not_too_many_rows() {
        let numbers =
            |count: usize| [vec![Kind::Gaussian; count], vec![Kind::Categorical(2); 9]].concat();
        for (count, rows, may) in [
            (2, 60, true),
            (1, 60, false),
            (2, 59, false),
            (128, 9_999, true),
            (129, 500, false),
            (5, 10_000, false),
        ] {
            assert_eq!(may_correlate(&numbers(count), rows), may, "{count} {rows}");
        }
    }

    /// Trees and clusters of one class: their shares of a row's density are those that were asked for.
    #[test]
    fn clusters_have_their_share_beside_trees() {
        let structure = Structure::table(&[Kind::Gaussian; 2])
            .components(2)
            .channels([2])
            .classes(1)
            .build()
            .unwrap();
        let trees = Model::random(structure, 1.0, 3);
        let values: Vec<f32> = (0..80).map(|i| (i as f32 * 0.7).sin()).collect();
        let data = Data::new(Rows::new(&values, 2).unwrap(), &[None; 40]);
        let correlated = |share| {
            Some(Correlated {
                most: 4,
                floor: 0.02,
                share,
            })
        };
        let beside = |share, independent| Beside {
            independent,
            ..Beside::correlated(LeafStart::default(), correlated(share))
        };
        let density = |model: &Model| {
            let mut predictor = Predictor::new(model.clone()).unwrap();
            predictor
                .log_likelihood(Rows::new(&values, 2).unwrap())
                .unwrap()[(7, 0)]
                .exp()
        };
        for (share, independent, shares) in [
            (Some(0.9), false, vec![0.1, 0.9]),
            (Some(0.9), true, vec![0.05, 0.05, 0.9]),
            (None, true, vec![1.0 / 3.0; 3]),
        ] {
            let beside = beside(share, independent);
            let mut parts = vec![trees.clone()];
            parts.extend(beside.models(&trees, &data, 1).unwrap());
            let all = beside.with_trees(trees.clone(), &data, 1).unwrap();
            let exact: f64 = parts
                .iter()
                .map(density)
                .zip(shares)
                .map(|(part, share)| part * share)
                .sum();
            assert!(
                (density(&all) / exact - 1.0).abs() < 1e-4,
                "{share:?} {independent}"
            );
        }
    }

    #[test]
    fn numbers_of_all_covariances() {
        let kinds = [
            Kind::Gaussian,
            Kind::Categorical(2),
            Kind::Gaussian,
            Kind::Gaussian,
        ];
        let structure = Structure::table(&kinds)
            .components(2)
            .channels([2])
            .classes(5)
            .build()
            .unwrap();
        let preset = Preset {
            structure,
            settings: Settings::default(),
            scaling: Scaling::default(),
        };
        let (values, labels) = ([0.0; 8], [Some(0); 2]);
        let data = Data::new(Rows::new(&values, 4).unwrap(), &labels);
        let rows = Split {
            train: data.clone(),
            held_out: data,
        };
        let trial = Trial {
            preset: &preset,
            prior: None,
            rows,
        };
        assert_eq!(trial.covariance_numbers(), 45);
    }
}
