//! Model files, and what a model says about the rows it wants.

use crate::atomic_file::Staged;
use crate::error::{file_error, mistake};
use crate::layout::some_of;
use crate::layout::{Column, ColumnKind, Layout, Shape};
use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::Path;
use sumout::Model;

/// Beyond this log-likelihood, a posterior is no answer.
pub const FARTHEST: f64 = sumout::queries::Scores::FARTHEST;
/// What is said of a row beyond it.
pub const TOO_FAR: &str =
    "too far from all that was learned to tell classes apart: the posterior is no answer";

/// Where a model remembers the column that its labels came from.
pub const TARGET: &str = "target";

/// Where a model remembers what its user called missing.
pub const NA: &str = "na";

/// Reads a model file, or a checkpoint as the model that it holds.
pub fn load(path: &Path) -> Result<Model> {
    Model::from_bytes(&bytes(path)?).with_context(|| path.display().to_string())
}

/// The bytes of a model file or a checkpoint: eight of them, then JSON.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).map_err(|error| file_error("read", path, error))?;
    match bytes.get(8) {
        Some(b'{') => Ok(bytes),
        _ => Err(mistake(format!(
            "{}: expected a model that `sumout train` wrote, got another file",
            path.display()
        ))),
    }
}

/// Writes a file whole or not at all.
pub fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut staged = Staged::create(path)?;
    staged
        .write_all(bytes)
        .map_err(|error| file_error("write", path, error))?;
    staged.commit()
}

/// The rows that a model wants.
pub fn layout_of(model: &Model) -> Layout {
    let about = &model.about;
    let kind = |column: usize| match about.categories.get(column) {
        Some(names) if !names.is_empty() => ColumnKind::Categorical(names.clone()),
        _ => ColumnKind::Numeric,
    };
    let columns = about.columns.iter().enumerate();
    Layout {
        width: model.structure.width(),
        shape: model.structure.frame.map(|f| Shape {
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
        na: about.training.get(NA).unwrap_or_default(),
        ..Layout::default()
    }
}

/// The class of that name, or of that number where classes have no names.
pub fn class_of(model: &Model, name: &str) -> Result<usize> {
    let names: Vec<String> = (0..model.structure.classes)
        .map(|class| model.class_name(class))
        .collect();
    let found = names.iter().position(|known| known == name);
    found.ok_or_else(|| mistake(format!("class: expected {}, got '{name}'", some_of(&names))))
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
        assert!(crate::error::is_users(&error));
    }
}
