//! What the columns of a stream are.

use crate::formats::arrow::flat::{Damaged, FlatTable, Read};
use crate::problem::Problem;
use std::cell::Cell;

/// What a column's buffers hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Null,
    Bool,
    Int {
        bytes: usize,
        signed: bool,
    },
    Float {
        bytes: usize,
    },
    /// Text with offsets of this many bytes.
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
pub(super) struct StreamColumn {
    pub name: String,
    pub kind: Type,
    /// Its dictionary, and what that holds.
    pub dictionary: Option<(i64, Type)>,
}

/// Bytes that may still be read. Offsets may all point to the same place, so a short head can describe a schema without
/// end; one that is honest takes at least these bytes for every type and every name.
struct Budget(Cell<usize>);

impl Budget {
    fn spend(&self, bytes: usize) -> Read<()> {
        self.0.set(self.0.get().checked_sub(bytes).ok_or(Damaged)?);
        Ok(())
    }
}

/// Reads a type; unions, run lengths and list views are not known.
fn kind_of(field: FlatTable<'_>, depth: usize, budget: &Budget) -> Read<Option<Type>> {
    budget.spend(8)?;
    let Some(about) = field.table(3)? else {
        return Err(Damaged);
    };
    let children = field.tables(5)?;
    if depth > 8 {
        return Ok(None);
    }
    let inside = || {
        let kinds = children.iter();
        let kinds = kinds.map(|&child| kind_of(child, depth + 1, budget));
        kinds.collect::<Read<Option<Vec<Type>>>>()
    };
    let other = |buffers| Ok(inside()?.map(|inside| Type::Other { buffers, inside }));
    Ok(Some(match field.u8(2)? {
        1 => Type::Null,
        2 => match about.i32(0)? {
            bits @ (8 | 16 | 32 | 64) => Type::Int {
                bytes: bits as usize / 8,
                signed: about.u8(1)? != 0,
            },
            _ => return Err(Damaged),
        },
        3 => match about.i16(0)? {
            precision @ 0..=2 => Type::Float {
                bytes: 2 << precision,
            },
            _ => return Err(Damaged),
        },
        5 => Type::Text { offsets: 4 },
        20 => Type::Text { offsets: 8 },
        6 => Type::Bool,
        24 => Type::View,
        16 => {
            let length = usize::try_from(about.i32(0)?).map_err(|_| Damaged)?;
            match inside()? {
                Some(items) if items.len() == 1 => Type::List {
                    length,
                    item: Box::new(items[0].clone()),
                },
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

/// The columns of a schema whose head has this many bytes.
pub(super) fn columns_of(
    schema: FlatTable<'_>,
    bytes: usize,
) -> Result<Vec<StreamColumn>, Problem> {
    let budget = Budget(Cell::new(bytes));
    schema
        .tables(1)
        .map_err(damaged)?
        .into_iter()
        .map(|field| column_of(field, &budget))
        .collect()
}

fn column_of(field: FlatTable<'_>, budget: &Budget) -> Result<StreamColumn, Problem> {
    let name = field.text(0).map_err(damaged)?;
    budget.spend(name.len()).map_err(damaged)?;
    let name = name.to_owned();
    let Some(kind) = kind_of(field, 0, budget).map_err(damaged)? else {
        return Err(Problem::bad(format!(
            "column '{name}': its type is not known here; leave it out"
        )));
    };
    let Some(encoding) = field.table(4).map_err(damaged)? else {
        return Ok(StreamColumn {
            name,
            kind,
            dictionary: None,
        });
    };
    let dictionary = Some((encoding.i64(0).map_err(damaged)?, kind));
    Ok(StreamColumn {
        name,
        kind: index_type(encoding).map_err(damaged)?,
        dictionary,
    })
}

/// The integers that stand for the entries of a dictionary.
fn index_type(encoding: FlatTable<'_>) -> Read<Type> {
    let Some(about) = encoding.table(1)? else {
        return Ok(Type::Int {
            bytes: 4,
            signed: true,
        });
    };
    match about.i32(0)? {
        bits @ (8 | 16 | 32 | 64) => Ok(Type::Int {
            bytes: bits as usize / 8,
            signed: about.u8(1)? != 0,
        }),
        _ => Err(Damaged),
    }
}

/// Whether it is numbers, truth values or text.
pub(super) fn is_plain(kind: &Type) -> bool {
    !matches!(kind, Type::List { .. } | Type::Other { .. })
}

/// The problem of bytes that are not what they claim to be.
pub(super) fn damaged(_: Damaged) -> Problem {
    Problem::bad("the Arrow stream is damaged: a message does not hold what it claims")
}
