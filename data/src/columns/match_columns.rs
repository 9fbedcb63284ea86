//! Which columns of a file are used, and where those of a model are among them.

use crate::error::{Error, ErrorKind, Result};
use crate::rows::cells::Field;
use crate::rows::layout::{Absent, Keep, KeptColumn, some_of};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// For every column of a model, its place in a table with these names, if it is there. A model without names of its own
/// (`named` is false) calls its columns x0, x1, …; it also takes as many columns as it has, in their order. The column
/// that it predicts may be absent.
pub fn places_of(
    model: &[String],
    named: bool,
    header: &[String],
    absent: Absent,
    predicted: Option<usize>,
) -> Result<Vec<Option<usize>>> {
    let wanted: HashSet<&String> = model.iter().collect();
    let mut at = HashMap::new();
    for (place, name) in header
        .iter()
        .enumerate()
        .filter(|(_, name)| !name.is_empty())
    {
        if at.insert(name, place).is_some() && wanted.contains(name) {
            let (expected, got) = ("every column once", format!("'{name}' twice"));
            return Err(Error::expected(ErrorKind::DuplicateName, expected, got));
        }
    }
    let places: Vec<Option<usize>> = model.iter().map(|name| at.get(name).copied()).collect();
    let some_are_there = places.iter().any(Option::is_some);
    let is_wanted = |&column: &usize| places[column].is_none() && Some(column) != predicted;
    let Some(first) = (0..model.len()).find(is_wanted) else {
        return Ok(places);
    };
    if absent == Absent::Missing && some_are_there {
        return Ok(places);
    }
    if named {
        let expected = format!("a column '{}', as the model has", model[first]);
        let kind = if some_are_there {
            ErrorKind::AbsentColumn
        } else {
            ErrorKind::MissingColumn
        };
        return Err(Error::expected(kind, expected, some_of(header)));
    }
    by_order(model.len(), header.len(), predicted)
}

/// Columns in their order, if there are as many as the model has, or all but the one that it predicts.
pub fn by_order(
    width: usize,
    columns: usize,
    predicted: Option<usize>,
) -> Result<Vec<Option<usize>>> {
    if let Some(predicted) = predicted.filter(|_| columns + 1 == width) {
        let place = |column: usize| match column.cmp(&predicted) {
            Ordering::Less => Some(column),
            Ordering::Equal => None,
            Ordering::Greater => Some(column - 1),
        };
        return Ok((0..width).map(place).collect());
    }
    if columns != width {
        let expected = format!("{width} columns, as the model has");
        return Err(Error::expected(ErrorKind::ModelMismatch, expected, columns));
    }
    Ok((0..width).map(Some).collect())
}

/// Which columns of a file are used.
pub struct Chosen {
    /// Those that become numbers.
    pub columns: Vec<String>,
    /// The one that becomes labels.
    pub target: Option<String>,
    /// Those that are not used.
    pub ignored: Vec<String>,
}

impl Chosen {
    /// Divides the names of a file. `target` must be among them.
    pub fn new(names: &[String], target: Option<&String>, ignore: &[String]) -> Result<Self> {
        let mut wanted = target.into_iter().chain(ignore);
        if let Some(absent) = wanted.find(|name| !names.contains(name)) {
            return Err(no_column(absent, names));
        }
        let (mut columns, mut ignored) = (Vec::new(), Vec::new());
        for (i, name) in names.iter().enumerate() {
            if name.is_empty() {
                ignored.push(format!("column {} (it has no name)", i + 1));
            } else if ignore.contains(name) {
                ignored.push(name.clone());
            } else if Some(name) != target {
                columns.push(name.clone());
            }
        }
        if columns.is_empty() {
            let expected = "at least one column besides the target";
            return Err(Error::expected(ErrorKind::Empty, expected, "none"));
        }
        Ok(Self {
            columns,
            target: target.cloned(),
            ignored,
        })
    }

    /// Columns, then the target.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().chain(&self.target).cloned().collect()
    }

    /// Keeps only the columns at these places, in this order; the others are not used. A column of the model that has no
    /// place stays with its name.
    pub fn keep_places(&mut self, places: &[Option<usize>], model: &[String]) {
        let used: HashSet<usize> = places.iter().flatten().copied().collect();
        let unused = (0..self.columns.len()).filter(|place| !used.contains(place));
        let unused = unused.map(|place| self.columns[place].clone());
        self.ignored.extend(unused);
        let kept = places.iter().zip(model);
        let kept = kept.map(|(place, name)| place.map_or(name, |place| &self.columns[place]));
        self.columns = kept.cloned().collect();
    }
}

/// A column that is wanted and is not there.
pub fn no_column<T: AsRef<str>>(wanted: &str, names: &[T]) -> Error {
    let expected = format!("a column '{wanted}'");
    let mut got = some_of(names);
    if let Some(near) = nearest(wanted, names) {
        got.push_str(&format!("; did you mean '{near}'?"));
    }
    Error::expected(ErrorKind::MissingColumn, expected, got)
}

/// The name that was probably meant.
pub fn nearest<'a, T: AsRef<str>>(wanted: &str, names: &'a [T]) -> Option<&'a str> {
    const ALIKE: f64 = 0.85;
    let wanted = wanted.to_lowercase();
    let alike = |name: &str| strsim::jaro_winkler(&wanted, &name.to_lowercase());
    let scored = names
        .iter()
        .map(|name| (alike(name.as_ref()), name.as_ref()));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE).then_some(best.1)
}

/// Splits names that were given with commas between them; a column that has commas in its name stays whole.
pub fn split_names(given: &[String], names: &[String]) -> Vec<String> {
    let mut split = Vec::new();
    for text in given {
        if names.contains(text) {
            split.push(text.clone());
        } else {
            split.extend(text.split(',').map(str::to_owned));
        }
    }
    split
}

/// The columns that are handed through, and their numbers among the `fields` that can be; `columns` are the model's.
pub fn kept_columns(
    keep: &Keep,
    fields: &[Field],
    columns: &[String],
) -> Result<(Vec<KeptColumn>, Vec<usize>)> {
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let place = |wanted: &String| {
        let found = names.iter().position(|name| name == wanted);
        found.ok_or_else(|| no_column(wanted, &names))
    };
    let places: Vec<usize> = match keep {
        Keep::Nothing => Vec::new(),
        Keep::Named(wanted) => wanted.iter().map(place).collect::<Result<_>>()?,
        Keep::All => (0..fields.len()).collect(),
    };
    let column = |field: &Field| columns.iter().position(|name| *name == field.name);
    let kept = |&place: &usize| KeptColumn {
        column: column(&fields[place]),
        field: fields[place].clone(),
    };
    Ok((places.iter().map(kept).collect(), places))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn places(model: &[&str], named: bool, header: &[&str]) -> Result<Vec<usize>, String> {
        let found = places_of(
            &strings(model),
            named,
            &strings(header),
            Absent::Error,
            None,
        );
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(Option::unwrap).collect())
    }

    #[test]
    fn columns_are_found_by_name_or_by_place() {
        let model = ["age", "sex", "coin", "kind"];
        assert_eq!(
            places(&model, true, &["id", "kind", "coin", "sex", "age"]),
            Ok(vec![4, 3, 2, 1])
        );
        assert_eq!(
            places(&model, true, &["age", "sex"]).unwrap_err(),
            "expected a column 'coin', as the model has, got age, sex"
        );
        assert_eq!(
            places(&model, true, &["age", "sex", "coin", "kind", "age"]).unwrap_err(),
            "expected every column once, got 'age' twice"
        );
        assert_eq!(places(&["x0", "x1"], false, &["a", "b"]), Ok(vec![0, 1]));
        assert_eq!(
            places(&["x0", "x1"], false, &["x1", "id", "x0"]),
            Ok(vec![2, 0])
        );
        assert_eq!(
            places(&["x0", "x1"], false, &["a"]).unwrap_err(),
            "expected 2 columns, as the model has, got 1"
        );
    }

    #[test]
    fn the_predicted_column_may_be_absent() {
        let model = strings(&["a", "y", "b"]);
        let places = |header: &[&str], named| {
            let found = places_of(&model, named, &strings(header), Absent::Error, Some(1));
            found.map_err(|error| error.kind())
        };
        assert_eq!(places(&["b", "a"], true), Ok(vec![Some(1), None, Some(0)]));
        let all = Ok(vec![Some(2), Some(0), Some(1)]);
        assert_eq!(places(&["y", "b", "a"], true), all);
        assert_eq!(places(&["a", "y"], true), Err(ErrorKind::AbsentColumn));
        let ordered = Ok(vec![Some(0), None, Some(1)]);
        assert_eq!(places(&["p", "q"], false), ordered);
        assert_eq!(places(&["p"], false), Err(ErrorKind::ModelMismatch));
    }

    #[test]
    fn absent_columns_may_be_missing() {
        let (model, header) = (strings(&["a", "b", "c"]), strings(&["c", "a"]));
        let places = |header| places_of(&model, true, header, Absent::Missing, None);
        assert_eq!(places(&header).unwrap(), [Some(1), None, Some(0)]);
        let error = places(&strings(&["x", "y"])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingColumn, "nothing is there");
        let mut chosen = Chosen::new(&header, None, &[]).unwrap();
        chosen.keep_places(&[Some(1), None, Some(0)], &model);
        assert_eq!(chosen.columns, model);
    }
}
