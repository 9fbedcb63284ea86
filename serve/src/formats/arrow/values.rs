//! Buffers become values, every length compared with the bytes that are there.

use crate::formats::arrow::flat::{Damaged, FlatTable, Read};
use crate::formats::arrow::schema::Type;
use sumout_data::cells::Cell;

/// The buffers of one batch, handed out in order.
pub(super) struct BatchBuffers<'a> {
    body: &'a [u8],
    nodes: std::vec::IntoIter<(i64, i64)>,
    places: std::vec::IntoIter<(i64, i64)>,
    variadic: std::vec::IntoIter<i64>,
}

impl<'a> BatchBuffers<'a> {
    pub fn new(batch: FlatTable<'_>, body: &'a [u8]) -> Read<Self> {
        let variadic = batch.i64s(4)?.into_iter();
        Ok(Self {
            body,
            nodes: batch.pairs(1)?.into_iter(),
            places: batch.pairs(2)?.into_iter(),
            variadic,
        })
    }

    fn next(&mut self) -> Read<&'a [u8]> {
        let (offset, length) = self.places.next().ok_or(Damaged)?;
        let start = usize::try_from(offset).map_err(|_| Damaged)?;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| start.checked_add(length))
            .ok_or(Damaged)?;
        self.body.get(start..end).ok_or(Damaged)
    }

    /// Checks the length of the next column and gives its bitmap of what is there, empty if everything is.
    pub fn column(&mut self, rows: usize, bitmap: bool) -> Read<&'a [u8]> {
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
    pub fn skip(&mut self, kind: &Type) -> Read<()> {
        self.nodes.next().ok_or(Damaged)?;
        let (buffers, inside): (usize, &[Type]) = match kind {
            Type::Null => (0, &[]),
            Type::Bool | Type::Int { .. } | Type::Float { .. } => (2, &[]),
            Type::Text { .. } => (3, &[]),
            Type::View => (
                2 + usize::try_from(self.variadic.next().ok_or(Damaged)?).map_err(|_| Damaged)?,
                &[],
            ),
            Type::List { item, .. } => (1, std::slice::from_ref(item)),
            Type::Other { buffers, inside } => (*buffers, inside),
        };
        (0..buffers).try_for_each(|_| self.next().map(|_| ()))?;
        inside.iter().try_for_each(|kind| self.skip(kind))
    }
}

pub(super) fn bit(bits: &[u8], at: usize) -> bool {
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
fn numbers<const N: usize, T>(
    bytes: &[u8],
    rows: usize,
    of: impl Fn([u8; N]) -> T,
) -> Read<Vec<T>> {
    let (items, _) = bytes.as_chunks::<N>();
    items
        .get(..rows)
        .map(|items| items.iter().map(|&item| of(item)).collect())
        .ok_or(Damaged)
}

/// The values of a column of a batch.
pub(super) enum ColumnValues {
    Null,
    Numbers(Vec<f64>),
    Singles(Vec<f32>),
    Bools(Vec<bool>),
    Texts(Vec<String>),
}

/// Reads the buffers of one column; `rows` was compared with the limits already.
pub(super) fn values(
    kind: &Type,
    rows: usize,
    buffers: &mut BatchBuffers<'_>,
) -> Read<(Vec<u8>, ColumnValues)> {
    let valid = buffers.column(rows, *kind != Type::Null)?.to_vec();
    let values = match kind {
        Type::Null => ColumnValues::Null,
        Type::Bool => {
            let bits = buffers.next()?;
            if bits.len() < rows.div_ceil(8) {
                return Err(Damaged);
            }
            ColumnValues::Bools((0..rows).map(|row| bit(bits, row)).collect())
        }
        Type::Float { bytes: 4 } => {
            ColumnValues::Singles(numbers(buffers.next()?, rows, f32::from_le_bytes)?)
        }
        Type::Float { bytes: 8 } => {
            ColumnValues::Numbers(numbers(buffers.next()?, rows, f64::from_le_bytes)?)
        }
        Type::Float { .. } => ColumnValues::Numbers(numbers(buffers.next()?, rows, |bytes| {
            half(u16::from_le_bytes(bytes))
        })?),
        Type::Int { bytes, signed } => {
            let data = buffers.next()?;
            ColumnValues::Numbers(match (bytes, signed) {
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
            let text = |pair: &[i64]| text_at(data, pair[0], pair[1]);
            ColumnValues::Texts(places.windows(2).map(text).collect::<Read<_>>()?)
        }
        Type::View => views(rows, buffers)?,
        Type::List { .. } | Type::Other { .. } => return Err(Damaged), // never needed
    };
    Ok((valid, values))
}

/// Text of up to twelve bytes stands in its view; longer text in one of the buffers that follow.
fn views(rows: usize, buffers: &mut BatchBuffers<'_>) -> Read<ColumnValues> {
    let views = numbers(buffers.next()?, rows, |view: [u8; 16]| view)?;
    let count = usize::try_from(buffers.variadic.next().ok_or(Damaged)?).map_err(|_| Damaged)?;
    let data = (0..count)
        .map(|_| buffers.next())
        .collect::<Read<Vec<&[u8]>>>()?;
    // Views may share their text, but not so often that a small batch becomes a large one.
    let lengths = views.iter().map(|view| view_number(view, 0));
    if lengths.sum::<usize>() > 4 * buffers.body.len() {
        return Err(Damaged);
    }
    let texts = views.iter().map(|view| view_text(view, &data));
    Ok(ColumnValues::Texts(texts.collect::<Read<_>>()?))
}

/// The four bytes of a view at a place, as a number.
fn view_number(view: &[u8; 16], at: usize) -> usize {
    u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]) as usize
}

/// The text that a view stands for.
fn view_text(view: &[u8; 16], data: &[&[u8]]) -> Read<String> {
    let length = view_number(view, 0);
    let part = match length {
        0..=12 => view.get(4..4 + length),
        _ => {
            let (buffer, start) = (view_number(view, 8), view_number(view, 12));
            let data = data.get(buffer);
            data.and_then(|data| data.get(start..start.checked_add(length)?))
        }
    };
    let text = std::str::from_utf8(part.ok_or(Damaged)?);
    text.map(str::to_owned).map_err(|_| Damaged)
}

impl ColumnValues {
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Null => Cell::Missing,
            Self::Numbers(all) if all[row].is_nan() => Cell::Missing,
            Self::Numbers(all) => Cell::Number(all[row]),
            Self::Singles(all) if all[row].is_nan() => Cell::Missing,
            Self::Singles(all) => Cell::Number(all[row].into()),
            Self::Bools(all) => Cell::Text(if all[row] { "true" } else { "false" }),
            Self::Texts(all) => Cell::Text(&all[row]),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Null => usize::MAX,
            Self::Numbers(all) => all.len(),
            Self::Singles(all) => all.len(),
            Self::Bools(all) => all.len(),
            Self::Texts(all) => all.len(),
        }
    }
}

/// The text between two places of a buffer.
fn text_at(data: &[u8], from: i64, to: i64) -> Read<String> {
    let place = |at: i64| usize::try_from(at).map_err(|_| Damaged);
    let part = data.get(place(from)?..place(to)?).ok_or(Damaged)?;
    let text = std::str::from_utf8(part).map_err(|_| Damaged)?;
    Ok(text.to_owned())
}
