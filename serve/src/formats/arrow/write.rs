//! Rows of an answer become record batches.

use crate::formats::arrow::flat::{FlatWriter, Slot};
use std::io::{self, Write};
use sumout_data::cells::{Field, FieldKind, Value};
use sumout_data::dates::text_of;

/// V5 of the format.
const VERSION: i16 = 4;

/// A column of a batch: what is there, numbers, and the ends and bytes of text.
#[derive(Clone, Debug, Default)]
struct BatchColumn {
    valid: Vec<bool>,
    numbers: Vec<u8>,
    ends: Vec<u8>,
    text: Vec<u8>,
}

impl BatchColumn {
    fn push(&mut self, value: Value<'_>, kind: &FieldKind) {
        let value = value.shown(kind);
        let number = value.number();
        let (there, number_there) = (
            value != Value::Missing,
            if number.is_nan() { 0.0 } else { number },
        );
        self.valid.push(there);
        match kind {
            FieldKind::Single => self.numbers.extend((number_there as f32).to_le_bytes()),
            FieldKind::Double => self.numbers.extend(number_there.to_le_bytes()),
            FieldKind::Whole => self.numbers.extend((number_there as i64).to_le_bytes()),
            FieldKind::Text | FieldKind::Category(_) | FieldKind::Date(_) => {
                match value {
                    Value::Text(text) => self.text.extend(text.as_bytes()),
                    Value::Date(days, style) => self.text.extend(text_of(days, style).as_bytes()),
                    _ => {}
                }
                self.ends.extend((self.text.len() as i32).to_le_bytes());
            }
        }
    }

    /// The bitmap of what is there.
    fn bitmap(&self) -> Vec<u8> {
        let byte = |rows: &[bool]| {
            rows.iter()
                .enumerate()
                .fold(0, |byte, (i, &there)| byte | u8::from(there) << i)
        };
        self.valid.chunks(8).map(byte).collect()
    }
}

fn is_text(kind: &FieldKind) -> bool {
    matches!(
        kind,
        FieldKind::Text | FieldKind::Category(_) | FieldKind::Date(_)
    )
}

/// Writes the schema.
pub fn schema(to: &mut impl Write, fields: &[Field]) -> io::Result<()> {
    let mut head = FlatWriter::start();
    let message = head.table(
        0,
        &[Slot::I16(VERSION), Slot::U8(1), Slot::Later, Slot::I64(0)],
    );
    let schema = head.table(message[0], &[Slot::I16(0), Slot::Later]);
    let places = head.list(schema[0], fields.len());
    for (field, place) in fields.iter().zip(places) {
        let kind = match field.kind {
            FieldKind::Single | FieldKind::Double => 3,
            FieldKind::Whole => 2,
            FieldKind::Text | FieldKind::Category(_) | FieldKind::Date(_) => 5,
        };
        // name, nullable, type, its table, no dictionary, no children
        let slots = [
            Slot::Later,
            Slot::U8(1),
            Slot::U8(kind),
            Slot::Later,
            Slot::Default,
            Slot::Later,
        ];
        let later = head.table(place, &slots);
        head.text(later[0], &field.name);
        match field.kind {
            FieldKind::Single => head.table(later[1], &[Slot::I16(1)]),
            FieldKind::Double => head.table(later[1], &[Slot::I16(2)]),
            FieldKind::Whole => head.table(later[1], &[Slot::I32(64), Slot::U8(1)]),
            FieldKind::Text | FieldKind::Category(_) | FieldKind::Date(_) => {
                head.table(later[1], &[])
            }
        };
        head.list(later[2], 0);
    }
    message_to(to, head.finish(), &[])
}

/// Writes a batch of rows.
pub fn batch<'a>(
    to: &mut impl Write,
    fields: &[Field],
    rows: impl Iterator<Item = Vec<Value<'a>>>,
) -> io::Result<()> {
    let mut columns = vec![BatchColumn::default(); fields.len()];
    columns
        .iter_mut()
        .zip(fields)
        .filter(|(_, field)| is_text(&field.kind))
        .for_each(|(c, _)| c.ends.extend([0; 4]));
    let mut count = 0;
    for row in rows {
        count += 1;
        let cells = columns.iter_mut().zip(fields).zip(row);
        cells.for_each(|((column, field), value)| column.push(value, &field.kind));
    }
    let (mut body, mut places, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |bytes: &[u8]| {
        places.push((body.len() as i64, bytes.len() as i64));
        body.extend_from_slice(bytes);
        body.resize(body.len().next_multiple_of(8), 0);
    };
    for (column, field) in columns.iter().zip(fields) {
        let nulls = column.valid.iter().filter(|there| !**there).count() as i64;
        nodes.push((count, nulls));
        add(&if nulls > 0 {
            column.bitmap()
        } else {
            Vec::new()
        });
        if is_text(&field.kind) {
            add(&column.ends);
            add(&column.text);
        } else {
            add(&column.numbers);
        }
    }
    let mut head = FlatWriter::start();
    let message = head.table(
        0,
        &[
            Slot::I16(VERSION),
            Slot::U8(3),
            Slot::Later,
            Slot::I64(body.len() as i64),
        ],
    );
    let later = head.table(message[0], &[Slot::I64(count), Slot::Later, Slot::Later]);
    head.pairs(later[0], &nodes);
    head.pairs(later[1], &places);
    message_to(to, head.finish(), &body)
}

/// Marks the end.
pub fn end(to: &mut impl Write) -> io::Result<()> {
    to.write_all(&[255, 255, 255, 255, 0, 0, 0, 0])
}

fn message_to(to: &mut impl Write, head: Vec<u8>, body: &[u8]) -> io::Result<()> {
    to.write_all(&[255; 4])?;
    to.write_all(&(head.len() as u32).to_le_bytes())?;
    to.write_all(&head)?;
    to.write_all(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{encoder, pets};
    use crate::formats::arrow::read::ArrowDecoder;
    use crate::formats::text::Decode;
    use crate::formats::text::{tests::arrived, tests::rows};
    use sumout_data::encode::Encoder;
    use sumout_data::layout::Absent;
    use sumout_data::model_files::layout_of;

    fn stream() -> Vec<u8> {
        let names = |names: &[&str]| {
            FieldKind::Category(names.iter().map(|&name| name.to_owned()).collect())
        };
        let fields = [
            Field::new("note", FieldKind::Text),
            Field::new("kind", FieldKind::Whole),
            Field::new("age", FieldKind::Single),
            Field::new("coin", FieldKind::Double),
            Field::new("sex", names(&["f", "m"])),
        ];
        let row = |age, coin, sex| {
            vec![
                Value::Text("a longer note"),
                Value::Whole(2),
                Value::Single(age),
                coin,
                sex,
            ]
        };
        let mut bytes = Vec::new();
        schema(&mut bytes, &fields).unwrap();
        batch(
            &mut bytes,
            &fields,
            [row(1.5, Value::Double(1.0), Value::Single(1.0))].into_iter(),
        )
        .unwrap();
        batch(&mut bytes, &fields, std::iter::empty()).unwrap();
        let holes = [
            row(f32::NAN, Value::Missing, Value::Missing),
            row(-2.0, Value::Double(0.0), Value::Single(0.0)),
        ];
        batch(&mut bytes, &fields, holes.into_iter()).unwrap();
        end(&mut bytes).unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<f32>, String> {
        let mut arrow = ArrowDecoder::new(arrived(bytes, 100_000), &encoder(), Absent::Error, 5000)
            .map_err(|problem| problem.message)?;
        rows(&mut arrow)
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(
            read(&stream()).unwrap(),
            [1.5, 1., 1., 2., -9., -9., -9., 2., -2., 0., 0., 2.]
        );
    }

    /// A stream of ages and sexes, read for a model of pets that was trained with `--na`.
    fn read_beside(na: &str, ages: [f32; 2], sexes: [&str; 2]) -> Result<Vec<f32>, String> {
        let mut layout = layout_of(&pets());
        layout.na = vec![na.to_owned()];
        let encoder = Encoder::new(&layout).with_kinds(&pets().structure.row_kinds());
        let fields = [
            Field::new("age", FieldKind::Single),
            Field::new("sex", FieldKind::Text),
        ];
        let mut bytes = Vec::new();
        schema(&mut bytes, &fields).unwrap();
        let row = |i: usize| vec![Value::Single(ages[i]), Value::Text(sexes[i])];
        batch(&mut bytes, &fields, [row(0), row(1)].into_iter()).unwrap();
        end(&mut bytes).unwrap();
        let arrived = arrived(&bytes, 100_000);
        let arrow = ArrowDecoder::new(arrived, &encoder, Absent::Missing, 5000);
        let piece = arrow.and_then(|mut arrow| arrow.next(&encoder, 9));
        piece
            .map(|piece| piece.values)
            .map_err(|problem| problem.message)
    }

    /// Arrow has nulls: NA is a word there. What `--na` names is missing, also in a column without a null.
    #[test]
    fn words_and_numbers_that_stand_for_holes() {
        let error = read_beside("?", [1.0, 2.0], ["f", "NA"]).unwrap_err();
        assert_eq!(error, "row 2, column 'sex': expected f, m, got 'NA'");
        let read = read_beside("-999", [-999.0, 2.0], ["f", "-999"]).unwrap();
        assert!(read[0].is_nan() && read[5].is_nan(), "{read:?}");
        assert_eq!((read[1], read[4]), (0.0, 2.0));
    }

    /// A schema of one column: eight structs, each holding the next one a thousand times.
    fn endless() -> Vec<u8> {
        let mut head = FlatWriter::start();
        let message = head.table(
            0,
            &[Slot::I16(VERSION), Slot::U8(1), Slot::Later, Slot::I64(0)],
        );
        let schema = head.table(message[0], &[Slot::I16(0), Slot::Later]);
        let mut place = head.list(schema[0], 1)[0];
        let mut shared = Vec::new();
        for _ in 0..8 {
            let slots = [
                Slot::Later,
                Slot::U8(1),
                Slot::U8(13),
                Slot::Later,
                Slot::Default,
                Slot::Later,
            ];
            let later = head.table(place, &slots);
            head.text(later[0], "age");
            head.table(later[1], &[]);
            let children = head.list(later[2], 1000);
            place = children[0];
            shared.push(children);
        }
        let later = head.table(place, &[Slot::Later, Slot::U8(1), Slot::U8(1), Slot::Later]);
        head.text(later[0], "age");
        head.table(later[1], &[]);
        let mut bytes = head.finish();
        for children in shared {
            let first = children[0];
            let to = first as u32 + u32::from_le_bytes(bytes[first..first + 4].try_into().unwrap());
            children
                .iter()
                .for_each(|&at| bytes[at..at + 4].copy_from_slice(&(to - at as u32).to_le_bytes()));
        }
        let mut stream = Vec::new();
        message_to(&mut stream, bytes, &[]).unwrap();
        stream
    }

    #[test]
    fn nonsense_is_placed_and_damage_never_more_than_an_error() {
        let bytes = stream();
        assert_eq!(
            read(b"").unwrap_err(),
            "expected an Arrow stream, got nothing"
        );
        assert_eq!(
            read(b"{}").unwrap_err(),
            "expected an Arrow stream, got a few bytes"
        );
        assert!(
            read(b"hello, this is text")
                .unwrap_err()
                .starts_with("expected an Arrow stream, got something else")
        );
        assert!(
            read(&bytes[..bytes.len() - 40])
                .unwrap_err()
                .ends_with("in the middle of a message, after row 1")
        );
        assert!(
            read(&endless())
                .unwrap_err()
                .starts_with("the Arrow stream is damaged")
        );
        for at in 0..bytes.len() {
            let _ = read(&bytes[..at]);
            for value in [0, 1, 2, 5, 24, 127, 128, 255] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                let _ = read(&wrong); // what matters is that it returns
            }
        }
    }
}
