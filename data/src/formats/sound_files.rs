//! Files of sound as rows: a row is one file, one step after the other. Rows are as long as the longest file; what a
//! shorter one does not have is missing.

use crate::error::{Error, ErrorKind, Result};
use crate::formats::class_files::ClassFiles;
use crate::formats::sound::{self, SoundFormat};
use crate::rows::layout::{Chunk, ImageShape, Layout, RowStream, rows_per_chunk};
use std::path::Path;

/// The sounds of a data set.
pub struct SoundFiles(pub ClassFiles);

impl SoundFiles {
    /// The sounds as rows: as long as the longest, or as long as a model's.
    pub fn rows(self, model: Option<ImageShape>) -> Result<RowStream> {
        let first_format = sound::read_format(&self.0.files[0])?;
        let mut length = 0;
        for path in &self.0.files {
            let format = sound::read_format(path)?;
            self.check_alike(path, format, first_format)?;
            length = length.max(format.steps);
            check_length(path, length, model)?;
        }
        let shape = ImageShape {
            height: 1,
            width: model.map_or(length, |shape| shape.width),
            channels: first_format.channels,
        };
        let layout = Layout {
            classes: self.0.classes.clone(),
            ..Layout::unnamed(shape.numbers(), Some(shape))
        };
        let (name, max_rows) = (self.0.name.clone(), rows_per_chunk(shape.numbers()));
        let mut first = 0;
        Ok(RowStream::new(name, layout, move || {
            let chunk = self.chunk(first, max_rows, shape.numbers())?;
            first += chunk.files.len();
            Ok((!chunk.files.is_empty()).then_some(chunk))
        }))
    }

    /// All sounds have as many steps in a second and samples in a step as the first.
    fn check_alike(&self, path: &Path, format: SoundFormat, first: SoundFormat) -> Result<()> {
        let described = |f: SoundFormat| format!("{} Hz with {} channels", f.rate, f.channels);
        if (format.rate, format.channels) == (first.rate, first.channels) {
            return Ok(());
        }
        let (wanted, place) = (described(first), self.0.files[0].display());
        let expected = format!("{wanted}, as {place} has");
        let error = Error::expected(ErrorKind::ModelMismatch, expected, described(format));
        Err(error.in_file(&path.display().to_string()))
    }

    /// At most `max_rows` sounds from `first` on.
    fn chunk(&self, first: usize, max_rows: usize, width: usize) -> Result<Chunk> {
        let (files, mut chunk) = self.0.chunk(first, max_rows);
        for (row, path) in files.iter().enumerate() {
            let samples = sound::read(path)?.samples;
            chunk.values.extend(samples.iter().take(width)); // a file may have grown since
            chunk.values.resize((row + 1) * width, f32::NAN);
            chunk.files.push(path.display().to_string());
        }
        Ok(chunk)
    }
}

/// A model's rows cannot hold more steps than they have.
fn check_length(path: &Path, length: usize, model: Option<ImageShape>) -> Result<()> {
    match model {
        Some(shape) if length > shape.width => {
            let expected = format!("at most {} steps, as the model has", shape.width);
            let error = Error::expected(ErrorKind::ModelMismatch, expected, length);
            Err(error.in_file(&path.display().to_string()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::sound::tests::{sphere_file, wav};
    use crate::rows::layout::{ReadOptions, Table};
    use std::fs;

    fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    fn read(folder: &Path) -> Result<Table> {
        crate::read(&folder.display().to_string(), &ReadOptions::default())
    }

    #[test]
    fn folders_are_classes_and_short_sounds_have_holes() {
        let sphere = "sample_count -i 1\nsample_rate -i 16000\n";
        let set = folder(&[
            ("yes/a.wav", wav(1, 1, 8, &[0, 128, 192])),
            ("no/b.WAV", sphere_file(sphere, &[0, 0x40])),
            ("no/b.phn", b"0 1 h#".to_vec()),
        ]);
        let table = read(set.path()).unwrap();
        let shape = ImageShape {
            height: 1,
            width: 3,
            channels: 1,
        };
        assert_eq!(table.layout.shape, Some(shape));
        assert_eq!(table.layout.classes, ["no", "yes"]);
        assert_eq!(table.labels, Some(vec![0, 1]));
        assert!(table.values[0] == 0.5 && table.values[1..3].iter().all(|x| x.is_nan()));
        assert_eq!(table.values[3..], [-1.0, 0.0, 0.5]);
    }

    #[test]
    fn a_model_has_its_own_length() {
        let set = folder(&[("a.wav", wav(1, 1, 8, &[0, 128]))]);
        let path = set.path().join("a.wav").display().to_string();
        let shape = |width| ImageShape {
            height: 1,
            width,
            channels: 1,
        };
        let fitted = |width| {
            let model = Layout::unnamed(width, Some(shape(width)));
            crate::read_fitted(&path, &ReadOptions::default(), &model)
        };
        let values = fitted(3).unwrap().values;
        assert!(values[..2] == [-1.0, 0.0] && values[2].is_nan());
        let error = fitted(1).unwrap_err().to_string();
        assert!(
            error.ends_with("a.wav: expected at most 1 steps, as the model has, got 2"),
            "{error}"
        );
    }

    #[test]
    fn sounds_of_other_channels_are_named() {
        let set = folder(&[
            ("a.wav", wav(1, 1, 8, &[0, 128])),
            ("b.wav", wav(1, 2, 8, &[0, 128])),
        ]);
        let error = read(set.path()).unwrap_err().to_string();
        let error = error.replace(&set.path().display().to_string(), "~");
        assert_eq!(
            error,
            "~/b.wav: expected 16000 Hz with 1 channels, as ~/a.wav has, got 16000 Hz with 2 channels"
        );
    }
}
