//! A picture of many images side by side, as PNG. Holes are transparent.

use crate::error::{Error, ErrorKind, Result};
use crate::formats::png::{ColorType, encode};
use crate::rows::layout::ImageShape;
use std::io::Write;

/// A grid has at most this many images, because all of them are drawn at once.
const MAX_IMAGES: usize = 4096;

/// Images drawn side by side: as many columns as rows, or one more, with a line of nothing between them.
pub struct PngGrid {
    file: String,
    shape: ImageShape,
    unit: bool, // numbers run to 1, not to 255
    values: Vec<f32>,
}

impl PngGrid {
    /// Rows of `width` numbers must be images, grey or in colour.
    pub fn new(file: &str, width: usize, image: Option<(ImageShape, bool)>) -> Result<Self> {
        match image {
            Some((shape, unit)) if [1, 3].contains(&shape.channels) && shape.numbers() == width => {
                Ok(Self {
                    file: file.to_owned(),
                    shape,
                    unit,
                    values: Vec::new(),
                })
            }
            Some((shape, _)) => {
                let expected = "images of 1 or 3 channels and nothing beside them";
                let got = format!("{shape} in rows of {width}; use CSV or NPY");
                Err(Error::expected(ErrorKind::Output, expected, got).in_file(file))
            }
            None => {
                let got = format!("rows of {width} numbers; use CSV or NPY");
                Err(Error::expected(ErrorKind::Output, "images", got).in_file(file))
            }
        }
    }

    /// The next number.
    pub fn push(&mut self, number: f64) -> Result<()> {
        if self.values.len() == MAX_IMAGES * self.shape.numbers() {
            let expected = format!("at most {MAX_IMAGES} images in a picture");
            let error = Error::expected(ErrorKind::Output, expected, "more; use NPY");
            return Err(error.in_file(&self.file));
        }
        self.values.push(number as f32);
        Ok(())
    }

    /// Draws the picture.
    pub fn finish(self, out: impl Write) -> Result<()> {
        let images = self.values.len() / self.shape.numbers();
        if images == 0 {
            let expected = "at least one image in a picture";
            let error = Error::expected(ErrorKind::Output, expected, "none");
            return Err(error.in_file(&self.file));
        }
        let holes = images > 1 || self.values.iter().any(|x| x.is_nan());
        let color = match (self.shape.channels, holes) {
            (1, false) => ColorType::Grayscale,
            (1, true) => ColorType::GrayscaleAlpha,
            (_, false) => ColorType::Rgb,
            (_, true) => ColorType::Rgba,
        };
        let columns = (images as f64).sqrt().ceil() as usize;
        let rows = images.div_ceil(columns.max(1));
        let (height, width) = (self.shape.height + 1, self.shape.width + 1); // with the line between
        let size = (columns * width - 1, rows * height - 1);
        let bytes = self.draw(columns, size, color.samples());
        encode(out, size, color, &bytes).map_err(|error| match error {
            png::EncodingError::IoError(error) => Error::io("write", &self.file, error),
            other => Error::new(ErrorKind::Io, other.to_string()).in_file(&self.file),
        })
    }

    /// All images side by side in a picture of `size` (width, height), as (height, width, samples).
    fn draw(&self, columns: usize, size: (usize, usize), samples: usize) -> Vec<u8> {
        let ImageShape {
            height,
            width,
            channels,
        } = self.shape;
        let scale = if self.unit { 255.0 } else { 1.0 };
        let mut bytes = vec![0; size.0 * size.1 * samples];
        for (i, pixel) in self.values.chunks_exact(channels).enumerate() {
            let (image, y, x) = (i / (height * width), i / width % height, i % width);
            let (y, x) = (
                image / columns * (height + 1) + y,
                image % columns * (width + 1) + x,
            );
            let drawn = &mut bytes[(y * size.0 + x) * samples..][..samples];
            let seen = pixel.iter().all(|number| !number.is_nan());
            for (byte, &number) in drawn.iter_mut().zip(pixel) {
                *byte = (number * scale).round().clamp(0.0, 255.0) as u8; // NaN becomes 0
            }
            if let Some(opacity) = drawn.get_mut(channels) {
                *opacity = if seen { 255 } else { 0 };
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::png::read_image;
    use crate::formats::png::tests::{shape, values};
    use std::fs::File;

    #[test]
    fn a_grid_is_drawn_and_one_image_is_read_back() {
        let draw_as = |unit: bool, shape: ImageShape, values: &[f32]| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.png");
            let mut grid = PngGrid::new("a.png", shape.numbers(), Some((shape, unit))).unwrap();
            values.iter().for_each(|&x| grid.push(x.into()).unwrap());
            grid.finish(File::create(&path).unwrap()).unwrap();
            read_image(&path).unwrap()
        };
        let draw = |shape: ImageShape, values: &[f32]| draw_as(false, shape, values);
        let rgb = draw(shape(1, 2, 3), &[0.0, 1.0, 2.0, 3.4, 300.0, -5.0]);
        assert_eq!(values(rgb), [0.0, 1.0, 2.0, 3.0, 255.0, 0.0]);
        let hole = draw(shape(1, 2, 1), &[f32::NAN, 7.0]);
        assert_eq!(values(hole), [-1.0, 7.0]);
        let unit = draw_as(true, shape(1, 2, 1), &[1.0, 0.5]);
        assert_eq!(values(unit), [255.0, 128.0]);
        let dark = draw(shape(1, 2, 1), &[1.0, 0.4]);
        assert_eq!(values(dark), [1.0, 0.0]);
        let none = PngGrid::new("a.png", 4, Some((shape(2, 2, 1), false)))
            .unwrap()
            .finish(Vec::new())
            .unwrap_err();
        assert_eq!(
            none.to_string(),
            "a.png: expected at least one image in a picture, got none"
        );
        let three = draw(shape(1, 1, 1), &[5.0, 6.0, 7.0]);
        assert_eq!(three.shape, shape(3, 3, 1));
        assert_eq!(
            values(three),
            [5.0, -1.0, 6.0, -1.0, -1.0, -1.0, 7.0, -1.0, -1.0]
        );
        assert!(
            PngGrid::new("a.png", 4, None)
                .err()
                .unwrap()
                .to_string()
                .contains("expected images, got rows of 4")
        );
        let error = PngGrid::new("a.png", 8, Some((shape(2, 2, 2), false)))
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("got 2×2×2 in rows of 8"), "{error}");
        let mut full = PngGrid::new("a.png", 1, Some((shape(1, 1, 1), false))).unwrap();
        (0..MAX_IMAGES).for_each(|_| full.push(0.0).unwrap());
        assert!(full.push(0.0).is_err());
    }
}
