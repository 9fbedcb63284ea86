//! Record batches become rows.

use crate::columns::Columns;
use crate::formats::arrow::flat::{Damaged, Table};
use crate::formats::arrow::schema::{Field, Type, damaged, fields_of, is_plain};
use crate::formats::arrow::values::{Buffers, Values, bit, values};
use crate::formats::text::{Decode, Piece};
use crate::problem::Problem;
use crate::spool::{Held, Incoming, unreadable};
use std::collections::HashMap;
use std::io::Read as _;
use sumout_data::cells::Cell;

/// Longest head of a message.
const MOST_HEAD: usize = 1 << 22;

/// Most rows of one batch.
const MOST_ROWS: usize = 1 << 24;

const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const BATCH: u8 = 3;

/// How rows are made of the columns.
enum Plan {
    /// For each column of the stream, the model's, if it has it.
    Columns(Vec<Option<usize>>),
    /// One column of lists, each a whole row.
    Lists(usize),
}

/// The head and the body of a message.
type Message = (Vec<u8>, Vec<u8>);

/// An Arrow stream being read.
pub struct Arrow {
    incoming: Incoming,
    held: Held,
    most: usize,
    fields: Vec<Field>,
    plan: Plan,
    dictionaries: HashMap<i64, Values>,
    /// Rows of the batch before, and how many numbers of them were handed over.
    batch: Vec<f32>,
    used: usize,
    row: usize,
}

impl Arrow {
    /// Reads the schema; `most` bytes of a batch are held at once.
    pub fn new(
        (incoming, held): (Incoming, Held),
        columns: &Columns,
        most: usize,
    ) -> Result<Self, Problem> {
        let plan = Plan::Lists(0);
        let (fields, dictionaries, batch) = (Vec::new(), HashMap::new(), Vec::new());
        let mut arrow = Self {
            incoming,
            held,
            most,
            fields,
            plan,
            dictionaries,
            batch,
            used: 0,
            row: 0,
        };
        let Some((head, _)) = arrow.message()? else {
            return Err(Problem::bad("expected an Arrow stream, got nothing"));
        };
        let message = Table::root(&head).map_err(damaged)?;
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
        arrow.fields = fields_of(schema, head.len())?;
        arrow.plan = plan_of(&arrow.fields, columns)?;
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
        if length > MOST_HEAD {
            return Err(Problem::bad(
                "expected an Arrow stream, got something else (the head of a message is too long)",
            ));
        }
        let head = self.fill(length)?;
        let body = Table::root(&head)
            .and_then(|message| message.i64(3))
            .map_err(damaged)?;
        let body = usize::try_from(body).map_err(|_| damaged(Damaged))?;
        if body > self.most {
            let most = self.most >> 20;
            let message = format!(
                "expected record batches of at most {most} MiB, got {body} bytes; write smaller batches"
            );
            return Err(Problem::large(message));
        }
        Ok(Some((head, self.fill(body)?)))
    }

    /// Reads messages until a batch with rows; false at the end.
    fn next_batch(&mut self, columns: &Columns) -> Result<bool, Problem> {
        self.batch.clear();
        self.used = 0;
        while self.batch.is_empty() {
            let Some((head, body)) = self.message()? else {
                return Ok(false);
            };
            let message = Table::root(&head).map_err(damaged)?;
            let kind = message.u8(1).map_err(damaged)?;
            let Some(inside) = message.table(2).map_err(damaged)? else {
                return Err(damaged(Damaged));
            };
            match kind {
                DICTIONARY => self.dictionary(inside, &body)?,
                BATCH => self.rows(inside, &body, columns)?,
                _ => {
                    return Err(Problem::bad(
                        "expected record batches after the schema, got another message",
                    ));
                }
            }
        }
        Ok(true)
    }

    fn count(&self, batch: Table<'_>) -> Result<usize, Problem> {
        if batch.table(3).map_err(damaged)?.is_some() {
            return Err(Problem::bad(
                "expected record batches without compression; write them without it",
            ));
        }
        let rows = batch
            .i64(0)
            .ok()
            .and_then(|rows| usize::try_from(rows).ok());
        rows.filter(|&rows| rows <= MOST_ROWS)
            .ok_or_else(|| damaged(Damaged))
    }

    fn dictionary(&mut self, inside: Table<'_>, body: &[u8]) -> Result<(), Problem> {
        let id = inside.i64(0).map_err(damaged)?;
        let Some(batch) = inside.table(1).map_err(damaged)? else {
            return Err(damaged(Damaged));
        };
        if inside.u8(2).map_err(damaged)? != 0 {
            return Err(Problem::bad(
                "expected whole dictionaries, got one that grows; write them whole",
            ));
        }
        let known = |field: &Field| {
            field
                .dictionary
                .as_ref()
                .filter(|(other, _)| *other == id)
                .map(|(_, kind)| kind.clone())
        };
        let Some(kind) = self.fields.iter().find_map(known) else {
            return Ok(());
        };
        let rows = self.count(batch)?;
        if matches!(kind, Type::List { .. } | Type::Other { .. }) {
            return Ok(()); // of a column that is not wanted, or `plan_of` would have refused it
        }
        let mut buffers = Buffers::new(batch, body).map_err(damaged)?;
        let (_, values) = values(&kind, rows, &mut buffers).map_err(damaged)?;
        self.dictionaries.insert(id, values);
        Ok(())
    }

    /// Turns a batch into rows.
    fn rows(&mut self, batch: Table<'_>, body: &[u8], columns: &Columns) -> Result<(), Problem> {
        let rows = self.count(batch)?;
        let width = columns.width();
        let most = self.most / (4 * width); // as rows of 32-bit numbers
        if rows > most.max(1) {
            let message = format!(
                "expected record batches of at most {} rows, got {rows}",
                most.max(1)
            );
            return Err(Problem::large(message));
        }
        let mut buffers = Buffers::new(batch, body).map_err(damaged)?;
        let mut by_column = match self.plan {
            Plan::Columns(_) => vec![f32::NAN; rows * width],
            Plan::Lists(_) => Vec::new(),
        };
        for (place, field) in self.fields.iter().enumerate() {
            match &self.plan {
                Plan::Columns(wanted) => {
                    let Some(column) = wanted[place] else {
                        buffers.skip(&field.kind).map_err(damaged)?;
                        continue;
                    };
                    let (valid, values) =
                        values(&field.kind, rows, &mut buffers).map_err(damaged)?;
                    let lookup = match &field.dictionary {
                        Some((id, _)) => {
                            Some(self.dictionaries.get(id).ok_or_else(|| damaged(Damaged))?)
                        }
                        None => None,
                    };
                    put(
                        &mut by_column[column * rows..][..rows],
                        column,
                        columns,
                        self.row,
                        &valid,
                        &values,
                        lookup,
                    )?;
                }
                Plan::Lists(list) if *list == place => {
                    let Type::List { item, .. } = &field.kind else {
                        return Err(damaged(Damaged));
                    };
                    let outer = buffers.column(rows, true).map_err(damaged)?;
                    let (valid, values) =
                        values(item, rows * width, &mut buffers).map_err(damaged)?;
                    self.batch = vec![f32::NAN; rows * width];
                    lists(&mut self.batch, columns, self.row, outer, &valid, &values)?;
                }
                Plan::Lists(_) => buffers.skip(&field.kind).map_err(damaged)?,
            }
        }
        if let Plan::Columns(_) = self.plan {
            self.batch = transposed(&by_column, rows, width);
        }
        self.row += rows;
        Ok(())
    }
}

/// Where the model's columns are in the stream.
fn plan_of(fields: &[Field], columns: &Columns) -> Result<Plan, Problem> {
    let width = columns.width();
    let fits = |field: &Field| matches!(&field.kind, Type::List { length, item } if *length == width && is_plain(item));
    if !columns.named
        && let Some(list) = fields.iter().position(fits)
    {
        return Ok(Plan::Lists(list));
    }
    let header: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
    let places = columns
        .places(&header)
        .map_err(|what| Problem::bad(format!("schema: {what}")))?;
    for &place in &places {
        let field = &fields[place];
        let kind = field
            .dictionary
            .as_ref()
            .map_or(&field.kind, |(_, kind)| kind);
        if !is_plain(kind) {
            let message = format!(
                "column '{}': expected numbers, truth values or text, got something else",
                field.name
            );
            return Err(Problem::bad(message));
        }
    }
    let mut wanted = vec![None; fields.len()];
    places
        .iter()
        .enumerate()
        .for_each(|(column, &place)| wanted[place] = Some(column));
    Ok(Plan::Columns(wanted))
}

/// From (width, rows) to (rows, width), in tiles that stay in the cache.
fn transposed(by_column: &[f32], rows: usize, width: usize) -> Vec<f32> {
    const TILE: usize = 32;
    let mut by_row = vec![0.0; rows * width];
    for first_row in (0..rows).step_by(TILE) {
        for first in (0..width).step_by(TILE) {
            for row in first_row..rows.min(first_row + TILE) {
                for column in first..width.min(first + TILE) {
                    by_row[row * width + column] = by_column[column * rows + row];
                }
            }
        }
    }
    by_row
}

/// Puts the values of a column into their rows.
fn put(
    to: &mut [f32],
    column: usize,
    columns: &Columns,
    first: usize,
    valid: &[u8],
    values: &Values,
    dictionary: Option<&Values>,
) -> Result<(), Problem> {
    // Finite numbers that no category stands for need not be looked at one by one.
    if let (Values::Singles(all), false, true) =
        (values, columns.is_discrete(column), valid.is_empty())
        && dictionary.is_none()
        && all.iter().all(|x| !x.is_infinite())
    {
        to.copy_from_slice(all);
        return Ok(());
    }
    for (row, to) in to.iter_mut().enumerate() {
        if !valid.is_empty() && !bit(valid, row) {
            continue;
        }
        let cell = match (dictionary, values.cell(row)) {
            (Some(names), Cell::Number(index)) => {
                if index < 0.0 || index >= names.len() as f64 {
                    let message = format!(
                        "row {}, column '{}': its dictionary has no entry {index}",
                        first + row,
                        columns.name(column)
                    );
                    return Err(Problem::bad(message));
                }
                names.cell(index as usize)
            }
            (_, cell) => cell,
        };
        *to = columns
            .value(column, cell)
            .map_err(|what| at(first + row, columns.name(column), &what))?;
    }
    Ok(())
}

fn at(row: usize, column: &str, what: &str) -> Problem {
    Problem::bad(format!("row {row}, column '{column}': {what}"))
}

/// Puts lists, one a row, into their rows.
fn lists(
    to: &mut [f32],
    columns: &Columns,
    first: usize,
    outer: &[u8],
    valid: &[u8],
    values: &Values,
) -> Result<(), Problem> {
    let width = columns.width();
    let plain = outer.is_empty()
        && valid.is_empty()
        && (0..width).all(|column| !columns.is_discrete(column));
    if let Values::Singles(all) = values
        && plain
        && all.iter().all(|x| !x.is_infinite())
    {
        to.copy_from_slice(all);
        return Ok(());
    }
    for (place, to) in to.iter_mut().enumerate() {
        let (row, column) = (place / width, place % width);
        if (!outer.is_empty() && !bit(outer, row)) || (!valid.is_empty() && !bit(valid, place)) {
            continue;
        }
        let value = columns.value(column, values.cell(place));
        *to = value.map_err(|what| at(first + row, columns.name(column), &what))?;
    }
    Ok(())
}

impl Decode for Arrow {
    fn next(&mut self, columns: &Columns, most: usize) -> Result<Piece, Problem> {
        let mut piece = Piece::default();
        while piece.values.len() < most * columns.width() {
            if self.used == self.batch.len() && !self.next_batch(columns)? {
                break;
            }
            let end = self
                .batch
                .len()
                .min(self.used + most * columns.width() - piece.values.len());
            piece.values.extend_from_slice(&self.batch[self.used..end]);
            self.used = end;
        }
        Ok(piece)
    }
}
