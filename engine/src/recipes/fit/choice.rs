//! What a fit takes from its trials: the best way to learn, and the clusters that stand beside the trees.

use crate::error::Result;
use crate::recipes::beside::{self, Beside, Correlated};
use crate::recipes::fit::in_progress::Fitting;
use crate::recipes::search::{Finish, Search};
use crate::training::data::Split;

impl Fitting<'_> {
    /// Takes what won; it is trained on all rows for as many steps as were best. Clusters with factors are tried, unless it
    /// is `known` which there are.
    pub(crate) fn choose(&mut self, known: Option<Option<Correlated>>) -> Result<()> {
        let Some(search) = self.search.take() else {
            return Ok(());
        };
        let chosen = self.choose_by(&search, known);
        if chosen.is_err() {
            self.search = Some(search); // stopped by the caller, who may go on
        }
        chosen
    }

    fn choose_by(&mut self, search: &Search<'_>, known: Option<Option<Correlated>>) -> Result<()> {
        self.start.about.training.set("trials", &search.trials);
        if let Some((candidate, stop_after)) = search.winner() {
            (self.chosen, self.finish) = (candidate.preset, candidate.finish);
            self.stop_after = stop_after.filter(|_| self.validation.is_none());
        }
        self.correlate(search, known)
    }

    /// The clusters with factors that stand beside the trees.
    pub(crate) fn correlated(&self) -> Option<Correlated> {
        match self.finish {
            Finish::Beside(beside) => beside.correlated,
            Finish::Trees | Finish::Model => None,
        }
    }

    /// Puts clusters with factors beside the trees, where they say more of held-out rows than the best trial of trees, and
    /// than other clusters.
    fn correlate(&mut self, search: &Search<'_>, known: Option<Option<Correlated>>) -> Result<()> {
        if !self.may_correlate {
            return Ok(());
        }
        let leaves = self.chosen.settings.leaves;
        let mut beside = match self.finish {
            Finish::Beside(beside) => beside,
            Finish::Trees => Beside::correlated(leaves, None),
            Finish::Model => return Ok(()),
        };
        let (train, held_out) = ((*search.train).clone(), (*search.held_out).clone());
        let trial = beside::Trial {
            preset: &self.chosen,
            prior: self.start.prior.as_deref(),
            rows: Split { train, held_out },
        };
        let best = search.best().map(|best| best.score);
        let tried = || trial.factors(&beside, best, search.best_logs.as_ref());
        beside.correlated = known.map_or_else(tried, Ok)?;
        if beside.correlated.is_some() {
            self.finish = Finish::Beside(beside);
        }
        Ok(())
    }
}
