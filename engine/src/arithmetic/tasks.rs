//! Tasks on the threads of the pool.

use rayon::prelude::*;

/// Multiply-adds below which handing tasks to other threads costs more than it saves.
const SMALL: usize = 1 << 21;

/// Runs tasks, on all threads if their `work` (in multiply-adds) is worth it. Tasks must not depend on their order.
pub fn for_each_task<T: Send>(work: usize, tasks: Vec<T>, run: impl Fn(T) + Send + Sync) {
    if work < SMALL {
        tasks.into_iter().for_each(run);
    } else {
        tasks.into_par_iter().for_each(run);
    }
}

/// Runs `work` multiply-adds of tasks on a thread of the pool, if they are many: from outside, every parallel part would
/// wait for one to wake up.
pub(crate) fn in_pool<R: Send>(work: usize, run: impl FnOnce() -> R + Send) -> R {
    if work < SMALL {
        run()
    } else {
        rayon::scope(|_| run())
    }
}
