//! With the feature `parquet`: a null is a hole, text and truth values are categories.

use crate::error::{At, Error, ErrorKind, Place, Result, file_error};
use crate::files::atomic_file::Staged;
use crate::files::source::Origin;
use crate::formats::parquet::caught::caught;
use crate::formats::parquet::dictionaries::check_dictionaries;
use crate::rows::cells::{
    Cell, EachRow, Field, FieldKind, Records, Value, Written, check_distinct, plain_json,
};
use crate::rows::dates::text_of;
use arrow::array::{
    Array, ArrayRef, AsArray, Float32Builder, Float64Array, Float64Builder, Int64Array,
    Int64Builder, RecordBatch, RecordBatchReader, StringArray, StringBuilder,
};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::sync::Arc;

/// Rows read, and rows written, at once.
const BATCH: usize = 1024;

/// Rows that the format keeps together, and so in memory while they are written.
const ROW_GROUP: usize = 1 << 16;

/// A column of a batch.
enum Cells {
    /// A column that is not there.
    Absent,
    Wholes(Int64Array),
    Numbers(Float64Array),
    Texts(StringArray),
}

impl Cells {
    fn at(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Wholes(numbers) if numbers.is_valid(row) => {
                Cell::Number(numbers.value(row) as f64)
            }
            Self::Numbers(numbers) if numbers.is_valid(row) => Cell::Number(numbers.value(row)),
            Self::Texts(texts) if texts.is_valid(row) => Cell::Text(texts.value(row)),
            _ => Cell::Missing,
        }
    }

    fn written(&self, row: usize) -> Written {
        match self {
            Self::Wholes(numbers) if numbers.is_valid(row) => Written::Whole(numbers.value(row)),
            Self::Numbers(numbers) if numbers.is_valid(row) => Written::Double(numbers.value(row)),
            Self::Texts(texts) if texts.is_valid(row) => Written::Text(texts.value(row).to_owned()),
            _ => Written::Missing,
        }
    }
}

/// A Parquet file being read.
pub struct ParquetRecords {
    name: String,
    header: Vec<String>,
    reader: ParquetRecordBatchReader,
    /// The chosen columns, if they are there.
    chosen: Vec<Option<usize>>,
    /// The columns that can be kept, and those that are.
    keepable: Vec<usize>,
    kept: Vec<usize>,
    /// The chosen columns, then those that are kept.
    batch: Vec<Cells>,
    /// Rows of the batch, how many of them have been handed over, and the number of the next one.
    rows: usize,
    used: usize,
    row: u64,
}

impl ParquetRecords {
    /// Reads what the end of the file says about it.
    pub fn open(origin: &Origin) -> Result<Self> {
        let name = origin.name();
        let Origin::File(path) = origin else {
            let sentence = "expected Parquet in a file, because its end is read first";
            return Err(Error::new(ErrorKind::UnknownFormat, sentence).in_file(&name));
        };
        let wrong =
            |words| Error::damaged(format!("expected a Parquet file: {words}")).in_file(&name);
        let open = || File::open(path).map_err(|error| file_error("read", path, error));
        let (file, again) = (open()?, Arc::new(open()?));
        let builder = caught(|| ParquetRecordBatchReaderBuilder::try_new(file))
            .map_err(wrong)?
            .with_batch_size(BATCH);
        caught(|| check_dictionaries(&again, builder.metadata())).map_err(wrong)?;
        let header = builder
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect::<Vec<String>>();
        check_distinct(&header).map_err(|error| error.in_file(&name))?;
        let reader = caught(|| builder.build()).map_err(wrong)?;
        let (chosen, keepable, kept, batch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self {
            name,
            header,
            reader,
            chosen,
            keepable,
            kept,
            batch,
            rows: 0,
            used: 0,
            row: 0,
        })
    }

    /// The cells of a chosen column, which must be of a kind that is known here.
    fn chosen_cells(&self, batch: &RecordBatch, column: Option<usize>) -> Result<Cells> {
        let Some(column) = column else {
            return Ok(Cells::Absent);
        };
        let (name, values) = (&self.header[column], batch.column(column));
        check_kind(&self.name, name, values.data_type())?;
        cells(&self.name, name, values)
    }

    /// Reads the next batch; false at the end.
    fn next(&mut self) -> Result<bool> {
        let damaged = |words| Error::damaged(format!("damaged: {words}")).in_file(&self.name);
        let batch = caught(|| self.reader.next().transpose()).map_err(damaged)?;
        let Some(batch) = batch else {
            return Ok(false);
        };
        let chosen = self.chosen.iter();
        let chosen = chosen.map(|&column| self.chosen_cells(&batch, column));
        let kept = self
            .kept
            .iter()
            .map(|&column| cells(&self.name, &self.header[column], batch.column(column)));
        self.batch = chosen.chain(kept).collect::<Result<_>>()?;
        (self.rows, self.used) = (batch.num_rows(), 0);
        Ok(true)
    }
}

/// What a column of this type is kept as. A whole number of 64 bits without a sign may be too large for one with it.
fn kind_of(kind: &DataType) -> FieldKind {
    match kind {
        DataType::Dictionary(_, values) => kind_of(values),
        DataType::UInt64 => FieldKind::Double,
        whole if whole.is_integer() => FieldKind::Whole,
        number if number.is_numeric() => FieldKind::Double,
        _ => FieldKind::Text,
    }
}

/// A model learns from numbers, text and truth values.
fn check_kind(file: &str, name: &str, kind: &DataType) -> Result<()> {
    let kind = match kind {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let text = matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean
    );
    if text || kind.is_numeric() || kind.is_null() {
        return Ok(());
    }
    let expected = "numbers, text or truth values";
    let error = Error::expected(ErrorKind::WrongType, expected, kind);
    Err(error.in_file(file).in_column(name))
}

/// The cells of a column.
fn cells(file: &str, name: &str, column: &ArrayRef) -> Result<Cells> {
    let wrong = |error: ArrowError| {
        let error = Error::new(ErrorKind::WrongType, error.to_string());
        error.in_file(file).in_column(name)
    };
    let cast = |kind| cast(column, &kind).map_err(wrong);
    Ok(match kind_of(column.data_type()) {
        FieldKind::Whole => {
            Cells::Wholes(cast(DataType::Int64)?.as_primitive::<Int64Type>().clone())
        }
        FieldKind::Double => Cells::Numbers(
            cast(DataType::Float64)?
                .as_primitive::<Float64Type>()
                .clone(),
        ),
        _ => Cells::Texts(cast(DataType::Utf8)?.as_string().clone()),
    })
}

impl Records for ParquetRecords {
    fn header(&self) -> Option<&[String]> {
        Some(&self.header)
    }

    fn keepable(&mut self) -> Result<Vec<Field>> {
        let schema = self.reader.schema();
        let fields = schema.fields().iter().enumerate();
        let fields = fields.filter(|(_, field)| can_cast_types(field.data_type(), &DataType::Utf8));
        let kept = |(i, field): (usize, &Arc<arrow::datatypes::Field>)| {
            (i, Field::new(field.name(), kind_of(field.data_type())))
        };
        let (columns, fields) = fields.map(kept).unzip();
        self.keepable = columns;
        Ok(fields)
    }

    fn select(&mut self, names: &[String], kept: &[usize]) {
        let at = |name: &String| self.header.iter().position(|other| other == name);
        self.chosen = names.iter().map(at).collect();
        self.kept = kept.iter().map(|&column| self.keepable[column]).collect();
    }

    fn fill(&mut self, max_rows: usize, each: &mut EachRow<'_>) -> Result<usize> {
        for count in 0..max_rows {
            while self.used == self.rows {
                if !self.next()? {
                    return Ok(count);
                }
            }
            let (chosen, kept) = self.batch.split_at(self.chosen.len());
            let row: Vec<Cell> = chosen.iter().map(|cells| cells.at(self.used)).collect();
            let kept = kept.iter().map(|cells| cells.written(self.used)).collect();
            each(
                Place {
                    file: &self.name,
                    at: At::Row(self.row + 1),
                },
                &row,
                kept,
            )?;
            self.used += 1;
            self.row += 1;
        }
        Ok(max_rows)
    }
}

/// A column being filled.
enum Builder {
    Single(Float32Builder),
    Double(Float64Builder),
    Whole(Int64Builder),
    Text(StringBuilder),
}

impl Builder {
    fn new(kind: &FieldKind) -> Self {
        match kind {
            FieldKind::Single => Self::Single(Float32Builder::new()),
            FieldKind::Double => Self::Double(Float64Builder::new()),
            FieldKind::Whole => Self::Whole(Int64Builder::new()),
            FieldKind::Text | FieldKind::Category(_) | FieldKind::Date(_) => {
                Self::Text(StringBuilder::new())
            }
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Single(_) => DataType::Float32,
            Self::Double(_) => DataType::Float64,
            Self::Whole(_) => DataType::Int64,
            Self::Text(_) => DataType::Utf8,
        }
    }

    fn push(&mut self, value: Value<'_>) {
        let number = value.number();
        let seen = !number.is_nan();
        match (self, value) {
            // Text of a cell that was kept: a JSON string, null, or as it stands.
            (Self::Text(column), Value::Json(text)) => column.append_option(plain_json(text)),
            (Self::Single(column), _) => column.append_option(seen.then_some(number as f32)),
            (Self::Double(column), _) => column.append_option(seen.then_some(number)),
            (Self::Whole(column), Value::Whole(whole)) => column.append_value(whole), // 64 bits, more than f64 holds
            (Self::Whole(column), _) => column.append_option(seen.then_some(number as i64)),
            (Self::Text(column), Value::Text(text)) => column.append_value(text),
            (Self::Text(column), Value::Date(days, style)) => {
                column.append_value(text_of(days, style));
            }
            (Self::Text(column), _) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Single(column) => Arc::new(column.finish()),
            Self::Double(column) => Arc::new(column.finish()),
            Self::Whole(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
        }
    }
}

fn write_error(file: &str, error: parquet::errors::ParquetError) -> Error {
    Error::io("write", file, std::io::Error::other(error))
}

/// A Parquet file being written.
pub struct ParquetWriter {
    name: String,
    writer: ArrowWriter<Staged>,
    schema: SchemaRef,
    kinds: Vec<FieldKind>,
    columns: Vec<Builder>,
    rows: usize,
}

impl ParquetWriter {
    /// Starts a file with these columns.
    pub fn create(file: &str, staged: Staged, fields: &[Field]) -> Result<Self> {
        let kinds: Vec<FieldKind> = fields.iter().map(|field| field.kind.clone()).collect();
        let columns: Vec<Builder> = kinds.iter().map(Builder::new).collect();
        let field = |(field, column): (&Field, &Builder)| {
            arrow::datatypes::Field::new(&field.name, column.data_type(), true)
        };
        let schema = Arc::new(Schema::new(
            fields.iter().zip(&columns).map(field).collect::<Vec<_>>(),
        ));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .build();
        let writer = ArrowWriter::try_new(staged, schema.clone(), Some(properties));
        let writer = writer.map_err(|error| write_error(file, error))?;
        Ok(Self {
            name: file.to_owned(),
            writer,
            schema,
            kinds,
            columns,
            rows: 0,
        })
    }

    /// The next row.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        for ((column, value), kind) in self.columns.iter_mut().zip(values).zip(&self.kinds) {
            column.push(value.shown(kind));
        }
        self.rows += 1;
        if self.rows == BATCH {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.rows = 0;
        let columns = self.columns.iter_mut().map(Builder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| write_error(&self.name, error.into()))?;
        let written = self.writer.write(&batch);
        written.map_err(|error| write_error(&self.name, error))
    }

    /// Writes what is left and hands the file back.
    pub fn finish(mut self) -> Result<Staged> {
        self.flush()?;
        let staged = self.writer.into_inner();
        staged.map_err(|error| write_error(&self.name, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Output, OutputFormat};
    use crate::rows::layout::{ColumnKind, ReadOptions};

    fn data(name: &str) -> String {
        format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn a_table_of_pyarrow() {
        let options = ReadOptions {
            target: Some("species".into()),
            ..ReadOptions::default()
        };
        let table = crate::read(&data("table.parquet"), &options).unwrap();
        let kinds: Vec<_> = table
            .layout
            .columns
            .iter()
            .map(|column| column.kind.clone())
            .collect();
        let names = |names: [&str; 2]| ColumnKind::Categorical(names.map(str::to_owned).to_vec());
        let numeric = ColumnKind::Numeric;
        assert_eq!(
            kinds,
            [
                numeric.clone(),
                numeric,
                names(["blue", "red"]),
                names(["false", "true"])
            ]
        );
        let filled: Vec<f32> = table
            .values
            .iter()
            .map(|x| if x.is_nan() { -9.0 } else { *x })
            .collect();
        let rows = [
            [31.0, 1.5, 1.0, 1.0],
            [-9.0, 1.75, 0.0, 0.0],
            [47.0, -9.0, 1.0, -9.0],
            [52.0, 1.625, -9.0, 1.0],
        ];
        assert_eq!(filled, rows.concat());
        assert_eq!(table.labels, Some(vec![0, 1, -1, 0]));
    }

    #[test]
    fn columns_are_kept_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet").display().to_string();
        let fields = vec![
            Field::new("id", FieldKind::Whole),
            Field::new("x", FieldKind::Double),
            Field::new("w", FieldKind::Text),
        ];
        let mut out = Output::create(&path, OutputFormat::Parquet, fields.clone(), None).unwrap();
        out.row(&[
            Value::Whole(9_007_199_254_740_993),
            Value::Double(0.1),
            Value::Text(" NA "),
        ])
        .unwrap();
        out.row(&[Value::Missing, Value::Missing, Value::Missing])
            .unwrap();
        out.finish().unwrap();
        let model = crate::rows::layout::Layout {
            width: 1,
            columns: vec![crate::rows::layout::Column {
                name: "x".into(),
                kind: ColumnKind::Numeric,
            }],
            ..crate::rows::layout::Layout::default()
        };
        let options = ReadOptions {
            keep: crate::rows::layout::Keep::All,
            ..ReadOptions::default()
        };
        let rows = crate::open(&path, &options)
            .unwrap()
            .fitted_to(&model)
            .unwrap();
        let kept: Vec<Field> = rows
            .layout
            .kept
            .iter()
            .map(|kept| kept.field.clone())
            .collect();
        assert_eq!(kept, fields);
        let cells: Vec<Written> = rows.flat_map(|chunk| chunk.unwrap().kept).collect();
        let first = [
            Written::Whole(9_007_199_254_740_993),
            Written::Double(0.1),
            Written::Text(" NA ".into()),
        ];
        assert_eq!(
            (&cells[..3], &cells[3..]),
            (&first[..], &vec![Written::Missing; 3][..])
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet").display().to_string();
        let class = FieldKind::Category(vec!["a".into(), "b".into()]);
        let fields = vec![
            Field::new("x", FieldKind::Single),
            Field::new("log p", FieldKind::Double),
            Field::new("n", FieldKind::Whole),
            Field::new("word", FieldKind::Text),
            Field::new("class", class),
        ];
        let mut out = Output::create(&path, OutputFormat::Parquet, fields, None).unwrap();
        for i in 0..3000i64 {
            let x = if i == 7 { f32::NAN } else { i as f32 };
            let values = [
                Value::Single(x),
                Value::Double(0.5),
                Value::Whole(i),
                Value::Text("w"),
                Value::Single((i % 2) as f32),
            ];
            out.row(&values).unwrap();
        }
        out.finish().unwrap();
        let table = crate::read(
            &path,
            &ReadOptions {
                target: Some("class".into()),
                ..ReadOptions::default()
            },
        )
        .unwrap();
        assert_eq!(
            (table.rows(), table.layout.width, table.classes()),
            (3000, 4, 2)
        );
        assert!(table.values[7 * 4].is_nan());
        assert_eq!(table.values[2999 * 4..], [2999.0, 0.5, 2999.0, 0.0]);
        assert_eq!(table.labels.unwrap()[..3], [0, 1, 0]);
        let mut model = table.layout;
        let gone = crate::rows::layout::Column {
            name: "gone".into(),
            kind: crate::rows::layout::ColumnKind::Numeric,
        };
        (model.width, model.columns) = (5, [vec![gone], model.columns].concat());
        let options = ReadOptions {
            absent: crate::rows::layout::Absent::Missing,
            ..ReadOptions::default()
        };
        let table = crate::read_fitted(&path, &options, &model).unwrap();
        assert!(table.values[5].is_nan(), "a column that is not there");
        assert_eq!(table.values[6..10], [1.0, 0.5, 1.0, 0.0]);
    }

    /// At some of these files the crate `parquet` panics.
    #[test]
    fn any_byte_may_be_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let name = path.to_str().unwrap();
        let whole = std::fs::read(data("table.parquet")).unwrap();
        let mut refused = 0;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x80;
            std::fs::write(&path, bytes).unwrap();
            if let Err(error) = crate::read(name, &ReadOptions::default()) {
                assert!(error.is_user_error(), "byte {at}: {error}");
                refused += 1;
            }
        }
        assert!(refused > 500, "{refused}");
    }

    /// The crate `parquet` makes room for as many values as a dictionary claims.
    #[test]
    fn a_dictionary_has_no_more_values_than_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let whole = std::fs::read(data("table.parquet")).unwrap();
        let mut refused = 0;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] = 0x7e; // as a number of values: 63
            std::fs::write(&path, bytes).unwrap();
            let read = crate::read(path.to_str().unwrap(), &ReadOptions::default());
            let words = read.err().map(|error| error.to_string());
            refused +=
                usize::from(words.is_some_and(|it| it.contains("a dictionary of 63 values has")));
        }
        assert!(refused > 0);
    }

    #[test]
    fn two_columns_of_one_name_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet").display().to_string();
        let fields = vec![Field::new("age", FieldKind::Single); 2];
        let mut out = Output::create(&path, OutputFormat::Parquet, fields, None).unwrap();
        out.row(&[Value::Single(1.0); 2]).unwrap();
        out.finish().unwrap();
        let read = crate::read(&path, &ReadOptions::default());
        let words = read.unwrap_err().to_string();
        let expected = "a.parquet: expected every column to have its own name, got 'age' twice";
        assert!(words.ends_with(expected), "{words}");
    }

    #[test]
    fn nonsense_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        for bytes in [&b""[..], b"PAR1", b"PAR1 and then nothing of the kind PAR1"] {
            std::fs::write(&path, bytes).unwrap();
            let error = crate::read(path.to_str().unwrap(), &ReadOptions::default()).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("a.parquet: expected a Parquet file: "),
                "{error}"
            );
            assert!(error.is_user_error());
        }
        let memory = Origin::Memory {
            name: "standard input".into(),
            bytes: [][..].into(),
        };
        assert!(
            ParquetRecords::open(&memory)
                .err()
                .unwrap()
                .to_string()
                .contains("expected Parquet in a file")
        );
    }
}
