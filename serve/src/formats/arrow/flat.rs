//! Flatbuffers: tables whose fields are found through a list of offsets. Every offset is checked against the bytes.

/// Bytes that are not what they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// What can be read.
pub type Read<T> = Result<T, Damaged>;

fn array<const N: usize>(bytes: &[u8], at: usize) -> Read<[u8; N]> {
    let end = at.checked_add(N).ok_or(Damaged)?;
    bytes
        .get(at..end)
        .and_then(|part| part.try_into().ok())
        .ok_or(Damaged)
}

fn u16_at(bytes: &[u8], at: usize) -> Read<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn i32_at(bytes: &[u8], at: usize) -> Read<i32> {
    array(bytes, at).map(i32::from_le_bytes)
}

/// The place that an offset at `at` points to.
fn follow(bytes: &[u8], at: usize) -> Read<usize> {
    let offset = u32::from_le_bytes(array(bytes, at)?) as usize;
    at.checked_add(offset)
        .filter(|&to| to < bytes.len())
        .ok_or(Damaged)
}

/// A table being read.
#[derive(Clone, Copy, Debug)]
pub struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> FlatTable<'a> {
    /// The table that a buffer holds.
    pub fn root(bytes: &'a [u8]) -> Read<Self> {
        Ok(Self {
            bytes,
            at: follow(bytes, 0)?,
        })
    }

    /// Where a field stands; nothing if it has its default.
    fn slot(&self, field: usize) -> Read<Option<usize>> {
        let back = i64::from(i32_at(self.bytes, self.at)?);
        let list = usize::try_from(self.at as i64 - back).map_err(|_| Damaged)?;
        let size = usize::from(u16_at(self.bytes, list)?);
        let entry = 4 + 2 * field;
        if entry + 2 > size {
            return Ok(None);
        }
        match u16_at(self.bytes, list + entry)? {
            0 => Ok(None),
            offset => Ok(Some(self.at + usize::from(offset))),
        }
    }

    /// A byte.
    pub fn u8(&self, field: usize) -> Read<u8> {
        self.slot(field)?
            .map_or(Ok(0), |at| array::<1>(self.bytes, at).map(|[byte]| byte))
    }

    /// A number of 16 bits.
    pub fn i16(&self, field: usize) -> Read<i16> {
        self.slot(field)?
            .map_or(Ok(0), |at| array(self.bytes, at).map(i16::from_le_bytes))
    }

    /// A number of 32 bits.
    pub fn i32(&self, field: usize) -> Read<i32> {
        self.slot(field)?.map_or(Ok(0), |at| i32_at(self.bytes, at))
    }

    /// A number of 64 bits.
    pub fn i64(&self, field: usize) -> Read<i64> {
        self.slot(field)?
            .map_or(Ok(0), |at| array(self.bytes, at).map(i64::from_le_bytes))
    }

    /// A table inside.
    pub fn table(&self, field: usize) -> Read<Option<Self>> {
        let Some(at) = self.slot(field)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            bytes: self.bytes,
            at: follow(self.bytes, at)?,
        }))
    }

    /// Where a list's elements of `size` bytes begin, and how many there are.
    fn list(&self, field: usize, size: usize) -> Read<(usize, usize)> {
        let Some(at) = self.slot(field)? else {
            return Ok((0, 0));
        };
        let start = follow(self.bytes, at)?;
        let count = u32::from_le_bytes(array(self.bytes, start)?) as usize;
        let end = count
            .checked_mul(size)
            .and_then(|length| (start + 4).checked_add(length))
            .ok_or(Damaged)?;
        if end > self.bytes.len() {
            Err(Damaged)
        } else {
            Ok((start + 4, count))
        }
    }

    /// A list of tables.
    pub fn tables(&self, field: usize) -> Read<Vec<Self>> {
        let (start, count) = self.list(field, 4)?;
        let bytes = self.bytes;
        let table = |at| Self { bytes, at };
        let places = (0..count).map(|i| follow(bytes, start + 4 * i));
        places.map(|place| place.map(table)).collect()
    }

    /// A list of pairs of numbers of 64 bits.
    pub fn pairs(&self, field: usize) -> Read<Vec<(i64, i64)>> {
        let (start, count) = self.list(field, 16)?;
        let number = |at| array(self.bytes, at).map(i64::from_le_bytes);
        (0..count)
            .map(|i| Ok((number(start + 16 * i)?, number(start + 16 * i + 8)?)))
            .collect()
    }

    /// A list of numbers of 64 bits.
    pub fn i64s(&self, field: usize) -> Read<Vec<i64>> {
        let (start, count) = self.list(field, 8)?;
        (0..count)
            .map(|i| array(self.bytes, start + 8 * i).map(i64::from_le_bytes))
            .collect()
    }

    /// Text.
    pub fn text(&self, field: usize) -> Read<&'a str> {
        let (start, count) = self.list(field, 1)?;
        std::str::from_utf8(&self.bytes[start..start + count]).map_err(|_| Damaged)
    }
}

/// A field of a table to write.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// It has its default.
    Default,
    /// A byte.
    U8(u8),
    /// A number of 16 bits.
    I16(i16),
    /// A number of 32 bits.
    I32(i32),
    /// A number of 64 bits.
    I64(i64),
    /// Something that is written later, at the place that [`FlatWriter::table`] gives.
    Later,
}

impl Slot {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Default => Vec::new(),
            Self::U8(x) => vec![x],
            Self::I16(x) => x.to_le_bytes().to_vec(),
            Self::I32(x) => x.to_le_bytes().to_vec(),
            Self::I64(x) => x.to_le_bytes().to_vec(),
            Self::Later => vec![0; 4],
        }
    }
}

/// A flatbuffer being written, front to back: what a table points to follows it.
#[derive(Debug)]
pub struct FlatWriter {
    bytes: Vec<u8>,
}

impl FlatWriter {
    /// Starts a buffer, whose root is the first table.
    pub fn start() -> Self {
        Self { bytes: vec![0; 4] }
    }

    fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    /// Makes the offset at `from` point to what is written next.
    fn point(&mut self, from: usize) {
        let offset = (self.bytes.len() - from) as u32;
        self.bytes[from..from + 4].copy_from_slice(&offset.to_le_bytes());
    }

    /// Writes a table that the offset at `from` points to; gives the places of its later fields.
    pub fn table(&mut self, from: usize, fields: &[Slot]) -> Vec<usize> {
        let list = 4 + 2 * fields.len();
        // The list of offsets stands before the table, which begins at a multiple of eight.
        self.bytes
            .resize((self.bytes.len() + list).next_multiple_of(8) - list, 0);
        let (list_at, at) = (self.bytes.len(), self.bytes.len() + list);
        let (mut body, mut offsets, mut later) = (vec![0; 4], Vec::new(), Vec::new());
        for &field in fields {
            let bytes = field.bytes();
            if bytes.is_empty() {
                offsets.push(0);
                continue;
            }
            body.resize(body.len().next_multiple_of(bytes.len()), 0);
            if matches!(field, Slot::Later) {
                later.push(at + body.len());
            }
            offsets.push(body.len() as u16);
            body.extend(bytes);
        }
        self.bytes.extend((list as u16).to_le_bytes());
        self.bytes.extend((body.len() as u16).to_le_bytes());
        offsets
            .iter()
            .for_each(|offset| self.bytes.extend(offset.to_le_bytes()));
        self.point(from);
        body[..4].copy_from_slice(&((at - list_at) as i32).to_le_bytes());
        self.bytes.extend(body);
        later
    }

    /// Writes text that the offset at `from` points to.
    pub fn text(&mut self, from: usize, text: &str) {
        self.align(4);
        self.point(from);
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// Writes a list of things that come later; gives their places.
    pub fn list(&mut self, from: usize, count: usize) -> Vec<usize> {
        self.align(4);
        self.point(from);
        self.bytes.extend((count as u32).to_le_bytes());
        let first = self.bytes.len();
        self.bytes.resize(first + 4 * count, 0);
        (0..count).map(|i| first + 4 * i).collect()
    }

    /// Writes a list of pairs of numbers of 64 bits.
    pub fn pairs(&mut self, from: usize, pairs: &[(i64, i64)]) {
        self.bytes
            .resize((self.bytes.len() + 4).next_multiple_of(8) - 4, 0);
        self.point(from);
        self.bytes.extend((pairs.len() as u32).to_le_bytes());
        for (a, b) in pairs {
            self.bytes.extend(a.to_le_bytes());
            self.bytes.extend(b.to_le_bytes());
        }
    }

    /// The buffer, a multiple of eight bytes long.
    pub fn finish(mut self) -> Vec<u8> {
        self.align(8);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = FlatWriter::start();
        let fields = [
            Slot::I16(-3),
            Slot::Default,
            Slot::Later,
            Slot::I64(1 << 40),
            Slot::U8(7),
            Slot::Later,
        ];
        let later = writer.table(0, &fields);
        writer.text(later[0], "grün");
        let places = writer.list(later[1], 2);
        writer.table(places[0], &[Slot::I32(5)]);
        let inner = writer.table(places[1], &[Slot::Later]);
        writer.pairs(inner[0], &[(1, -2), (3, i64::MAX)]);
        writer.finish()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample();
        let table = FlatTable::root(&bytes).unwrap();
        assert_eq!(
            (table.i16(0), table.i32(1), table.text(2)),
            (Ok(-3), Ok(0), Ok("grün"))
        );
        assert_eq!(
            (table.i64(3), table.u8(4), table.u8(9)),
            (Ok(1 << 40), Ok(7), Ok(0))
        );
        let inner = table.tables(5).unwrap();
        assert_eq!(inner[0].i32(0), Ok(5));
        assert_eq!(inner[1].pairs(0).unwrap(), [(1, -2), (3, i64::MAX)]);
        assert!(inner[0].table(3).unwrap().is_none());
    }

    #[test]
    fn any_damage_is_an_error_or_another_value() {
        let bytes = sample();
        let look = |bytes: &[u8]| -> Read<()> {
            let table = FlatTable::root(bytes)?;
            let _ = (
                table.i16(0)?,
                table.text(2)?,
                table.i64(3)?,
                table.i64s(5)?,
                table.table(2)?.is_some(),
            );
            for inner in table.tables(5)? {
                let _ = (inner.pairs(0)?, inner.i32(0)?);
            }
            Ok(())
        };
        for at in 0..bytes.len() {
            let _ = look(&bytes[..at]);
            for value in [0, 1, 127, 128, 255] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                let _ = look(&wrong); // what matters is that it returns
            }
        }
        assert_eq!(look(&bytes[..3]), Err(Damaged));
        assert_eq!(look(&[255; 64]), Err(Damaged));
    }
}
