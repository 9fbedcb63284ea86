//! Ctrl-C: what was being written disappears with the program; a training run is asked to stop first.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use sumout_data::unfinished;

/// What a shell shows for a program that was interrupted: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Whether someone will look at [`REQUESTED`] soon.
static DEFERRED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C has come while it was deferred.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// A run that was stopped on request: no error, but not finished either. Says how to go on.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// While this is alive, the first Ctrl-C is a request that [`requested`] tells of; the second ends the program.
#[derive(Debug)]
pub struct Deferred(());

/// Defers Ctrl-C.
pub fn defer() -> Deferred {
    DEFERRED.store(true, Ordering::SeqCst);
    Deferred(())
}

impl Drop for Deferred {
    fn drop(&mut self) {
        DEFERRED.store(false, Ordering::SeqCst);
    }
}

/// Whether Ctrl-C has come.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// From now on Ctrl-C (and a polite request to end) removes what is unfinished, then ends the program.
pub fn install() {
    // The only failure is a second handler; then the first one does the work.
    let _ = ctrlc::set_handler(|| {
        if DEFERRED.load(Ordering::SeqCst) && !REQUESTED.swap(true, Ordering::SeqCst) {
            return;
        }
        unfinished::remove_all_and(|| std::process::exit(INTERRUPTED.into()))
    });
}
