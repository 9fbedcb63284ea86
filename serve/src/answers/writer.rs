//! Answers on their way out: JSON, JSON lines, CSV or an Arrow stream.

use crate::answers::rows::{AnswerOf, Block, csv_text};
use crate::formats::arrow::write as arrow;
use crate::formats::csv_rows::CsvTable;
use crate::formats::negotiate::BodyFormat;
use crate::problem::{Problem, unwritable};
use std::io::{self, Write};
use sumout_data::cells::Field;

/// Writes an answer.
pub struct AnswerWriter<'a, W> {
    format: BodyFormat,
    of: AnswerOf<'a>,
    /// A CSV file that comes back with its holes filled.
    table: Option<CsvTable>,
    fields: Vec<Field>,
    rows: usize,
    /// The answer so far.
    out: W,
}

impl<'a, W: Write> AnswerWriter<'a, W> {
    /// Starts an answer.
    pub fn new(
        format: BodyFormat,
        of: AnswerOf<'a>,
        table: Option<CsvTable>,
        out: W,
    ) -> Result<Self, Problem> {
        let table = table.filter(|_| format == BodyFormat::Csv && of.parts.values);
        let fields = of.fields(table.as_ref());
        let mut writer = Self {
            format,
            of,
            table,
            fields,
            rows: 0,
            out,
        };
        writer.start().map_err(|error| unwritable(&error))?;
        Ok(writer)
    }

    fn start(&mut self) -> io::Result<()> {
        match self.format {
            BodyFormat::Json => {
                write!(
                    self.out,
                    "{{\"model\":{},\"classes\":",
                    serde_json::to_string(self.of.model)?
                )?;
                serde_json::to_writer(&mut self.out, self.of.classes)?;
                self.out.write_all(b",\"rows\":[")
            }
            BodyFormat::Lines => Ok(()),
            BodyFormat::Csv => {
                let kept = self.table.iter().flat_map(|table| &table.header);
                let names = kept.chain(self.fields.iter().map(|field| &field.name));
                let mut writer = csv::Writer::from_writer(&mut self.out);
                writer.write_record(names).map_err(io_error)?;
                writer.flush()
            }
            BodyFormat::Arrow => arrow::schema(&mut self.out, &self.fields),
        }
    }

    /// Writes some rows.
    pub fn block(&mut self, block: &Block) -> Result<(), Problem> {
        let written = match self.format {
            BodyFormat::Json | BodyFormat::Lines => {
                (0..block.rows).try_for_each(|row| self.json_row(block, row))
            }
            BodyFormat::Csv => self.csv_rows(block),
            BodyFormat::Arrow => {
                let of = self.of;
                let rows = (0..block.rows).map(|row| of.cells(block, row));
                arrow::batch(&mut self.out, &self.fields, rows)
            }
        };
        written.map_err(|error| unwritable(&error))
    }

    fn csv_rows(&mut self, block: &Block) -> io::Result<()> {
        let mut writer = csv::WriterBuilder::new()
            .flexible(true)
            .from_writer(&mut self.out);
        for row in 0..block.rows {
            let mut skipped = 0;
            if let Some(table) = &self.table {
                let record = self.of.filled(table, block, row);
                let written = record.iter().try_for_each(|cell| writer.write_field(cell));
                written.map_err(io_error)?;
                skipped = self.of.encoder.width(); // they are in the table
            }
            let cells = self.of.cells(block, row).into_iter().skip(skipped);
            for (value, field) in cells.zip(&self.fields) {
                let text = csv_text(value.shown(&field.kind));
                writer.write_field(text).map_err(io_error)?;
            }
            writer.write_record(None::<&[u8]>).map_err(io_error)?;
        }
        writer.flush()
    }

    fn json_row(&mut self, block: &Block, row: usize) -> io::Result<()> {
        if self.rows > 0 && self.format == BodyFormat::Json {
            self.out.write_all(b",")?;
        }
        self.rows += 1;
        serde_json::to_writer(&mut self.out, &self.of.json(block, row))?;
        if self.format == BodyFormat::Lines {
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Ends the answer.
    pub fn finish(mut self) -> Result<W, Problem> {
        let written = match self.format {
            BodyFormat::Json => self.out.write_all(b"]}"),
            BodyFormat::Lines | BodyFormat::Csv => Ok(()),
            BodyFormat::Arrow => arrow::end(&mut self.out),
        };
        written.map_err(|error| unwritable(&error))?;
        Ok(self.out)
    }
}

/// The system's error inside one of the csv crate: it shows whether the answer was too long.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::rows::{AnswerParts, RowScores};
    use crate::bodies::spool::Spool;
    use crate::fixtures::encoder;
    use crate::formats::json;
    use csv::StringRecord;
    use http_body_util::BodyExt;
    use sumout_data::dates::DateStyle;
    use sumout_data::encode::Encoder;
    use sumout_data::layout::{Column, ColumnKind, Layout};

    fn written(
        format: BodyFormat,
        parts: AnswerParts,
        block: &Block,
        table: Option<CsvTable>,
    ) -> String {
        let (encoder, classes) = (encoder(), ["no".to_owned(), "yes".to_owned()]);
        let answer = AnswerOf {
            model: "pets",
            encoder: &encoder,
            classes: &classes,
            parts,
        };
        body(answer, format, block, table)
    }

    fn body(
        answer: AnswerOf<'_>,
        format: BodyFormat,
        block: &Block,
        table: Option<CsvTable>,
    ) -> String {
        let mut writer = AnswerWriter::new(format, answer, table, Spool::new(10_000)).unwrap();
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
            scores: Some(RowScores {
                posterior: vec![0.25, 0.75],
                log_likelihood: vec![-3.5],
            }),
            ..Block::default()
        }
    }

    const PARTS: AnswerParts = AnswerParts {
        values: true,
        deviation: true,
        probabilities: false,
        draws: 0,
        scores: true,
        numbers: false,
        classes: false,
        channels: false,
    };

    #[test]
    fn text_formats() {
        insta::assert_snapshot!(written(BodyFormat::Json, PARTS, &block(), None), @r#"{"model":"pets","classes":["no","yes"],"rows":[{"class":"yes","posterior":[0.25,0.75],"log_likelihood":-3.5,"values":[1.5,"m",null,2.0],"deviation":[0.5,null,null,null]}]}"#);
        let far = Block {
            rows: 1,
            scores: Some(RowScores {
                posterior: vec![0.5, 0.5],
                log_likelihood: vec![-6e57],
            }),
            ..Block::default()
        };
        insta::assert_snapshot!(written(BodyFormat::Lines, AnswerParts { scores: true, ..AnswerParts::default() }, &far, None), @r#"{"class":"no","posterior":[0.5,0.5],"log_likelihood":-6e+57,"warning":"too unlike the training data to classify; ignore its posterior"}"#);
        let likely = Block {
            rows: 1,
            probabilities: Some(vec![0.25, 0.75, 1.0, 0.0, 0.5, 0.25, 0.25]),
            ..Block::default()
        };
        assert_eq!(
            written(BodyFormat::Lines, AnswerParts::default(), &likely, None),
            "{\"probabilities\":[null,[0.25,0.75],[1.0,0.0],[0.5,0.25,0.25]]}\n"
        );
        let parts = AnswerParts {
            probabilities: true,
            ..AnswerParts::default()
        };
        insta::assert_snapshot!(written(BodyFormat::Csv, parts, &likely, None), @r"
        p_sex=f,p_sex=m,p_coin=0,p_coin=1,p_kind=0,p_kind=1,p_kind=2
        0.25,0.75,1,0,0.5,0.25,0.25
        ");
        let draws = AnswerParts {
            draws: 1,
            ..AnswerParts::default()
        };
        let drawn = Block {
            rows: 1,
            draws: vec![vec![1.0, 0.0, 1.0, 0.0]],
            ..Block::default()
        };
        assert_eq!(
            written(BodyFormat::Lines, draws, &drawn, None),
            "{\"draws\":[[1.0,\"f\",1.0,0.0]]}\n"
        );
        let flat = "draw1_age,draw1_sex,draw1_coin,draw1_kind\n1,f,1,0\n";
        assert_eq!(written(BodyFormat::Csv, draws, &drawn, None), flat);
        insta::assert_snapshot!(written(BodyFormat::Csv, PARTS, &block(), None), @r"
        age,sex,coin,kind,sd_age,sd_sex,sd_coin,sd_kind,class,p_no,p_yes,log_likelihood
        1.5,m,,2,0.5,,,,yes,0.25,0.75,-3.5
        ");
    }

    #[test]
    fn dates_are_text() {
        let columns = vec![Column {
            name: "day".into(),
            kind: ColumnKind::Date(DateStyle::Day),
        }];
        let encoder = Encoder::new(&Layout {
            width: 1,
            columns,
            predicted: Some(0),
            ..Layout::default()
        });
        let rows = json::document(b"{\"rows\": [[\"2026-11-17\"], [20774]]}", &encoder, 9).unwrap();
        assert_eq!(rows, [20774.0, 20774.0]);
        assert!(json::document(b"{\"rows\": [[\"today\"]]}", &encoder, 9).is_err());
        let parts = AnswerParts {
            values: true,
            ..AnswerParts::default()
        };
        let answer = AnswerOf {
            model: "visits",
            encoder: &encoder,
            classes: &[],
            parts,
        };
        let block = Block {
            rows: 1,
            values: Some(vec![20774.4]),
            ..Block::default()
        };
        for (format, expected) in [
            (BodyFormat::Lines, "{\"values\":[\"2026-11-17\"]}\n"),
            (BodyFormat::Csv, "day\n2026-11-17\n"),
        ] {
            assert_eq!(body(answer, format, &block, None), expected);
        }
        let parts = AnswerParts {
            numbers: true,
            ..AnswerParts::default()
        };
        let block = Block {
            rows: 1,
            numbers: Some([20774.4, 1.5].into_iter().chain([20774.0; 5]).collect()),
            ..Block::default()
        };
        let day = "\"2026-11-17\"";
        let json = format!(
            "{{\"mean\":{day},\"sd\":1.5,\"quantiles\":[{day},{day},{day},{day},{day}]}}\n"
        );
        let csv = format!(
            "mean,sd,q05,q25,q50,q75,q95\n2026-11-17,1.5{}\n",
            ",2026-11-17".repeat(5)
        );
        for (format, expected) in [(BodyFormat::Lines, json), (BodyFormat::Csv, csv)] {
            let answer = AnswerOf { parts, ..answer };
            assert_eq!(body(answer, format, &block, None), expected);
        }
    }

    #[test]
    fn a_csv_file_comes_back_as_it_was_with_holes_filled() {
        let header = ["id", "kind", "class", "age", "coin", "sex"]
            .map(str::to_owned)
            .to_vec();
        let places = vec![3, 5, 4, 1];
        let table = Some(CsvTable { header, places });
        let texts = vec![StringRecord::from(vec!["a,7", "", "yes", "1.50", "NA", ""])];
        let parts = AnswerParts {
            deviation: false,
            ..PARTS
        };
        insta::assert_snapshot!(written(BodyFormat::Csv, parts, &Block { texts, deviation: None, ..block() }, table), @r#"
        id,kind,class,age,coin,sex,predicted_class,p_no,p_yes,log_likelihood
        "a,7",2,yes,1.50,,m,yes,0.25,0.75,-3.5
        "#);
    }
}
