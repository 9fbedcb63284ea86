//! From cells to numbers: as a survey of the table or a model says what its columns are.

use crate::cells::{Cell, Field, Holes, Records, Written};
use crate::error::mistake;
use crate::error::say;
use crate::formats::csv::CsvRecords;
use crate::formats::json_lines;
use crate::formats::json_lines::JsonRecords;
use crate::formats::parquet::ParquetRecords;
use crate::infer_columns::{Found, has_comma, look_through};
use crate::layout::{
    Chunk, Column, ColumnKind, Keep, Kept, Layout, Request, Rows, rows_per_chunk, some_of,
};
use crate::source::{Input, Origin};
use anyhow::Result;
use std::collections::{HashMap, HashSet};

/// A cell of text takes about this many times the memory of a number.
const KEPT_SIZE: usize = 8;

/// What to do about a name that a model has never met.
const UNSEEN: &str = "--unseen missing takes such a cell as missing";

/// The formats of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// A JSON object or list in every line.
    JsonLines,
    /// Parquet.
    Parquet,
}

/// Opens a table for a model, or finds out what its columns are. Without a format it is CSV or JSON lines, by the first
/// character.
pub fn open(origin: &Origin, format: Option<Format>, request: &Request) -> Result<Rows> {
    match &request.model {
        Some(model) => open_for_model(origin, format, request, model),
        None => open_new(origin, format, request),
    }
}

/// JSON lines begin with a bracket.
fn text_format(input: &mut Input) -> Result<Format> {
    let first = input.peek()?.trim_ascii_start().first().copied();
    Ok(if matches!(first, Some(b'{' | b'[')) {
        Format::JsonLines
    } else {
        Format::Csv
    })
}

/// Opens the table; `listed` names the cells of JSON lines that are lists.
fn records(
    origin: &Origin,
    format: Option<Format>,
    request: &Request,
    listed: &[String],
) -> Result<Box<dyn Records>> {
    let known = request.model.iter().flat_map(|model| &model.na);
    let holes = Holes::and(&request.na.iter().chain(known).cloned().collect::<Vec<_>>());
    if format == Some(Format::Parquet) {
        return Ok(Box::new(ParquetRecords::open(origin, holes)?));
    }
    let mut input = origin.open()?;
    match format.map_or_else(|| text_format(&mut input), Ok)? {
        Format::JsonLines => Ok(Box::new(JsonRecords::new(input, listed.to_vec(), holes))),
        _ => Ok(Box::new(CsvRecords::open(input, request.no_header, holes)?)),
    }
}

/// Which columns of a file are used.
struct Chosen {
    columns: Vec<String>,
    target: Option<String>,
    ignored: Vec<String>,
}

impl Chosen {
    /// Divides the names of a file. `target` must be among them.
    fn new(
        file: &str,
        names: &[String],
        target: Option<&String>,
        ignore: &[String],
    ) -> Result<Self> {
        for wanted in target.into_iter().chain(ignore) {
            if !names.contains(wanted) {
                return Err(mistake(format!(
                    "{file}: expected a column '{wanted}', got {}",
                    some_of(names)
                )));
            }
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
            return Err(mistake(format!(
                "{file}: expected at least one column besides the target, got none"
            )));
        }
        Ok(Self {
            columns,
            target: target.cloned(),
            ignored,
        })
    }

    /// Columns, then the target.
    fn names(&self) -> Vec<String> {
        self.columns.iter().chain(&self.target).cloned().collect()
    }
}

/// Names of columns that were given with commas between them, but for a column that has commas in its name.
fn split_names(given: &[String], names: &[String]) -> Vec<String> {
    let split = |text: &String| match names.contains(text) {
        true => vec![text.clone()],
        false => text.split(',').map(str::to_owned).collect(),
    };
    given.iter().flat_map(split).collect()
}

/// Reads the table twice: once to see what its columns are, once for the numbers.
fn open_new(origin: &Origin, format: Option<Format>, request: &Request) -> Result<Rows> {
    let origin = &origin.reopenable()?;
    let file = origin.name();
    let names = match records(origin, format, request, &[])?.header() {
        Some(names) => names.to_vec(),
        None => json_lines::names(origin.open()?)?,
    };
    if names.is_empty() {
        return Err(mistake(format!(
            "{file}: expected at least one row, got none"
        )));
    }
    let (ignore, categorical) = (
        split_names(&request.ignore, &names),
        split_names(&request.categorical, &names),
    );
    let mut chosen = Chosen::new(&file, &names, request.target.as_ref(), &ignore)?;
    if let Some(unknown) = categorical
        .iter()
        .find(|name| !chosen.columns.contains(name))
    {
        let message = format!(
            "{file}: expected a column '{unknown}' to be categorical, got {}",
            some_of(&chosen.columns)
        );
        return Err(mistake(message));
    }
    let mut rows = records(origin, format, request, &names)?;
    rows.select(&chosen.names(), &[]);
    let Found {
        columns,
        classes,
        empty,
        doubts,
    } = look_through(
        &file,
        &mut *rows,
        (&chosen.columns, chosen.target.as_ref()),
        &categorical,
    )?;
    chosen.ignored.extend(
        empty
            .iter()
            .map(|name| format!("{name} (nothing is in it)")),
    );
    chosen.columns.retain(|name| !empty.contains(name));
    let layout = Layout {
        width: columns.len(),
        columns,
        classes,
        target: chosen.target.clone(),
        ignored: chosen.ignored.clone(),
        na: request.na.clone(),
        doubts,
        ..Layout::default()
    };
    let mut rows = records(origin, format, request, &names)?;
    rows.select(&chosen.names(), &[]);
    Ok(encoded(rows, layout, request.unseen_missing))
}

/// Reads the table once, as a model wants it.
fn open_for_model(
    origin: &Origin,
    format: Option<Format>,
    request: &Request,
    model: &Layout,
) -> Result<Rows> {
    let file = origin.name();
    let model_names: Vec<String> = (0..model.width).map(|i| model.name(i)).collect();
    let mut rows = records(origin, format, request, &model_names)?;
    let Some(header) = rows.header() else {
        // Every line names its own cells; what it leaves out is missing.
        let target = request
            .target
            .clone()
            .or(model.target.clone())
            .filter(|_| !request.no_labels);
        let (kept, at) = kept_columns(&file, &mut *rows, request, &model_names)?;
        rows.select(
            &model_names
                .iter()
                .chain(&target)
                .cloned()
                .collect::<Vec<_>>(),
            &at,
        );
        let layout = Layout {
            target,
            ignored: Vec::new(),
            kept,
            ..named(model, &model_names)
        };
        return Ok(encoded(rows, layout, request.unseen_missing));
    };
    let known = model
        .target
        .as_ref()
        .filter(|target| header.contains(target));
    let mut chosen = Chosen::new(
        &file,
        header,
        request.target.as_ref().or(known),
        &request.ignore,
    )?;
    // Columns without names may still carry those that `sample` and `impute` write, x0, x1, …
    let by_name = !model.columns.is_empty()
        || chosen.columns.len() > model.width && holds_all(&chosen, &model_names);
    if !by_name || request.no_header {
        if chosen.columns.len() != model.width {
            let (wanted, got) = (model.width, chosen.columns.len());
            return Err(mistake(format!(
                "{file}: expected {wanted} columns, as the model has, got {got}"
            )));
        }
    } else {
        if let Some(absent) = model_names
            .iter()
            .find(|name| !chosen.columns.contains(name))
        {
            let got = some_of(&chosen.columns);
            return Err(mistake(format!(
                "{file}: expected a column '{absent}', as the model has, got {got}"
            )));
        }
        let wanted: HashSet<&String> = model_names.iter().collect();
        chosen.ignored.extend(
            chosen
                .columns
                .iter()
                .filter(|name| !wanted.contains(name))
                .cloned(),
        );
        chosen.columns = model_names;
    }
    if request.no_labels {
        chosen.target = None;
    }
    let (mut kept, at) = kept_columns(&file, &mut *rows, request, &chosen.columns)?;
    if request.no_header {
        let name = |kept: &mut Kept| {
            kept.field.name = kept
                .column
                .map_or(kept.field.name.clone(), |at| model.name(at))
        };
        kept.iter_mut().for_each(name);
    }
    rows.select(&chosen.names(), &at);
    let ignored = chosen
        .ignored
        .iter()
        .filter(|name| !kept.iter().any(|kept| kept.field.name == **name));
    let ignored = ignored
        .filter(|_| request.keep != Keep::All)
        .cloned()
        .collect();
    let layout = Layout {
        target: chosen.target.clone(),
        ignored,
        kept,
        ..named(model, &chosen.columns)
    };
    Ok(encoded(rows, layout, request.unseen_missing))
}

fn holds_all(chosen: &Chosen, names: &[String]) -> bool {
    let there: HashSet<&String> = chosen.columns.iter().collect();
    names.iter().all(|name| there.contains(name))
}

/// The columns that are handed through, and their numbers among those that can be; `columns` are those of the model.
fn kept_columns(
    file: &str,
    rows: &mut dyn Records,
    request: &Request,
    columns: &[String],
) -> Result<(Vec<Kept>, Vec<usize>)> {
    if request.keep == Keep::Nothing {
        return Ok(Default::default());
    }
    let fields = rows.keepable()?;
    let at = match &request.keep {
        Keep::Named(names) => {
            let at = |wanted: &String| {
                let found = fields.iter().position(|field| field.name == *wanted);
                let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let missing = || {
                    mistake(format!(
                        "{file}: expected a column '{wanted}', got {}",
                        some_of(&names)
                    ))
                };
                found.ok_or_else(missing)
            };
            names.iter().map(at).collect::<Result<Vec<_>>>()?
        }
        _ => (0..fields.len()).collect(),
    };
    let column = |field: &Field| columns.iter().position(|name| *name == field.name);
    let kept = at.iter().map(|&at| Kept {
        column: column(&fields[at]),
        field: fields[at].clone(),
    });
    Ok((kept.collect(), at))
}

/// A model's layout with a column for every number, so that messages can name it.
fn named(model: &Layout, names: &[String]) -> Layout {
    let unnamed = || {
        names
            .iter()
            .map(|name| Column {
                name: name.clone(),
                kind: ColumnKind::Numeric,
            })
            .collect()
    };
    let columns = if model.columns.is_empty() {
        unnamed()
    } else {
        model.columns.clone()
    };
    Layout {
        columns,
        ..model.clone()
    }
}

/// Names to their numbers.
type Codes = HashMap<String, usize>;

fn codes(names: &[String]) -> Codes {
    names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.clone(), i))
        .collect()
}

/// Turns cells into numbers, as the layout says.
struct Encoder {
    /// For each column, its categories or none.
    columns: Vec<Option<Codes>>,
    classes: Codes,
    unseen_missing: bool,
    /// Columns about which something has been said.
    said: HashSet<usize>,
}

impl Encoder {
    fn new(layout: &Layout, unseen_missing: bool) -> Self {
        let kind = |column: &Column| match &column.kind {
            ColumnKind::Numeric => None,
            ColumnKind::Categorical(names) => Some(codes(names)),
        };
        let columns = layout.columns.iter().map(kind).collect();
        Self {
            columns,
            classes: codes(&layout.classes),
            unseen_missing,
            said: HashSet::new(),
        }
    }

    /// The number of a cell, or what is wrong with it.
    fn value(&mut self, column: usize, layout: &Layout, cell: Cell<'_>) -> Result<f32, String> {
        let Some(text) = cell.category() else {
            return Ok(f32::NAN);
        };
        match (&self.columns[column], &layout.columns[column].kind) {
            (Some(codes), ColumnKind::Categorical(names)) => match codes.get(&text) {
                Some(&code) => Ok(code as f32),
                None if self.unseen_missing => {
                    self.say_unseen(column, &layout.name(column), &text);
                    Ok(f32::NAN)
                }
                None => Err(format!(
                    "expected {}, got '{text}'; {UNSEEN}",
                    some_of(names)
                )),
            },
            _ => match cell.number().map(|number| number as f32) {
                Some(number) if number.is_finite() => Ok(number),
                Some(_) => Err(format!("expected a finite number of 32 bits, got '{text}'")),
                None if has_comma(&text) => {
                    Err(format!("expected a number with a point, got '{text}'"))
                }
                None => Err(format!(
                    "expected a number, got '{text}'; --na {text} makes it missing"
                )),
            },
        }
    }

    /// The class of a cell. A model without names for its classes calls them 0, 1, ….
    fn label(&mut self, layout: &Layout, cell: Cell<'_>) -> Result<i64, String> {
        let Some(text) = cell.category() else {
            return Ok(-1);
        };
        if layout.classes.is_empty() {
            let class = text.parse().ok().filter(|&class: &i64| class >= -1);
            return class.ok_or_else(|| format!("expected a class (0, 1, …), got '{text}'"));
        }
        match self.classes.get(&text) {
            Some(&class) => Ok(class as i64),
            None if self.unseen_missing => {
                self.say_unseen(
                    layout.width,
                    layout.target.as_deref().unwrap_or("target"),
                    &text,
                );
                Ok(-1)
            }
            None => Err(format!(
                "expected {}, got '{text}'; {UNSEEN}",
                some_of(&layout.classes)
            )),
        }
    }

    /// Once for each column; the target comes after them.
    fn say_unseen(&mut self, column: usize, name: &str, text: &str) {
        if self.said.insert(column) {
            say(&format!(
                "column '{name}': the model does not know '{text}' (and maybe others): taken as missing"
            ));
        }
    }
}

/// The rows as numbers, chunk by chunk.
fn encoded(mut rows: Box<dyn Records>, layout: Layout, unseen_missing: bool) -> Rows {
    let mut encoder = Encoder::new(&layout, unseen_missing);
    let most = rows_per_chunk(layout.width + KEPT_SIZE * layout.kept.len());
    let mut first = 0;
    Rows::new(layout.clone(), move || {
        let mut chunk = Chunk {
            first,
            labels: layout.target.is_some().then(Vec::new),
            ..Chunk::default()
        };
        let count = rows.fill(most, &mut |place, cells, kept| {
            let wrong =
                |column: &str, what: String| mistake(format!("{place}, column '{column}': {what}"));
            for (column, &cell) in cells[..layout.width].iter().enumerate() {
                let value = encoder.value(column, &layout, cell);
                chunk
                    .values
                    .push(value.map_err(|what| wrong(&layout.name(column), what))?);
            }
            if let (Some(labels), Some(target)) = (&mut chunk.labels, &layout.target) {
                let label = encoder.label(&layout, cells[layout.width]);
                labels.push(label.map_err(|what| wrong(target, what))?);
            }
            let hole = |kept: &Kept| {
                kept.column
                    .is_some_and(|column| cells[column] == Cell::Missing)
            };
            let kept = kept.into_iter().zip(&layout.kept);
            chunk
                .kept
                .extend(kept.map(|(cell, kept)| if hole(kept) { Written::Missing } else { cell }));
            Ok(())
        })?;
        first += count;
        Ok((count > 0).then_some(chunk))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Table;

    fn read(text: &str, request: &Request) -> Result<Table> {
        let origin = Origin::Memory {
            name: "a.csv".into(),
            bytes: text.as_bytes().into(),
        };
        open(&origin, None, request)?.collect_table()
    }

    fn says(text: &str, request: &Request) -> String {
        let error = read(text, request).unwrap_err();
        assert!(crate::error::is_users(&error), "{error}");
        error.to_string()
    }

    fn target(name: &str) -> Request {
        Request {
            target: Some(name.into()),
            ..Request::default()
        }
    }

    /// Holes as −9, because NaN equals nothing.
    fn filled(table: &Table) -> Vec<f32> {
        table
            .values
            .iter()
            .map(|x| if x.is_nan() { -9.0 } else { *x })
            .collect()
    }

    const PETS: &str = "age,kind,class\n3,cat,b\n,dog,a\n1.5,NA,\n";

    #[test]
    fn kinds_are_found() {
        let table = read(PETS, &target("class")).unwrap();
        let kinds: Vec<_> = table
            .layout
            .columns
            .iter()
            .map(|column| column.kind.clone())
            .collect();
        assert_eq!(
            kinds,
            [
                ColumnKind::Numeric,
                ColumnKind::Categorical(vec!["cat".into(), "dog".into()])
            ]
        );
        assert_eq!(filled(&table), [3.0, 0.0, -9.0, 1.0, 1.5, -9.0]);
        assert_eq!(
            (table.labels, table.layout.classes),
            (Some(vec![1, 0, -1]), vec!["a".to_owned(), "b".to_owned()])
        );
        let table = read(PETS, &Request::default()).unwrap();
        assert_eq!((table.layout.width, table.labels), (3, None));
    }

    #[test]
    fn json_lines_are_the_same_table() {
        let lines = "{\"age\":3,\"kind\":\"cat\",\"class\":\"b\"}\n{\"kind\":\"dog\",\"class\":\"a\"}\n{\"age\":1.5}\n";
        let (csv, json) = (
            read(PETS, &target("class")).unwrap(),
            read(lines, &target("class")).unwrap(),
        );
        assert_eq!(
            (filled(&csv), csv.layout, csv.labels),
            (filled(&json), json.layout, json.labels)
        );
        let lists = read("[1, 2, 5]\n[3, null, 6]\n", &target("x2")).unwrap();
        assert_eq!(
            (filled(&lists), lists.labels),
            (vec![1.0, 2.0, 3.0, -9.0], Some(vec![0, 1]))
        );
    }

    #[test]
    fn columns_can_be_categories_or_left_out() {
        let text = ",id,zip,x\n0,a1,10,5\n1,b7,9,6\n2,c9,10,7\n";
        let request = Request {
            categorical: vec!["zip".into()],
            ignore: vec!["id".into()],
            ..Request::default()
        };
        let table = read(text, &request).unwrap();
        assert_eq!(table.layout.ignored, ["column 1 (it has no name)", "id"]);
        assert_eq!(
            table.layout.columns[0].kind,
            ColumnKind::Categorical(vec!["9".into(), "10".into()])
        );
        assert_eq!(table.values, [1.0, 5.0, 0.0, 6.0, 1.0, 7.0]);
    }

    #[test]
    fn a_model_says_what_columns_are() {
        let model = read(PETS, &target("class")).unwrap().layout;
        let request = Request {
            model: Some(model),
            ..Request::default()
        };
        let table = read("kind,extra,age\ndog,x,7\n", &request).unwrap();
        assert_eq!((&*table.values, &table.labels), (&[7.0, 1.0][..], &None));
        assert_eq!(table.layout.ignored, ["extra"]);
        let table = read("class,age,kind\na,,\n", &request).unwrap();
        assert_eq!(
            (filled(&table), table.labels),
            (vec![-9.0, -9.0], Some(vec![0]))
        );
        let table = read("{\"kind\": \"dog\"}\n[5, \"cat\"]\n", &request).unwrap();
        assert_eq!(
            (filled(&table), table.labels),
            (vec![-9.0, 1.0, 5.0, 0.0], Some(vec![-1, -1]))
        );
        assert_eq!(
            says("kind\ndog\n", &request),
            "a.csv: expected a column 'age', as the model has, got kind"
        );
        assert_eq!(
            says("age,kind\n1,cat\n2,cow\n", &request),
            "a.csv line 3, column 'kind': expected cat, dog, got 'cow'; --unseen missing takes such a cell as missing"
        );
        assert_eq!(
            says("age,kind\nold,cat\n", &request),
            "a.csv line 2, column 'age': expected a number, got 'old'; --na old makes it missing"
        );
        let unknown = says("age,kind,class\n1,cat,z\n", &request);
        assert!(
            unknown.starts_with("a.csv line 2, column 'class': expected a, b, got 'z'; --unseen"),
            "{unknown}"
        );
        let lenient = Request {
            unseen_missing: true,
            ..request.clone()
        };
        let table = read("age,kind,class\n1,cow,z\n", &lenient).unwrap();
        assert_eq!(
            (filled(&table), table.labels),
            (vec![1.0, -9.0], Some(vec![-1]))
        );
        let unlabelled = Request {
            no_labels: true,
            ..request.clone()
        };
        assert_eq!(
            read("age,kind,class\n1,cat,z\n", &unlabelled)
                .unwrap()
                .labels,
            None
        );
        let request = Request {
            no_header: true,
            ..request
        };
        assert_eq!(read("4,dog\n", &request).unwrap().values, [4.0, 1.0]);
    }

    #[test]
    fn a_model_of_images_takes_columns_by_position() {
        let request = Request {
            model: Some(Layout::unnamed(2, None)),
            target: Some("y".into()),
            ..Request::default()
        };
        let table = read("y,p,q\n4,1,2\n,3,NA\n", &request).unwrap();
        assert_eq!(
            (filled(&table), table.labels),
            (vec![1.0, 2.0, 3.0, -9.0], Some(vec![4, -1]))
        );
        assert_eq!(table.layout.name(1), "q");
        assert_eq!(
            says("y,p\n1,2\n", &request),
            "a.csv: expected 2 columns, as the model has, got 1"
        );
        assert_eq!(
            says("y,p,q\na,1,2\n", &request),
            "a.csv line 2, column 'y': expected a class (0, 1, …), got 'a'"
        );
    }

    #[test]
    fn nonsense_is_named() {
        let any = Request::default();
        assert_eq!(
            says("a,b\n1,2\n3,inf\n", &any),
            "a.csv line 3, column 'b': expected a finite number of 32 bits, got 'inf'"
        );
        assert_eq!(
            says("a\n1e39\n", &any),
            "a.csv line 2, column 'a': expected a finite number of 32 bits, got '1e39'"
        );
        assert_eq!(
            says("a\n1\n2\n\"3,5\"\n", &any),
            "a.csv line 4, column 'a': expected a number, as in 2 other cells, got '3,5'; --categorical a makes \
             categories of all of them, --na TEXT makes TEXT missing"
        );
        assert_eq!(
            says("a\nx\ny\n7\n", &any),
            "a.csv line 4, column 'a': expected text, as in 2 other cells, got '7'; --categorical a makes categories \
             of all of them, --na TEXT makes TEXT missing"
        );
        assert_eq!(
            says("a,b\n1,2\n", &target("c")),
            "a.csv: expected a column 'c', got a, b"
        );
        assert_eq!(
            says("a\n1\n", &target("a")),
            "a.csv: expected at least one column besides the target, got none"
        );
        let request = Request {
            categorical: vec!["z".into()],
            ..Request::default()
        };
        assert_eq!(
            says("a,b\n1,2\n", &request),
            "a.csv: expected a column 'z' to be categorical, got a, b"
        );
        let many: String = (0..1002).map(|i| format!("t{i},1\n")).collect();
        assert_eq!(
            says(&format!("id,a\n{many}"), &any),
            "a.csv: column 'id': expected at most 1000 categories, got more; --ignore id leaves it out"
        );
        assert_eq!(
            says(&format!("id,a\n{many}"), &target("id")),
            "a.csv: column 'id': expected at most 1000 categories, got more; a target names a class"
        );
    }

    #[test]
    fn long_tables_come_in_chunks() {
        let text: String = std::iter::once("a\n".to_owned())
            .chain((0..10_000).map(|i| format!("{i}\n")))
            .collect();
        let origin = Origin::Memory {
            name: "a.csv".into(),
            bytes: text.into_bytes().into(),
        };
        let chunks: Vec<Chunk> = open(&origin, None, &Request::default())
            .unwrap()
            .map(|chunk| chunk.unwrap())
            .collect();
        assert_eq!(
            chunks.iter().map(|chunk| chunk.first).collect::<Vec<_>>(),
            [0, 4096, 8192]
        );
        assert!(
            chunks
                .iter()
                .flat_map(|chunk| &chunk.values)
                .enumerate()
                .all(|(i, &x)| x == i as f32)
        );
    }
}
