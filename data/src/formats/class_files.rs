//! A data set of one file for each row: a folder of files, or a folder of folders that name the classes.

use crate::error::{Error, ErrorKind, Result, file_error};
use crate::rows::layout::{Chunk, Split, some_of, sort_names};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a data set and, if folders name classes, the class of each. There is at least one file.
#[derive(Clone, Debug)]
pub struct ClassFiles {
    /// What messages call the data set.
    pub name: String,
    /// One for each row.
    pub files: Vec<PathBuf>,
    /// One for each file; `None` where folders name no classes.
    pub labels: Option<Vec<usize>>,
    /// What labels stand for.
    pub classes: Vec<String>,
}

/// The files of a folder with this ending, and its folders, sorted by name.
fn list(folder: &Path, wanted: &str) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let fails = |error| file_error("read", folder, error);
    let has_ending = |path: &Path| {
        let ending = path.extension();
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case(wanted))
    };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(fails)? {
        let path = entry.map_err(fails)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden {
            folders.push(path);
        } else if !hidden && has_ending(&path) {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

/// The half of a folder that has folders for both, else the folder itself.
fn half_of(folder: &Path, split: Split) -> PathBuf {
    let halves = ["train", "test"].map(|half| folder.join(half));
    if halves.iter().all(|half| half.is_dir()) {
        folder.join(split.word())
    } else {
        folder.to_owned()
    }
}

impl ClassFiles {
    /// One file as one row.
    pub fn of_file(path: &Path) -> Self {
        Self {
            name: path.display().to_string(),
            files: vec![path.to_owned()],
            labels: None,
            classes: Vec::new(),
        }
    }

    /// A folder of files with this ending, or of folders of them, one for each class; none if there are no such files.
    pub fn of_folder(folder: &Path, split: Split, ending: &str) -> Result<Option<Self>> {
        let folder = half_of(folder, split);
        let name = folder.display().to_string();
        let (files, folders) = list(&folder, ending)?;
        let mut by_class = BTreeMap::new();
        for folder in folders {
            let (files, _) = list(&folder, ending)?;
            if !files.is_empty() {
                let class = folder.file_name().unwrap_or_default();
                by_class.insert(class.to_string_lossy().into_owned(), files);
            }
        }
        if !files.is_empty() && !by_class.is_empty() {
            let expected = format!("{ending} files or folders of them, one for each class");
            return Err(Error::expected(ErrorKind::UnknownFormat, expected, "both").in_file(&name));
        }
        if by_class.is_empty() {
            return Ok((!files.is_empty()).then_some(Self {
                name,
                files,
                labels: None,
                classes: Vec::new(),
            }));
        }
        let mut classes: Vec<String> = by_class.keys().cloned().collect();
        sort_names(&mut classes);
        let (mut files, mut labels) = (Vec::new(), Vec::new());
        for (label, class) in classes.iter().enumerate() {
            let mine = by_class.remove(class).unwrap_or_default();
            labels.resize(labels.len() + mine.len(), label);
            files.extend(mine);
        }
        Ok(Some(Self {
            name,
            files,
            labels: Some(labels),
            classes,
        }))
    }

    /// The same with the classes of a model, in their order. A folder that names none of them is an error.
    pub fn with_classes(mut self, known: &[String]) -> Result<Self> {
        if known.is_empty() {
            return Ok(self);
        }
        let Some(labels) = self.labels.take() else {
            return Ok(self);
        };
        let code = |class: &String| known.iter().position(|name| name == class);
        if let Some(unknown) = self.classes.iter().find(|class| code(class).is_none()) {
            let expected = format!("folders named {}, as the model has", some_of(known));
            let error = Error::unexpected(ErrorKind::UnknownClass, expected, unknown);
            return Err(error.in_file(&self.name));
        }
        let codes: Vec<usize> = self.classes.iter().filter_map(code).collect();
        let mut rows: Vec<(usize, PathBuf)> = labels
            .iter()
            .map(|&label| codes[label])
            .zip(self.files)
            .collect();
        rows.sort_by_key(|&(label, _)| label); // stable: files of a class stay in their order
        let (labels, files) = rows.into_iter().unzip();
        Ok(Self {
            name: self.name,
            files,
            labels: Some(labels),
            classes: known.to_vec(),
        })
    }

    /// At most `max_rows` files from `first` on, and a chunk that has their labels and waits for their values.
    pub fn chunk(&self, first: usize, max_rows: usize) -> (&[PathBuf], Chunk) {
        let files = &self.files[first..self.files.len().min(first + max_rows)];
        let chunk = Chunk {
            first,
            labels: self.labels_of(first, files.len()),
            ..Chunk::default()
        };
        (files, chunk)
    }

    /// The labels of `count` rows from `first` on.
    fn labels_of(&self, first: usize, count: usize) -> Option<Vec<i64>> {
        let all = self.labels.as_ref()?;
        let labels = all[first..first + count].iter();
        Some(labels.map(|&label| label as i64).collect())
    }
}
