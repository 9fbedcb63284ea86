//! Opens a data set, whatever it is.

use crate::catalog::{download, sets as catalog};
use crate::digits;
use crate::encode as columns;
use crate::error::mistake;
use crate::formats::{idx, norb, npy, npz, png};
use crate::layout::{Request, Rows, Split, Table};
use crate::source::Origin;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Idx,
    Norb,
    Npy,
    Npz,
    Png,
    Table(columns::Format),
}

/// Opens a data set as a stream: a file, a folder, `-` for standard input (CSV or JSON lines), `digits` for the ones
/// that came with the program, or the name of a set that [`download`] has put on this machine.
pub fn open(input: &str, request: &Request) -> Result<Rows> {
    let path = Path::new(input);
    if input == "-" {
        return columns::open(&Origin::Stdin, None, request);
    }
    if path.is_dir() {
        return open_folder(path, request);
    }
    if path.is_file() {
        return open_file(path, request);
    }
    if path.exists() {
        // A pipe; its beginning can be looked at only once.
        return columns::open(&Origin::File(path.to_owned()), None, request);
    }
    if input == digits::NAME {
        return open_digits(request);
    }
    match catalog::find(input) {
        Some(set) => match download::on_this_machine(set) {
            Some((folder, _)) => open_folder(&folder, request),
            None => Err(mistake(format!(
                "{input} is not on this machine yet; `sumout data get {input}` fetches it"
            ))),
        },
        None => Err(mistake(format!(
            "cannot read {input}: there is no such file, folder or data set"
        ))),
    }
}

/// Reads a whole data set into memory, to learn from it. One without rows is an error.
pub fn read(input: &str, request: &Request) -> Result<Table> {
    let table = open(input, request)?.collect_table()?;
    if table.values.is_empty() {
        return Err(mistake(format!(
            "{input}: expected at least one row, got none"
        )));
    }
    Ok(table)
}

/// The digits that came with the program.
pub fn open_digits(request: &Request) -> Result<Rows> {
    let [images, labels] = digits::files(request.split == Split::Test).map(|file| Origin::Memory {
        name: format!("{} of the digits", file.name),
        bytes: file.bytes.into(),
    });
    idx::open(&images, Some(&labels), request)
}

/// A folder such as MNIST's, or one of images.
fn open_folder(folder: &Path, request: &Request) -> Result<Rows> {
    match idx::in_folder(folder, request.split) {
        Some(images) => idx::open_file(&images, request),
        None => png::open_folder(folder, request),
    }
}

fn open_file(path: &Path, request: &Request) -> Result<Rows> {
    match format_of(path)? {
        Format::Idx => idx::open_file(path, request),
        Format::Norb => norb::open_file(path, request),
        Format::Npy => npy::open_file(path, request),
        Format::Npz => npz::open_file(path, request),
        Format::Png => png::open_file(path, request),
        Format::Table(format) => {
            columns::open(&Origin::File(path.to_owned()), Some(format), request)
        }
    }
}

/// By the ending of its name, or by its first bytes where the name says nothing.
fn format_of(path: &Path) -> Result<Format> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let plain = Path::new(name.strip_suffix(".gz").unwrap_or(&name)).to_owned();
    let by_name = match plain
        .extension()
        .unwrap_or_default()
        .to_str()
        .unwrap_or_default()
    {
        "csv" | "tsv" => Some(Format::Table(columns::Format::Csv)),
        "jsonl" | "ndjson" => Some(Format::Table(columns::Format::JsonLines)),
        "parquet" => Some(Format::Table(columns::Format::Parquet)),
        "npy" => Some(Format::Npy),
        "npz" => Some(Format::Npz),
        "png" => Some(Format::Png),
        "mat" => Some(Format::Norb),
        _ => name.contains("idx").then_some(Format::Idx),
    };
    by_name.map_or_else(|| by_content(path), Ok)
}

fn by_content(path: &Path) -> Result<Format> {
    let mut input = Origin::File(PathBuf::from(path)).open()?;
    let start = input.peek()?;
    Ok(match start {
        _ if start.starts_with(npy::MAGIC) => Format::Npy,
        _ if start.starts_with(npz::MAGIC) => Format::Npz,
        _ if start.starts_with(png::MAGIC) => Format::Png,
        _ if start.starts_with(b"PAR1") => Format::Table(columns::Format::Parquet),
        _ if norb::begins(start) => Format::Norb,
        [0, 0, 8..=14, 1..=4, ..] => Format::Idx,
        _ => {
            let endings =
                ".csv, .jsonl, .npy, .npz, .png, .parquet, .mat (small NORB) or an IDX file";
            return Err(mistake(format!(
                "{}: expected {endings}, got something else",
                path.display()
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Shape;
    use std::fs;

    #[test]
    fn names_and_contents_tell_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            format_of(&path)
        };
        use columns::Format::{Csv, JsonLines, Parquet};
        for (name, format) in [
            ("a.csv", Format::Table(Csv)),
            ("a.TSV", Format::Table(Csv)),
            ("a.csv.gz", Format::Table(Csv)),
            ("a.jsonl", Format::Table(JsonLines)),
            ("a.parquet", Format::Table(Parquet)),
            ("a.npy", Format::Npy),
            ("a.npz", Format::Npz),
            ("a.png", Format::Png),
            ("a-dat.mat", Format::Norb),
            ("train-images-idx3-ubyte.gz", Format::Idx),
            ("a.idx", Format::Idx),
        ] {
            assert_eq!(of(name, b"").unwrap(), format, "{name}");
        }
        for (start, format) in [
            (&b"\x93NUMPY\x01\x00"[..], Format::Npy),
            (b"PK\x03\x04....", Format::Npz),
            (b"\x89PNG\r\n\x1a\n", Format::Png),
            (b"PAR1", Format::Table(Parquet)),
            (&0x1e3d_4c55_u32.to_le_bytes(), Format::Norb),
            (&[0, 0, 8, 3, 0], Format::Idx),
        ] {
            assert_eq!(of("unnamed", start).unwrap(), format, "{start:?}");
        }
        let error = of("a.docx", b"hello").unwrap_err().to_string();
        assert!(
            error.ends_with("or an IDX file, got something else"),
            "{error}"
        );
    }

    #[test]
    fn the_digits_are_all_there() {
        for (split, each) in [(Split::Train, 500), (Split::Test, 100)] {
            let table = open_digits(&Request {
                split,
                ..Request::default()
            })
            .unwrap()
            .collect_table()
            .unwrap();
            assert_eq!(
                table.layout.shape,
                Some(Shape {
                    height: 28,
                    width: 28,
                    channels: 1
                })
            );
            let labels = table.labels.as_ref().unwrap();
            assert!(
                (0..10).all(|class| labels.iter().filter(|&&label| label == class).count() == each)
            );
            assert_eq!((table.rows(), table.classes()), (10 * each, 10));
            let ink = table.values.iter().sum::<f32>() / table.values.len() as f32;
            assert!(
                (30.0..36.0).contains(&ink),
                "MNIST's mean is 33.3, this is {ink}"
            );
        }
        let bytes: usize = [false, true]
            .iter()
            .flat_map(|&test| digits::files(test))
            .map(|file| file.bytes.len())
            .sum();
        assert!(bytes < 1_500_000, "{bytes}");
    }

    #[test]
    fn nothing_there_and_nothing_in_it() {
        let error = read("nowhere.csv", &Request::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read nowhere.csv: there is no such file, folder or data set"
        );
        assert!(crate::error::is_users(&error));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv").display().to_string();
        fs::write(&path, "a,b\n").unwrap();
        let error = read(&path, &Request::default()).unwrap_err().to_string();
        assert!(
            error.ends_with("a.csv: expected at least one row, got none"),
            "{error}"
        );
        assert_eq!(
            open(&path, &Request::default()).unwrap().count(),
            0,
            "no questions, no answers"
        );
    }
}
