//! Opens a data set, whatever it is.

use crate::catalog::digits;
use crate::catalog::{download, sets as catalog};
use crate::columns::fit_to_model;
use crate::columns::table_source::{TableFormat, TableSource};
use crate::error::{Error, ErrorKind, Result};
use crate::files::source::Origin;
use crate::formats::class_files::ClassFiles;
use crate::formats::png::ImageFiles;
use crate::formats::sound_files::SoundFiles;
use crate::formats::{idx, norb, npy, npz, parquet_folder, png, sound};
use crate::rows::layout::{Layout, ReadOptions, RowStream, Split, Table};
use std::path::{Path, PathBuf};

/// A data set that was opened: raw rows, which become numbers in one of two ways.
pub struct DataSet {
    options: ReadOptions,
    raw: Raw,
}

/// What readers give.
enum Raw {
    /// Cells with names.
    Table(TableSource),
    /// Numbers, and perhaps labels.
    Numbers(Box<RowStream>),
    /// Files of images, and perhaps classes.
    Images(ClassFiles),
    /// Files of sound, and perhaps classes.
    Sounds(ClassFiles),
}

impl Raw {
    fn numbers(rows: RowStream) -> Self {
        Self::Numbers(Box::new(rows))
    }
}

impl DataSet {
    /// Rows to learn from: a table's columns, categories and classes are found by reading it.
    pub fn rows(self) -> Result<RowStream> {
        match self.raw {
            Raw::Table(source) => source.rows(&self.options),
            Raw::Numbers(rows) => Ok(*rows),
            Raw::Images(files) => ImageFiles(files).rows(None),
            Raw::Sounds(files) => SoundFiles(files).rows(None),
        }
    }

    /// Rows for a model, with its columns, categories and classes.
    pub fn fitted_to(self, model: &Layout) -> Result<RowStream> {
        match self.raw {
            Raw::Table(source) => fit_to_model::table(&source, &self.options, model),
            Raw::Numbers(rows) => fit_to_model::numbers(*rows, model),
            Raw::Images(files) => fit_to_model::images(files, model),
            Raw::Sounds(files) => fit_to_model::sounds(files, model),
        }
    }
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileFormat {
    Idx,
    Norb,
    Npy,
    Npz,
    Png,
    Sound,
    Table(TableFormat),
}

/// Whether a name ends like a file of data.
pub fn is_data_name(name: &str) -> bool {
    const ENDINGS: [&str; 9] = [
        ".csv", ".tsv", ".csv.gz", ".jsonl", ".parquet", ".npy", ".npz", ".png", ".wav",
    ];
    let name = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Opens a data set: a file, a folder, `-` for standard input (CSV or JSON lines), `digits` for the ones that come with
/// this crate, or the name of a set that [`download`] has put on this machine.
pub fn open(input: &str, options: &ReadOptions) -> Result<DataSet> {
    let raw = open_raw(input, options)?;
    Ok(DataSet {
        options: options.clone(),
        raw,
    })
}

fn open_raw(input: &str, options: &ReadOptions) -> Result<Raw> {
    let path = Path::new(input);
    if input == "-" {
        return Ok(Raw::Table(TableSource::new(Origin::Stdin, None)));
    }
    if path.is_dir() {
        return open_folder(path, options.split);
    }
    if path.is_file() {
        return open_file(path, options.split);
    }
    if path.exists() {
        // A pipe; its beginning can be read only once.
        let origin = Origin::File(path.to_owned());
        return Ok(Raw::Table(TableSource::new(origin, None)));
    }
    if input == digits::NAME {
        return open_digits_files(options.split).map(Raw::numbers);
    }
    let Some(set) = catalog::find(input) else {
        let reason = "there is no such file, folder or data set";
        return Err(Error::cannot(ErrorKind::MissingFile, "read", input, reason));
    };
    match download::on_this_machine(set) {
        Some((folder, _)) => open_folder(&folder, options.split),
        None => {
            let sentence = "the data set is not on this machine yet";
            Err(Error::new(ErrorKind::NotFetched, sentence).in_file(input))
        }
    }
}

/// Reads a whole data set into memory, to learn from it. One without rows is an error.
pub fn read(input: &str, options: &ReadOptions) -> Result<Table> {
    not_empty(input, open(input, options)?.rows()?)
}

/// Reads a whole data set into memory, fitted to a model. One without rows is an error.
pub fn read_fitted(input: &str, options: &ReadOptions, model: &Layout) -> Result<Table> {
    not_empty(input, open(input, options)?.fitted_to(model)?)
}

fn not_empty(input: &str, rows: RowStream) -> Result<Table> {
    let table = rows.collect_table()?;
    if table.values.is_empty() {
        let error = Error::expected(ErrorKind::Empty, "at least one row", "none");
        return Err(error.in_file(input));
    }
    Ok(table)
}

/// The digits that come with this crate.
pub fn open_digits(options: &ReadOptions) -> Result<DataSet> {
    Ok(DataSet {
        options: options.clone(),
        raw: Raw::numbers(open_digits_files(options.split)?),
    })
}

fn open_digits_files(split: Split) -> Result<RowStream> {
    let origin = |file: digits::Embedded| Origin::Memory {
        name: format!("{} of the digits", file.name),
        bytes: file.bytes.into(),
    };
    let [images, labels] = digits::files(split == Split::Test).map(origin);
    idx::open(&images, Some(&labels))
}

/// A folder such as MNIST's, one of Parquet files, or one of images or sounds.
fn open_folder(folder: &Path, split: Split) -> Result<Raw> {
    if !parquet_folder::files(folder)?.is_empty() {
        let origin = Origin::File(folder.to_owned());
        let source = TableSource::new(origin, Some(TableFormat::Parquet));
        return Ok(Raw::Table(source));
    }
    if let Some(images) = idx::in_folder(folder, split) {
        return idx::open_file(&images).map(Raw::numbers);
    }
    if let Some(images) = ClassFiles::of_folder(folder, split, "png")? {
        return Ok(Raw::Images(images));
    }
    if let Some(sounds) = ClassFiles::of_folder(folder, split, "wav")? {
        return Ok(Raw::Sounds(sounds));
    }
    let expected = "MNIST's four files, Parquet files, PNG images, WAV files, or folders of them";
    let error = Error::expected(ErrorKind::UnknownFormat, expected, "none");
    Err(error.in_file(&folder.display().to_string()))
}

fn open_file(path: &Path, split: Split) -> Result<Raw> {
    Ok(match format_of(path)? {
        FileFormat::Idx => Raw::numbers(idx::open_file(path)?),
        FileFormat::Norb => Raw::numbers(norb::open_file(path)?),
        FileFormat::Npy => Raw::numbers(npy::open_file(path)?),
        FileFormat::Npz => Raw::numbers(npz::open_file(path, split)?),
        FileFormat::Png => Raw::Images(ClassFiles::of_file(path)),
        FileFormat::Sound => Raw::Sounds(ClassFiles::of_file(path)),
        FileFormat::Table(format) => {
            let origin = Origin::File(path.to_owned());
            Raw::Table(TableSource::new(origin, Some(format)))
        }
    })
}

/// By the ending of its name, or by its first bytes where the name says nothing.
fn format_of(path: &Path) -> Result<FileFormat> {
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
        "csv" | "tsv" => Some(FileFormat::Table(TableFormat::Csv)),
        "jsonl" | "ndjson" => Some(FileFormat::Table(TableFormat::JsonLines)),
        "parquet" => Some(FileFormat::Table(TableFormat::Parquet)),
        "npy" => Some(FileFormat::Npy),
        "npz" => Some(FileFormat::Npz),
        "png" => Some(FileFormat::Png),
        "wav" | "sph" => Some(FileFormat::Sound),
        "mat" => Some(FileFormat::Norb),
        "xlsx" | "xls" | "ods" => return Err(to_export(path, "a spreadsheet")),
        "json" => return Err(to_export(path, "JSON")),
        _ => name.contains("idx").then_some(FileFormat::Idx),
    };
    by_name.map_or_else(|| by_content(path), Ok)
}

/// A file of another program, which can write it as a table.
fn to_export(path: &Path, got: &str) -> Error {
    let got = format!("{got}; export it as CSV (.csv) or JSON lines (.jsonl)");
    let error = Error::expected(ErrorKind::UnknownFormat, "a table of a known format", got);
    error.in_file(&path.display().to_string())
}

fn by_content(path: &Path) -> Result<FileFormat> {
    let mut input = Origin::File(PathBuf::from(path)).open()?;
    let start = input.peek()?;
    Ok(match start {
        _ if start.starts_with(npy::MAGIC) => FileFormat::Npy,
        _ if start.starts_with(npz::MAGIC) => FileFormat::Npz,
        _ if start.starts_with(png::MAGIC) => FileFormat::Png,
        _ if sound::begins(start) => FileFormat::Sound,
        _ if start.starts_with(b"PAR1") => FileFormat::Table(TableFormat::Parquet),
        _ if norb::begins(start) => FileFormat::Norb,
        [0, 0, 8..=14, 1..=4, ..] => FileFormat::Idx,
        _ => {
            let endings =
                ".csv, .jsonl, .npy, .npz, .png, .wav, .parquet, .mat (small NORB) or an IDX file";
            let error = Error::expected(ErrorKind::UnknownFormat, endings, "something else");
            return Err(error.in_file(&path.display().to_string()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::layout::ImageShape;
    use std::fs;

    #[test]
    fn names_and_contents_tell_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            format_of(&path)
        };
        use TableFormat::{Csv, JsonLines, Parquet};
        for (name, format) in [
            ("a.csv", FileFormat::Table(Csv)),
            ("a.TSV", FileFormat::Table(Csv)),
            ("a.csv.gz", FileFormat::Table(Csv)),
            ("a.jsonl", FileFormat::Table(JsonLines)),
            ("a.parquet", FileFormat::Table(Parquet)),
            ("a.npy", FileFormat::Npy),
            ("a.npz", FileFormat::Npz),
            ("a.png", FileFormat::Png),
            ("A.WAV", FileFormat::Sound),
            ("a-dat.mat", FileFormat::Norb),
            ("train-images-idx3-ubyte.gz", FileFormat::Idx),
            ("a.idx", FileFormat::Idx),
        ] {
            assert_eq!(of(name, b"").unwrap(), format, "{name}");
        }
        for (start, format) in [
            (&b"\x93NUMPY\x01\x00"[..], FileFormat::Npy),
            (b"PK\x03\x04....", FileFormat::Npz),
            (b"\x89PNG\r\n\x1a\n", FileFormat::Png),
            (b"PAR1", FileFormat::Table(Parquet)),
            (b"RIFF\0\0\0\0WAVEfmt ", FileFormat::Sound),
            (b"NIST_1A\n   1024\n", FileFormat::Sound),
            (&0x1e3d_4c55_u32.to_le_bytes(), FileFormat::Norb),
            (&[0, 0, 8, 3, 0], FileFormat::Idx),
        ] {
            assert_eq!(of("unnamed", start).unwrap(), format, "{start:?}");
        }
        for (name, bytes, got) in [
            ("a.xlsx", &b"PK\x03\x04...."[..], "a spreadsheet"),
            ("a.XLS", b"\xd0\xcf", "a spreadsheet"),
            ("a.json", b"[{\"x\": 1}]", "JSON"),
        ] {
            let error = of(name, bytes).unwrap_err().to_string();
            let advice = format!("got {got}; export it as CSV (.csv) or JSON lines (.jsonl)");
            assert!(error.ends_with(&advice), "{error}");
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
            let table = open_digits(&ReadOptions {
                split,
                ..ReadOptions::default()
            })
            .unwrap()
            .rows()
            .unwrap()
            .collect_table()
            .unwrap();
            assert_eq!(
                table.layout.shape,
                Some(ImageShape {
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
        let error = read("nowhere.csv", &ReadOptions::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read nowhere.csv: there is no such file, folder or data set"
        );
        assert!(error.is_user_error());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv").display().to_string();
        fs::write(&path, "a,b\n").unwrap();
        let error = read(&path, &ReadOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("a.csv: expected at least one row, got none"),
            "{error}"
        );
        assert_eq!(
            open(&path, &ReadOptions::default())
                .unwrap()
                .rows()
                .unwrap()
                .count(),
            0,
            "no questions, no answers"
        );
    }
}
