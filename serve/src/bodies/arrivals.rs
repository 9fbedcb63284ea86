//! Bodies that are arriving. When the service is full, the one that has kept it waiting longest gives way to a new
//! request, so that slow clients do not keep others out until their time is over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// For this long every body may take its time.
const GRACE: Duration = Duration::from_secs(1);

/// What kind of body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Read before it is answered: it keeps the service waiting from its first byte to its last.
    Whole,
    /// Answered while it is read: it keeps the service waiting from one piece to the next.
    Stream,
}

#[derive(Debug)]
struct Arriving {
    kind: BodyKind,
    since: Instant,
    give_way: Arc<Notify>,
}

/// All bodies that are arriving.
#[derive(Debug, Default)]
pub struct Arrivals {
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Arriving>>,
}

impl Arrivals {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arriving>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A body begins to arrive; it has arrived when what this returns is dropped.
    pub fn begin(&self, kind: BodyKind) -> Arrival<'_> {
        let (id, give_way) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::default());
        let arriving = Arriving {
            kind,
            since: Instant::now(),
            give_way: Arc::clone(&give_way),
        };
        self.open().insert(id, arriving);
        Arrival {
            all: self,
            id,
            give_way,
        }
    }

    /// Ends the body, of this kind if one is given, that has kept the service waiting longest; false where all are
    /// within their grace.
    pub fn make_room(&self, kind: Option<BodyKind>) -> bool {
        let mut open = self.open();
        let of_kind = |arriving: &&Arriving| kind.is_none_or(|kind| arriving.kind == kind);
        let slowest = open
            .iter()
            .filter(|(_, arriving)| of_kind(arriving) && arriving.since.elapsed() > GRACE)
            .min_by_key(|(_, arriving)| arriving.since)
            .map(|(id, _)| *id);
        let Some(slowest) = slowest.and_then(|id| open.remove(&id)) else {
            return false;
        };
        slowest.give_way.notify_one();
        true
    }
}

/// One body that is arriving.
pub struct Arrival<'a> {
    all: &'a Arrivals,
    id: u64,
    give_way: Arc<Notify>,
}

impl Arrival<'_> {
    /// A piece has come.
    pub fn goes_on(&self) {
        if let Some(arriving) = self.all.open().get_mut(&self.id) {
            arriving.since = Instant::now();
        }
    }

    /// Returns when another request needs the place.
    pub async fn gives_way(&self) {
        self.give_way.notified().await;
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        self.all.open().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_gives_way_after_its_grace() {
        let arrivals = Arrivals::default();
        let early = arrivals.begin(BodyKind::Stream);
        let late = arrivals.begin(BodyKind::Whole);
        assert!(!arrivals.make_room(None), "all are within their grace");
        for arriving in arrivals.open().values_mut() {
            arriving.since -= 2 * GRACE;
        }
        early.goes_on();
        assert!(!arrivals.make_room(Some(BodyKind::Stream)));
        assert!(arrivals.make_room(None));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(late.gives_way());
        assert!(!arrivals.make_room(None), "it is asked once");
        drop(early);
        assert!(arrivals.open().is_empty());
    }
}
