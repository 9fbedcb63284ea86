//! The queue of the service in many orders in which its threads can run: nothing is lost, nothing is answered twice,
//! nobody waits for ever.

#[allow(dead_code)] // what these tests do not call
#[path = "../src/models/queue.rs"]
mod queue;

/// Locks that try all orders.
mod sync {
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
}

use loom::sync::Arc;
use loom::thread;
use queue::Queue;

/// Runs threads in all orders in which none is interrupted more than three times.
fn in_all_orders(run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(run);
}

/// Takes until the queue is closed and empty; numbers go together if both are even or both odd.
fn drain(queue: &Queue<u32>) -> Vec<u32> {
    let mut taken = Vec::new();
    while let Some(batch) = queue.take(|&first| move |&other: &u32| first % 2 == other % 2) {
        assert!(batch.iter().all(|number| number % 2 == batch[0] % 2));
        taken.extend(batch);
    }
    taken
}

#[test]
fn everything_is_taken_once() {
    in_all_orders(|| {
        let queue = Arc::new(Queue::new());
        let asker = queue.clone();
        let asker = thread::spawn(move || [1, 2].map(|number| asker.push(number, 10).unwrap()));
        let worker = queue.clone();
        let worker = thread::spawn(move || drain(&worker));
        queue.push(3, 10).unwrap();
        asker.join().unwrap();
        queue.close();
        let mut taken = worker.join().unwrap();
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3]);
        assert_eq!(queue.len(), 0);
    });
}

#[test]
fn a_full_queue_gives_back_and_keeps_the_rest() {
    in_all_orders(|| {
        let queue = Arc::new(Queue::new());
        let worker = queue.clone();
        let worker = thread::spawn(move || drain(&worker));
        let refused = [1, 2, 4].map(|number| queue.push(number, 1).err());
        queue.close();
        let mut all: Vec<u32> = refused.into_iter().flatten().collect();
        all.extend(worker.join().unwrap());
        all.sort_unstable();
        assert_eq!(all, [1, 2, 4]);
    });
}
