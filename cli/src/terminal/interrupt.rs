//! Ctrl-C: unfinished files are removed, then the program ends. A training run can finish its step
//! first.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use sumout_data::unfinished_files;

/// The exit code of an interrupted program: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Whether the program will check [`REQUESTED`] soon.
static DEFERRED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C was pressed while it was deferred.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// A run that was stopped on request: not an error, but not finished. Says how to continue.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// While this is alive, the first Ctrl-C is a request, see [`requested`]; the second ends the
/// program.
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

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// From now on, Ctrl-C and SIGTERM remove unfinished files, then end the program.
pub fn install() {
    // This can fail only if there is a handler already; then that one does the work.
    let _ = ctrlc::set_handler(|| {
        if DEFERRED.load(Ordering::SeqCst) && !REQUESTED.swap(true, Ordering::SeqCst) {
            return;
        }
        unfinished_files::remove_all_and(|| std::process::exit(INTERRUPTED.into()))
    });
}
