//! Ctrl-C: what was being written disappears with the program; a training run is asked to stop first.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Files and folders that are not finished yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

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
        let unfinished = UNFINISHED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        unfinished.iter().for_each(|path| remove(path));
        // The lock is kept to the end, so that nothing new is begun in between.
        std::process::exit(INTERRUPTED.into())
    });
}

/// Notes a file or folder that an interruption must not leave behind. Note it before it is made.
pub fn begun(path: &Path) {
    UNFINISHED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .push(path.to_owned());
}

/// Forgets it: it has been finished or removed.
pub fn ended(path: &Path) {
    UNFINISHED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .retain(|other| other != path);
}

fn remove(path: &Path) {
    // Nothing can be done about a file that cannot be removed, and it may not be there yet.
    let _ = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
}

/// A folder of our own that goes away with this value.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it in the system's folder for temporary things.
    pub fn new() -> std::io::Result<Self> {
        let nanos = std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |age| age.as_nanos());
        let path = std::env::temp_dir().join(format!("sumout-{}-{nanos}", std::process::id()));
        begun(&path);
        let made = Self(path);
        fs::create_dir(&made.0)?;
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
        ended(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_goes_away() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        assert!(path.is_dir());
        drop(scratch);
        assert!(!path.exists());
        assert!(!UNFINISHED.lock().unwrap().contains(&path));
    }
}
