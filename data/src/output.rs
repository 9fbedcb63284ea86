//! Writing results: CSV, JSON lines, NPY, PNG or Parquet by the ending of the file, or a folder of PNG; `-` is standard
//! output.
//!
//! A file is written beside its place and renamed, so that nothing half-written stays.

use crate::error::{Error, ErrorKind, Result};
use crate::files::atomic_file::Staged;
use crate::formats::npy::NpyWriter;
use crate::formats::parquet::ParquetWriter;
use crate::formats::png_folder::PngFolder;
use crate::formats::png_grid::PngGrid;
use crate::rows::cells::{Field, FieldKind, Value, plain_json};
use crate::rows::dates::text_of;
use crate::rows::layout::{ColumnKind, ImageShape, Layout};
use crate::rows::notation::Notation;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::Path;

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Comma-separated values.
    Csv,
    /// Values separated by semicolons, with decimal commas in the numbers.
    CsvWithDecimalCommas,
    /// A JSON object in every line.
    JsonLines,
    /// NumPy's array.
    Npy,
    /// A picture of all images.
    Png,
    /// A folder with a picture of each image.
    PngFolder,
    /// Parquet.
    Parquet,
}

impl OutputFormat {
    /// By the ending of a file; CSV for standard output.
    pub fn of(path: &str) -> Result<Self> {
        if path == "-" {
            return Ok(Self::Csv);
        }
        if path.ends_with(std::path::is_separator) || Path::new(path).is_dir() {
            return Ok(Self::PngFolder);
        }
        let ending = Path::new(path)
            .extension()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Ok(Self::Csv),
            "jsonl" | "ndjson" => Ok(Self::JsonLines),
            "npy" => Ok(Self::Npy),
            "png" => Ok(Self::Png),
            "parquet" => Ok(Self::Parquet),
            _ => {
                let sentence = "expected a name ending in .csv, .jsonl, .npy, .png or .parquet, or in / for a folder of images";
                Err(Error::new(ErrorKind::UnknownFormat, sentence).in_file(path))
            }
        }
    }
}

impl OutputFormat {
    /// The same for readers of another notation: CSV gets the decimal sign of the input.
    pub fn in_notation(self, notation: &Notation) -> Self {
        match self {
            Self::Csv if notation.decimal == ',' => Self::CsvWithDecimalCommas,
            other => other,
        }
    }

    /// Whether it holds the numbers of a model and nothing else: arrays and pictures.
    pub fn holds_only_numbers(self) -> bool {
        matches!(self, Self::Npy | Self::Png | Self::PngFolder)
    }
}

/// What messages call a path.
fn shown(path: &str) -> &str {
    if path == "-" { "standard output" } else { path }
}

/// The system failed while results were written.
fn write_error(path: &str, error: io::Error) -> Error {
    Error::io("write", shown(path), error)
}

/// Starts a file that appears when it is finished.
fn stage(path: &str) -> Result<Staged> {
    if path == "-" {
        let got = "standard output, which takes CSV or JSON lines";
        return Err(Error::expected(
            ErrorKind::Output,
            "a file for this format",
            got,
        ));
    }
    Staged::create(Path::new(path))
}

/// Standard output or a file that is not in its place yet.
enum OutputTarget {
    Stdout(BufWriter<Stdout>),
    File(BufWriter<Staged>),
}

impl OutputTarget {
    fn create(path: &str) -> Result<Self> {
        Ok(match path {
            "-" => Self::Stdout(BufWriter::new(io::stdout())),
            _ => Self::File(BufWriter::new(stage(path)?)),
        })
    }
}

impl Write for OutputTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(out) => out.flush(),
        }
    }
}

/// What stands before the decimals of a number in CSV.
#[derive(Clone, Copy)]
enum Decimals {
    Point,
    Comma,
}

impl Decimals {
    /// Begins a CSV file with the names of its columns.
    fn writer(self, path: &str, fields: &[Field]) -> Result<csv::Writer<OutputTarget>> {
        let separator = match self {
            Self::Point => b',',
            Self::Comma => b';',
        };
        let mut builder = csv::WriterBuilder::new();
        let mut writer = builder
            .delimiter(separator)
            .from_writer(OutputTarget::create(path)?);
        let names = writer.write_record(fields.iter().map(|field| &field.name));
        let names = names.map_err(io_error);
        names.map_err(|error| write_error(path, error))?;
        Ok(writer)
    }

    /// A cell as it is written.
    fn cell(self, value: Value<'_>, field: &Field) -> String {
        match value {
            Value::Missing => String::new(),
            Value::Single(number) => self.signed(number.to_string()),
            Value::Double(number) => self.signed(number.to_string()),
            Value::Whole(number) => number.to_string(),
            Value::Text(text) if field.kind == FieldKind::Double => self.signed(text.to_owned()),
            Value::Text(text) => text.to_owned(),
            Value::Json(text) => plain_json(text).unwrap_or_default(),
            Value::Date(days, style) => text_of(days, style),
        }
    }

    /// A number, written with a point, in this notation.
    fn signed(self, number: String) -> String {
        match self {
            Self::Comma if number.parse::<f64>().is_ok() => number.replace('.', ","),
            _ => number,
        }
    }
}

enum Body {
    Csv(Box<csv::Writer<OutputTarget>>, Decimals),
    JsonLines(OutputTarget),
    Npy(NpyWriter<BufWriter<Staged>>),
    Png(PngGrid, Staged),
    PngFolder(PngFolder),
    Parquet(Box<ParquetWriter>),
}

impl Body {
    fn csv(decimals: Decimals, path: &str, fields: &[Field]) -> Result<Self> {
        Ok(Self::Csv(
            Box::new(decimals.writer(path, fields)?),
            decimals,
        ))
    }
}

/// Starts an NPY array; columns of text cannot be in it.
fn npy_writer(
    path: &str,
    fields: &[Field],
    image: Option<(ImageShape, bool)>,
) -> Result<NpyWriter<BufWriter<Staged>>> {
    if let Some(text) = fields.iter().find(|field| field.kind == FieldKind::Text) {
        let got = "text; use CSV or JSON lines";
        let error = Error::expected(ErrorKind::Output, "numbers, which NPY holds", got);
        return Err(error.in_file(path).in_column(&text.name));
    }
    let is_double = |field: &Field| matches!(field.kind, FieldKind::Double | FieldKind::Whole);
    let double = fields.iter().any(is_double);
    let shape = image.map(|(shape, _)| shape);
    let shape = shape.filter(|shape| shape.numbers() == fields.len());
    let out = BufWriter::new(stage(path)?);
    let writer = NpyWriter::new(out, double, fields.len(), shape);
    writer.map_err(|error| write_error(path, error))
}

/// Results being written. Dropped before [`Output::finish`] they leave nothing behind.
pub struct Output {
    path: String,
    fields: Vec<Field>,
    body: Body,
}

impl Output {
    /// Starts a file for rows of these columns. For images: their shape, and whether numbers run to 1 instead of 255.
    pub fn create(
        path: &str,
        format: OutputFormat,
        fields: Vec<Field>,
        image: Option<(ImageShape, bool)>,
    ) -> Result<Self> {
        let body = match format {
            OutputFormat::Csv => Body::csv(Decimals::Point, path, &fields)?,
            OutputFormat::CsvWithDecimalCommas => Body::csv(Decimals::Comma, path, &fields)?,
            OutputFormat::JsonLines => Body::JsonLines(OutputTarget::create(path)?),
            OutputFormat::Npy => Body::Npy(npy_writer(path, &fields, image)?),
            OutputFormat::Png => Body::Png(PngGrid::new(path, fields.len(), image)?, stage(path)?),
            OutputFormat::PngFolder => {
                Body::PngFolder(PngFolder::create(path, fields.len(), image)?)
            }
            OutputFormat::Parquet => Body::Parquet(Box::new(ParquetWriter::create(
                path,
                stage(path)?,
                &fields,
            )?)),
        };
        Ok(Self {
            path: path.to_owned(),
            fields,
            body,
        })
    }

    /// What the next row is called, where every row is a file of its own.
    pub fn name_next(&mut self, name: &Path) {
        if let Body::PngFolder(out) = &mut self.body {
            out.name_next(name);
        }
    }

    /// Writes a row: one value for each column.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        debug_assert_eq!(values.len(), self.fields.len());
        let path = &self.path;
        let failed = |error| write_error(path, error);
        let shown = values
            .iter()
            .zip(&self.fields)
            .map(|(value, field)| (value.shown(&field.kind), field));
        match &mut self.body {
            Body::Csv(out, decimals) => {
                let cells = shown.map(|(value, field)| decimals.cell(value, field));
                out.write_record(cells).map_err(io_error).map_err(failed)
            }
            Body::JsonLines(out) => json_line(out, shown).map_err(failed),
            Body::Npy(out) => values
                .iter()
                .try_for_each(|value| out.push(value.number()))
                .map_err(failed),
            Body::Png(grid, _) => values
                .iter()
                .try_for_each(|value| grid.push(value.number())),
            Body::PngFolder(out) => out.image(values.iter().map(|value| value.number())),
            Body::Parquet(out) => out.row(values),
        }
    }

    /// Writes rows of plain numbers.
    pub fn numbers(&mut self, values: &[f32]) -> Result<()> {
        let mut cells = Vec::new();
        for row in values.chunks_exact(self.fields.len()) {
            cells.clear();
            cells.extend(row.iter().map(|&number| Value::Single(number)));
            self.row(&cells)?;
        }
        Ok(())
    }

    /// Writes what is left and puts the file in its place.
    pub fn finish(self) -> Result<()> {
        let path = self.path;
        let failed = |error| write_error(&path, error);
        let mut target = match self.body {
            Body::Csv(out, _) => out
                .into_inner()
                .map_err(|error| error.into_error())
                .map_err(failed)?,
            Body::JsonLines(out) => out,
            Body::Npy(out) => OutputTarget::File(out.finish().map_err(failed)?),
            Body::Png(grid, mut staged) => {
                let mut out = BufWriter::new(&mut staged);
                grid.finish(&mut out)?;
                out.flush().map_err(failed)?;
                drop(out);
                return staged.commit();
            }
            Body::PngFolder(_) => return Ok(()),
            Body::Parquet(out) => return out.finish()?.commit(),
        };
        target.flush().map_err(failed)?;
        match target {
            OutputTarget::Stdout(_) => Ok(()),
            OutputTarget::File(out) => out
                .into_inner()
                .map_err(|error| error.into_error())
                .map_err(failed)?
                .commit(),
        }
    }
}

/// The system's error inside one of the csv crate, where nobody would find a closed pipe.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn json_line<'a>(
    out: &mut OutputTarget,
    cells: impl Iterator<Item = (Value<'a>, &'a Field)>,
) -> io::Result<()> {
    let mut line = Vec::new();
    for (i, (value, field)) in cells.enumerate() {
        line.push(if i == 0 { b'{' } else { b',' });
        serde_json::to_writer(&mut line, &field.name)?;
        line.push(b':');
        match value {
            Value::Missing => line.extend(b"null"),
            Value::Single(number) => serde_json::to_writer(&mut line, &number)?,
            Value::Double(number) => serde_json::to_writer(&mut line, &number)?,
            Value::Whole(number) => serde_json::to_writer(&mut line, &number)?,
            // A number stays as it was written, if that is valid JSON.
            Value::Text(text) if field.kind == FieldKind::Double => {
                match serde_json::from_str::<serde_json::Number>(text) {
                    Ok(_) => line.extend(text.trim().as_bytes()),
                    Err(_) => serde_json::to_writer(&mut line, text)?,
                }
            }
            Value::Text(text) => serde_json::to_writer(&mut line, text)?,
            Value::Json(text) => line.extend(text.as_bytes()),
            Value::Date(days, style) => serde_json::to_writer(&mut line, &text_of(days, style))?,
        }
    }
    line.extend(b"}\n");
    out.write_all(&line)
}

/// The columns of a data set, for an output of the same kind.
pub fn fields_of(layout: &Layout) -> Vec<Field> {
    let kind = |column: usize| match layout.columns.get(column).map(|column| &column.kind) {
        Some(ColumnKind::Categorical(names)) => FieldKind::Category(names.clone()),
        Some(ColumnKind::Date(style)) => FieldKind::Date(*style),
        _ => FieldKind::Single,
    };
    (0..layout.width)
        .map(|column| Field::new(layout.name(column), kind(column)))
        .collect()
}

/// What a column with the probabilities of one category is called.
pub fn probability_name(column: &str, category: &str) -> String {
    format!("p_{column}={category}")
}

/// The column of classes in an output.
pub fn label_field(name: &str, layout: &Layout) -> Field {
    let kind = if layout.classes.is_empty() {
        FieldKind::Whole
    } else {
        FieldKind::Category(layout.classes.clone())
    };
    Field::new(name, kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::layout::{Column, ReadOptions};
    use std::fs;

    fn fields() -> Vec<Field> {
        vec![
            Field::new("name", FieldKind::Text),
            Field::new("p", FieldKind::Single),
            Field::new("log p", FieldKind::Double),
            Field::new("n", FieldKind::Whole),
            Field::new("class", FieldKind::Category(vec!["a".into(), "b,c".into()])),
        ]
    }

    fn written(name: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name).display().to_string();
        let mut out =
            Output::create(&path, OutputFormat::of(&path).unwrap(), fields(), None).unwrap();
        let third = -1.0 / 3.0;
        out.row(&[
            Value::Text("x \"y\""),
            Value::Single(0.1),
            Value::Double(third),
            Value::Whole(-4),
            Value::Single(1.0),
        ])
        .unwrap();
        out.row(&[
            Value::Missing,
            Value::Single(f32::NAN),
            Value::Double(f64::NAN),
            Value::Missing,
            Value::Missing,
        ])
        .unwrap();
        assert!(
            !Path::new(&path).exists(),
            "nothing is there before it is finished"
        );
        out.finish().unwrap();
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn decimal_commas() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv").display().to_string();
        let notation = Notation {
            decimal: ',',
            thousands: None,
        };
        let format = OutputFormat::of(&path).unwrap().in_notation(&notation);
        let mut out = Output::create(&path, format, fields(), None).unwrap();
        let cells = [
            Value::Text("1.5"), // a word of a column of words
            Value::Single(0.1),
            Value::Text("2.75"),
            Value::Whole(-4),
            Value::Single(1.0),
        ];
        out.row(&cells).unwrap();
        out.finish().unwrap();
        insta::assert_snapshot!(fs::read_to_string(path).unwrap(), @r#"
        name;p;log p;n;class
        1.5;0,1;2,75;-4;b,c
        "#);
    }

    #[test]
    fn text_formats() {
        insta::assert_snapshot!(written("a.csv"), @r#"
        name,p,log p,n,class
        "x ""y""",0.1,-0.3333333333333333,-4,"b,c"
        ,,,,
        "#);
        insta::assert_snapshot!(written("a.jsonl"), @r#"
        {"name":"x \"y\"","p":0.1,"log p":-0.3333333333333333,"n":-4,"class":"b,c"}
        {"name":null,"p":null,"log p":null,"n":null,"class":null}
        "#);
    }

    /// Writes rows into a file with this ending; returns its path.
    fn write(folder: &Path, ending: &str, layout: &Layout, values: &[f32]) -> String {
        let path = folder.join(format!("a.{ending}")).display().to_string();
        let format = OutputFormat::of(&path).unwrap();
        let images = layout.shape.map(|shape| (shape, false));
        let mut out = Output::create(&path, format, fields_of(layout), images).unwrap();
        out.numbers(values).unwrap();
        out.finish().unwrap();
        path
    }

    #[test]
    fn what_is_written_is_read() {
        let colour = ColumnKind::Categorical(vec!["blue".into(), "red".into()]);
        let columns = vec![
            Column {
                name: "x".into(),
                kind: ColumnKind::Numeric,
            },
            Column {
                name: "colour".into(),
                kind: colour,
            },
        ];
        let layout = Layout {
            width: 2,
            columns,
            ..Layout::default()
        };
        let values = [0.25, 1.0, f32::NAN, 0.0, 7.0, f32::NAN];
        let folder = tempfile::tempdir().unwrap();
        for ending in ["csv", "jsonl", "npy"] {
            let path = write(folder.path(), ending, &layout, &values);
            let table = crate::read_fitted(&path, &ReadOptions::default(), &layout).unwrap();
            let same = |a: &f32, b: &f32| a == b || a.is_nan() && b.is_nan();
            assert!(
                table.values.iter().zip(&values).all(|(a, b)| same(a, b)),
                "{ending}: {:?}",
                table.values
            );
        }
    }

    #[test]
    fn images_stay_images() {
        let shape = ImageShape {
            height: 1,
            width: 2,
            channels: 1,
        };
        let layout = Layout::unnamed(2, Some(shape));
        let folder = tempfile::tempdir().unwrap();
        for ending in ["npy", "png"] {
            let path = write(folder.path(), ending, &layout, &[3.0, 250.0]);
            let table = crate::read(&path, &ReadOptions::default()).unwrap();
            assert_eq!(
                (table.layout.shape, table.values),
                (Some(shape), vec![3.0, 250.0]),
                "{ending}"
            );
        }
    }

    #[test]
    fn nonsense_is_named_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let says = |name: &str| {
            let path = folder.path().join(name).display().to_string();
            let made = OutputFormat::of(&path)
                .and_then(|format| Output::create(&path, format, fields(), None));
            made.err()
                .unwrap()
                .to_string()
                .replace(&folder.path().display().to_string(), "~")
        };
        assert_eq!(
            says("a.xlsx"),
            "~/a.xlsx: expected a name ending in .csv, .jsonl, .npy, .png or .parquet, or in / for a folder of images"
        );
        assert_eq!(
            says("a.npy"),
            "~/a.npy, column 'name': expected numbers, which NPY holds, got text; use CSV or JSON lines"
        );
        assert_eq!(
            says("a.png"),
            "~/a.png: expected images, got rows of 5 numbers; use CSV or NPY"
        );
        assert!(says("none/a.csv").starts_with("cannot write ~/none/a.csv: there is no folder"));
        let error = Output::create("-", OutputFormat::Npy, vec![], None)
            .err()
            .unwrap()
            .to_string();
        assert_eq!(
            error,
            "expected a file for this format, got standard output, which takes CSV or JSON lines"
        );
        let path = folder.path().join("a.csv").display().to_string();
        drop(Output::create(&path, OutputFormat::Csv, fields(), None).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(not(feature = "parquet"))]
    #[test]
    fn without_parquet_a_message_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet").display().to_string();
        let error = Output::create(&path, OutputFormat::Parquet, fields(), None)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.ends_with("a.parquet: this build has no Parquet"),
            "{error}"
        );
        fs::write(&path, "PAR1").unwrap();
        let error = crate::read(&path, &ReadOptions::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a.parquet: this build has no Parquet"),
            "{error}"
        );
    }
}
