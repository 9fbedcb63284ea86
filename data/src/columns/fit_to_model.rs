//! Fits a data set to a model: the one place where rows of any format get the model's columns, categories and classes.

use crate::columns::encode::encoded;
use crate::columns::match_columns::{Chosen, by_order, kept_columns, places_of};
use crate::columns::table_source::{TableSource, columns_of};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::class_files::ClassFiles;
use crate::formats::png::ImageFiles;
use crate::formats::sound_files::SoundFiles;
use crate::rows::cells::Records;
use crate::rows::layout::{Column, ColumnKind, Keep, KeptColumn, Layout, ReadOptions, RowStream};

/// Rows of numbers, if they are as many as the model has in a row.
pub fn numbers(mut rows: RowStream, model: &Layout) -> Result<RowStream> {
    rows.layout = fitted(rows.layout, model).map_err(|error| error.in_file(&rows.name))?;
    Ok(rows)
}

/// Takes names and shape from the model, if rows have its shape or width.
fn fitted(mut layout: Layout, model: &Layout) -> Result<Layout> {
    if let (Some(wanted), Some(shape)) = (model.shape, layout.shape)
        && wanted != shape
    {
        let expected = format!("images of {wanted}, as the model has");
        return Err(Error::expected(ErrorKind::ModelMismatch, expected, shape));
    }
    if model.width != layout.width {
        let expected = format!("rows of {} numbers, as the model has", model.width);
        return Err(Error::expected(
            ErrorKind::ModelMismatch,
            expected,
            layout.width,
        ));
    }
    layout.shape = model.shape.or(layout.shape);
    layout.columns.clone_from(&model.columns);
    layout.classes.clone_from(&model.classes);
    Ok(layout)
}

/// Images, with the model's channels and classes.
pub fn images(files: ClassFiles, model: &Layout) -> Result<RowStream> {
    let channels = model.shape.map(|shape| shape.channels);
    let files = ImageFiles(files.with_classes(&model.classes)?);
    numbers(files.rows(channels)?, model)
}

/// Sounds, with the model's length and classes.
pub fn sounds(files: ClassFiles, model: &Layout) -> Result<RowStream> {
    let files = SoundFiles(files.with_classes(&model.classes)?);
    numbers(files.rows(model.shape)?, model)
}

/// A table, read once: its columns are matched with the model's by their names.
pub fn table(source: &TableSource, options: &ReadOptions, model: &Layout) -> Result<RowStream> {
    let file = source.name();
    let named = |error: Error| error.in_file(&file);
    let model_names: Vec<String> = (0..model.width).map(|i| model.name(i)).collect();
    let mut rows = source.records(options, &model_names)?;
    let mut chosen = match rows.header() {
        Some(header) => matched(header, options, model, &model_names).map_err(named)?,
        None => unmatched(&mut *rows, options, model, model_names)?,
    };
    if options.no_labels {
        chosen.target = None;
    }
    let (mut kept, places) = kept_of(&mut *rows, options, &chosen.columns).map_err(named)?;
    if options.no_header {
        kept.iter_mut()
            .for_each(|kept| name_as_the_model(kept, model));
    }
    let names = chosen.names();
    rows.select(&names, &places);
    let is_kept = |name: &String| kept.iter().any(|kept| kept.field.name == *name);
    chosen
        .ignored
        .retain(|name| options.keep != Keep::All && !is_kept(name));
    let layout = Layout {
        target: chosen.target,
        ignored: chosen.ignored,
        kept,
        findings: Vec::new(),
        columns: named_columns(model, &chosen.columns),
        na: options.na.iter().chain(&model.na).cloned().collect(),
        no_default_na: columns_of(&options.no_default_na, &names).or(&model.no_default_na),
        ..model.clone()
    };
    Ok(encoded(&file, rows, layout, options.unseen_missing))
}

/// The columns of a header that the model uses, in its order.
fn matched(
    header: &[String],
    options: &ReadOptions,
    model: &Layout,
    model_names: &[String],
) -> Result<Chosen> {
    let known = model
        .target
        .as_ref()
        .filter(|target| header.contains(target));
    let target = options.target.as_ref().or(known);
    let mut chosen = Chosen::new(header, target, &options.ignore)?;
    let places = if options.no_header {
        by_order(model.width, chosen.columns.len(), model.predicted)?
    } else {
        let named = !model.columns.is_empty();
        places_of(
            model_names,
            named,
            &chosen.columns,
            options.absent,
            model.predicted,
        )?
    };
    chosen.keep_places(&places, model_names);
    Ok(chosen)
}

/// Where every row names its own cells, all columns of the model; what a row leaves out is missing. Names of the first
/// row that the model does not know are not used.
fn unmatched(
    rows: &mut dyn Records,
    options: &ReadOptions,
    model: &Layout,
    model_names: Vec<String>,
) -> Result<Chosen> {
    let target = options.target.clone().or(model.target.clone());
    let first = rows.keepable()?.into_iter().map(|field| field.name);
    let unknown = |name: &String| !model_names.contains(name) && Some(name) != target.as_ref();
    let ignored = first.filter(unknown).collect();
    Ok(Chosen {
        columns: model_names,
        target,
        ignored,
    })
}

/// The columns that are handed through, and their numbers among those that can be.
fn kept_of(
    rows: &mut dyn Records,
    options: &ReadOptions,
    columns: &[String],
) -> Result<(Vec<KeptColumn>, Vec<usize>)> {
    if options.keep == Keep::Nothing {
        return Ok(Default::default());
    }
    let fields = rows.keepable()?;
    kept_columns(&options.keep, &fields, columns)
}

fn name_as_the_model(kept: &mut KeptColumn, model: &Layout) {
    if let Some(column) = kept.column {
        kept.field.name = model.name(column);
    }
}

/// A column for every number, so that messages can name it.
fn named_columns(model: &Layout, names: &[String]) -> Vec<Column> {
    if !model.columns.is_empty() {
        return model.columns.clone();
    }
    let column = |name: &String| Column {
        name: name.clone(),
        kind: ColumnKind::Numeric,
    };
    names.iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::source::Origin;
    use crate::rows::findings::{Finding, FindingKind};
    use crate::rows::layout::{Chunk, ImageShape, Table};

    #[test]
    fn a_model_wants_its_own_width_and_shape() {
        let image = |height, width| {
            let shape = ImageShape {
                height,
                width,
                channels: 1,
            };
            Layout::unnamed(shape.numbers(), Some(shape))
        };
        let model = Layout {
            classes: vec!["cat".into(), "dog".into()],
            ..image(2, 8)
        };
        assert_eq!(fitted(image(2, 8), &model).unwrap().classes.len(), 2);
        let flat = Layout::unnamed(16, None);
        assert_eq!(fitted(flat, &model).unwrap().shape, model.shape);
        let says = |layout| {
            let rows = RowStream::new("a.npy", layout, || Ok(None));
            numbers(rows, &model).unwrap_err().to_string()
        };
        assert_eq!(
            says(image(4, 4)),
            "a.npy: expected images of 2×8×1, as the model has, got 4×4×1"
        );
        assert_eq!(
            says(Layout::unnamed(15, None)),
            "a.npy: expected rows of 16 numbers, as the model has, got 15"
        );
    }

    fn source(text: &str) -> TableSource {
        let origin = Origin::Memory {
            name: "a.csv".into(),
            bytes: text.as_bytes().into(),
        };
        TableSource::new(origin, None)
    }

    fn read(text: &str, options: &ReadOptions) -> Result<Table> {
        source(text).rows(options)?.collect_table()
    }

    fn read_for(model: &Layout, text: &str, options: &ReadOptions) -> Result<Table> {
        table(&source(text), options, model)?.collect_table()
    }

    fn words(read: Result<Table>) -> String {
        let error = read.unwrap_err();
        assert!(error.is_user_error(), "{error}");
        error.to_string()
    }

    fn says(text: &str, options: &ReadOptions) -> String {
        words(read(text, options))
    }

    fn target(name: &str) -> ReadOptions {
        ReadOptions {
            target: Some(name.into()),
            ..ReadOptions::default()
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
        let table = read(PETS, &ReadOptions::default()).unwrap();
        assert_eq!((table.layout.width, table.labels), (3, None));
    }

    #[test]
    fn json_lines_are_the_same_table() {
        let lines = "{\"age\":3,\"kind\":\"cat\",\"class\":\"b\"}\n{\"kind\":\"dog\",\"class\":\"a\"}\n{\"age\":1.5,\"kind\":\"NA\"}\n";
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
        let options = ReadOptions {
            categorical: vec!["zip".into()],
            ignore: vec!["id".into()],
            ..ReadOptions::default()
        };
        let table = read(text, &options).unwrap();
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
        let any = ReadOptions::default();
        let pets = read_for(&model, "kind,extra,age\ndog,x,7\n", &any).unwrap();
        assert_eq!((&*pets.values, &pets.labels), (&[7.0, 1.0][..], &None));
        assert_eq!(pets.layout.ignored, ["extra"]);
        let pets = read_for(&model, "class,age,kind\na,,\n", &any).unwrap();
        assert_eq!(
            (filled(&pets), pets.labels),
            (vec![-9.0, -9.0], Some(vec![0]))
        );
        let lines = "{\"kind\": \"dog\"}\n[5, \"cat\"]\n";
        let pets = read_for(&model, lines, &any).unwrap();
        assert_eq!(
            (filled(&pets), pets.labels),
            (vec![-9.0, 1.0, 5.0, 0.0], Some(vec![-1, -1]))
        );
        let lines = "{\"kind\": \"dog\", \"extra\": 1, \"class\": \"a\"}\n{\"age\": 2}\n";
        let pets = read_for(&model, lines, &any).unwrap();
        assert_eq!(pets.layout.ignored, ["extra"]);
        assert_eq!(filled(&pets), [-9.0, 1.0, 2.0, -9.0]);
        let unlabelled = ReadOptions {
            no_labels: true,
            ..ReadOptions::default()
        };
        let pets = read_for(&model, "age,kind,class\n1,cat,z\n", &unlabelled).unwrap();
        assert_eq!(pets.labels, None);
        let no_header = ReadOptions {
            no_header: true,
            ..ReadOptions::default()
        };
        let pets = read_for(&model, "4,dog\n", &no_header).unwrap();
        assert_eq!(pets.values, [4.0, 1.0]);
    }

    #[test]
    fn what_a_model_does_not_know_is_an_error_or_missing() {
        let model = read(PETS, &target("class")).unwrap().layout;
        let says = |text: &str| words(read_for(&model, text, &ReadOptions::default()));
        assert_eq!(
            says("kind\ndog\n"),
            "a.csv: expected a column 'age', as the model has, got kind"
        );
        assert_eq!(
            says("age,kind\n1,cat\n2,cow\n"),
            "a.csv line 3, column 'kind': expected cat, dog, got 'cow'"
        );
        assert_eq!(
            says("age,kind\nold,cat\n"),
            "a.csv line 2, column 'age': expected a number, got 'old'"
        );
        let class = "age,kind,class\n1,cat,z\n";
        assert_eq!(
            says(class),
            "a.csv line 2, column 'class': expected a, b, got 'z'"
        );
        let error = read_for(&model, class, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownClass);
        let lenient = ReadOptions {
            unseen_missing: true,
            ..ReadOptions::default()
        };
        let text = "age,kind,class\n1,cow,z\n2,pig,y\n";
        let pets = read_for(&model, text, &lenient).unwrap();
        assert_eq!(
            (filled(&pets), pets.labels),
            (vec![1.0, -9.0, 2.0, -9.0], Some(vec![-1, -1]))
        );
        let found = |column: &str, name: &str| {
            let name = name.to_owned();
            Finding::new(column, FindingKind::UnknownCategory { name })
        };
        let expected = [found("kind", "cow"), found("class", "z")];
        assert_eq!(pets.layout.findings, expected, "once for each column");
    }

    #[test]
    fn a_model_of_images_takes_columns_by_position() {
        let model = Layout::unnamed(2, None);
        let pixels = read_for(&model, "y,p,q\n4,1,2\n,3,NA\n", &target("y")).unwrap();
        assert_eq!(
            (filled(&pixels), pixels.labels),
            (vec![1.0, 2.0, 3.0, -9.0], Some(vec![4, -1]))
        );
        assert_eq!(pixels.layout.name(1), "q");
        let named = read_for(&model, "x1,id,x0\n1,7,2\n", &ReadOptions::default()).unwrap();
        assert_eq!(
            named.values,
            [2.0, 1.0],
            "by name where all names are there"
        );
        assert_eq!(
            words(read_for(&model, "y,p\n1,2\n", &target("y"))),
            "a.csv: expected 2 columns, as the model has, got 1"
        );
        assert_eq!(
            words(read_for(&model, "y,p,q\na,1,2\n", &target("y"))),
            "a.csv line 2, column 'y': expected a class (0, 1, …), got 'a'"
        );
    }

    #[test]
    fn nonsense_is_named() {
        let any = ReadOptions::default();
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
            "a.csv line 4, column 'a': expected numbers such as 1065.5, got '3,5'"
        );
        assert_eq!(
            says("a\nx\ny\n7\n", &any),
            "a.csv line 4, column 'a': expected text, as in 2 other cells, got '7'"
        );
        assert_eq!(
            says("a,b\n1,2\n", &target("c")),
            "a.csv: expected a column 'c', got a, b"
        );
        assert_eq!(
            says("a\n1\n", &target("a")),
            "a.csv: expected at least one column besides the target, got none"
        );
        let options = ReadOptions {
            categorical: vec!["z".into()],
            ..ReadOptions::default()
        };
        assert_eq!(
            says("a,b\n1,2\n", &options),
            "a.csv: expected a column 'z' to be categorical, got a, b"
        );
        let many: String = (0..1002).map(|i| format!("t{i},1\n")).collect();
        assert_eq!(
            says(&format!("id,a\n{many}"), &any),
            "a.csv, column 'id': expected at most 1000 categories, got more"
        );
        assert_eq!(
            says(&format!("id,a\n{many}"), &target("id")),
            "a.csv, column 'id': expected at most 1000 categories, got more"
        );
    }

    #[test]
    fn long_tables_come_in_chunks() {
        let text: String = std::iter::once("a\n".to_owned())
            .chain((0..10_000).map(|i| format!("{i}\n")))
            .collect();
        let chunks: Vec<Chunk> = source(&text)
            .rows(&ReadOptions::default())
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
