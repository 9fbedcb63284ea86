//! Images as PNG files of their own, in a folder. Holes are transparent.

use crate::error::{Result, file_error};
use crate::files::atomic_file::Staged;
use crate::formats::png_grid::PngGrid;
use crate::rows::layout::ImageShape;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A folder that gets a file for each image, each of them whole or not at all.
pub struct PngFolder {
    folder: PathBuf,
    width: usize,
    image: Option<(ImageShape, bool)>,
    written: usize,
    name: Option<PathBuf>, // of the next image
}

impl PngFolder {
    /// Rows of `width` numbers must be images, grey or in colour.
    pub fn create(folder: &str, width: usize, image: Option<(ImageShape, bool)>) -> Result<Self> {
        PngGrid::new(folder, width, image)?;
        fs::create_dir_all(folder).map_err(|error| file_error("write", folder.as_ref(), error))?;
        Ok(Self {
            folder: folder.into(),
            width,
            image,
            written: 0,
            name: None,
        })
    }

    /// What the next image is called: a path inside the folder. Without one it has a number.
    pub fn name_next(&mut self, name: &Path) {
        self.name = Some(name.to_owned());
    }

    /// Writes an image.
    pub fn image(&mut self, numbers: impl Iterator<Item = f64>) -> Result<()> {
        self.written += 1;
        let number = || PathBuf::from(format!("{:06}.png", self.written));
        let path = self.folder.join(self.name.take().unwrap_or_else(number));
        let fails = |error| file_error("write", &path, error);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(fails)?;
        let mut picture = PngGrid::new(&path.display().to_string(), self.width, self.image)?;
        for number in numbers {
            picture.push(number)?;
        }
        let mut staged = Staged::create(&path)?;
        let mut out = BufWriter::new(&mut staged);
        picture.finish(&mut out)?;
        out.flush().map_err(fails)?;
        drop(out);
        staged.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::png::read_image;
    use crate::formats::png::tests::{shape, values};

    #[test]
    fn every_image_has_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").display().to_string();
        let image = Some((shape(1, 2, 1), false));
        let mut out = PngFolder::create(&path, 2, image).unwrap();
        out.name_next(Path::new("cats/a.png"));
        out.image([1.0, 2.0].into_iter()).unwrap();
        out.image([3.0, f64::NAN].into_iter()).unwrap();
        let read = |name: &str| values(read_image(&Path::new(&path).join(name)).unwrap());
        assert_eq!(read("cats/a.png"), [1.0, 2.0]);
        assert_eq!(read("000002.png"), [3.0, -1.0]);
    }

    #[test]
    fn a_table_makes_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").display().to_string();
        let error = PngFolder::create(&path, 2, None).err().unwrap().to_string();
        assert!(error.ends_with("expected images, got rows of 2 numbers; use CSV or NPY"));
        assert!(!Path::new(&path).exists());
    }
}
