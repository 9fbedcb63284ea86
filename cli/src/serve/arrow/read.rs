//! Record batches become rows.

use super::flat::{Damaged, Read, Table};
use crate::datasets::records::Cell;
use crate::serve::cells::Columns;
use crate::serve::problem::Problem;
use crate::serve::stream::{Held, Incoming, unreadable};
use crate::serve::tables::{Decode, Piece};
use std::collections::HashMap;
use std::io::Read as _;

/// Longest head of a message.
const MOST_HEAD: usize = 1 << 22;

/// Most rows of one batch.
const MOST_ROWS: usize = 1 << 24;

const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const BATCH: u8 = 3;

/// What a column's buffers hold.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    Null,
    Bool,
    Int {
        bytes: usize,
        signed: bool,
    },
    Float {
        bytes: usize,
    },
    /// Text with offsets of so many bytes.
    Text {
        offsets: usize,
    },
    /// Text by views.
    View,
    /// Lists of the same length.
    List {
        length: usize,
        item: Box<Type>,
    },
    /// Something that is only stepped over: buffers of its own, and what is inside it.
    Other {
        buffers: usize,
        inside: Vec<Type>,
    },
}

/// A column of the stream.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: Type,
    /// Its dictionary, and what that holds.
    dictionary: Option<(i64, Type)>,
}

/// Reads a type; unions, run lengths and list views are not known.
fn kind_of(field: Table<'_>, depth: usize) -> Read<Option<Type>> {
    let Some(about) = field.table(3)? else { return Err(Damaged) };
    let children = field.tables(5)?;
    if depth > 8 {
        return Ok(None);
    }
    let inside = || children.iter().map(|&child| kind_of(child, depth + 1)).collect::<Read<Option<Vec<Type>>>>();
    let other = |buffers| Ok(inside()?.map(|inside| Type::Other { buffers, inside }));
    Ok(Some(match field.u8(2)? {
        1 => Type::Null,
        2 => match about.i32(0)? {
            bits @ (8 | 16 | 32 | 64) => Type::Int { bytes: bits as usize / 8, signed: about.u8(1)? != 0 },
            _ => return Err(Damaged),
        },
        3 => match about.i16(0)? {
            precision @ 0..=2 => Type::Float { bytes: 2 << precision },
            _ => return Err(Damaged),
        },
        5 => Type::Text { offsets: 4 },
        20 => Type::Text { offsets: 8 },
        6 => Type::Bool,
        24 => Type::View,
        16 => {
            let length = usize::try_from(about.i32(0)?).map_err(|_| Damaged)?;
            match inside()? {
                Some(items) if items.len() == 1 => Type::List { length, item: Box::new(items[0].clone()) },
                _ => return Ok(None),
            }
        }
        4 | 19 => return other(3),           // bytes
        7..=11 | 15 | 18 => return other(2), // decimals, times, bytes of one length
        12 | 17 | 21 => return other(2),     // lists and maps
        13 => return other(1),               // structs
        _ => return Ok(None),
    }))
}

fn field_of(field: Table<'_>) -> Result<Field, Problem> {
    let name = field.text(0).map_err(damaged)?.to_owned();
    let Some(kind) = kind_of(field, 0).map_err(damaged)? else {
        return Err(Problem::bad(format!("column '{name}': its type is not known here; leave it out")));
    };
    let Some(encoding) = field.table(4).map_err(damaged)? else { return Ok(Field { name, kind, dictionary: None }) };
    let index = |encoding: Table<'_>| -> Read<Type> {
        let Some(about) = encoding.table(1)? else { return Ok(Type::Int { bytes: 4, signed: true }) };
        match about.i32(0)? {
            bits @ (8 | 16 | 32 | 64) => Ok(Type::Int { bytes: bits as usize / 8, signed: about.u8(1)? != 0 }),
            _ => Err(Damaged),
        }
    };
    let dictionary = Some((encoding.i64(0).map_err(damaged)?, kind));
    Ok(Field { name, kind: index(encoding).map_err(damaged)?, dictionary })
}

fn damaged(_: Damaged) -> Problem {
    Problem::bad("the Arrow stream is damaged: a message does not hold what it claims")
}

/// The buffers of one batch, handed out in order.
struct Buffers<'a> {
    body: &'a [u8],
    nodes: std::vec::IntoIter<(i64, i64)>,
    places: std::vec::IntoIter<(i64, i64)>,
    variadic: std::vec::IntoIter<i64>,
}

impl<'a> Buffers<'a> {
    fn new(batch: Table<'_>, body: &'a [u8]) -> Read<Self> {
        let variadic = batch.i64s(4)?.into_iter();
        Ok(Self { body, nodes: batch.pairs(1)?.into_iter(), places: batch.pairs(2)?.into_iter(), variadic })
    }

    fn next(&mut self) -> Read<&'a [u8]> {
        let (offset, length) = self.places.next().ok_or(Damaged)?;
        let start = usize::try_from(offset).map_err(|_| Damaged)?;
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length)).ok_or(Damaged)?;
        self.body.get(start..end).ok_or(Damaged)
    }

    /// Checks the length of the next column and gives its bitmap of what is there, empty if everything is.
    fn column(&mut self, rows: usize, bitmap: bool) -> Read<&'a [u8]> {
        let (length, nulls) = self.nodes.next().ok_or(Damaged)?;
        if usize::try_from(length) != Ok(rows) {
            return Err(Damaged);
        }
        let valid = if bitmap { self.next()? } else { &[] };
        match valid.len() {
            0 if nulls == 0 || !bitmap => Ok(&[]),
            bytes if bytes >= rows.div_ceil(8) => Ok(valid),
            _ => Err(Damaged),
        }
    }

    /// Steps over a column that is not wanted.
    fn skip(&mut self, kind: &Type) -> Read<()> {
        self.nodes.next().ok_or(Damaged)?;
        let (buffers, inside): (usize, &[Type]) = match kind {
            Type::Null => (0, &[]),
            Type::Bool | Type::Int { .. } | Type::Float { .. } => (2, &[]),
            Type::Text { .. } => (3, &[]),
            Type::View => (2 + usize::try_from(self.variadic.next().ok_or(Damaged)?).map_err(|_| Damaged)?, &[]),
            Type::List { item, .. } => (1, std::slice::from_ref(item)),
            Type::Other { buffers, inside } => (*buffers, inside),
        };
        (0..buffers).try_for_each(|_| self.next().map(|_| ()))?;
        inside.iter().try_for_each(|kind| self.skip(kind))
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

/// f16 by its definition.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        0 => sign * fraction * 2f64.powi(-24),
        _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Numbers of one size, checked once: `rows` of them are there.
fn numbers<const N: usize, T>(bytes: &[u8], rows: usize, of: impl Fn([u8; N]) -> T) -> Read<Vec<T>> {
    let (items, _) = bytes.as_chunks::<N>();
    items.get(..rows).map(|items| items.iter().map(|&item| of(item)).collect()).ok_or(Damaged)
}

/// The values of a column of a batch.
enum Values {
    Null,
    Numbers(Vec<f64>),
    Singles(Vec<f32>),
    Bools(Vec<bool>),
    Texts(Vec<String>),
}

/// Reads the buffers of one column; `rows` was compared with the limits already.
fn values(kind: &Type, rows: usize, buffers: &mut Buffers<'_>) -> Read<(Vec<u8>, Values)> {
    let valid = buffers.column(rows, *kind != Type::Null)?.to_vec();
    let values = match kind {
        Type::Null => Values::Null,
        Type::Bool => {
            let bits = buffers.next()?;
            if bits.len() < rows.div_ceil(8) {
                return Err(Damaged);
            }
            Values::Bools((0..rows).map(|row| bit(bits, row)).collect())
        }
        Type::Float { bytes: 4 } => Values::Singles(numbers(buffers.next()?, rows, f32::from_le_bytes)?),
        Type::Float { bytes: 8 } => Values::Numbers(numbers(buffers.next()?, rows, f64::from_le_bytes)?),
        Type::Float { .. } => Values::Numbers(numbers(buffers.next()?, rows, |bytes| half(u16::from_le_bytes(bytes)))?),
        Type::Int { bytes, signed } => {
            let data = buffers.next()?;
            Values::Numbers(match (bytes, signed) {
                (1, true) => numbers(data, rows, |b| i8::from_le_bytes(b).into())?,
                (1, false) => numbers(data, rows, |b| u8::from_le_bytes(b).into())?,
                (2, true) => numbers(data, rows, |b| i16::from_le_bytes(b).into())?,
                (2, false) => numbers(data, rows, |b| u16::from_le_bytes(b).into())?,
                (4, true) => numbers(data, rows, |b| i32::from_le_bytes(b).into())?,
                (4, false) => numbers(data, rows, |b| u32::from_le_bytes(b).into())?,
                (_, true) => numbers(data, rows, |b| i64::from_le_bytes(b) as f64)?,
                (_, false) => numbers(data, rows, |b| u64::from_le_bytes(b) as f64)?,
            })
        }
        Type::Text { offsets } => {
            let (ends, data) = (buffers.next()?, buffers.next()?);
            let places = match (rows, offsets) {
                (0, _) => vec![0],
                (_, 4) => numbers(ends, rows + 1, |b| i64::from(i32::from_le_bytes(b)))?,
                _ => numbers(ends, rows + 1, i64::from_le_bytes)?,
            };
            let text = |pair: &[i64]| {
                let place = |at: i64| usize::try_from(at).map_err(|_| Damaged);
                let part = data.get(place(pair[0])?..place(pair[1])?).ok_or(Damaged)?;
                std::str::from_utf8(part).map(str::to_owned).map_err(|_| Damaged)
            };
            Values::Texts(places.windows(2).map(text).collect::<Read<_>>()?)
        }
        Type::View => views(rows, buffers)?,
        Type::List { .. } | Type::Other { .. } => return Err(Damaged), // never asked for
    };
    Ok((valid, values))
}

/// Text of up to twelve bytes stands in its view; longer text in one of the buffers that follow.
fn views(rows: usize, buffers: &mut Buffers<'_>) -> Read<Values> {
    let views = numbers(buffers.next()?, rows, |view: [u8; 16]| view)?;
    let count = usize::try_from(buffers.variadic.next().ok_or(Damaged)?).map_err(|_| Damaged)?;
    let data = (0..count).map(|_| buffers.next()).collect::<Read<Vec<&[u8]>>>()?;
    let text = |view: &[u8; 16]| {
        let number = |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]) as usize;
        let length = number(0);
        let part = match length {
            0..=12 => view.get(4..4 + length),
            _ => data.get(number(8)).and_then(|data| data.get(number(12)..number(12).checked_add(length)?)),
        };
        std::str::from_utf8(part.ok_or(Damaged)?).map(str::to_owned).map_err(|_| Damaged)
    };
    Ok(Values::Texts(views.iter().map(text).collect::<Read<_>>()?))
}

impl Values {
    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Null => Cell::Missing,
            Self::Numbers(all) if all[row].is_nan() => Cell::Missing,
            Self::Numbers(all) => Cell::Number(all[row]),
            Self::Singles(all) if all[row].is_nan() => Cell::Missing,
            Self::Singles(all) => Cell::Number(all[row].into()),
            Self::Bools(all) => Cell::Text(if all[row] { "true" } else { "false" }),
            Self::Texts(all) => Cell::of_text(&all[row]),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Null => usize::MAX,
            Self::Numbers(all) => all.len(),
            Self::Singles(all) => all.len(),
            Self::Bools(all) => all.len(),
            Self::Texts(all) => all.len(),
        }
    }
}

/// How rows are made of the columns.
enum Plan {
    /// For each column of the stream, the model's, if it has it.
    Columns(Vec<Option<usize>>),
    /// One column of lists, each a whole row.
    Lists(usize),
}

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
    pub fn new((incoming, held): (Incoming, Held), columns: &Columns, most: usize) -> Result<Self, Problem> {
        let plan = Plan::Lists(0);
        let (fields, dictionaries, batch) = (Vec::new(), HashMap::new(), Vec::new());
        let mut arrow = Self { incoming, held, most, fields, plan, dictionaries, batch, used: 0, row: 0 };
        let Some((head, _)) = arrow.message()? else {
            return Err(Problem::bad("expected an Arrow stream, got nothing"));
        };
        let message = Table::root(&head).map_err(damaged)?;
        let schema = message.table(2).map_err(damaged)?;
        let Some(schema) = schema.filter(|_| message.u8(1) == Ok(SCHEMA)) else {
            return Err(Problem::bad("expected an Arrow stream that begins with a schema"));
        };
        if schema.i16(0).map_err(damaged)? != 0 {
            return Err(Problem::bad("expected an Arrow stream of little-endian numbers"));
        }
        arrow.fields = schema.tables(1).map_err(damaged)?.into_iter().map(field_of).collect::<Result<_, _>>()?;
        arrow.plan = plan_of(&arrow.fields, columns)?;
        Ok(arrow)
    }

    fn fill(&mut self, count: usize) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new(); // grows as bytes arrive, whatever was claimed
        let read = (&mut self.incoming).take(count as u64).read_to_end(&mut bytes);
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
    fn message(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>, Problem> {
        self.held.release();
        let mut word = Vec::new();
        (&mut self.incoming).take(4).read_to_end(&mut word).map_err(|error| unreadable(&error))?;
        if word.is_empty() {
            return Ok(None); // an end without a mark is allowed
        }
        if word == [255; 4] {
            word = self.fill(4)?;
        }
        let length = <[u8; 4]>::try_from(&*word).map(u32::from_le_bytes);
        let length = length.map_err(|_| Problem::bad("expected an Arrow stream, got a few bytes"))? as usize;
        if length == 0 {
            return Ok(None);
        }
        if length > MOST_HEAD {
            return Err(Problem::bad(
                "expected an Arrow stream, got something else (the head of a message is too long)",
            ));
        }
        let head = self.fill(length)?;
        let body = Table::root(&head).and_then(|message| message.i64(3)).map_err(damaged)?;
        let body = usize::try_from(body).map_err(|_| damaged(Damaged))?;
        if body > self.most {
            let most = self.most >> 20;
            let message =
                format!("expected record batches of at most {most} MiB, got {body} bytes; write smaller batches");
            return Err(Problem::large(message));
        }
        Ok(Some((head, self.fill(body)?)))
    }

    /// Reads messages until a batch with rows; false at the end.
    fn next_batch(&mut self, columns: &Columns) -> Result<bool, Problem> {
        self.batch.clear();
        self.used = 0;
        while self.batch.is_empty() {
            let Some((head, body)) = self.message()? else { return Ok(false) };
            let message = Table::root(&head).map_err(damaged)?;
            let kind = message.u8(1).map_err(damaged)?;
            let Some(inside) = message.table(2).map_err(damaged)? else { return Err(damaged(Damaged)) };
            match kind {
                DICTIONARY => self.dictionary(inside, &body)?,
                BATCH => self.rows(inside, &body, columns)?,
                _ => return Err(Problem::bad("expected record batches after the schema, got another message")),
            }
        }
        Ok(true)
    }

    fn count(&self, batch: Table<'_>) -> Result<usize, Problem> {
        if batch.table(3).map_err(damaged)?.is_some() {
            return Err(Problem::bad("expected record batches without compression; write them without it"));
        }
        let rows = batch.i64(0).ok().and_then(|rows| usize::try_from(rows).ok());
        rows.filter(|&rows| rows <= MOST_ROWS).ok_or_else(|| damaged(Damaged))
    }

    fn dictionary(&mut self, inside: Table<'_>, body: &[u8]) -> Result<(), Problem> {
        let id = inside.i64(0).map_err(damaged)?;
        let Some(batch) = inside.table(1).map_err(damaged)? else { return Err(damaged(Damaged)) };
        if inside.u8(2).map_err(damaged)? != 0 {
            return Err(Problem::bad("expected whole dictionaries, got one that grows; write them whole"));
        }
        let known =
            |field: &Field| field.dictionary.as_ref().filter(|(other, _)| *other == id).map(|(_, kind)| kind.clone());
        let Some(kind) = self.fields.iter().find_map(known) else { return Ok(()) };
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
        if rows.saturating_mul(width) > self.most {
            let message = format!("expected record batches of fewer than {} rows, got {rows}", self.most / width + 1);
            return Err(Problem::large(message));
        }
        let mut buffers = Buffers::new(batch, body).map_err(damaged)?;
        let mut by_column = vec![f32::NAN; rows * width];
        for (place, field) in self.fields.iter().enumerate() {
            match &self.plan {
                Plan::Columns(wanted) => {
                    let Some(column) = wanted[place] else {
                        buffers.skip(&field.kind).map_err(damaged)?;
                        continue;
                    };
                    let (valid, values) = values(&field.kind, rows, &mut buffers).map_err(damaged)?;
                    let lookup = match &field.dictionary {
                        Some((id, _)) => Some(self.dictionaries.get(id).ok_or_else(|| damaged(Damaged))?),
                        None => None,
                    };
                    put(&mut by_column[column * rows..][..rows], column, columns, self.row, &valid, &values, lookup)?;
                }
                Plan::Lists(list) if *list == place => {
                    let Type::List { item, .. } = &field.kind else { return Err(damaged(Damaged)) };
                    let outer = buffers.column(rows, true).map_err(damaged)?;
                    let (valid, values) = values(item, rows * width, &mut buffers).map_err(damaged)?;
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
    let places = columns.places(&header).map_err(|what| Problem::bad(format!("schema: {what}")))?;
    for &place in &places {
        let field = &fields[place];
        let kind = field.dictionary.as_ref().map_or(&field.kind, |(_, kind)| kind);
        if !is_plain(kind) {
            let message =
                format!("column '{}': expected numbers, truth values or text, got something else", field.name);
            return Err(Problem::bad(message));
        }
    }
    let mut wanted = vec![None; fields.len()];
    places.iter().enumerate().for_each(|(column, &place)| wanted[place] = Some(column));
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

fn is_plain(kind: &Type) -> bool {
    !matches!(kind, Type::List { .. } | Type::Other { .. })
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
    if let (Values::Singles(all), false, true) = (values, columns.is_discrete(column), valid.is_empty())
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
        *to = columns.value(column, cell).map_err(|what| at(first + row, columns.name(column), &what))?;
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
            let end = self.batch.len().min(self.used + most * columns.width() - piece.values.len());
            piece.values.extend_from_slice(&self.batch[self.used..end]);
            self.used = end;
        }
        Ok(piece)
    }
}
