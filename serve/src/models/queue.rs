//! What waits for a thread: a queue with a limit, from which the thread takes all that goes together.
//!
//! `serve/tests/queue.rs` compiles this file with the locks of `loom`, which tries orders in which threads can run.

use super::sync::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;

/// What waits, and whether more may come.
struct State<T> {
    waiting: VecDeque<T>,
    closed: bool,
}

/// A queue of many who ask and one who answers.
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Queue<T> {
    /// Nothing waits.
    pub fn new() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        let state = self.state.lock();
        state.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Puts one more at the end, or gives it back if `most` wait already.
    pub fn push(&self, item: T, most: usize) -> Result<(), T> {
        let mut state = self.lock();
        if state.waiting.len() >= most {
            return Err(item);
        }
        state.waiting.push_back(item);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// No more will come. What waits can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// The first that waits, and of those behind it all that go with it: `joins`, made from the first, is asked about one
    /// after the other. Waits if there is nothing; gives nothing once the queue is closed and empty.
    pub fn take<J: FnMut(&T) -> bool>(&self, joins: impl Fn(&T) -> J) -> Option<Vec<T>> {
        let mut state = self.lock();
        loop {
            if let Some(first) = state.waiting.pop_front() {
                let mut joins = joins(&first);
                let waiting = std::mem::take(&mut state.waiting);
                let (joined, others) = waiting.into_iter().partition::<Vec<T>, _>(&mut joins);
                state.waiting = others.into();
                return Some([vec![first], joined].into_iter().flatten().collect());
            }
            if state.closed {
                return None;
            }
            let changed = self.changed.wait(state);
            state = changed.unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}
