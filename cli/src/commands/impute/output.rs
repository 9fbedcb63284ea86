//! What `sumout impute` writes: the rows with their holes filled, and files of what is known of the cells that were filled.

use anyhow::Result;
use std::path::{Path, PathBuf};
use sumout_data::cells::{Field, FieldKind, Value, Written};
use sumout_data::layout::{Chunk, ColumnKind, Layout};
use sumout_data::notation::Notation;
use sumout_data::output::{Output, OutputFormat, fields_of, probability_name};

/// Rows without holes, and what is known of each cell that was filled in, NaN for the rest.
pub struct Filled {
    pub values: Vec<f32>,        // (n, width)
    pub variances: Vec<f32>,     // (n, width)
    pub probabilities: Vec<f32>, // (n, categories of all columns)
}

/// Where everything goes.
pub struct OutputPaths<'a> {
    pub input: &'a str,
    pub out: &'a str,
    pub variance: Option<&'a str>,
    pub probabilities: Option<&'a str>,
}

/// The output, and the files of variances and probabilities if there are any.
pub struct FilledOutput {
    input: PathBuf,
    layout: Layout,
    cells: Vec<Cell>,
    out: Output,
    variances: Option<Output>,
    probabilities: Option<Output>,
}

impl FilledOutput {
    /// Starts all files.
    pub fn create(
        paths: &OutputPaths<'_>,
        format: OutputFormat,
        notation: &Notation,
        layout: &Layout,
    ) -> Result<Self> {
        let variances = paths.variance.map(|path| (path, variance_fields(layout)));
        let probabilities = paths
            .probabilities
            .map(|path| (path, probability_fields(layout)));
        let side_file = |(path, fields)| create_side_file(path, fields, notation);
        let cells = cells_of(layout);
        let fields = cells.iter().map(|cell| cell.field.clone()).collect();
        Ok(Self {
            input: paths.input.into(),
            layout: layout.clone(),
            out: Output::create(
                paths.out,
                format.in_notation(notation),
                fields,
                layout.image(),
            )?,
            cells,
            variances: variances.map(side_file).transpose()?,
            probabilities: probabilities.map(side_file).transpose()?,
        })
    }

    /// Writes the filled rows of a chunk.
    pub fn write(&mut self, chunk: &Chunk, filled: &Filled) -> Result<()> {
        let (width, kept) = (self.layout.width, self.layout.kept.len());
        for (row, numbers) in filled.values.chunks_exact(width).enumerate() {
            let kept = &chunk.kept[row * kept..][..kept];
            let value = |cell: &Cell| cell_value(&cell.source, numbers, kept, &self.layout);
            let values: Vec<Value<'_>> = self.cells.iter().map(value).collect();
            if let Some(file) = chunk.files.get(row) {
                self.out.name_next(&inside(&self.input, file));
            }
            self.out.row(&values)?;
        }
        if let Some(out) = &mut self.variances {
            out.numbers(&filled.variances)?;
        }
        if let Some(out) = &mut self.probabilities {
            out.numbers(&filled.probabilities)?;
        }
        Ok(())
    }

    /// Puts the files in their places.
    pub fn finish(self) -> Result<()> {
        self.variances.map_or(Ok(()), Output::finish)?;
        self.probabilities.map_or(Ok(()), Output::finish)?;
        Ok(self.out.finish()?)
    }
}

/// What the file of a row is called inside its folder.
fn inside(folder: &Path, file: &str) -> PathBuf {
    let file = Path::new(file);
    let name = || file.file_name().unwrap_or_default();
    let inside = file.strip_prefix(folder).unwrap_or(Path::new(""));
    if inside == Path::new("") {
        return name().into();
    }
    inside.into()
}

/// A file of numbers about the cells that were filled in; empty where nothing was.
fn create_side_file(path: &str, fields: Vec<Field>, notation: &Notation) -> Result<Output> {
    let format = OutputFormat::of(path)?.in_notation(notation);
    Ok(Output::create(path, format, fields, None)?)
}

/// One number for each number of a row.
fn variance_fields(layout: &Layout) -> Vec<Field> {
    let number = |field: Field| Field::new(field.name, FieldKind::Single);
    fields_of(layout).into_iter().map(number).collect()
}

/// One number for each category of each column.
fn probability_fields(layout: &Layout) -> Vec<Field> {
    let mut fields = Vec::new();
    for column in &layout.columns {
        if let ColumnKind::Categorical(names) = &column.kind {
            let names = names
                .iter()
                .map(|name| probability_name(&column.name, name));
            fields.extend(names.map(|name| Field::new(name, FieldKind::Single)));
        }
    }
    fields
}

/// A column of the output.
struct Cell {
    field: Field,
    source: Source,
}

/// Where a cell of the output comes from.
enum Source {
    /// A number of the row.
    Number(usize),
    /// A column of the input; its holes are filled if the model knows it.
    Kept(usize),
}

/// The columns of the output: those of the input in their order, then others that the model knows.
fn cells_of(layout: &Layout) -> Vec<Cell> {
    let known = fields_of(layout);
    let mut cells = Vec::new();
    for (at, kept) in layout.kept.iter().enumerate() {
        let kind = match kept.column {
            Some(column) => with_more_digits(known[column].kind.clone()),
            None => kept.field.kind.clone(),
        };
        cells.push(Cell {
            field: Field::new(&kept.field.name, kind),
            source: Source::Kept(at),
        });
    }
    for (column, field) in known.into_iter().enumerate() {
        if !layout.kept.iter().any(|kept| kept.column == Some(column)) {
            cells.push(Cell {
                field,
                source: Source::Number(column),
            });
        }
    }
    cells
}

/// A number that was written in decimals can have more digits than 32 bits hold.
fn with_more_digits(kind: FieldKind) -> FieldKind {
    match kind {
        FieldKind::Single => FieldKind::Double,
        other => other,
    }
}

fn cell_value<'a>(
    source: &Source,
    numbers: &[f32],
    kept: &'a [Written],
    layout: &Layout,
) -> Value<'a> {
    match *source {
        Source::Number(column) => Value::Single(numbers[column]),
        Source::Kept(at) => match (&kept[at], layout.kept[at].column) {
            (Written::Missing, Some(column)) => Value::Double(in_decimals(numbers[column])),
            (written, _) => written.value(),
        },
    }
}

/// A number of 32 bits with the digits that tell it from others, as the service writes it, without the noise behind them.
fn in_decimals(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(number.into())
}
