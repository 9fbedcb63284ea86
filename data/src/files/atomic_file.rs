//! A file that appears whole or not at all: written beside its place, then renamed into it.

use crate::error::{Error, ErrorKind, Result, file_error};
use crate::files::unfinished_files;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A file being written. Dropped before [`Staged::commit`] it leaves nothing behind.
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    /// The file beside it; `None` for a device or a pipe, which is written to as it is.
    beside: Option<PathBuf>,
    file: File,
}

/// An error if a file that is to be written is one that is also read, or written twice.
pub fn check_apart(out: &str, others: &[&str]) -> Result<()> {
    if out == "-" {
        return Ok(());
    }
    let Ok(place) = fs::canonicalize(out) else {
        return if others.contains(&out) {
            Err(twice(out))
        } else {
            Ok(())
        };
    };
    // A device can be both.
    let is_kept = place.is_file() || place.is_dir();
    let same = |other: &&str| fs::canonicalize(other).is_ok_and(|other| other == place && is_kept);
    if others.iter().filter(|other| **other != "-").any(same) {
        Err(twice(out))
    } else {
        Ok(())
    }
}

fn twice(out: &str) -> Error {
    let reason = "this command uses that file already; give another name";
    Error::cannot(ErrorKind::SameFile, "write", out, reason)
}

impl Staged {
    /// Starts a file that will stand at `path`; what is there now stays until [`Staged::commit`].
    pub fn create(path: &Path) -> Result<Self> {
        let fails = |error| file_error("write", path, error);
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if target.is_dir() {
            return Err(fails(io::ErrorKind::IsADirectory.into()));
        }
        if target.exists() && !target.is_file() {
            let file = File::options().write(true).open(&target).map_err(fails)?;
            return Ok(Self {
                target,
                beside: None,
                file,
            });
        }
        let beside = path_beside(path, &target)?;
        remove_abandoned(&beside);
        unfinished_files::begun(&beside);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        match options.open(&beside) {
            Ok(file) => {
                let _ = file.try_lock(); // says that it is in use, where the system has locks
                Ok(Self {
                    target,
                    beside: Some(beside),
                    file,
                })
            }
            Err(error) => {
                unfinished_files::ended(&beside);
                Err(fails(error))
            }
        }
    }

    /// Puts the file in its place. Only now does anyone see it.
    pub fn commit(mut self) -> Result<()> {
        let Some(beside) = &self.beside else {
            return Ok(());
        };
        let renamed = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(beside, &self.target));
        renamed.map_err(|error| file_error("write", &self.target, error))?;
        unfinished_files::ended(beside);
        keep_names(beside);
        self.beside = None;
        Ok(())
    }
}

/// Writes the names of a file's folder to the disk, so that after a power cut the new name is there before anything that
/// happens later. Systems that cannot do so keep their own order.
fn keep_names(file: &Path) {
    let folder = file.parent().and_then(|folder| File::open(folder).ok());
    let _ = folder.map(|folder| folder.sync_all());
}

/// A new name in the folder of the target; `path` is what the user called it.
fn path_beside(path: &Path, target: &Path) -> Result<PathBuf> {
    let shown = path.display().to_string();
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        let reason = format!("there is no folder {}", folder.display());
        return Err(Error::cannot(
            ErrorKind::MissingFile,
            "write",
            &shown,
            reason,
        ));
    }
    let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let Some(name) = target.file_name().filter(|_| !is_folder) else {
        let reason = "expected the name of a file";
        return Err(Error::cannot(ErrorKind::NotAFile, "write", &shown, reason));
    };
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (name, process) = (name.to_string_lossy(), std::process::id());
    Ok(folder.join(format!(".{name}.{process}-{number}.part")))
}

/// Removes files beside the same target that nobody writes any more: their programs were killed.
fn remove_abandoned(beside: &Path) {
    let (Some(folder), Some(name)) = (beside.parent(), beside.file_name()) else {
        return;
    };
    let name = name.to_string_lossy();
    let Some(stem) = name
        .strip_suffix(".part")
        .and_then(|name| name.rsplit_once('.'))
    else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        let middle = other
            .strip_prefix(stem.0)
            .and_then(|rest| rest.strip_suffix(".part"));
        let is_ours = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
        if middle.is_some_and(|middle| middle.chars().all(is_ours)) && is_abandoned(&entry.path()) {
            let _ = fs::remove_file(entry.path()); // nothing depends on it
        }
    }
}

/// Whether a file has not been written to for a minute and nobody holds its lock.
fn is_abandoned(path: &Path) -> bool {
    const QUIET: Duration = Duration::from_secs(60);
    let modified = fs::metadata(path).and_then(|about| about.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    let file = File::options().write(true).open(path);
    age.is_some_and(|age| age > QUIET) && file.is_ok_and(|file| file.try_lock().is_ok())
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = fs::remove_file(beside); // nothing can be done about an error here
            unfinished_files::ended(beside);
        }
    }
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Staged {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let mut staged = Staged::create(&path).unwrap();
        staged.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(staged);
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"old".to_vec(), vec!["out.csv".to_owned()])
        );
        let mut staged = Staged::create(&path).unwrap();
        staged.write_all(b"new").unwrap();
        staged.commit().unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"new".to_vec(), vec!["out.csv".to_owned()])
        );
    }

    #[test]
    fn what_a_killed_program_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, age: u64| {
            let file = File::create(folder.path().join(name)).unwrap();
            let then = std::time::SystemTime::now() - Duration::from_secs(age);
            file.set_modified(then).unwrap();
            file
        };
        drop(of(".a.csv.7-0.part", 3600));
        drop(of(".a.csv.8-0.part", 5));
        drop(of(".b.csv.7-0.part", 3600));
        drop(of(".a.csv.old.7-0.part", 3600));
        let in_use = of(".a.csv.9-0.part", 3600);
        in_use.lock().unwrap();
        drop(Staged::create(&folder.path().join("a.csv")).unwrap());
        let left = [
            ".a.csv.8-0.part",
            ".a.csv.9-0.part",
            ".a.csv.old.7-0.part",
            ".b.csv.7-0.part",
        ];
        assert_eq!(names(folder.path()), left);
    }

    #[test]
    fn says_why_it_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let error = Staged::create(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("it is a folder"), "{error}");
        let error = Staged::create(&folder.path().join("none/out.csv"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("there is no folder") && error.ends_with("none"),
            "{error}"
        );
    }

    #[test]
    fn what_is_read_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data.csv");
        fs::write(&data, "a\n1\n").unwrap();
        let (data, detour) = (data.to_str().unwrap(), folder.path().join("./data.csv"));
        assert!(check_apart(detour.to_str().unwrap(), &["-", data]).is_err());
        assert!(check_apart("not there yet", &["not there yet"]).is_err());
        for (out, others) in [
            ("-", ["-", data]),
            ("new.csv", ["old.csv", data]),
            ("/dev/null", ["/dev/null", data]),
        ] {
            check_apart(out, &others).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_a_link_stays_one() {
        let mut staged = Staged::create(Path::new("/dev/null")).unwrap();
        staged.write_all(b"gone").unwrap();
        staged.commit().unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut staged = Staged::create(&link).unwrap();
        staged.write_all(b"new").unwrap();
        staged.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }
}
