//! How many steps a fit has, and in which part it is.

use crate::recipes::fit::in_progress::Fitting;
use crate::recipes::fit::progress::Part;
use crate::recipes::search::Search;
use crate::recipes::tables;
use crate::training::trainer::Trainer;

impl Fitting<'_> {
    /// Steps of all parts; a guess until the trials are done.
    pub fn steps(&self) -> usize {
        let all = self.steps_done.saturating_add(self.steps_after());
        if self.is_done() {
            return all;
        }
        let now = match (&self.trainer, &self.search) {
            (Some(trainer), _) => self.last_step(trainer),
            (None, Some(search)) => search.next().map_or(0, |(_, next)| next.settings.steps),
            (None, None) if self.trees_done < self.trees => self.tree_steps(),
            (None, None) => self.together().map_or(0, |settings| settings.steps),
        };
        all.saturating_add(now)
    }

    /// What is trained now.
    pub(super) fn part(&self) -> Part {
        if let Some(search) = &self.search {
            let long = usize::from(search.long_steps.is_some());
            return Part::Trial {
                number: search.trials.len() + 1,
                of: search.candidates.len() + long,
            };
        }
        if self.trees_done < self.trees {
            return Part::Tree {
                number: self.trees_done + 1,
                of: self.trees,
            };
        }
        Part::Together
    }

    /// The step after which the part under way ends.
    pub(super) fn last_step(&self, trainer: &Trainer<'_>) -> usize {
        let steps = trainer.settings().steps;
        let is_tree = self.search.is_none() && self.trees_done < self.trees;
        self.stop_after.filter(|_| is_tree).unwrap_or(steps)
    }

    /// Steps of every tree.
    pub(super) fn tree_steps(&self) -> usize {
        self.stop_after.unwrap_or(self.chosen.settings.steps)
    }

    /// Steps of the parts after the one under way.
    pub(super) fn steps_after(&self) -> usize {
        let together = self.together().map_or(0, |settings| settings.steps);
        if let Some(search) = &self.search {
            let longest = search.longest();
            let all_trees = self.trees.saturating_mul(longest);
            let now = search.next().map_or(0, |(_, next)| next.settings.steps);
            let trials = search.steps_left().saturating_sub(now);
            let beside = tables::finish_steps(longest); // clusters with factors may come
            let together = together.max(if self.may_correlate { beside } else { 0 });
            return trials.saturating_add(all_trees).saturating_add(together);
        }
        if self.trees_done < self.trees {
            let trees = self.trees - self.trees_done - 1;
            return trees
                .saturating_mul(self.tree_steps())
                .saturating_add(together);
        }
        0
    }

    /// How many trials there are before the trees.
    pub fn trials(&self) -> usize {
        let long = |search: &Search<'_>| usize::from(search.long_steps.is_some());
        let search = self.search.as_ref();
        search.map_or(0, |search| search.candidates.len() + long(search))
    }

    /// Steps done so far.
    pub fn steps_done(&self) -> usize {
        let now = self.trainer.as_ref().map_or(0, Trainer::steps_done);
        self.steps_done + now
    }
}
