//! Random changes of bytes, as a fuzzer makes them, from a seed.

use sumout::random::{Purpose, Stream};

/// What parsers look for: numbers at the edge of their types, and signs with a meaning.
const WORDS: [&[u8]; 32] = [
    b"\0",
    b"\n",
    b"\r\n",
    b"\r",
    b",",
    b";",
    b"\"",
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"-",
    b"NaN",
    b"NA",
    b"null",
    b"inf",
    b"1e999",
    b"-1e39",
    b"1e-320",
    b"9007199254740993",
    b"18446744073709551616",
    b"-0",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\0\0\0\x80",
    b"\0\0\0\0\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xef\xbb\xbf",
    b"\x1f\x8b",
];

/// Longest stretch that is removed, doubled or copied.
const STRETCH: usize = 64;

/// Longest result.
const LONGEST: usize = 1 << 16;

/// One of the seeds with up to eight changes. The same number gives the same bytes.
pub fn mutated(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let random = &mut Stream::new(number, Purpose::Sampling, 0, 0);
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        change(&mut bytes, seeds, random);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Stream) {
    let at = random.below(bytes.len() + 1);
    let end = bytes.len().min(at + 1 + random.below(STRETCH));
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        2 => drop(bytes.drain(at..end)),
        3 => {
            let stretch = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, stretch);
        }
        4 => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied())),
        5 => {
            let word = WORDS[random.below(WORDS.len())];
            let end = bytes.len().min(at + word.len());
            bytes.splice(at..end, word.iter().copied());
        }
        6 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
        _ => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            let stretch = &other[from..other.len().min(from + STRETCH)];
            bytes.splice(at..end, stretch.iter().copied());
        }
    }
}
