//! Answers on their way out: JSON, JSON lines, CSV or an Arrow stream.

use crate::columns::Columns;
use crate::formats::arrow::write as arrow;
use crate::formats::negotiate::Format;
use crate::problem::Problem;
use crate::spool::{Spool, unwritable};
use csv::StringRecord;
use std::io::{self, Write};
use sumout_data::cells::{Field, FieldKind, Value};
use sumout_data::model_files::{FARTHEST, TOO_FAR};

/// Some rows of an answer; what was not asked for is not there.
#[derive(Debug, Default)]
pub struct Block {
    /// How many rows.
    pub rows: usize,
    /// (rows, width): filled, drawn or explained.
    pub values: Option<Vec<f32>>,
    /// (rows, width).
    pub deviation: Option<Vec<f32>>,
    /// Sampled completions, each (rows, width).
    pub draws: Vec<Vec<f32>>,
    /// (rows, K) and (rows).
    pub scores: Option<(Vec<f64>, Vec<f64>)>,
    /// The class of each drawn row.
    pub classes: Option<Vec<usize>>,
    /// The channel of each explained row, and how often it is used.
    pub channels: Option<Vec<(usize, f64)>>,
    /// The cells of a CSV file as they were written.
    pub texts: Vec<StringRecord>,
}

/// What the rows of an answer hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// Values.
    pub values: bool,
    /// Their standard deviations.
    pub deviation: bool,
    /// How many sampled completions.
    pub draws: usize,
    /// Class, posterior and log-likelihood.
    pub scores: bool,
    /// The class a row was drawn from.
    pub classes: bool,
    /// Channels.
    pub channels: bool,
}

/// What an answer is written with.
pub struct Writer<'a> {
    format: Format,
    columns: &'a Columns,
    classes: &'a [String],
    parts: Parts,
    /// The header of a CSV file that comes back, and where the model's columns are in it.
    table: Option<(Vec<String>, Vec<usize>)>,
    fields: Vec<Field>,
    rows: usize,
    /// The answer so far.
    pub spool: Spool,
}

impl<'a> Writer<'a> {
    /// Starts an answer of a model.
    pub fn new(
        format: Format,
        model: &str,
        columns: &'a Columns,
        classes: &'a [String],
        parts: Parts,
        table: Option<(Vec<String>, Vec<usize>)>,
        spool: Spool,
    ) -> Result<Self, Problem> {
        let table = table.filter(|_| format == Format::Csv && parts.values);
        let fields = fields(columns, classes, parts, table.as_ref());
        let mut writer = Self {
            format,
            columns,
            classes,
            parts,
            table,
            fields,
            rows: 0,
            spool,
        };
        writer.start(model).map_err(|error| unwritable(&error))?;
        Ok(writer)
    }

    fn start(&mut self, model: &str) -> io::Result<()> {
        match self.format {
            Format::Json => {
                write!(
                    self.spool,
                    "{{\"model\":{},\"classes\":",
                    serde_json::to_string(model)?
                )?;
                serde_json::to_writer(&mut self.spool, self.classes)?;
                self.spool.write_all(b",\"rows\":[")
            }
            Format::Lines => Ok(()),
            Format::Csv => {
                let kept = self.table.iter().flat_map(|(header, _)| header);
                let names = kept.chain(self.fields.iter().map(|field| &field.name));
                let mut writer = csv::Writer::from_writer(&mut self.spool);
                writer.write_record(names).map_err(io_error)?;
                writer.flush()
            }
            Format::Arrow => arrow::schema(&mut self.spool, &self.fields),
        }
    }

    /// Writes some rows.
    pub fn block(&mut self, block: &Block) -> Result<(), Problem> {
        let written = match self.format {
            Format::Json | Format::Lines => {
                (0..block.rows).try_for_each(|row| self.json_row(block, row))
            }
            Format::Csv => self.csv_rows(block),
            Format::Arrow => {
                let (columns, classes, parts) = (self.columns, self.classes, self.parts);
                let rows = (0..block.rows).map(|row| cells(block, row, columns, classes, parts));
                arrow::batch(&mut self.spool, &self.fields, rows)
            }
        };
        written.map_err(|error| unwritable(&error))
    }

    fn csv_rows(&mut self, block: &Block) -> io::Result<()> {
        let table = self.table.take();
        let mut writer = csv::WriterBuilder::new()
            .flexible(true)
            .from_writer(&mut self.spool);
        let text = |value: Value<'_>| match value {
            Value::Missing => String::new(),
            Value::Single(number) => number.to_string(),
            Value::Double(number) => number.to_string(),
            Value::Whole(number) => number.to_string(),
            Value::Text(text) | Value::Json(text) => text.to_owned(),
        };
        for row in 0..block.rows {
            if let (Some((_, places)), Some(values)) = (&table, &block.values) {
                let texts = &block.texts[row];
                let mut record: Vec<String> = texts.iter().map(str::to_owned).collect();
                for (column, &place) in places.iter().enumerate() {
                    // What was there comes back as it was written.
                    if self.columns.is_hole(&texts[place]) {
                        record[place] = text(shown(
                            self.columns,
                            column,
                            values[row * self.columns.width() + column],
                        ));
                    }
                }
                record
                    .iter()
                    .try_for_each(|cell| writer.write_field(cell))
                    .map_err(io_error)?;
            }
            let all = cells(block, row, self.columns, self.classes, self.parts);
            let rest = if table.is_some() {
                self.columns.width()
            } else {
                0
            };
            let values = all.into_iter().skip(rest).zip(&self.fields);
            for (value, field) in values {
                writer
                    .write_field(text(value.shown(&field.kind)))
                    .map_err(io_error)?;
            }
            writer.write_record(None::<&[u8]>).map_err(io_error)?;
        }
        writer.flush()?;
        drop(writer);
        self.table = table;
        Ok(())
    }

    fn json_row(&mut self, block: &Block, row: usize) -> io::Result<()> {
        let to = &mut self.spool;
        let width = self.columns.width();
        let of = |all: &'_ [f32]| all[row * width..(row + 1) * width].to_vec();
        to.write_all(if self.rows > 0 && self.format == Format::Json {
            b",{"
        } else {
            b"{"
        })?;
        self.rows += 1;
        let mut first = true;
        let mut key = |to: &mut Spool, name: &str| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            write!(to, "{comma}\"{name}\":")
        };
        if let Some((posterior, log_likelihood)) = &block.scores {
            let k = self.classes.len();
            let posterior = &posterior[row * k..(row + 1) * k];
            key(to, "class")?;
            serde_json::to_writer(&mut *to, &self.classes[argmax(posterior)])?;
            key(to, "posterior")?;
            serde_json::to_writer(&mut *to, posterior)?;
            key(to, "log_likelihood")?;
            serde_json::to_writer(&mut *to, &log_likelihood[row])?;
            if log_likelihood[row].abs() > FARTHEST {
                key(to, "warning")?;
                serde_json::to_writer(&mut *to, TOO_FAR)?;
            }
        }
        if let Some(classes) = &block.classes {
            key(to, "class")?;
            serde_json::to_writer(&mut *to, &self.classes[classes[row]])?;
        }
        if let Some(channels) = &block.channels {
            key(to, "channel")?;
            write!(to, "{}", channels[row].0)?;
            key(to, "probability")?;
            serde_json::to_writer(&mut *to, &channels[row].1)?;
        }
        if let Some(values) = &block.values {
            key(to, "values")?;
            json_values(to, self.columns, &of(values))?;
        }
        if let Some(deviation) = &block.deviation {
            key(to, "deviation")?;
            serde_json::to_writer(&mut *to, &of(deviation))?;
        }
        if self.parts.draws > 0 {
            key(to, "draws")?;
            for (i, draw) in block.draws.iter().enumerate() {
                to.write_all(if i == 0 { b"[" } else { b"," })?;
                json_values(to, self.columns, &of(draw))?;
            }
            to.write_all(b"]")?;
        }
        to.write_all(if self.format == Format::Lines {
            b"}\n"
        } else {
            b"}"
        })
    }

    /// Ends the answer.
    pub fn finish(mut self) -> Result<Spool, Problem> {
        let written = match self.format {
            Format::Json => self.spool.write_all(b"]}"),
            Format::Lines | Format::Csv => Ok(()),
            Format::Arrow => arrow::end(&mut self.spool),
        };
        written.map_err(|error| unwritable(&error))?;
        Ok(self.spool)
    }
}

/// The error of the system inside one of the csv crate, which tells an answer that is too long from others.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn argmax(posterior: &[f64]) -> usize {
    (1..posterior.len()).fold(0, |best, y| {
        if posterior[y] > posterior[best] {
            y
        } else {
            best
        }
    })
}

/// A number of the model as people know it.
fn shown(columns: &Columns, column: usize, value: f32) -> Value<'_> {
    match columns.categories(column) {
        _ if value.is_nan() => Value::Missing,
        Some(names) => names
            .get(value as usize)
            .map_or(Value::Missing, |name| Value::Text(name)),
        None => Value::Single(value),
    }
}

fn json_values(to: &mut Spool, columns: &Columns, values: &[f32]) -> io::Result<()> {
    for (column, &value) in values.iter().enumerate() {
        to.write_all(if column == 0 { b"[" } else { b"," })?;
        match shown(columns, column, value) {
            Value::Text(name) => serde_json::to_writer(&mut *to, name)?,
            Value::Single(number) => serde_json::to_writer(&mut *to, &number)?,
            _ => to.write_all(b"null")?,
        }
    }
    to.write_all(b"]")
}

/// The columns of a flat answer. Those that a CSV file already has keep their names, new ones get others.
fn fields(
    columns: &Columns,
    classes: &[String],
    parts: Parts,
    table: Option<&(Vec<String>, Vec<usize>)>,
) -> Vec<Field> {
    let kind = |column: usize| match columns.categories(column) {
        Some(names) => FieldKind::Category(names.to_vec()),
        None => FieldKind::Single,
    };
    let mut fields = Vec::new();
    if parts.values && table.is_none() {
        fields.extend(
            (0..columns.width()).map(|column| Field::new(columns.name(column), kind(column))),
        );
    }
    let taken: Vec<String> = match table {
        Some((header, _)) => header.clone(),
        None => fields.iter().map(|field| field.name.clone()).collect(),
    };
    let mut add = |name: String, kind: FieldKind| {
        let mut name = name;
        while taken.contains(&name) {
            name = format!("predicted_{name}");
        }
        fields.push(Field::new(name, kind));
    };
    if parts.deviation {
        (0..columns.width())
            .for_each(|column| add(format!("sd_{}", columns.name(column)), FieldKind::Single));
    }
    for draw in 1..=parts.draws {
        (0..columns.width())
            .for_each(|column| add(format!("draw{draw}_{}", columns.name(column)), kind(column)));
    }
    if parts.scores || parts.classes {
        add("class".into(), FieldKind::Text);
    }
    if parts.scores {
        classes
            .iter()
            .for_each(|name| add(format!("p_{name}"), FieldKind::Double));
        add("log_likelihood".into(), FieldKind::Double);
    }
    if parts.channels {
        add("channel".into(), FieldKind::Whole);
        add("probability".into(), FieldKind::Double);
    }
    fields
}

/// The cells of one row of a flat answer, values first.
fn cells<'a>(
    block: &'a Block,
    row: usize,
    columns: &'a Columns,
    classes: &'a [String],
    parts: Parts,
) -> Vec<Value<'a>> {
    let width = columns.width();
    let mut cells = Vec::new();
    if let Some(values) = &block.values {
        cells.extend(
            values[row * width..(row + 1) * width]
                .iter()
                .map(|&x| Value::Single(x)),
        );
    }
    if let Some(deviation) = block.deviation.as_ref().filter(|_| parts.deviation) {
        cells.extend(
            deviation[row * width..(row + 1) * width]
                .iter()
                .map(|&x| Value::Single(x)),
        );
    }
    for draw in &block.draws {
        cells.extend(
            draw[row * width..(row + 1) * width]
                .iter()
                .map(|&x| Value::Single(x)),
        );
    }
    if let Some((posterior, log_likelihood)) = &block.scores {
        let posterior = &posterior[row * classes.len()..(row + 1) * classes.len()];
        cells.push(Value::Text(&classes[argmax(posterior)]));
        cells.extend(
            posterior
                .iter()
                .chain([&log_likelihood[row]])
                .map(|&x| Value::Double(x)),
        );
    }
    if let Some(drawn) = &block.classes {
        cells.push(Value::Text(&classes[drawn[row]]));
    }
    if let Some(channels) = &block.channels {
        cells.extend([
            Value::Whole(channels[row].0 as i64),
            Value::Double(channels[row].1),
        ]);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::tests::columns;
    use http_body_util::BodyExt;

    fn written(
        format: Format,
        parts: Parts,
        block: &Block,
        table: Option<(Vec<String>, Vec<usize>)>,
    ) -> String {
        let (columns, classes) = (columns(), ["no".to_owned(), "yes".to_owned()]);
        let mut writer = Writer::new(
            format,
            "pets",
            &columns,
            &classes,
            parts,
            table,
            Spool::new(10_000),
        )
        .unwrap();
        writer.block(block).unwrap();
        let body = writer.finish().unwrap().into_body().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let bytes = runtime.block_on(async { body.collect().await.unwrap().to_bytes().to_vec() });
        String::from_utf8(bytes).unwrap()
    }

    fn block() -> Block {
        Block {
            rows: 1,
            values: Some(vec![1.5, 1.0, f32::NAN, 2.0]),
            deviation: Some(vec![0.5, f32::NAN, f32::NAN, f32::NAN]),
            scores: Some((vec![0.25, 0.75], vec![-3.5])),
            ..Block::default()
        }
    }

    const PARTS: Parts = Parts {
        values: true,
        deviation: true,
        draws: 0,
        scores: true,
        classes: false,
        channels: false,
    };

    #[test]
    fn text_formats() {
        insta::assert_snapshot!(written(Format::Json, PARTS, &block(), None), @r#"{"model":"pets","classes":["no","yes"],"rows":[{"class":"yes","posterior":[0.25,0.75],"log_likelihood":-3.5,"values":[1.5,"m",null,2.0],"deviation":[0.5,null,null,null]}]}"#);
        let far = Block {
            rows: 1,
            scores: Some((vec![0.5, 0.5], vec![-6e57])),
            ..Block::default()
        };
        insta::assert_snapshot!(written(Format::Lines, Parts { scores: true, ..Parts::default() }, &far, None), @r#"{"class":"no","posterior":[0.5,0.5],"log_likelihood":-6e+57,"warning":"too far from all that was learned to tell classes apart: the posterior is no answer"}"#);
        let draws = Parts {
            draws: 1,
            ..Parts::default()
        };
        let drawn = Block {
            rows: 1,
            draws: vec![vec![1.0, 0.0, 1.0, 0.0]],
            ..Block::default()
        };
        assert_eq!(
            written(Format::Lines, draws, &drawn, None),
            "{\"draws\":[[1.0,\"f\",1.0,0.0]]}\n"
        );
        let flat = "draw1_age,draw1_sex,draw1_coin,draw1_kind\n1,f,1,0\n";
        assert_eq!(written(Format::Csv, draws, &drawn, None), flat);
        insta::assert_snapshot!(written(Format::Csv, PARTS, &block(), None), @r"
        age,sex,coin,kind,sd_age,sd_sex,sd_coin,sd_kind,class,p_no,p_yes,log_likelihood
        1.5,m,,2,0.5,,,,yes,0.25,0.75,-3.5
        ");
    }

    #[test]
    fn a_csv_file_comes_back_as_it_was_with_holes_filled() {
        let header = ["id", "kind", "class", "age", "coin", "sex"]
            .map(str::to_owned)
            .to_vec();
        let table = Some((header, vec![3, 5, 4, 1]));
        let texts = vec![StringRecord::from(vec!["a,7", "", "yes", "1.50", "NA", ""])];
        let parts = Parts {
            deviation: false,
            ..PARTS
        };
        insta::assert_snapshot!(written(Format::Csv, parts, &Block { texts, deviation: None, ..block() }, table), @r#"
        id,kind,class,age,coin,sex,predicted_class,p_no,p_yes,log_likelihood
        "a,7",2,yes,1.50,,m,yes,0.25,0.75,-3.5
        "#);
    }
}
