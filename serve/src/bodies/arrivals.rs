//! Bodies that are arriving. When the service is full, the one that is furthest behind gives way to a new request, so that
//! slow clients do not keep others out until their time is over.
//!
//! How far a body is behind is a time: it grows while the service waits for bytes of the client, and every byte that comes
//! reduces it by 1 / [`RATE`] seconds, never below zero. Time in which the service itself is busy with a piece does not count.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Bytes per second of a body that keeps up.
const RATE: f64 = 16384.0;

/// A body that is less than this behind keeps its place.
const GRACE: Duration = Duration::from_secs(1);

/// Which places a body takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Read before it is answered: that of a request.
    Whole,
    /// Answered while it is read: that of a request, and one of the threads for streams.
    Stream,
}

#[derive(Debug)]
struct Arriving {
    kind: BodyKind,
    /// How far it was behind when the last piece came.
    behind: Duration,
    /// Since when the service waits for bytes of the client, if it does.
    waiting: Option<Instant>,
    give_way: Arc<Notify>,
}

impl Arriving {
    /// How far it is behind now, if the service waits for it.
    fn behind(&self) -> Option<Duration> {
        self.waiting.map(|since| self.behind + since.elapsed())
    }
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
            behind: Duration::ZERO,
            waiting: None,
            give_way: Arc::clone(&give_way),
        };
        self.open().insert(id, arriving);
        Arrival {
            all: self,
            id,
            give_way,
        }
    }

    /// Ends the body, of this kind if one is given, that is furthest behind; false where all keep up.
    pub fn make_room(&self, kind: Option<BodyKind>) -> bool {
        let mut open = self.open();
        let slowest = open
            .iter()
            .filter(|(_, arriving)| kind.is_none_or(|kind| arriving.kind == kind))
            .filter_map(|(id, arriving)| Some((arriving.behind()?, *id)))
            .max()
            .filter(|(behind, _)| *behind > GRACE)
            .map(|(_, id)| id);
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
    /// From now on the service waits for bytes of the client.
    pub fn waits(&self) {
        if let Some(arriving) = self.all.open().get_mut(&self.id) {
            arriving.waiting = Some(Instant::now());
        }
    }

    /// So many bytes have come, and the service is busy with them.
    pub fn came(&self, bytes: usize) {
        if let Some(arriving) = self.all.open().get_mut(&self.id) {
            let paid = Duration::from_secs_f64(bytes as f64 / RATE);
            arriving.behind = arriving
                .behind()
                .unwrap_or(arriving.behind)
                .saturating_sub(paid);
            arriving.waiting = None;
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

    /// As if the service had waited so long for all bodies.
    fn pass(arrivals: &Arrivals, time: Duration) {
        for arriving in arrivals.open().values_mut() {
            arriving.waiting = arriving.waiting.map(|since| since - time);
        }
    }

    #[test]
    fn the_slowest_gives_way_after_its_grace() {
        let arrivals = Arrivals::default();
        let early = arrivals.begin(BodyKind::Stream);
        let late = arrivals.begin(BodyKind::Whole);
        early.waits();
        late.waits();
        assert!(!arrivals.make_room(None), "all are within their grace");
        pass(&arrivals, 2 * GRACE);
        early.came(1 << 20);
        early.waits();
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

    #[test]
    fn a_byte_now_and_then_does_not_keep_the_place() {
        let arrivals = Arrivals::default();
        let body = arrivals.begin(BodyKind::Stream);
        let pieces = |bytes: usize| {
            for _ in 0..4 {
                body.waits();
                pass(&arrivals, GRACE / 2);
                body.came(bytes);
            }
            body.waits();
        };
        pieces(RATE as usize); // more than its time is worth, but nothing is saved up
        assert!(!arrivals.make_room(None), "it keeps up");
        pieces(1);
        assert!(arrivals.make_room(None), "it is 2 seconds behind");
    }

    #[test]
    fn the_time_of_the_service_does_not_count() {
        let arrivals = Arrivals::default();
        let body = arrivals.begin(BodyKind::Stream);
        pass(&arrivals, 9 * GRACE); // before it is read
        assert!(!arrivals.make_room(None));
        body.waits();
        body.came(1);
        pass(&arrivals, 9 * GRACE); // while a thread is busy with the piece
        body.waits();
        assert!(!arrivals.make_room(None));
    }
}
