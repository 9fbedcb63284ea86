//! PNG: one image is one row, a folder of images is a data set, a folder of folders names the classes.
//!
//! Numbers run from 0 to 255 whatever the depth of the file: 16-bit ones are divided by 257. A pixel that is less than
//! half opaque is missing.

use crate::error::{file_error, mistake};
use crate::layout::{Chunk, Layout, Request, Rows, Shape, rows_per_chunk, some_of, sort_names};
use crate::source::MOST_INFLATION;
use anyhow::Result;
pub use png::ColorType;
use png::{BitDepth, Decoder, Transformations};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

/// What a file begins with.
pub const MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A model of a larger image than this would not fit into any memory; a file of a few bytes may promise one.
const MOST_PIXELS: u64 = 1 << 24;

/// An image and its shape.
pub struct Image {
    /// (height, width, channels); NaN is missing.
    pub values: Vec<f32>,
    /// One channel for grey, three for colour.
    pub shape: Shape,
}

/// Reads one image.
pub fn read_image(path: &Path) -> Result<Image> {
    let name = path.display();
    let file = File::open(path).map_err(|error| file_error("read", path, error))?;
    let length = file
        .metadata()
        .map_err(|error| file_error("read", path, error))?
        .len();
    let wrong = |error: png::DecodingError| match error {
        png::DecodingError::IoError(error) => crate::source::damaged(&name.to_string(), error),
        other => mistake(format!("{name}: expected a PNG image: {other}")),
    };
    let mut decoder = Decoder::new(BufReader::new(file));
    decoder.set_transformations(Transformations::EXPAND);
    let info = decoder.read_header_info().map_err(wrong)?;
    let (width, height) = (info.width, info.height);
    let pixels = u64::from(width) * u64::from(height);
    if pixels.saturating_mul(info.bits_per_pixel() as u64) / 8
        > length.saturating_mul(MOST_INFLATION)
    {
        return Err(mistake(format!(
            "{name}: the header promises {width}×{height} pixels, more than the file holds"
        )));
    }
    if pixels > MOST_PIXELS {
        return Err(mistake(format!(
            "{name}: expected at most {MOST_PIXELS} pixels, got {width}×{height}"
        )));
    }
    // For the chunks before the pixels, and for pixels of at most four numbers of two bytes.
    decoder.set_limits(png::Limits {
        bytes: (1 << 20) + 8 * pixels as usize,
    });
    let mut reader = decoder.read_info().map_err(wrong)?;
    let size = reader
        .output_buffer_size()
        .ok_or_else(|| mistake(format!("{name}: the image is too large")))?;
    let mut bytes = vec![0; size];
    let frame = reader.next_frame(&mut bytes).map_err(wrong)?;
    let shape = Shape {
        height: frame.height as usize,
        width: frame.width as usize,
        channels: if frame.color_type.samples() >= 3 {
            3
        } else {
            1
        },
    };
    let values = numbers(
        &bytes[..frame.buffer_size()],
        frame.color_type,
        frame.bit_depth,
    );
    Ok(Image { values, shape })
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

impl Image {
    /// The image with as many channels as a model has: grey is repeated, colour becomes its brightness.
    fn with_channels(self, channels: usize) -> Self {
        let values = match (self.shape.channels, channels) {
            (1, 3) => self.values.iter().flat_map(|&grey| [grey; 3]).collect(),
            (3, 1) => {
                let grey = |&[r, g, b]: &[f32; 3]| {
                    if r == g && g == b {
                        r
                    } else {
                        0.299 * r + 0.587 * g + 0.114 * b
                    }
                };
                self.values.as_chunks().0.iter().map(grey).collect()
            }
            _ => return self,
        };
        Self {
            values,
            shape: Shape {
                channels,
                ..self.shape
            },
        }
    }
}

/// The images of a data set and, if folders name classes, the class of each.
struct Listing {
    files: Vec<PathBuf>,
    labels: Option<Vec<i64>>,
    classes: Vec<String>,
}

/// The PNG files of a folder and its folders, sorted by name.
fn list(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let fails = |error| file_error("read", folder, error);
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(fails)? {
        let path = entry.map_err(fails)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden {
            folders.push(path);
        } else if !hidden
            && path
                .extension()
                .is_some_and(|ending| ending.eq_ignore_ascii_case("png"))
        {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

impl Listing {
    fn new(folder: &Path, request: &Request) -> Result<Self> {
        let halves = ["train", "test"].map(|half| folder.join(half));
        let half = folder.join(request.split.word());
        let folder = if halves.iter().all(|half| half.is_dir()) {
            &half
        } else {
            folder
        };
        let name = folder.display();
        let (files, folders) = list(folder)?;
        let mut by_class = BTreeMap::new();
        for folder in folders {
            let (files, _) = list(&folder)?;
            if !files.is_empty() {
                let class = folder
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                by_class.insert(class, files);
            }
        }
        if !files.is_empty() && !by_class.is_empty() {
            let message = format!(
                "{name}: expected images or folders of images, one for each class, got both"
            );
            return Err(mistake(message));
        }
        if files.is_empty() && by_class.is_empty() {
            return Err(mistake(format!(
                "{name}: expected MNIST's four files, PNG images, or folders of them, got none"
            )));
        }
        if !files.is_empty() {
            return Ok(Self {
                files,
                labels: None,
                classes: Vec::new(),
            });
        }
        let mut classes: Vec<String> = by_class.keys().cloned().collect();
        sort_names(&mut classes);
        if let Some(model) = request
            .model
            .as_ref()
            .filter(|model| !model.classes.is_empty())
        {
            if let Some(unknown) = classes.iter().find(|class| !model.classes.contains(class)) {
                let wanted = some_of(&model.classes);
                return Err(mistake(format!(
                    "{name}: expected folders named {wanted}, as the model has, got '{unknown}'"
                )));
            }
            classes.clone_from(&model.classes);
        }
        let (mut files, mut labels) = (Vec::new(), Vec::new());
        for (label, class) in classes.iter().enumerate() {
            let mine = by_class.remove(class).unwrap_or_default();
            labels.resize(labels.len() + mine.len(), label as i64);
            files.extend(mine);
        }
        Ok(Self {
            files,
            labels: Some(labels),
            classes,
        })
    }
}

/// One image as one row.
pub fn open_file(path: &Path, request: &Request) -> Result<Rows> {
    open(
        Listing {
            files: vec![path.to_owned()],
            labels: None,
            classes: Vec::new(),
        },
        request,
    )
}

/// A folder of images, or of folders of images.
pub fn open_folder(folder: &Path, request: &Request) -> Result<Rows> {
    open(Listing::new(folder, request)?, request)
}

fn open(listing: Listing, request: &Request) -> Result<Rows> {
    let channels = request
        .model
        .as_ref()
        .and_then(|model| model.shape)
        .map(|shape| shape.channels);
    let read = move |path: &Path| {
        let image = read_image(path)?;
        Ok::<_, anyhow::Error>(match channels {
            Some(channels) => image.with_channels(channels),
            None => image,
        })
    };
    let origin = listing.files[0].clone();
    let shape = read(&origin)?.shape;
    let layout = Layout {
        classes: listing.classes,
        ..Layout::unnamed(shape.numbers(), Some(shape))
    };
    let layout = layout.fitted(request.model.as_ref(), &origin.display().to_string())?;
    let most = rows_per_chunk(shape.numbers());
    let mut first = 0;
    Ok(Rows::new(layout, move || {
        let files = &listing.files[first..listing.files.len().min(first + most)];
        let labels = listing
            .labels
            .as_ref()
            .map(|labels| labels[first..first + files.len()].to_vec());
        let mut chunk = Chunk {
            first,
            labels,
            ..Chunk::default()
        };
        for path in files {
            let image = read(path)?;
            if image.shape != shape {
                let (name, first, got) = (path.display(), origin.display(), image.shape);
                return Err(mistake(format!(
                    "{name}: expected an image of {shape}, as {first} is, got {got}"
                )));
            }
            chunk.values.extend(image.values);
            chunk.files.push(path.display().to_string());
        }
        first += files.len();
        Ok((!chunk.files.is_empty()).then_some(chunk))
    }))
}

/// A grid has at most this many images, because all of them are drawn at once.
const MOST_IMAGES: usize = 4096;

/// Images drawn side by side: as many columns as rows, or one more, with a line of nothing between them.
pub struct PngGrid {
    file: String,
    shape: Shape,
    unit: bool, // numbers run to 1, not to 255
    values: Vec<f32>,
}

impl PngGrid {
    /// Rows of `width` numbers must be images, grey or in colour.
    pub fn new(file: &str, width: usize, image: Option<(Shape, bool)>) -> Result<Self> {
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
                let expected = "expected images of 1 or 3 channels and nothing beside them";
                Err(mistake(format!(
                    "{file}: {expected}, got {shape} in rows of {width}; use CSV or NPY"
                )))
            }
            None => Err(mistake(format!(
                "{file}: expected images, got rows of {width} numbers; use CSV or NPY"
            ))),
        }
    }

    /// The next number.
    pub fn push(&mut self, number: f64) -> Result<()> {
        if self.values.len() == MOST_IMAGES * self.shape.numbers() {
            let file = &self.file;
            return Err(mistake(format!(
                "{file}: expected at most {MOST_IMAGES} images in a picture, got more; use NPY"
            )));
        }
        self.values.push(number as f32);
        Ok(())
    }

    /// Draws the picture.
    pub fn finish(self, out: impl Write) -> Result<()> {
        let Shape {
            height,
            width,
            channels,
        } = self.shape;
        let images = self.values.len() / self.shape.numbers();
        if images == 0 {
            return Err(mistake(format!(
                "{}: expected at least one image in a picture, got none",
                self.file
            )));
        }
        let columns = (images as f64).sqrt().ceil() as usize;
        let rows = images.div_ceil(columns.max(1));
        let scale = if self.unit { 255.0 } else { 1.0 };
        let holes = images > 1 || self.values.iter().any(|x| x.is_nan());
        let samples = channels + usize::from(holes);
        let (tall, wide) = (rows * (height + 1) - 1, columns * (width + 1) - 1);
        let mut bytes = vec![0; tall * wide * samples];
        for (i, pixel) in self.values.chunks_exact(channels).enumerate() {
            let (image, y, x) = (i / (height * width), i / width % height, i % width);
            let (y, x) = (
                image / columns * (height + 1) + y,
                image % columns * (width + 1) + x,
            );
            let drawn = &mut bytes[(y * wide + x) * samples..][..samples];
            let seen = pixel.iter().all(|number| !number.is_nan());
            for (byte, &number) in drawn.iter_mut().zip(pixel) {
                *byte = (number * scale).round().clamp(0.0, 255.0) as u8; // NaN becomes 0
            }
            if let Some(opacity) = drawn.get_mut(channels) {
                *opacity = if seen { 255 } else { 0 };
            }
        }
        let color = match (channels, holes) {
            (1, false) => ColorType::Grayscale,
            (1, true) => ColorType::GrayscaleAlpha,
            (_, false) => ColorType::Rgb,
            (_, true) => ColorType::Rgba,
        };
        encode(out, (wide, tall), color, &bytes).map_err(|error| match error {
            png::EncodingError::IoError(error) => {
                anyhow::Error::new(error).context(format!("cannot write {}", self.file))
            }
            other => anyhow::anyhow!("{}: {other}", self.file),
        })
    }
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
mod tests {
    use super::*;

    fn data(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name)
    }

    /// Holes as −1, because NaN equals nothing.
    fn values(image: Image) -> Vec<f32> {
        image
            .values
            .iter()
            .map(|x| if x.is_nan() { -1.0 } else { *x })
            .collect()
    }

    fn shape(height: usize, width: usize, channels: usize) -> Shape {
        Shape {
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
        let request = |channels| Request {
            model: Some(Layout::unnamed(6 * channels, Some(shape(2, 3, channels)))),
            ..Request::default()
        };
        let read = |name: &str, channels| {
            open_file(&data(name), &request(channels))
                .unwrap()
                .collect_table()
                .unwrap()
                .values
        };
        assert_eq!(read("grey.png", 3)[3..6], [128.0; 3]);
        assert_eq!(
            read("rgb.png", 1)[2],
            0.299 * 255.0 + 0.587 * 127.0 + 0.114 * 85.0
        );
        let small = Request {
            model: Some(Layout::unnamed(4, Some(shape(2, 2, 1)))),
            ..Request::default()
        };
        let error = open_file(&data("grey.png"), &small)
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("grey.png: expected images of 2×2×1, as the model has, got 2×3×1"),
            "{error}"
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

    fn says(files: &[(&str, &str)], request: &Request) -> String {
        let folder = folder(files);
        let error = open_folder(folder.path(), request)
            .and_then(Rows::collect_table)
            .unwrap_err()
            .to_string();
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
        let mut rows = open_folder(set.path(), &Request::default()).unwrap();
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
        let table = open_folder(&plain.path().join("10"), &Request::default())
            .unwrap()
            .collect_table()
            .unwrap();
        assert_eq!((table.rows(), table.labels), (1, None));
    }

    #[test]
    fn halves_are_folders_too() {
        let set = folder(&[
            ("grey.png", "train/a/1.png"),
            ("grey.png", "test/b/1.png"),
            ("grey.png", "train/b/1.png"),
        ]);
        let request = Request {
            split: crate::layout::Split::Test,
            ..Request::default()
        };
        let model = open_folder(set.path(), &Request::default()).unwrap().layout;
        assert_eq!(
            open_folder(set.path(), &request).unwrap().layout.classes,
            ["b"]
        );
        let request = Request {
            model: Some(model),
            ..request
        };
        let table = open_folder(set.path(), &request)
            .unwrap()
            .collect_table()
            .unwrap();
        assert_eq!(table.labels, Some(vec![1]), "the model's classes count");
    }

    #[test]
    fn nonsense_is_named() {
        let any = Request::default();
        assert_eq!(
            says(&[], &any),
            "~: expected MNIST's four files, PNG images, or folders of them, got none"
        );
        assert_eq!(
            says(&[("grey.png", "a.png"), ("grey.png", "x/b.png")], &any),
            "~: expected images or folders of images, one for each class, got both"
        );
        assert_eq!(
            says(&[("grey.png", "a.png"), ("rgb.png", "b.png")], &any),
            "~/b.png: expected an image of 2×3×1, as ~/a.png is, got 2×3×3"
        );
        let model = Layout {
            classes: vec!["cat".into()],
            ..Layout::unnamed(6, Some(shape(2, 3, 1)))
        };
        let request = Request {
            model: Some(model),
            ..Request::default()
        };
        assert_eq!(
            says(&[("grey.png", "dog/a.png")], &request),
            "~: expected folders named cat, as the model has, got 'dog'"
        );
        let bad = |change: &dyn Fn(&mut Vec<u8>)| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.png");
            let mut bytes = fs::read(data("grey.png")).unwrap();
            change(&mut bytes);
            fs::write(&path, bytes).unwrap();
            let error = read_image(&path).err().unwrap();
            assert!(crate::error::is_users(&error), "{error}");
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
                "the header promises 2147483647×2147483647 pixels, more than the file holds"
            ),
            "{error}"
        );
        assert!(
            promise(100).contains("a.png: "),
            "small enough, but there are no pixels"
        );
    }

    #[test]
    fn a_grid_is_drawn_and_one_image_is_read_back() {
        let draw_as = |unit: bool, shape: Shape, values: &[f32]| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.png");
            let mut grid = PngGrid::new("a.png", shape.numbers(), Some((shape, unit))).unwrap();
            values.iter().for_each(|&x| grid.push(x.into()).unwrap());
            grid.finish(File::create(&path).unwrap()).unwrap();
            read_image(&path).unwrap()
        };
        let draw = |shape: Shape, values: &[f32]| draw_as(false, shape, values);
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
        (0..MOST_IMAGES).for_each(|_| full.push(0.0).unwrap());
        assert!(full.push(0.0).is_err());
    }
}
