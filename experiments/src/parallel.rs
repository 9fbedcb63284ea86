//! Work that several threads share.

use anyhow::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Does the work on all items, on `jobs` threads. Returns the first error when all are done.
pub fn for_each<T: Send>(
    jobs: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let (left, failed) = (Mutex::new(items.into_iter()), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| work_until_done(&left, &failed, &work));
        }
    });
    failed
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
}

/// One thread: takes items until none is left.
fn work_until_done<T>(
    left: &Mutex<impl Iterator<Item = T>>,
    failed: &Mutex<Option<Error>>,
    work: &impl Fn(T) -> Result<()>,
) {
    let next = || lock(left).next();
    while let Some(item) = next() {
        if let Err(error) = work(item) {
            lock(failed).get_or_insert(error);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_error_does_not_stop_the_others() {
        let done = AtomicUsize::new(0);
        let result = for_each(3, (1..=20).collect(), |n: usize| {
            anyhow::ensure!(n != 4, "four");
            done.fetch_add(n, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(result.unwrap_err().to_string(), "four");
        assert_eq!(done.into_inner(), 210 - 4);
    }
}
