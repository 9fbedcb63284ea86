//! Files of numbers: arrays, images and sounds.

use crate::files::{file, write_or_remove};
use sumout_data::Result;
use sumout_data::formats::{idx as arrays, norb as matrices};
use sumout_data::layout::ReadOptions;

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
        [HUGE, &[0; 3000]].concat(),
        [HUGE, &[0; 1000]].concat(), // which cannot hold so many
    ]
}

/// The beginning of a PNG file of 4100×4100 pixels of one bit, which are too many.
const HUGE: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x10\x04\0\0\x10\x04\x01\0\0\0\0\x48\xa2\xfb\xd6";

/// An array as MNIST's are.
pub fn idx(bytes: &[u8]) {
    file("a.idx", bytes, &ReadOptions::default());
}

/// Bytes, whole numbers and floats; one is zipped.
pub fn idx_seeds() -> Vec<Vec<u8>> {
    let images = arrays::encode(&[3, 2, 2], &[7; 12]);
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

/// Images and what lies beside them: an IDX file and its labels, or a matrix as small NORB's are, its labels and what is
/// known of every image. The first byte chooses; each of the others begins after a word.
pub fn beside(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let (images, others) = split_at_word(bytes, b"labels");
    let (labels, angles) = others.map_or((None, None), |others| {
        let (labels, angles) = split_at_word(others, b"angles");
        (Some(labels), angles)
    });
    let [name, name_of_labels] = match choice % 2 {
        0 => ["images.idx", "labels.idx"],
        _ => ["b-dat.mat", "b-cat.mat"],
    };
    write_or_remove(name_of_labels, labels);
    file(name, images, &ReadOptions::default());
    if let Some(angles) = angles {
        let known = matrices::info(&write_or_remove("b-info.mat", Some(angles)));
        check_angles(known);
    }
}

fn check_angles(known: Result<Vec<[f32; 4]>>) {
    match known {
        Ok(known) => assert!(known.iter().flatten().all(|x| !x.is_infinite())),
        Err(error) => assert!(error.is_user_error() && !error.to_string().is_empty()),
    }
}

/// What stands before a word, and what stands after it if it is there.
fn split_at_word<'a>(bytes: &'a [u8], word: &[u8]) -> (&'a [u8], Option<&'a [u8]>) {
    let at = bytes.windows(word.len()).position(|part| part == word);
    at.map_or((bytes, None), |at| {
        (&bytes[..at], Some(&bytes[at + word.len()..]))
    })
}

/// Labels that fit, too many, too wide, and other numbers than classes.
pub fn beside_seeds() -> Vec<Vec<u8>> {
    let images = arrays::encode(&[2, 2, 2], &[7; 8]);
    let pairs = matrix(0x55, &[2, 2, 2, 2], &[7; 16]);
    let (two, four) = (arrays::encode(&[2], &[0, 1]), [4; 16]);
    let three = arrays::encode(&[3], &[0, 1, 1]);
    let angles = matrix(0x54, &[2, 4], &[3; 32]);
    let joined = |choice: u8, parts: [&[u8]; 3]| {
        let words: [&[u8]; 2] = [b"labels", b"angles"];
        [&[choice], parts[0], words[0], parts[1], words[1], parts[2]].concat()
    };
    vec![
        joined(0, [&images, &two, &[]]),
        joined(0, [&images, &three, &[]]),
        [&[0], &images[..]].concat(),
        joined(
            1,
            [
                &pairs,
                &matrix(0x54, &[2], &[4, 0, 0, 0, 0, 0, 0, 0]),
                &angles,
            ],
        ),
        joined(1, [&pairs, &matrix(0x54, &[2], &[9; 8]), &pairs]),
        joined(1, [&pairs, &matrix(0x54, &[2, 2], &four), &angles]),
        joined(
            1,
            [
                &pairs,
                &matrix(0x51, &[2], &[0, 0, 0xc0, 0x7f, 0, 0, 0, 0x3f]),
                &angles[..20],
            ],
        ),
    ]
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
    seeds.push(zipped(&wave(1, 8, &[128; 17_000], (1 << 24) + 1))); // too many, and such a file could hold them
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

/// These bytes in gzip, without compression and with a checksum that is wrong.
fn zipped(bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u16;
    let mut file = ZIPPED[..11].to_vec();
    file.extend([length, !length].map(u16::to_le_bytes).concat());
    file.extend(bytes);
    file.extend([0; 8]);
    file
}
