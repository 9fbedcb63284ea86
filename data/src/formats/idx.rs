//! IDX, the format of MNIST: two zero bytes, the type, the number of dimensions, each as 32 bits, then the numbers;
//! all of it with the largest byte first.

use crate::error::{Error, ErrorKind, Result};
use crate::files::source::{ByteReader, Origin};
use crate::formats::array::{Array, ArrayHeader, Element, stream};
use crate::rows::layout::{RowStream, Split};
use std::path::{Path, PathBuf};

/// What files of the two halves begin with.
fn prefix(split: Split) -> &'static str {
    match split {
        Split::Train => "train-",
        Split::Test => "t10k-",
    }
}

/// Reads the header.
pub fn array(mut input: ByteReader) -> Result<Array> {
    let magic: [u8; 4] = input.array("IDX header")?;
    let wrong = |expected: &str| {
        let got = format!("bytes {magic:02x?}");
        Err(Error::expected(ErrorKind::Damaged, expected, got).in_file(&input.name))
    };
    let element = match magic[2] {
        0x08 => Element::U8,
        0x09 => Element::I8,
        0x0b => Element::I16,
        0x0c => Element::I32,
        0x0d => Element::F32,
        0x0e => Element::F64,
        _ => return wrong("an IDX header (0, 0, a type from 8 to 14, dimensions)"),
    };
    if magic[..2] != [0, 0] || magic[3] == 0 {
        return wrong("an IDX header (0, 0, type, number of dimensions)");
    }
    let mut dims = Vec::new();
    for _ in 0..magic[3] {
        dims.push(u64::from(u32::from_be_bytes(
            input.array("IDX dimensions")?,
        )));
    }
    Array::new(
        &ArrayHeader {
            dims,
            element,
            big_endian: true,
        },
        input,
    )
}

/// Images (or any rows), with their labels if they have some.
pub fn open(images: &Origin, labels: Option<&Origin>) -> Result<RowStream> {
    let values = array(images.open()?)?;
    let labels = labels
        .map(|labels| labels.open().and_then(array))
        .transpose()?;
    let layout = values.layout()?;
    stream(values, labels, layout)
}

/// One file of images, and the file of labels beside it if there is one.
pub fn open_file(path: &Path) -> Result<RowStream> {
    let labels = labels_beside(path).map(Origin::File);
    open(&Origin::File(path.to_owned()), labels.as_ref())
}

/// The images of one half in a folder such as MNIST's, `None` if it has no such file.
pub fn in_folder(folder: &Path, split: Split) -> Option<PathBuf> {
    let names = ["images-idx3-ubyte", "images.idx3-ubyte"];
    let endings = ["", ".gz"];
    let files = names
        .iter()
        .flat_map(|name| endings.map(|ending| format!("{}{name}{ending}", prefix(split))));
    files
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}

/// Where the labels of a file of images would be.
fn labels_beside(images: &Path) -> Option<PathBuf> {
    let name = images.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    let at = plain.rfind("images")?;
    let renamed = format!(
        "{}labels{}",
        &plain[..at],
        plain[at + "images".len()..].replace("idx3", "idx1")
    );
    let files = [renamed.clone(), format!("{renamed}.gz")];
    files
        .iter()
        .map(|name| images.with_file_name(name))
        .find(|path| path.is_file())
}

/// The bytes of an IDX file of unsigned bytes, for programs that make one.
pub fn encode(dims: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 0x08, dims.len() as u8];
    dims.iter().for_each(|dim| file.extend(dim.to_be_bytes()));
    file.extend(bytes);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::layout::ImageShape;
    use flate2::{Compression, write::GzEncoder};
    use std::fs;
    use std::io::Write;

    fn zip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn says(bytes: &[u8]) -> String {
        let origin = Origin::Memory {
            name: "a.idx".into(),
            bytes: bytes.into(),
        };
        open(&origin, None)
            .and_then(RowStream::collect_table)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn images_find_their_labels() {
        let folder = tempfile::tempdir().unwrap();
        let images = encode(&[3, 2, 2], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255]);
        fs::write(
            folder.path().join("train-images-idx3-ubyte.gz"),
            zip(&images),
        )
        .unwrap();
        fs::write(
            folder.path().join("train-labels-idx1-ubyte"),
            encode(&[3], &[7, 0, 1]),
        )
        .unwrap();
        fs::write(folder.path().join("t10k-images.idx3-ubyte"), &images).unwrap();
        let path = in_folder(folder.path(), Split::Train).unwrap();
        let table = open_file(&path).unwrap().collect_table().unwrap();
        assert_eq!(
            table.layout.shape,
            Some(ImageShape {
                height: 2,
                width: 2,
                channels: 1
            })
        );
        assert_eq!(table.labels, Some(vec![7, 0, 1]));
        assert_eq!(
            (table.rows(), table.classes(), table.values[11]),
            (3, 8, 255.0)
        );
        let path = in_folder(folder.path(), Split::Test).unwrap();
        assert_eq!(
            open_file(&path).unwrap().collect_table().unwrap().labels,
            None
        );
    }

    #[test]
    fn other_types_have_the_largest_byte_first() {
        let mut file = vec![0, 0, 0x0d, 2, 0, 0, 0, 1, 0, 0, 0, 2];
        file.extend(1.5f32.to_be_bytes());
        file.extend(f32::NAN.to_be_bytes());
        let origin = Origin::Memory {
            name: "a.idx".into(),
            bytes: file.into(),
        };
        let table = open(&origin, None).unwrap().collect_table().unwrap();
        assert_eq!(
            (
                table.values[0],
                table.values[1].is_nan(),
                table.layout.shape
            ),
            (1.5, true, None)
        );
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(says(b""), "a.idx: expected 4 bytes of IDX header, got 0");
        assert_eq!(
            says(b"hello"),
            "a.idx: expected an IDX header (0, 0, a type from 8 to 14, dimensions), got bytes [68, 65, 6c, 6c]"
        );
        assert_eq!(
            says(&[0, 0, 8, 0]),
            "a.idx: expected an IDX header (0, 0, type, number of dimensions), got bytes [00, 00, 08, 00]"
        );
        assert_eq!(
            says(&[0, 0, 8, 2, 0]),
            "a.idx: expected 4 bytes of IDX dimensions, got 1"
        );
        assert_eq!(
            says(&encode(&[2, 3], &[1, 2])),
            "a.idx: expected 2×3 numbers of 1 bytes, as its header says, got a shorter file"
        );
        let huge = encode(&[u32::MAX; 4], &[]);
        assert!(says(&huge).ends_with("got a shorter file"));
        assert_eq!(
            says(&zip(&encode(&[2, 3], &[1, 2]))),
            "a.idx: expected 6 bytes of numbers, got 2"
        );
        assert_eq!(
            says(&encode(&[1, 2], &[1, 2, 3])),
            "a.idx: expected the file to end after 1 rows, got more"
        );
    }
}
