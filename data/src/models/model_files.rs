//! Model files, and what a model says about the rows it takes.

use crate::error::{Error, ErrorKind, Result, clip, file_error};
use crate::files::atomic_file::Staged;
use crate::rows::dates::DateStyle;
use crate::rows::layout::{Column, ColumnKind, ImageShape, Layout, some_of};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use sumout::Model;
use sumout::queries::Scores;

/// Whether a row of so many columns is too unlike the training data to be classified: beyond 10¹², 64 bits no longer hold
/// the difference between two classes, and long before that the differences mean nothing.
pub fn is_too_far(log_likelihood: f64, columns: usize) -> bool {
    const OF_COLUMN: f64 = 1e3; // nats: 45 standard deviations of a leaf in every column
    log_likelihood.abs() > Scores::FARTHEST || log_likelihood < -OF_COLUMN * columns as f64
}

/// The warning about such a row.
pub const TOO_FAR: &str = "too unlike the training data to classify; ignore its posterior";

/// Where a model remembers the column that its labels came from.
pub const TARGET: &str = "target";

/// Where a model remembers what its user called missing.
pub const NA: &str = "na";

/// Where a model remembers in which columns words such as NA are not missing.
pub const NO_DEFAULT_NA: &str = "no_default_na";

/// Where a model remembers which columns hold dates, and how they are written.
pub const DATES: &str = "dates";

/// Where a model remembers the digest of the rows that it was trained on.
pub const DATA: &str = "data";

/// Where a model remembers the digest of the rows of which some were kept aside for validation.
pub const SPLIT_FROM: &str = "split_from";

/// Where a model remembers the name of the data that it was trained on.
pub const SOURCE: &str = "source";

/// Where a model remembers what its user wrote about it.
pub const NOTE: &str = "note";

/// Where a model remembers how good it was on the validation rows.
pub const VALIDATED: &str = "validated";

/// Reads a model file, or a checkpoint as the model that it holds.
pub fn load(path: &Path) -> Result<Model> {
    let model = Model::from_bytes(&bytes(path)?);
    model.map_err(|error| Error::from(error).in_file(&path.display().to_string()))
}

/// The bytes of a model file or a checkpoint: eight of them, then JSON.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).map_err(|error| file_error("read", path, error))?;
    match bytes.get(8) {
        Some(b'{') => Ok(bytes),
        _ => {
            let error = Error::expected(ErrorKind::NotAModel, "a model file", "another file");
            Err(error.in_file(&path.display().to_string()))
        }
    }
}

/// Whether a file is there that has something in it and is not a model. Devices and pipes have nothing in them.
pub fn is_other_file(path: &Path) -> Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut start = Vec::new();
    let file = File::open(path).map_err(|error| file_error("read", path, error))?;
    let read = file.take(9).read_to_end(&mut start);
    read.map_err(|error| file_error("read", path, error))?;
    Ok(!start.is_empty() && start.get(8) != Some(&b'{'))
}

/// Writes a file whole or not at all.
pub fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut staged = Staged::create(path)?;
    staged
        .write_all(bytes)
        .map_err(|error| file_error("write", path, error))?;
    staged.commit()
}

/// The rows that a model takes.
pub fn layout_of(model: &Model) -> Layout {
    let about = &model.about;
    let dates: BTreeMap<String, DateStyle> = about.training.get(DATES).unwrap_or_default();
    let kind = |column: usize| match about.categories.get(column) {
        Some(names) if !names.is_empty() => ColumnKind::Categorical(names.clone()),
        _ => match about.columns.get(column).and_then(|name| dates.get(name)) {
            Some(style) => ColumnKind::Date(*style),
            None => ColumnKind::Numeric,
        },
    };
    let columns = about.columns.iter().enumerate();
    Layout {
        width: model.structure.width(),
        shape: model.structure.frame.map(|f| ImageShape {
            height: f.height,
            width: f.width,
            channels: f.channels,
        }),
        unit: model.structure.frame.is_some() && model.scaling.scale_of(0) > 0.5, // as `images::scaling` has it: 1, or 1/255
        columns: columns
            .map(|(column, name)| Column {
                name: name.clone(),
                kind: kind(column),
            })
            .collect(),
        classes: about.classes.clone(),
        target: about.training.get(TARGET),
        predicted: model.target(),
        na: about.training.get(NA).unwrap_or_default(),
        no_default_na: about.training.get(NO_DEFAULT_NA).unwrap_or_default(),
        ranges: model.scaling.ranges.clone(),
        ..Layout::default()
    }
}

/// The columns of a layout that hold dates, as a model remembers them.
pub fn dates_of(layout: &Layout) -> BTreeMap<&str, DateStyle> {
    let style = |column: &'_ Column| match column.kind {
        ColumnKind::Date(style) => Some(style),
        _ => None,
    };
    let columns = layout.columns.iter();
    let dates = columns.filter_map(|column| Some((column.name.as_str(), style(column)?)));
    dates.collect()
}

/// The class of that name, or of that number where classes have no names.
pub fn class_of(model: &Model, name: &str) -> Result<usize> {
    let classes = 0..model.structure.classes;
    let names: Vec<String> = classes.map(|class| model.class_name(class)).collect();
    class_among(&names, name)
}

/// The same among the names of all classes.
pub fn class_among(names: &[String], name: &str) -> Result<usize> {
    let found = names.iter().position(|known| known == name);
    found.ok_or_else(|| unknown_class(names, name))
}

/// A model without classes calls its only one 0.
fn unknown_class(names: &[String], name: &str) -> Error {
    let expected = match names {
        [only] if only == "0" => "none, as the model has no classes".to_owned(),
        _ => some_of(names),
    };
    Error::unexpected(ErrorKind::UnknownClass, expected, clip(name)).in_file("class")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sumout::structure::{Kind, Structure};

    #[test]
    fn a_model_knows_its_rows_and_classes() {
        let kinds = [Kind::Gaussian, Kind::Categorical(2)];
        let structure = Structure::table(&kinds)
            .window(2)
            .components(2)
            .channels([3])
            .classes(2)
            .build()
            .unwrap();
        let mut model = Model::random(structure, 1.0, 1);
        assert_eq!(layout_of(&model), Layout::unnamed(2, None));
        assert_eq!(class_of(&model, "1").unwrap(), 1);
        model.about.classes = vec!["no".into(), "yes".into()];
        model.about.columns = vec!["age".into(), "sex".into()];
        model.about.categories = vec![vec![], vec!["f".into(), "m".into()]];
        model.about.training.set("target", "ill");
        let layout = layout_of(&model);
        assert_eq!(
            layout.columns[1].kind,
            ColumnKind::Categorical(vec!["f".into(), "m".into()])
        );
        assert_eq!(
            (layout.target.as_deref(), class_of(&model, "yes").unwrap()),
            (Some("ill"), 1)
        );
        let error = class_of(&model, "1").unwrap_err();
        assert_eq!(error.to_string(), "class: expected no, yes, got '1'");
        assert!(error.is_user_error());
    }
}
