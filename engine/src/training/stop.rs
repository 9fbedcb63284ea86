//! A request to stop, for what comes before the first step: the choice of columns, the start of leaves, clusters.
//!
//! Steps need none: whoever runs them hears of each and can break off.

use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, which another thread makes; clones are the same request.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Work on [`Data`](crate::training::Data) that carry this soon ends with [`Error::Stopped`].
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody wants to stop. Loops that see it leave early, and whatever they have made is thrown away.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What the work gives; nothing worth having once somebody wants to stop.
    pub(crate) fn unless<T: Default>(&self, work: impl FnOnce() -> T) -> T {
        if self.is_requested() {
            return T::default();
        }
        work()
    }

    /// An error if somebody wants to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_requested() {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}
