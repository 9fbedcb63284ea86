//! The binary matrices in which small NORB is published: a magic number, the number of dimensions, at least three
//! dimensions (each 32 bits, smallest byte first), then the numbers. Images are in `…-dat.mat`, their classes in
//! `…-cat.mat`, and instance, elevation, azimuth and lighting in `…-info.mat`; each may be gzipped.
//!
//! Images of two cameras, (rows, 2, height, width), become images of two channels.

use crate::error::{Error, ErrorKind, Result};
use crate::files::source::{ByteReader, Origin};
use crate::formats::array::{Array, ArrayHeader, Element, stream};
use crate::rows::layout::RowStream;
use std::path::{Path, PathBuf};

/// What the five classes of small NORB are.
const CLASSES: [&str; 5] = ["animal", "human", "airplane", "truck", "car"];

/// More dimensions than any file has.
const MAX_DIMENSIONS: u32 = 16;

/// The element that a magic number stands for.
fn element(magic: u32) -> Option<Element> {
    Some(match magic {
        0x1e3d_4c51 => Element::F32,
        0x1e3d_4c53 => Element::F64,
        0x1e3d_4c54 => Element::I32,
        0x1e3d_4c55 => Element::U8,
        0x1e3d_4c56 => Element::I16,
        _ => return None,
    })
}

/// True if a file that begins so is one of these.
pub fn begins(bytes: &[u8]) -> bool {
    bytes
        .first_chunk()
        .is_some_and(|&magic| element(u32::from_le_bytes(magic)).is_some())
}

/// Reads the header.
pub fn array(mut input: ByteReader) -> Result<Array> {
    let mut word = || input.array("NORB header").map(u32::from_le_bytes);
    let (magic, count) = (word()?, word()?);
    let Some(element) = element(magic) else {
        let expected = "a NORB matrix (magic number 1e3d4c51 or 1e3d4c53 to 1e3d4c56)";
        let got = format!("{magic:08x}");
        return Err(Error::expected(ErrorKind::Damaged, expected, got).in_file(&input.name));
    };
    if count == 0 || count > MAX_DIMENSIONS {
        let expected = format!("1 to {MAX_DIMENSIONS} dimensions");
        return Err(Error::expected(ErrorKind::Damaged, expected, count).in_file(&input.name));
    }
    let mut dims = (0..count.max(3))
        .map(|_| word().map(u64::from))
        .collect::<Result<Vec<_>>>()?;
    dims.truncate(count as usize);
    Array::new(
        &ArrayHeader {
            dims,
            element,
            big_endian: false,
        },
        input,
    )
}

/// Images with the classes beside them, if they are there.
pub fn open_file(path: &Path) -> Result<RowStream> {
    let origin = Origin::File(path.to_owned());
    let images = array(origin.open()?)?.planes_to_pixels();
    let labels = beside(path, "cat")
        .map(|path| array(Origin::File(path).open()?))
        .transpose()?;
    let mut layout = images.layout()?;
    if labels.is_some() {
        layout.classes = CLASSES.map(str::to_owned).to_vec();
    }
    stream(images, labels, layout)
}

/// Instance (0–9), elevation (0–8), azimuth (0–34, in steps of two) and lighting (0–5) of every image.
pub fn info(path: &Path) -> Result<Vec<[f32; 4]>> {
    let origin = Origin::File(path.to_owned());
    let mut array = array(origin.open()?)?;
    if array.width() != 4 {
        let expected = "four numbers for every image";
        let error = Error::expected(ErrorKind::Damaged, expected, array.width());
        return Err(error.in_file(&origin.name()));
    }
    let numbers = array.numbers(array.rows())?;
    Ok(numbers.as_chunks().0.to_vec())
}

/// The file of another part of the same set.
pub fn beside(images: &Path, part: &str) -> Option<PathBuf> {
    let name = images.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let renamed = format!("{}-{part}.mat", plain.strip_suffix("-dat.mat")?);
    let files = [renamed.clone(), format!("{renamed}.gz")];
    files
        .iter()
        .map(|name| images.with_file_name(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::layout::ImageShape;
    use std::fs;

    fn matrix(magic: u32, dims: &[u32], numbers: &[u8]) -> Vec<u8> {
        let mut file = magic.to_le_bytes().to_vec();
        file.extend((dims.len() as u32).to_le_bytes());
        let padded = dims
            .iter()
            .copied()
            .chain(std::iter::repeat(1))
            .take(dims.len().max(3));
        padded.for_each(|dim| file.extend(dim.to_le_bytes()));
        file.extend(numbers);
        file
    }

    fn words(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    fn says(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x-dat.mat");
        fs::write(&path, bytes).unwrap();
        let error = open_file(&path)
            .and_then(RowStream::collect_table)
            .unwrap_err()
            .to_string();
        error.replace(&folder.path().display().to_string(), "")
    }

    #[test]
    fn dat_cat_and_info() {
        let folder = tempfile::tempdir().unwrap();
        let at = |part: &str| {
            folder
                .path()
                .join(format!("smallnorb-5x01235-training-{part}.mat"))
        };
        // Two pairs of 2×2 images.
        let pixels: Vec<u8> = (0..16).collect();
        fs::write(at("dat"), matrix(0x1e3d_4c55, &[2, 2, 2, 2], &pixels)).unwrap();
        fs::write(at("cat"), matrix(0x1e3d_4c54, &[2], &words(&[4, 0]))).unwrap();
        fs::write(
            at("info"),
            matrix(0x1e3d_4c54, &[2, 4], &words(&[8, 3, 34, 5, 1, 0, 2, 0])),
        )
        .unwrap();
        let table = open_file(&at("dat")).unwrap().collect_table().unwrap();
        assert_eq!(
            table.layout.shape,
            Some(ImageShape {
                height: 2,
                width: 2,
                channels: 2
            })
        );
        assert_eq!(table.values[..8], [0.0, 4.0, 1.0, 5.0, 2.0, 6.0, 3.0, 7.0]);
        assert_eq!(
            (table.labels, &*table.layout.classes[4]),
            (Some(vec![4, 0]), "car")
        );
        let path = beside(&at("dat"), "info").unwrap();
        assert_eq!(
            info(&path).unwrap(),
            [[8.0, 3.0, 34.0, 5.0], [1.0, 0.0, 2.0, 0.0]]
        );
        let rows = open_file(&path).unwrap();
        assert_eq!(
            (rows.layout.width, rows.layout.shape),
            (4, None),
            "dimensions beyond the second are padding"
        );
        assert!(
            info(&at("cat"))
                .unwrap_err()
                .to_string()
                .ends_with("expected four numbers for every image, got 1")
        );
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(
            says(b"abc"),
            "/x-dat.mat: expected 4 bytes of NORB header, got 3"
        );
        assert_eq!(
            says(b"MATLAB 5.0 MAT-file"),
            "/x-dat.mat: expected a NORB matrix (magic number 1e3d4c51 or 1e3d4c53 to 1e3d4c56), got 4c54414d"
        );
        let mut many = matrix(0x1e3d_4c55, &[1], &[0]);
        many[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            says(&many),
            "/x-dat.mat: expected 1 to 16 dimensions, got 4294967295"
        );
        assert_eq!(
            says(&matrix(0x1e3d_4c55, &[24300, 2, 96, 96], &[0; 100])),
            "/x-dat.mat: expected 24300×2×96×96 numbers of 1 bytes, as its header says, got a shorter file"
        );
    }
}
