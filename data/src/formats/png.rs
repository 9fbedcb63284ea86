//! PNG: one image is one row, a folder of images is a data set, a folder of folders names the classes.
//!
//! Numbers run from 0 to 255 whatever the depth of the file: 16-bit ones are divided by 257. A pixel that is less than
//! half opaque is missing.

use crate::error::{Error, ErrorKind, Result, file_error, read_error};
use crate::files::source::MAX_INFLATION;
use crate::formats::class_files::ClassFiles;
use crate::rows::layout::{Chunk, ImageShape, Layout, RowStream, rows_per_chunk};
pub use png::ColorType;
use png::{BitDepth, Decoder, Transformations};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

/// What a file begins with.
pub const MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A model of a larger image than this would not fit into memory; a file of a few bytes may claim one.
const MAX_PIXELS: u64 = 1 << 24;

/// An image and its shape.
pub struct Image {
    /// (height, width, channels); NaN is missing.
    pub values: Vec<f32>,
    /// One channel for grey, three for colour.
    pub shape: ImageShape,
}

/// Reads one image.
pub fn read_image(path: &Path) -> Result<Image> {
    let name = path.display().to_string();
    let fails = |error| file_error("read", path, error);
    let wrong = |error: png::DecodingError| match error {
        png::DecodingError::IoError(error) => read_error(&name, error),
        other => Error::damaged(format!("expected a PNG image: {other}")).in_file(&name),
    };
    let file = File::open(path).map_err(fails)?;
    let length = file.metadata().map_err(fails)?.len();
    let mut decoder = Decoder::new(BufReader::new(file));
    decoder.set_transformations(Transformations::EXPAND);
    let info = decoder.read_header_info().map_err(wrong)?;
    let pixels = check_size(info, length).map_err(|error| error.in_file(&name))?;
    // For the chunks before the pixels, and for pixels of at most four numbers of two bytes.
    decoder.set_limits(png::Limits {
        bytes: (1 << 20) + 8 * pixels as usize,
    });
    let mut reader = decoder.read_info().map_err(wrong)?;
    // The decoder panics at a colour of less than three bytes.
    if reader
        .info()
        .palette
        .as_ref()
        .is_some_and(|palette| palette.len() % 3 != 0)
    {
        let wrong = Error::damaged("its palette is not a number of whole colours");
        return Err(wrong.in_file(&name));
    }
    let too_large = || Error::damaged("the image is too large").in_file(&name);
    let size = reader.output_buffer_size().ok_or_else(too_large)?;
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes).map_err(wrong)?;
    let colour = frame.color_type.samples() >= 3;
    let shape = ImageShape {
        height: frame.height as usize,
        width: frame.width as usize,
        channels: if colour { 3 } else { 1 },
    };
    let bytes = &bytes[..frame.buffer_size()];
    let values = numbers(bytes, frame.color_type, frame.bit_depth);
    Ok(Image { values, shape })
}

/// How many pixels an image has, if a file of this many bytes can hold them.
fn check_size(info: &png::Info<'_>, length: u64) -> Result<u64> {
    let (width, height) = (info.width, info.height);
    let pixels = u64::from(width) * u64::from(height);
    let bytes = pixels.saturating_mul(info.bits_per_pixel() as u64) / 8;
    if bytes > length.saturating_mul(MAX_INFLATION) {
        let expected = format!("{width}×{height} pixels, as its header says");
        return Err(Error::expected(
            ErrorKind::Damaged,
            expected,
            "a shorter file",
        ));
    }
    if pixels > MAX_PIXELS {
        let (expected, got) = (
            format!("at most {MAX_PIXELS} pixels"),
            format!("{width}×{height}"),
        );
        return Err(Error::expected(ErrorKind::Damaged, expected, got));
    }
    Ok(pixels)
}

/// Numbers from 0 to 255, with the opacity turned into holes.
fn numbers(bytes: &[u8], color: ColorType, depth: BitDepth) -> Vec<f32> {
    let numbers: Vec<f32> = match depth {
        BitDepth::Sixteen => bytes
            .as_chunks()
            .0
            .iter()
            .map(|&pair| f32::from(u16::from_be_bytes(pair)) / 257.0)
            .collect(),
        _ => bytes.iter().map(|&byte| f32::from(byte)).collect(),
    };
    let samples = color.samples();
    if !matches!(color, ColorType::GrayscaleAlpha | ColorType::Rgba) {
        return numbers;
    }
    let mut values = Vec::with_capacity(numbers.len() / samples * (samples - 1));
    for pixel in numbers.chunks_exact(samples) {
        let seen = pixel[samples - 1] >= 127.5;
        values.extend(
            pixel[..samples - 1]
                .iter()
                .map(|&number| if seen { number } else { f32::NAN }),
        );
    }
    values
}

/// Of a colour; a grey is itself.
fn brightness(&[r, g, b]: &[f32; 3]) -> f32 {
    if r == g && g == b {
        r
    } else {
        0.299 * r + 0.587 * g + 0.114 * b
    }
}

impl Image {
    /// The image with as many channels as a model has: grey is repeated, colour becomes its brightness.
    fn with_channels(self, channels: usize) -> Self {
        let values = match (self.shape.channels, channels) {
            (1, 3) => self.values.iter().flat_map(|&grey| [grey; 3]).collect(),
            (3, 1) => self.values.as_chunks().0.iter().map(brightness).collect(),
            _ => return self,
        };
        Self {
            values,
            shape: ImageShape {
                channels,
                ..self.shape
            },
        }
    }
}

/// The images of a data set.
pub struct ImageFiles(pub ClassFiles);

impl ImageFiles {
    /// The images as rows, of this many channels if a model has them.
    pub fn rows(self, channels: Option<usize>) -> Result<RowStream> {
        let origin = self.0.files[0].clone();
        let shape = read_with_channels(&origin, channels)?.shape;
        let layout = Layout {
            classes: self.0.classes.clone(),
            ..Layout::unnamed(shape.numbers(), Some(shape))
        };
        let max_rows = rows_per_chunk(shape.numbers());
        let mut first = 0;
        Ok(RowStream::new(
            origin.display().to_string(),
            layout,
            move || {
                let chunk = self.chunk(first, max_rows, channels, shape)?;
                first += chunk.files.len();
                Ok((!chunk.files.is_empty()).then_some(chunk))
            },
        ))
    }

    /// At most `max_rows` images from `first` on.
    fn chunk(
        &self,
        first: usize,
        max_rows: usize,
        channels: Option<usize>,
        shape: ImageShape,
    ) -> Result<Chunk> {
        let (files, mut chunk) = self.0.chunk(first, max_rows);
        for path in files {
            let name = path.display().to_string();
            let image = read_with_channels(path, channels)?;
            if image.shape != shape {
                let expected = format!("an image of {shape}, as {} is", self.0.files[0].display());
                let error = Error::expected(ErrorKind::ModelMismatch, expected, image.shape);
                return Err(error.in_file(&name));
            }
            chunk.values.extend(image.values);
            chunk.files.push(name);
        }
        Ok(chunk)
    }
}

fn read_with_channels(path: &Path, channels: Option<usize>) -> Result<Image> {
    let image = read_image(path)?;
    Ok(match channels {
        Some(channels) => image.with_channels(channels),
        None => image,
    })
}

/// Writes pixels of 8 bits.
pub fn encode(
    out: impl Write,
    size: (usize, usize),
    color: ColorType,
    bytes: &[u8],
) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(out, size.0 as u32, size.1 as u32);
    encoder.set_color(color);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(bytes)?;
    writer.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::formats::npy::tests::data;
    use crate::rows::layout::Split;
    use std::fs;

    /// Holes as −1, because NaN equals nothing.
    pub(crate) fn values(image: Image) -> Vec<f32> {
        image
            .values
            .iter()
            .map(|x| if x.is_nan() { -1.0 } else { *x })
            .collect()
    }

    pub(crate) fn shape(height: usize, width: usize, channels: usize) -> ImageShape {
        ImageShape {
            height,
            width,
            channels,
        }
    }

    #[test]
    fn pictures_of_pillow() {
        let grey = [0.0, 128.0, 255.0, 10.0, 20.0, 30.0];
        let rgb: Vec<f32> = grey
            .iter()
            .flat_map(|&x| [x, (x / 2.0f32).floor(), (x / 3.0f32).floor()])
            .collect();
        let cases: [(&str, Vec<f32>); 7] = [
            ("grey", grey.to_vec()),
            ("grey16", grey.to_vec()),
            ("bits", vec![0.0, 255.0, 255.0, 0.0, 0.0, 0.0]),
            ("rgb", rgb.clone()),
            ("palette", rgb.clone()),
            ("grey_holes", vec![0.0, 128.0, -1.0, 10.0, -1.0, 30.0]),
            (
                "rgb_holes",
                [&rgb[..6], &[-1.0; 3], &rgb[9..12], &[-1.0; 3], &rgb[15..]].concat(),
            ),
        ];
        for (name, wanted) in cases {
            let image = read_image(&data(&format!("{name}.png"))).unwrap();
            assert_eq!(image.shape, shape(2, 3, wanted.len() / 6), "{name}");
            assert_eq!(values(image), wanted, "{name}");
        }
    }

    #[test]
    fn channels_follow_the_model() {
        let read = |name: &str, channels| {
            let rows = ImageFiles(ClassFiles::of_file(&data(name))).rows(Some(channels));
            rows.unwrap().collect_table().unwrap().values
        };
        assert_eq!(read("grey.png", 3)[3..6], [128.0; 3]);
        assert_eq!(
            read("rgb.png", 1)[2],
            0.299 * 255.0 + 0.587 * 127.0 + 0.114 * 85.0
        );
    }

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (from, to) in files {
            let path = folder.path().join(to);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(data(from), path).unwrap();
        }
        folder
    }

    fn opened(folder: &Path, split: Split) -> Result<ClassFiles> {
        Ok(ClassFiles::of_folder(folder, split, "png")?.expect("images"))
    }

    fn says(files: &[(&str, &str)], classes: &[String]) -> String {
        let folder = folder(files);
        let read = |files: ClassFiles| {
            let files = ImageFiles(files.with_classes(classes)?);
            files.rows(None)?.collect_table()
        };
        let error = opened(folder.path(), Split::Train).and_then(read);
        let error = error.unwrap_err().to_string();
        error.replace(&folder.path().display().to_string(), "~")
    }

    #[test]
    fn folders_are_classes() {
        let files = [
            ("grey.png", "10/a.PNG"),
            ("grey16.png", "9/b.png"),
            ("bits.png", "9/a.png"),
            ("rgb.png", ".x/a.png"),
        ];
        let set = folder(&files);
        fs::write(set.path().join("9/notes.txt"), "not an image").unwrap();
        let files_of = |folder: &Path| ImageFiles(opened(folder, Split::Train).unwrap());
        let mut rows = files_of(set.path()).rows(None).unwrap();
        assert_eq!(rows.layout.classes, ["9", "10"]);
        let chunk = rows.next().unwrap().unwrap();
        assert_eq!(chunk.labels, Some(vec![0, 0, 1]));
        assert_eq!(
            (chunk.values.len(), chunk.values[1]),
            (18, 255.0),
            "9/a.png comes first"
        );
        assert!(chunk.files[2].ends_with("a.PNG") && rows.next().is_none());
        let plain = folder(&files[..1]);
        let files = files_of(&plain.path().join("10"));
        let table = files.rows(None).unwrap().collect_table().unwrap();
        assert_eq!((table.rows(), table.labels), (1, None));
    }

    #[test]
    fn halves_are_folders_too() {
        let set = folder(&[
            ("grey.png", "train/a/1.png"),
            ("grey.png", "test/b/1.png"),
            ("grey.png", "train/b/1.png"),
        ]);
        let open = |split| opened(set.path(), split).unwrap();
        let model = open(Split::Train).classes;
        assert_eq!(open(Split::Test).classes, ["b"]);
        let files = ImageFiles(open(Split::Test).with_classes(&model).unwrap());
        let table = files.rows(None).unwrap().collect_table().unwrap();
        assert_eq!(table.labels, Some(vec![1]), "the model's classes count");
        let backwards: Vec<String> = ["b", "a"].map(str::to_owned).to_vec();
        let files = open(Split::Train).with_classes(&backwards).unwrap();
        assert!(files.files[0].ends_with("b/1.png"));
        assert_eq!((files.labels, files.classes), (Some(vec![0, 1]), backwards));
    }

    #[test]
    fn nonsense_is_named() {
        let any = [];
        assert_eq!(
            says(&[("grey.png", "a.png"), ("grey.png", "x/b.png")], &any),
            "~: expected png files or folders of them, one for each class, got both"
        );
        assert_eq!(
            says(&[("grey.png", "a.png"), ("rgb.png", "b.png")], &any),
            "~/b.png: expected an image of 2×3×1, as ~/a.png is, got 2×3×3"
        );
        assert_eq!(
            says(&[("grey.png", "dog/a.png")], &["cat".to_owned()]),
            "~: expected folders named cat, as the model has, got 'dog'"
        );
        let bad = |change: &dyn Fn(&mut Vec<u8>)| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.png");
            let mut bytes = fs::read(data("grey.png")).unwrap();
            change(&mut bytes);
            fs::write(&path, bytes).unwrap();
            let error = read_image(&path).err().unwrap();
            assert!(error.is_user_error(), "{error}");
            error
                .to_string()
                .replace(&folder.path().display().to_string(), "~")
        };
        assert_eq!(
            bad(&|bytes| bytes.clear()),
            "~/a.png: damaged: unexpected end of file"
        );
        assert_eq!(
            bad(&|bytes| *bytes = b"hello, world".to_vec()),
            "~/a.png: expected a PNG image: Invalid PNG signature."
        );
        assert_eq!(
            bad(&|bytes| bytes.truncate(50)),
            "~/a.png: damaged: unexpected end of file"
        );
    }

    #[test]
    fn a_palette_that_ends_inside_a_colour() {
        let path = data("palette_cut.png");
        let error = read_image(path.as_ref()).err().unwrap().to_string();
        assert!(error.contains("palette"), "{error}");
    }

    #[test]
    fn a_header_that_promises_too_much() {
        // A header of its own, with a right checksum: width and height of 2³¹ − 1.
        let promise = |side: u32| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.png");
            let mut chunk = b"IHDR".to_vec();
            chunk.extend(side.to_be_bytes());
            chunk.extend(side.to_be_bytes());
            chunk.extend([1, 0, 0, 0, 0]);
            let mut crc = flate2::Crc::new();
            crc.update(&chunk);
            let bytes = [
                MAGIC,
                &[0, 0, 0, 13],
                &chunk,
                &crc.sum().to_be_bytes(),
                &[0; 100],
            ]
            .concat();
            fs::write(&path, bytes).unwrap();
            read_image(&path).err().unwrap().to_string()
        };
        let error = promise((1 << 31) - 1);
        assert!(
            error.ends_with(
                "expected 2147483647×2147483647 pixels, as its header says, got a shorter file"
            ),
            "{error}"
        );
        assert!(
            promise(100).contains("a.png: "),
            "small enough, but there are no pixels"
        );
    }
}
