//! From rows and labels to a model, without a decision to make.
//!
//! Several trees are trained apart, from other seeds, and put side by side: what one learns by heart, the others do not.
//! Where a table is small, clusters of its classes stand beside them with as much weight, and all are trained on
//! together for a short while ([`tables::clusters`], [`tables::finish`]).
//!
//! ```
//! use sumout::recipes::Fit;
//! use sumout::{Kind, Rows};
//! let hole = f32::NAN;
//! let values = [170.0, 1.0, 182.0, hole, hole, 0.0, 165.0, 0.0]; // a number and one of 2 categories
//! let rows = Rows::new(&values, 2)?;
//! let fit = Fit::new().kinds(&[Kind::Gaussian, Kind::Categorical(2)]).trees(1).clusters(false).steps(20);
//! let model = fit.run(rows, &[1, 1, 0, 0].map(Some))?;
//! assert_eq!((model.structure.classes, model.structure.trees.len()), (2, 1));
//! # Ok::<(), sumout::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::matrix::Rows;
use crate::model::Model;
use crate::recipes::beside;
use crate::recipes::densities::{self, Sizes, TRIAL_STEPS};
use crate::recipes::fit::in_progress::{Fitting, Start};
use crate::recipes::fit::options::Fit;
use crate::recipes::images::{self, ImageShape};
use crate::recipes::presets::Preset;
use crate::recipes::regressions;
use crate::recipes::search::{Candidate, Finish, Search, longer};
use crate::recipes::tables;
use crate::structure::{ImageSpec, Kind, Structure};
use crate::training::data::{Data, Split};
use crate::training::settings::Settings;
use crate::training::trainer::Trainer;
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;

/// From this many images on, one tree is enough.
const MANY_IMAGES: usize = 1_000;

/// Trees that may stand side by side.
const MAX_TREES: usize = 1_000;

/// With fewer rows none is held out: a choice by a handful of rows is no better than a guess.
const MIN_ROWS_TO_CHOOSE: usize = 60;

/// Rows held out at most: more would not change the choice.
const MAX_HELD_OUT: usize = 5_000;

/// Learns a model from rows of numbers and their labels, `None` where one is missing; without any labels it learns the
/// density of the rows. [`Fit`] has the options.
pub fn fit(rows: Rows<'_>, labels: &[Option<usize>]) -> Result<Model> {
    Fit::new().run(rows, labels)
}

impl Fit {
    /// Fits to the end.
    pub fn run(self, rows: Rows<'_>, labels: &[Option<usize>]) -> Result<Model> {
        let mut fitting = self.start(Data::new(rows, labels))?;
        fitting.run_with(|_| ControlFlow::Continue(()))?;
        fitting.into_model()
    }

    /// Begins a fit that can be watched and broken off.
    pub fn start(self, data: Data<'_>) -> Result<Fitting<'_>> {
        let (kinds, classes) = (self.kinds_of(data.rows()?), self.classes_of(&data));
        if self.image.is_none() && self.preset.is_none() {
            check_kinds(&kinds, data.rows()?)?;
        } else if self.target.is_some() {
            return Err(Error::shape(
                "target",
                "a column of a table",
                "a preset or images",
            ));
        }
        let bends = self.bends(&data, &kinds, classes)?;
        let data = data.bent(&bends)?;
        let data = self.checked(data, &kinds, classes)?;
        let trees = self.tree_count(data.len(), classes)?;
        let mut candidates = self.candidates(&kinds, &data, classes)?;
        for candidate in &mut candidates {
            let scaling = &mut candidate.preset.scaling;
            (scaling.ranges, scaling.curves) = (bends.ranges.clone(), bends.curves.clone());
        }
        let structures = self.structures(&kinds, &data, classes, trees)?;
        let search = self.search(&candidates, &data, classes)?;
        data.stop.check()?;
        let mut all = candidates.into_iter();
        let first = all.next().ok_or(Error::Empty { what: "candidate" })?;
        let (mut chosen, finish) = (first.preset, first.finish);
        if let Some(steps) = self.given_steps() {
            chosen.settings.steps = steps;
        }
        let wrong = |error: serde_json::Error| Error::Settings(error.to_string());
        let options = serde_json::to_value(&self).map_err(wrong)?;
        let mut fitting = Fitting::new(self.given(), chosen, Arc::new(data));
        (fitting.options, fitting.search, fitting.finish) = (options, search, finish);
        (fitting.trees, fitting.structures) = (trees, structures);
        let is_open = fitting.search.is_some() && self.may_correlate(&kinds, fitting.data.len());
        fitting.may_correlate = is_open;
        Ok(fitting)
    }

    /// Whether clusters with factors may stand beside the trees.
    fn may_correlate(&self, kinds: &[Kind], rows: usize) -> bool {
        let is_table = self.image.is_none() && self.preset.is_none();
        let is_unwanted = self.without_clusters || self.without_factors;
        is_table && !is_unwanted && beside::may_correlate(kinds, rows)
    }

    /// The rows, which fit the model and no longer depend on the order in which they came.
    fn checked<'a>(&self, data: Data<'a>, kinds: &[Kind], classes: usize) -> Result<Data<'a>> {
        if self.preset.is_some() {
            return Ok(data); // its structure says what fits
        }
        if self.image.is_none() {
            let smallest = Structure::table(kinds).components(1).channels([1]);
            data.check(&smallest.classes(classes).build()?)?;
        } else {
            data.check(&self.suited(kinds, &data, classes)?.structure)?;
        }
        Ok(data.sorted())
    }

    /// The ways to learn that may suit the data, with the changed settings.
    fn candidates(
        &self,
        kinds: &[Kind],
        data: &Data<'_>,
        classes: usize,
    ) -> Result<Vec<Candidate>> {
        let is_table = self.image.is_none() && self.preset.is_none();
        let alone = |preset| Candidate {
            preset,
            finish: Finish::Trees,
        };
        let sizes = Sizes {
            components: self.components,
            channels: self.channels,
        };
        let mut candidates = if let Some(target) = self.target {
            let ways = regressions::candidates(kinds, data, target, sizes)?;
            ways.into_iter().map(alone).collect()
        } else if is_table && classes == 1 {
            let clusters =
                densities::clusters_beside(kinds, &data.values).filter(|_| !self.without_clusters);
            let with_clusters = |preset| Candidate {
                preset,
                finish: Finish::with(clusters),
            };
            let ways = densities::candidates(kinds, data, sizes)?;
            ways.into_iter().map(with_clusters).collect()
        } else if is_table {
            self.of_classes(kinds, data, classes)?
        } else if let (Some(shape), None, true) = (self.image, &self.preset, classes > 1) {
            self.of_images(shape, data, classes)?
        } else {
            vec![alone(self.suited(kinds, data, classes)?)]
        };
        for candidate in &mut candidates {
            self.change_settings(&mut candidate.preset.settings)?;
        }
        Ok(candidates)
    }

    /// The ways to learn a table with classes.
    fn of_classes(
        &self,
        kinds: &[Kind],
        data: &Data<'_>,
        classes: usize,
    ) -> Result<Vec<Candidate>> {
        let mut smooth = self.suited(kinds, data, classes)?;
        smooth.settings = tables::wide(smooth.settings, data.len(), kinds.len());
        if let Some(settings) = tables::quick(&smooth.settings, data.len(), classes) {
            smooth.settings = settings;
        }
        let sharp = tables::sharp(&smooth.settings, data.len()).map(|settings| Candidate {
            preset: Preset {
                settings,
                ..smooth.clone()
            },
            finish: Finish::Trees,
        });
        let clusters = tables::clusters(kinds, &data.values);
        let is_very_wide = tables::is_very_wide(data.len(), kinds.len());
        let clusters = clusters.filter(|_| !self.without_clusters && !is_very_wide);
        let smooth = Candidate {
            preset: smooth,
            finish: Finish::with(clusters),
        };
        Ok(std::iter::once(smooth).chain(sharp).collect())
    }

    /// The caller's settings in place of those that suit the data.
    fn change_settings(&self, settings: &mut Settings) -> Result<()> {
        if !self.changes.is_empty() {
            let changed = settings.with(&self.changes)?;
            let every = longer(settings, changed.steps).validate_every;
            let given = self.changes.contains_key("validate_every");
            let validate_every = if given { changed.validate_every } else { every };
            *settings = Settings {
                validate_every,
                ..changed
            };
        }
        settings.check()
    }

    /// Trials on rows that are held out, where there is something to choose.
    fn search(
        &self,
        candidates: &[Candidate],
        data: &Data<'_>,
        classes: usize,
    ) -> Result<Option<Search<'static>>> {
        let rows = data.len();
        let usual = if rows < 1_000 { 0.2 } else { 0.1 };
        let share = self.held_out.unwrap_or(usual);
        if !(0.0..1.0).contains(&share) {
            return Err(Error::shape(
                "held out",
                "a share from 0 to less than 1",
                share,
            ));
        }
        let share = share.min(MAX_HELD_OUT as f64 / rows.max(1) as f64);
        let is_open = candidates.len() > 1 || self.may_correlate(&candidates[0].kinds(), rows);
        if share == 0.0 || !is_open || rows < MIN_ROWS_TO_CHOOSE {
            return Ok(None);
        }
        let settings = &candidates[0].preset.settings;
        let Split { train, held_out } = data.split(share, settings.seed);
        // With one or two rows of every class none is held out.
        let says_nothing = |rows: &Data<'_>| rows.len() == 0 || rows.is_weightless();
        if [&train, &held_out].into_iter().any(says_nothing) {
            return Ok(None);
        }
        let given_steps = self.given_steps();
        let mut search = Search {
            candidates: candidates.to_vec(),
            train: Arc::new(train),
            held_out: Arc::new(held_out),
            long_steps: None,
            given_steps,
            at_the_end: classes > 1,
            trials: Vec::new(),
            best_logs: None,
        };
        search.hold_out(search.held_out.clone(), &candidates[0].preset);
        if self.image.is_some() {
            search.given_steps = Some(given_steps.unwrap_or(settings.steps));
            search.shorten(images::TRIAL_STEPS);
        }
        if classes == 1 && self.target.is_none() {
            let long_steps = densities::long_steps(rows, settings.batch);
            search.long_steps = given_steps.is_none().then_some(long_steps);
            search.shorten(TRIAL_STEPS);
        }
        Ok(Some(search))
    }

    /// The steps that the caller wants.
    fn given_steps(&self) -> Option<usize> {
        let steps = self.changes.get("steps").and_then(Value::as_u64);
        steps.and_then(|steps| usize::try_from(steps).ok())
    }

    /// What every tree is given.
    pub(crate) fn given(&self) -> Start {
        Start {
            prior: self.prior.clone(),
            about: self.about.clone(),
            device: self.device,
            precision: self.precision,
        }
    }

    /// The training run of one tree alone: for checkpoints, validation and all else that a [`Trainer`] can do.
    pub fn trainer(self, data: Data<'_>) -> Result<Trainer<'_>> {
        self.trees(1).clusters(false).start(data)?.into_trainer()
    }

    fn kinds_of(&self, rows: Rows<'_>) -> Vec<Kind> {
        let numbers = || vec![Kind::Gaussian; rows.width()];
        self.kinds.clone().unwrap_or_else(numbers)
    }

    /// As many classes as the prior or the labels name, at least one.
    fn classes_of(&self, data: &Data<'_>) -> usize {
        let last = data.labels.iter().copied().max().unwrap_or(-1);
        let named = usize::try_from(last).map_or(1, |last| last.saturating_add(1));
        let given = self.classes.unwrap_or(named);
        self.prior.as_ref().map_or(given, Vec::len)
    }

    fn tree_count(&self, rows: usize, classes: usize) -> Result<usize> {
        let usual = match self.image {
            Some(_) if rows >= MANY_IMAGES => 1,
            None if self.target.is_some() => regressions::trees(rows),
            None if classes == 1 => densities::trees(rows),
            _ => tables::trees(rows),
        };
        let trees = self.trees.unwrap_or(usual);
        match trees {
            0 => Err(Error::shape("trees", "at least 1", trees)),
            1..=MAX_TREES => Ok(trees),
            _ => Err(Error::shape("trees", format!("at most {MAX_TREES}"), trees)),
        }
    }

    /// The tree that suits this many images, with the sizes that the caller wants.
    fn image_spec(&self, shape: ImageShape, images: usize) -> ImageSpec {
        let mut spec = images::spec(shape, images);
        spec.components = self.components.unwrap_or(spec.components);
        for level in &mut spec.levels {
            level.channels = self.channels.unwrap_or(level.channels);
        }
        spec
    }

    /// The ways to learn images with classes.
    fn of_images(
        &self,
        shape: ImageShape,
        data: &Data<'_>,
        classes: usize,
    ) -> Result<Vec<Candidate>> {
        let images = data.len();
        let (spec, settings) = (
            self.image_spec(shape, images),
            images::settings(shape, images),
        );
        let mut candidates = Vec::new();
        for way in images::ways(spec, settings, images) {
            let preset = Preset {
                structure: way.spec.structure(classes)?,
                settings: way.settings,
                scaling: images::scaling(&data.values),
            };
            candidates.push(Candidate {
                preset,
                finish: Finish::Trees,
            });
        }
        Ok(candidates)
    }

    /// Structure, settings and scaling that suit the data.
    fn suited(&self, kinds: &[Kind], data: &Data<'_>, classes: usize) -> Result<Preset> {
        let (values, rows) = (&*data.values, data.len());
        if let Some(preset) = &self.preset {
            let mut preset = preset.clone();
            if !self.ranges.is_empty() {
                preset.scaling = tables::standardise(&preset.structure.row_kinds(), values);
            }
            return Ok(preset);
        }
        if let Some(shape) = self.image {
            return Ok(Preset {
                structure: self.image_spec(shape, rows).structure(classes)?,
                settings: images::settings(shape, rows),
                scaling: images::scaling(values),
            });
        }
        Ok(Preset {
            structure: self
                .columns(rows, classes)
                .structure_unless(&data.stop, kinds, values, classes)?,
            settings: tables::settings(kinds, values),
            scaling: tables::standardise_unless(&data.stop, kinds, values),
        })
    }
}

/// Every column must have a kind.
fn check_kinds(kinds: &[Kind], rows: Rows<'_>) -> Result<()> {
    if kinds.len() == rows.width() {
        return Ok(());
    }
    Err(Error::shape("kinds of columns", rows.width(), kinds.len()))
}
