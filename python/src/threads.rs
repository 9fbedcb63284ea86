//! Threads of our own: as many as the caller wants, and none that a fork has lost.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

type Pools = Vec<((u32, usize), Arc<ThreadPool>)>; // by process and threads

static POOLS: Mutex<Pools> = Mutex::new(Vec::new());

/// A pool of so many threads, 0 for one a core. A forked process has none of its parent's threads and makes new ones.
pub fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let key = (std::process::id(), threads);
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pool)) = pools.iter().find(|(known, _)| *known == key) {
        return Ok(pool.clone());
    }
    let made = ThreadPoolBuilder::new().num_threads(threads).build();
    let made = Arc::new(made.map_err(|error| PyRuntimeError::new_err(error.to_string()))?);
    pools.push((key, made.clone()));
    Ok(made)
}
