//! What there is in a table: which columns are numbers and which are categories, and what is odd about them.
//!
//! A column is numeric if all its cells are numbers, categorical if none is; a mixture is an error that names the
//! line, because one slip of the pen would otherwise make categories of a thousand numbers.

use crate::cells::{Cell, Place, Records};
use crate::error::mistake;
use crate::layout::{Column, ColumnKind, sort_names};
use anyhow::Result;
use std::collections::HashSet;

/// A column with more names than this is an identifier, not a category.
const MOST_CATEGORIES: usize = 1000;

/// True of 3,5: a number for many people, but not here.
pub fn has_comma(text: &str) -> bool {
    text.contains(',') && text.replace(',', ".").parse::<f64>().is_ok()
}

/// What has been seen of a column.
#[derive(Default)]
struct Seen {
    numbers: u64,
    texts: u64,
    commas: u64,
    /// The first cell that is no number, and the first that is: where they are and what they say.
    first_text: Option<(String, String)>,
    first_number: Option<(String, String)>,
    names: HashSet<String>,
}

impl Seen {
    fn note(&mut self, place: Place<'_>, cell: Cell<'_>, by_name: bool) {
        let Some(name) = cell.category() else { return };
        let number = cell.number().is_some();
        let (count, first) = match number {
            true => (&mut self.numbers, &mut self.first_number),
            false => (&mut self.texts, &mut self.first_text),
        };
        *count += 1;
        self.commas += u64::from(has_comma(&name));
        first.get_or_insert_with(|| (place.to_string(), name.clone()));
        if (by_name || !number) && self.names.len() <= MOST_CATEGORIES {
            self.names.insert(name);
        }
    }

    /// Where a cell stands that is not like most of its column, and what is wrong with it.
    fn odd_one_out(&self) -> Option<(&str, String)> {
        let (text, number) = (self.first_text.as_ref()?, self.first_number.as_ref()?);
        let ((place, got), wanted, others) = match self.numbers >= self.texts {
            true => (text, "a number", self.numbers),
            false => (number, "text", self.texts),
        };
        Some((
            place,
            format!("expected {wanted}, as in {others} other cells, got '{got}'"),
        ))
    }

    /// A class that comes only a few times and is a number is a measurement.
    fn looks_continuous(&self, name: &str) -> Option<String> {
        let (cells, classes) = (self.numbers + self.texts, self.names.len() as u64);
        let doubtful = self.texts == 0 && classes > 20 && cells < 10 * classes;
        doubtful.then(|| {
            format!(
                "target '{name}' looks continuous: {classes} classes, all numbers, in {cells} rows"
            )
        })
    }

    /// Numbers with a decimal comma would be learned as words.
    fn looks_like_commas(&self, name: &str) -> Option<String> {
        let doubtful = self.texts > 0 && self.commas == self.texts;
        doubtful
            .then(|| format!("column '{name}' looks like numbers with commas, and is taken as words: write a point"))
    }

    /// Words that never come twice tell nothing about other rows.
    fn looks_like_names(&self, name: &str) -> Option<String> {
        let (cells, words) = (self.numbers + self.texts, self.names.len() as u64);
        let hint = format!("--ignore {name} leaves it out");
        let doubtful = words > 20 && words == cells;
        doubtful
            .then(|| format!("column '{name}' looks like an identifier: no word comes twice in {cells} rows; {hint}"))
    }

    /// The names in order, if there are not too many.
    fn categories(&self, file: &str, name: &str, hint: &str) -> Result<Vec<String>> {
        if self.names.len() > MOST_CATEGORIES {
            let message = format!(
                "{file}: column '{name}': expected at most {MOST_CATEGORIES} categories, got more; {hint}"
            );
            return Err(mistake(message));
        }
        let mut names: Vec<String> = self.names.iter().cloned().collect();
        sort_names(&mut names);
        Ok(names)
    }
}

/// What there is in a table.
pub struct Found {
    /// Columns that hold something.
    pub columns: Vec<Column>,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// Columns with nothing in them: there is nothing to learn from.
    pub empty: Vec<String>,
    /// What is worth a warning.
    pub doubts: Vec<String>,
}

/// Reads all cells, those of the columns and then the target, to see what they are.
pub fn look_through(
    file: &str,
    rows: &mut dyn Records,
    (columns, target): (&[String], Option<&String>),
    categorical: &[String],
) -> Result<Found> {
    let by_name: Vec<bool> = columns
        .iter()
        .map(|name| categorical.contains(name))
        .chain(target.map(|_| true))
        .collect();
    let mut seen: Vec<Seen> = by_name.iter().map(|_| Seen::default()).collect();
    let mut note = |place: Place<'_>, cells: &[Cell<'_>], _| {
        for ((seen, &cell), &by_name) in seen.iter_mut().zip(cells).zip(&by_name) {
            seen.note(place, cell, by_name);
        }
        Ok(())
    };
    let mut some = false;
    while rows.fill(4096, &mut note)? > 0 {
        some = true;
    }
    let mut found = Found {
        columns: Vec::new(),
        classes: Vec::new(),
        empty: Vec::new(),
        doubts: Vec::new(),
    };
    if let Some(name) = target {
        let seen = seen.pop().unwrap_or_default();
        found.classes = seen.categories(file, name, "a target names a class")?;
        found.doubts.extend(seen.looks_continuous(name));
    }
    for (name, seen) in columns.iter().zip(seen) {
        let forced = categorical.contains(name);
        if let Some((place, wrong)) = seen.odd_one_out().filter(|_| !forced) {
            let hint = format!(
                "--categorical {name} makes categories of all of them, --na TEXT makes TEXT missing"
            );
            return Err(mistake(format!(
                "{place}, column '{name}': {wrong}; {hint}"
            )));
        }
        if some && seen.numbers + seen.texts == 0 {
            found.empty.push(name.clone());
            continue;
        }
        let kind = if forced || seen.texts > 0 {
            let hint = format!("--ignore {name} leaves it out");
            found.doubts.extend(
                seen.looks_like_commas(name)
                    .or_else(|| seen.looks_like_names(name)),
            );
            ColumnKind::Categorical(seen.categories(file, name, &hint)?)
        } else {
            ColumnKind::Numeric
        };
        found.columns.push(Column {
            name: name.clone(),
            kind,
        });
    }
    if found.columns.is_empty() {
        return Err(mistake(format!(
            "{file}: expected at least one column with something in it, got none"
        )));
    }
    Ok(found)
}
