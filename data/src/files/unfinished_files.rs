//! Files and folders that are being written, and must not be left behind when the program is stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Files and folders that are not finished yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all that is unfinished, then ends the program by `exit`. Nothing new is begun in between.
pub fn remove_all_and(exit: impl FnOnce()) {
    let unfinished = UNFINISHED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    unfinished.iter().for_each(|path| remove(path));
    exit(); // with the lock still held
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
pub struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Makes it in the system's folder for temporary things.
    pub fn new() -> std::io::Result<Self> {
        let nanos = std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |age| age.as_nanos());
        let path = std::env::temp_dir().join(format!("sumout-{}-{nanos}", std::process::id()));
        begun(&path);
        let made = Self(path);
        let mut folder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700); // rows of the user may lie in it
        folder.create(&made.0)?;
        Ok(made)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
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
        let scratch = ScratchFolder::new().unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        assert!(path.is_dir());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o77, 0, "others can read it");
        }
        drop(scratch);
        assert!(!path.exists());
        assert!(!UNFINISHED.lock().unwrap().contains(&path));
    }
}
