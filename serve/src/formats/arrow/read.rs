//! Record batches become rows.

use crate::bodies::incoming::{Held, Incoming, unreadable};
use crate::formats::arrow::cursor::{Cursor, transposed};
use crate::formats::arrow::flat::{Damaged, FlatTable};
use crate::formats::arrow::schema::{StreamColumn, Type, columns_of, damaged, is_plain};
use crate::formats::arrow::values::{BatchBuffers, ColumnValues, values};
use crate::formats::csv_rows::Piece;
use crate::formats::text::Decode;
use crate::problem::Problem;
use std::collections::HashMap;
use std::io::Read as _;
use sumout_data::encode::Encoder;
use sumout_data::layout::Absent;

/// Maximum bytes of the head of a message.
const MAX_HEAD: usize = 1 << 22;

/// Maximum of rows in one batch.
const MAX_ROWS: usize = 1 << 24;

const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const BATCH: u8 = 3;

/// How rows are made of the columns.
enum Arrangement {
    /// For each column of the stream, the model's, if it has it.
    Columns(Vec<Option<usize>>),
    /// One column of lists, each a whole row.
    Lists(usize),
}

/// The head and the body of a message.
type Message = (Vec<u8>, Vec<u8>);

/// An Arrow stream being read.
pub struct ArrowDecoder {
    incoming: Incoming,
    held: Held,
    max_held: usize,
    columns: Vec<StreamColumn>,
    arrangement: Arrangement,
    dictionaries: HashMap<i64, ColumnValues>,
    /// Rows of the batch before, and how many numbers of them were handed over.
    batch: Vec<f32>,
    used: usize,
    row: usize,
}

impl ArrowDecoder {
    /// Reads the schema; at most `max_held` bytes of a batch are held at once.
    pub fn new(
        (incoming, held): (Incoming, Held),
        encoder: &Encoder,
        absent: Absent,
        max_held: usize,
    ) -> Result<Self, Problem> {
        let arrangement = Arrangement::Lists(0);
        let (columns, dictionaries, batch) = (Vec::new(), HashMap::new(), Vec::new());
        let mut arrow = Self {
            incoming,
            held,
            max_held,
            columns,
            arrangement,
            dictionaries,
            batch,
            used: 0,
            row: 0,
        };
        let Some((head, _)) = arrow.message()? else {
            return Err(Problem::bad("expected an Arrow stream, got nothing"));
        };
        let message = FlatTable::root(&head).map_err(damaged)?;
        let schema = message.table(2).map_err(damaged)?;
        let Some(schema) = schema.filter(|_| message.u8(1) == Ok(SCHEMA)) else {
            return Err(Problem::bad(
                "expected an Arrow stream that begins with a schema",
            ));
        };
        if schema.i16(0).map_err(damaged)? != 0 {
            return Err(Problem::bad(
                "expected an Arrow stream of little-endian numbers",
            ));
        }
        arrow.columns = columns_of(schema, head.len())?;
        arrow.arrangement = arrangement_of(&arrow.columns, encoder, absent)?;
        Ok(arrow)
    }

    fn fill(&mut self, count: usize) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new(); // grows as bytes arrive, whatever was claimed
        let read = (&mut self.incoming)
            .take(count as u64)
            .read_to_end(&mut bytes);
        read.map_err(|error| unreadable(&error))?;
        if bytes.len() < count {
            return Err(Problem::bad(format!(
                "the Arrow stream ends in the middle of a message, after row {}",
                self.row
            )));
        }
        Ok(bytes)
    }

    /// The head and the body of the next message; nothing at the end.
    fn message(&mut self) -> Result<Option<Message>, Problem> {
        self.held.release();
        let mut word = Vec::new();
        (&mut self.incoming)
            .take(4)
            .read_to_end(&mut word)
            .map_err(|error| unreadable(&error))?;
        if word.is_empty() {
            return Ok(None); // an end without a mark is allowed
        }
        if word == [255; 4] {
            word = self.fill(4)?;
        }
        let length = <[u8; 4]>::try_from(&*word).map(u32::from_le_bytes);
        let length =
            length.map_err(|_| Problem::bad("expected an Arrow stream, got a few bytes"))? as usize;
        if length == 0 {
            return Ok(None);
        }
        if length > MAX_HEAD {
            return Err(Problem::bad(
                "expected an Arrow stream, got something else (the head of a message is too long)",
            ));
        }
        let head = self.fill(length)?;
        let body = FlatTable::root(&head)
            .and_then(|message| message.i64(3))
            .map_err(damaged)?;
        let body = usize::try_from(body).map_err(|_| damaged(Damaged))?;
        if body > self.max_held {
            let most = self.max_held >> 20;
            let message = format!(
                "expected record batches of at most {most} MiB, got {body} bytes; write smaller batches"
            );
            return Err(Problem::large(message));
        }
        Ok(Some((head, self.fill(body)?)))
    }

    /// Reads messages until a batch with rows; false at the end.
    fn next_batch(&mut self, encoder: &Encoder) -> Result<bool, Problem> {
        self.batch.clear();
        self.used = 0;
        while self.batch.is_empty() {
            let Some((head, body)) = self.message()? else {
                return Ok(false);
            };
            let message = FlatTable::root(&head).map_err(damaged)?;
            let kind = message.u8(1).map_err(damaged)?;
            let Some(inside) = message.table(2).map_err(damaged)? else {
                return Err(damaged(Damaged));
            };
            match kind {
                DICTIONARY => self.dictionary(inside, &body)?,
                BATCH => self.rows(inside, &body, encoder)?,
                _ => {
                    return Err(Problem::bad(
                        "expected record batches after the schema, got another message",
                    ));
                }
            }
        }
        Ok(true)
    }

    fn count(&self, batch: FlatTable<'_>) -> Result<usize, Problem> {
        if batch.table(3).map_err(damaged)?.is_some() {
            return Err(Problem::bad(
                "expected record batches without compression; write them without it",
            ));
        }
        let rows = batch
            .i64(0)
            .ok()
            .and_then(|rows| usize::try_from(rows).ok());
        rows.filter(|&rows| rows <= MAX_ROWS)
            .ok_or_else(|| damaged(Damaged))
    }

    fn dictionary(&mut self, inside: FlatTable<'_>, body: &[u8]) -> Result<(), Problem> {
        let id = inside.i64(0).map_err(damaged)?;
        let Some(batch) = inside.table(1).map_err(damaged)? else {
            return Err(damaged(Damaged));
        };
        if inside.u8(2).map_err(damaged)? != 0 {
            return Err(Problem::bad(
                "expected whole dictionaries, got one that grows; write them whole",
            ));
        }
        let known = |column: &StreamColumn| {
            let (other, kind) = column.dictionary.as_ref()?;
            (*other == id).then(|| kind.clone())
        };
        let Some(kind) = self.columns.iter().find_map(known) else {
            return Ok(());
        };
        let rows = self.count(batch)?;
        if matches!(kind, Type::List { .. } | Type::Other { .. }) {
            return Ok(()); // of a column that is not wanted, or `arrangement_of` would have refused it
        }
        let mut buffers = BatchBuffers::new(batch, body).map_err(damaged)?;
        let (_, values) = values(&kind, rows, &mut buffers).map_err(damaged)?;
        self.dictionaries.insert(id, values);
        Ok(())
    }

    /// Turns a batch into rows.
    fn rows(
        &mut self,
        batch: FlatTable<'_>,
        body: &[u8],
        encoder: &Encoder,
    ) -> Result<(), Problem> {
        let rows = self.count(batch)?;
        let max = (self.max_held / (4 * encoder.width())).max(1); // as rows of 32-bit numbers
        if rows > max {
            let message = format!("expected record batches of at most {max} rows, got {rows}");
            return Err(Problem::large(message));
        }
        let buffers = BatchBuffers::new(batch, body).map_err(damaged)?;
        self.batch = match &self.arrangement {
            Arrangement::Columns(wanted) => self.of_columns(wanted, rows, buffers, encoder)?,
            Arrangement::Lists(list) => self.of_lists(*list, rows, buffers, encoder)?,
        };
        self.row += rows;
        Ok(())
    }

    /// Rows of a batch that has a column for every number.
    fn of_columns(
        &self,
        wanted: &[Option<usize>],
        rows: usize,
        mut buffers: BatchBuffers<'_>,
        encoder: &Encoder,
    ) -> Result<Vec<f32>, Problem> {
        let mut by_column = vec![f32::NAN; rows * encoder.width()];
        for (stored, wanted) in self.columns.iter().zip(wanted) {
            let Some(column) = *wanted else {
                buffers.skip(&stored.kind).map_err(damaged)?;
                continue;
            };
            let (valid, values) = values(&stored.kind, rows, &mut buffers).map_err(damaged)?;
            let dictionary = match &stored.dictionary {
                Some((id, _)) => {
                    let known = self.dictionaries.get(id);
                    Some(known.ok_or_else(|| damaged(Damaged))?)
                }
                None => None,
            };
            let cursor = Cursor {
                encoder,
                first_row: self.row,
                valid: &valid,
                values: &values,
                dictionary,
            };
            cursor.put(column, &mut by_column[column * rows..][..rows])?;
        }
        Ok(transposed(&by_column, rows, encoder.width()))
    }

    /// Rows of a batch that has one column of lists, each a whole row.
    fn of_lists(
        &self,
        list: usize,
        rows: usize,
        mut buffers: BatchBuffers<'_>,
        encoder: &Encoder,
    ) -> Result<Vec<f32>, Problem> {
        for stored in &self.columns[..list] {
            buffers.skip(&stored.kind).map_err(damaged)?;
        }
        let Type::List { item, .. } = &self.columns[list].kind else {
            return Err(damaged(Damaged));
        };
        let lists = buffers.column(rows, true).map_err(damaged)?;
        let (valid, values) =
            values(item, rows * encoder.width(), &mut buffers).map_err(damaged)?;
        let cursor = Cursor {
            encoder,
            first_row: self.row,
            valid: &valid,
            values: &values,
            dictionary: None,
        };
        cursor.lists(lists, rows)
    }
}

/// Where the model's columns are in the stream.
fn arrangement_of(
    columns: &[StreamColumn],
    encoder: &Encoder,
    absent: Absent,
) -> Result<Arrangement, Problem> {
    let width = encoder.width();
    let is_row = |column: &StreamColumn| matches!(&column.kind, Type::List { length, item } if *length == width && is_plain(item));
    if !encoder.named
        && let Some(list) = columns.iter().position(is_row)
    {
        return Ok(Arrangement::Lists(list));
    }
    let header: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let places = encoder.places(&header, absent);
    let places = places.map_err(|error| error.in_file("schema"))?;
    for &place in places.iter().flatten() {
        let StreamColumn {
            name,
            kind,
            dictionary,
        } = &columns[place];
        let kind = dictionary.as_ref().map_or(kind, |(_, kind)| kind);
        if !is_plain(kind) {
            let message = "expected numbers, truth values or text, got something else";
            return Err(Problem::bad(format!("column '{name}': {message}")));
        }
    }
    let mut wanted = vec![None; columns.len()];
    for (column, place) in places.iter().enumerate() {
        if let Some(place) = *place {
            wanted[place] = Some(column);
        }
    }
    Ok(Arrangement::Columns(wanted))
}

impl Decode for ArrowDecoder {
    fn next(&mut self, encoder: &Encoder, most: usize) -> Result<Piece, Problem> {
        let mut piece = Piece::default();
        while piece.values.len() < most * encoder.width() {
            if self.used == self.batch.len() && !self.next_batch(encoder)? {
                break;
            }
            let end = self
                .batch
                .len()
                .min(self.used + most * encoder.width() - piece.values.len());
            piece.values.extend_from_slice(&self.batch[self.used..end]);
            self.used = end;
        }
        Ok(piece)
    }
}
