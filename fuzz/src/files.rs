//! Data files. Each is read to learn from and for a model; what comes out are numbers, or an error of the user.

use std::cell::LazyCell;
use std::fs;
use std::path::Path;
use sumout_data::encoding::Encoding;
use sumout_data::layout::{ImageShape, Keep, Layout, ReadOptions, RowStream, Table};
use sumout_data::model_files::layout_of;
use sumout_data::notation::Notation;
use sumout_data::{Result, open};
use tempfile::TempDir;

thread_local! {
    static FOLDER: LazyCell<TempDir> = LazyCell::new(|| folder().expect("a folder"));
}

/// In memory where there is such a place: a disk makes every second run wait for the one before.
fn folder() -> std::io::Result<TempDir> {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new())
}

/// 1.065,00
const EUROPEAN: Notation = Notation {
    decimal: ',',
    thousands: Some('.'),
};

/// A model of images of 2×2.
fn image_layout() -> Layout {
    let shape = ImageShape {
        height: 2,
        width: 2,
        channels: 1,
    };
    Layout::unnamed(4, Some(shape))
}

fn check(read: Result<RowStream>) -> Option<Table> {
    match read.and_then(RowStream::collect_table) {
        Ok(table) => {
            assert!(table.values.iter().all(|x| !x.is_infinite()));
            Some(table)
        }
        Err(error) => {
            assert!(error.is_user_error() && !error.to_string().is_empty());
            None
        }
    }
}

thread_local! {
    /// Of numbers, of images and of named columns.
    static MODELS: LazyCell<[Layout; 3]> = LazyCell::new(|| {
        [Layout::unnamed(4, None), image_layout(), layout_of(&crate::models::pets())]
    });
}

/// Reads a file to learn from it, for one of three models, and once more: the same bytes are the same numbers.
fn read(path: &Path, model: usize, options: &ReadOptions) {
    let name = path.to_str().expect("a name");
    let opened = || open(name, options);
    let learned = check(opened().and_then(|data| data.rows()));
    MODELS.with(|models| check(opened().and_then(|data| data.fitted_to(&models[model]))));
    if let Some(table) = learned {
        let plain = ReadOptions {
            keep: Keep::Nothing, // what is kept may be an error of its own
            ..options.clone()
        };
        let again = check(open(name, &plain).and_then(|data| data.fitted_to(&table.layout)));
        let again = again.expect("what was learned from can be read for the model of it");
        let bits =
            |table: &Table| -> Vec<u32> { table.values.iter().map(|x| x.to_bits()).collect() };
        assert_eq!(bits(&again), bits(&table), "read twice");
    }
}

fn file(name: &str, bytes: &[u8], options: &ReadOptions) {
    let path = FOLDER.with(|folder| folder.path().join(name));
    fs::write(&path, bytes).expect("a file");
    read(&path, bytes.len() % 3, options);
}

/// The first byte chooses the options, the others are the file.
fn table(name: &str, bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let is = |bit: u8| choice >> bit & 1 == 1;
    let target = is(0).then(|| "c".to_owned());
    let options = ReadOptions {
        target,
        no_header: is(1),
        unseen_missing: is(2),
        notation: if is(3) { EUROPEAN } else { Notation::default() },
        na: if is(4) { vec!["x".into()] } else { vec![] },
        keep: if is(5) { Keep::All } else { Keep::Nothing },
        encoding: match (is(6), is(7)) {
            (true, _) => Encoding::Latin1,
            (_, true) => Encoding::Utf16,
            _ => Encoding::Unknown,
        },
        ..ReadOptions::default()
    };
    file(name, bytes, &options);
}

/// CSV.
pub fn csv(bytes: &[u8]) {
    table("a.csv", bytes);
}

/// Tables with quotes, holes, dates, other signs between cells and other encodings.
pub fn csv_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "\0a,b,\"c d\"\n1,,x\n2.5,NA,\"y\"\"z\"\n",
        "\x01a,b,c\n1,2020-01-31,u\n,2021-02-28T10:00:00,v\n3,,u\n",
        "\x02a;b;c\n1,5;2;3\n2,5;;4\n",
        "\x081.234,5;x\n-2,0;y\n",
        "\x04age,sex,coin,kind\n1.5,f,0,1\n,m,1,\n",
        "\x13\u{feff}a\tb\tc\r\n1e5\t0x1\t\"a\n b\"\r\n\r\n2\t\t\r\n",
        "\0a,b\n9007199254740993,1e38\n-1e-40,inf\n",
    ];
    let mut seeds: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    seeds.push(b"\0\xff\xfea\0,\0b\0\n\x001\0,\x002\0\n\0".to_vec());
    seeds.push(b"\0a,b\n\xe4,1\n\xfc,2\n".to_vec());
    seeds.push(b"\x40a,b\n\xe4,1\n\x80,2\n".to_vec());
    seeds.push(b"\x80a\0,\0b\0\n\x001\0,\x002\0\n\0".to_vec());
    seeds.push(b"\x20id,age,sex,coin,kind\n7,1.5,f,0,1\n8,,m,1,\n".to_vec());
    seeds
}

/// JSON lines.
pub fn json_lines(bytes: &[u8]) {
    table("a.jsonl", bytes);
}

/// Objects, lists, values of every kind.
pub fn json_lines_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "\0{\"a\":1,\"b\":null,\"c\":\"x\"}\n{\"a\":2.5}\n",
        "\x01{\"c\":\"u\",\"a\":-1e-3,\"b\":true}\n\n{\"c\":\"v\",\"a\":\"NA\",\"b\":false}\r\n",
        "\0[1,2]\n[3,null]\n",
        "\0{\"a\\u0041\":\"\\ud83d\\ude00\",\"b\":9007199254740993}\n",
        "\x04{\"age\":3,\"sex\":\"m\",\"coin\":1,\"kind\":2}",
        "\0{\"a\":\"2020-01-31\"}\r{\"a\":\"2020-02-01\"}",
        "\x20{\"id\":7,\"age\":3,\"sex\":\"m\",\"coin\":1,\"kind\":2}\n{\"age\":null,\"sex\":\"f\",\"more\":0}\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// An array of NumPy.
pub fn npy(bytes: &[u8]) {
    file("a.npy", bytes, &ReadOptions::default());
}

/// Arrays in both orders.
pub fn npy_seeds() -> Vec<Vec<u8>> {
    let hole = include_bytes!("../../data/tests/data/hole.npy").to_vec();
    let fortran = include_bytes!("../../data/tests/data/fortran.npy").to_vec();
    vec![
        hole,
        fortran,
        array(">i2", "(2, 2, 2)", &[1; 16]),
        array("<f8", "(2,)", &[0; 16]),
        array("|b1", "(1, 2, 2, 1)", &[1; 4]),
        array("<u8", "(1, 4)", &[255; 32]),
    ]
}

/// An array of version 2.
fn array(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x02\x00".to_vec();
    file.extend((header.len() as u32).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

/// Several arrays of NumPy.
pub fn npz(bytes: &[u8]) {
    file("a.npz", bytes, &ReadOptions::default());
}

/// Two halves with labels, stored and deflated, and as the end of a large archive says where they are.
pub fn npz_seeds() -> Vec<Vec<u8>> {
    let halves = include_bytes!("../../data/tests/data/halves.npz");
    vec![
        halves.to_vec(),
        large_archive(halves),
        include_bytes!("../../data/tests/data/types.npz").to_vec(),
    ]
}

/// The same archive with the end of a large one: where the list is, in 64 bits.
fn large_archive(small: &[u8]) -> Vec<u8> {
    let (entries, end) = small.split_at(small.len() - 22);
    let mut large = b"PK\x06\x06".to_vec();
    large.resize(40, 0);
    large.extend([&end[12..16], &[0; 4], &end[16..20], &[0; 4]].concat());
    large.extend(b"PK\x06\x07\0\0\0\0");
    large.extend((entries.len() as u64).to_le_bytes());
    large.extend([1, 0, 0, 0]);
    [entries, &large, &end[..12], &[255; 8], &end[20..]].concat()
}

/// An image.
pub fn png(bytes: &[u8]) {
    file("a.png", bytes, &ReadOptions::default());
}

/// Grey, a palette, colours with holes.
pub fn png_seeds() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../data/tests/data/bits.png").to_vec(),
        include_bytes!("../../data/tests/data/grey.png").to_vec(),
        include_bytes!("../../data/tests/data/grey16.png").to_vec(),
        include_bytes!("../../data/tests/data/palette.png").to_vec(),
        include_bytes!("../../data/tests/data/palette_cut.png").to_vec(), // the decoder panicked
        include_bytes!("../../data/tests/data/rgb_holes.png").to_vec(),
    ]
}

/// An array as MNIST's are.
pub fn idx(bytes: &[u8]) {
    file("a.idx", bytes, &ReadOptions::default());
}

/// Bytes, whole numbers and floats; one is zipped.
pub fn idx_seeds() -> Vec<Vec<u8>> {
    let images = sumout_data::formats::idx::encode(&[3, 2, 2], &[7; 12]);
    let mut floats = vec![0, 0, 0x0d, 2, 0, 0, 0, 1, 0, 0, 0, 4];
    floats.extend([0x7f, 0xc0, 0, 0].repeat(4));
    let mut words = vec![0, 0, 0x0c, 1, 0, 0, 0, 2];
    words.extend([1; 8]);
    vec![images, floats, words, ZIPPED.to_vec()]
}

/// An IDX file of four bytes in gzip, without compression.
const ZIPPED: &[u8] = &[
    0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1, 12, 0, 0xf3, 0xff, 0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3, 4,
];

/// A matrix as small NORB's are.
pub fn norb(bytes: &[u8]) {
    file("a-dat.mat", bytes, &ReadOptions::default());
}

/// Two pairs of images in bytes, and numbers of the other kinds.
pub fn norb_seeds() -> Vec<Vec<u8>> {
    vec![
        matrix(0x55, &[2, 2, 2, 2], &[7; 16]),
        matrix(0x51, &[1, 4], &[0; 16]),
        matrix(0x53, &[2, 2], &[0; 32]),
        matrix(0x54, &[4], &[1; 16]),
        matrix(0x56, &[1, 1, 2, 2], &[1; 8]),
    ]
}

/// A file of a kind of numbers, by its dimensions.
fn matrix(kind: u8, dims: &[u32], numbers: &[u8]) -> Vec<u8> {
    let magic = u32::from_le_bytes([kind, 0x4c, 0x3d, 0x1e]);
    let head = [magic, dims.len() as u32].into_iter();
    let words = head.chain(dims.iter().copied());
    let padding = std::iter::repeat_n(1, 3usize.saturating_sub(dims.len()));
    let header: Vec<u8> = words.chain(padding).flat_map(u32::to_le_bytes).collect();
    [&header, numbers].concat()
}

/// A sound.
pub fn sound(bytes: &[u8]) {
    file("a.wav", bytes, &ReadOptions::default());
}

/// WAV of every kind of sample, with other chunks and of unknown length, and SPHERE in both orders of bytes.
pub fn sound_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = [(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)]
        .map(|(code, bits)| wave(code, bits, &[0, 64, 128, 63].repeat(6), 24))
        .to_vec();
    seeds.push(wave(1, 8, &[9; 4], u32::MAX));
    let mut extensible = wave(0xfffe, 16, &[1; 8], 8);
    extensible[16] = 40; // bytes of its format; the code follows at the 24th
    let more = [22, 0, 16, 0, 4, 0, 0, 0, 1, 0].into_iter().chain([0; 14]);
    extensible.splice(36..36, more);
    seeds.push(extensible);
    for lines in [
        "sample_count -i 4\nsample_rate -i 16000\nsample_n_bytes -i 2\nsample_byte_format -s2 10",
        "sample_coding -s3 pcm\nchannel_count -i 2\nsample_count -i 1\nsample_rate -i 8000\nsample_n_bytes -i 4",
        "sample_coding -s4 ulaw\nsample_count -i 4\nsample_rate -i 8000",
    ] {
        let text = format!("NIST_1A\n    256\n{lines}\nend_head\n");
        seeds.push([format!("{text:256}").as_bytes(), &[1, 2, 3, 4, 5, 6, 7, 8]].concat());
    }
    seeds
}

/// A WAV file of one channel, with a chunk to be passed over, that claims so many bytes of samples.
fn wave(code: u16, bits: u16, samples: &[u8], claimed: u32) -> Vec<u8> {
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
    file.extend([code, 1].map(u16::to_le_bytes).concat());
    file.extend(
        [16_000, 16_000 * u32::from(bits / 8)]
            .map(u32::to_le_bytes)
            .concat(),
    );
    file.extend([bits / 8, bits].map(u16::to_le_bytes).concat());
    file.extend(b"LIST\x03\0\0\0abc\0data");
    file.extend(claimed.to_le_bytes());
    file.extend(samples);
    file
}

/// A file of Parquet.
#[cfg(feature = "parquet")]
pub fn parquet(bytes: &[u8]) {
    file("a.parquet", bytes, &ReadOptions::default());
}

/// A table of pyarrow.
#[cfg(feature = "parquet")]
pub fn parquet_seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../data/tests/data/table.parquet").to_vec()]
}
