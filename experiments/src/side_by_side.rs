//! Work done by so many threads at a time.

use anyhow::Result;
use std::sync::{Mutex, PoisonError};

/// Does all items; the first error is told when the others are done.
pub fn side_by_side<T: Send>(
    jobs: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let (left, failed) = (Mutex::new(items.into_iter()), Mutex::new(None));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(item) = next() {
                    if let Err(error) = work(item) {
                        failed
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_or_insert(error);
                    }
                }
            });
        }
    });
    failed
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
}
