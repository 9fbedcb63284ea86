//! Sound: RIFF WAVE files with PCM samples of 8, 16, 24 or 32 bits or floats, and NIST SPHERE files with PCM samples, as
//! the LDC ships TIMIT. What a file is, its first bytes say: both are often called `.wav`.
//!
//! Whole numbers become numbers from −1 to 1, whatever their bits. Floats stay as they are; NaN is missing.

use crate::error::{At, Error, ErrorKind, Place, Result};
use crate::files::source::{ByteReader, Origin};
use std::path::Path;

/// A model of a longer row than this would not fit into memory; a small file may claim one.
const MAX_SAMPLES: u64 = 1 << 24;

/// How a sample is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    /// 8 bits, of which 128 is silence.
    Unsigned,
    /// So many bytes, with a sign.
    Signed(usize),
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

impl Sample {
    fn bytes(self) -> usize {
        match self {
            Self::Unsigned => 1,
            Self::Signed(bytes) => bytes,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The number in its bytes, of which the smallest comes first.
    fn value(self, bytes: &[u8]) -> f32 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        match self {
            Self::Unsigned => (word as f32 - 128.0) / 128.0,
            Self::Signed(bytes) => {
                let unused = 64 - 8 * bytes as u32;
                let signed = (word << unused) as i64 >> unused; // its sign fills the upper bits
                (signed as f64 / (1u64 << (8 * bytes - 1)) as f64) as f32
            }
            Self::F32 => f32::from_bits(word as u32),
            Self::F64 => f64::from_bits(word) as f32,
        }
    }
}

/// What a file's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoundFormat {
    /// Steps in a second.
    pub rate: u32,
    /// Samples in a step.
    pub channels: usize,
    /// Steps of the whole file.
    pub steps: usize,
    sample: Sample,
    big_endian: bool,
}

/// A file of sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// What its header says.
    pub format: SoundFormat,
    /// (steps, channels); NaN is missing.
    pub samples: Vec<f32>,
}

/// True if a file that begins so is one of these.
pub fn begins(bytes: &[u8]) -> bool {
    let is_wave = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE");
    is_wave || bytes.starts_with(SPHERE)
}

/// Reads the header alone.
pub fn read_format(path: &Path) -> Result<SoundFormat> {
    let mut input = Origin::File(path.to_owned()).open()?;
    format_of(&mut input)
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Sound> {
    let mut input = Origin::File(path.to_owned()).open()?;
    let format = format_of(&mut input)?;
    let (mut bytes, size) = (Vec::new(), format.sample.bytes());
    let count = format.steps * format.channels;
    input.fill(&mut bytes, count * size, "samples")?;
    if format.big_endian {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    let values = bytes.chunks_exact(size);
    let samples: Vec<f32> = values.map(|bytes| format.sample.value(bytes)).collect();
    if let Some(at) = samples.iter().position(|sample| sample.is_infinite()) {
        let expected = "finite samples, or NaN for missing";
        let error = Error::expected(ErrorKind::NotFinite, expected, samples[at]);
        let at = At::Row((at / format.channels) as u64 + 1);
        let file = &input.name;
        return Err(error.at(Place { file, at }));
    }
    Ok(Sound { format, samples })
}

/// Reads as far as the first sample.
fn format_of(input: &mut ByteReader) -> Result<SoundFormat> {
    let start: [u8; 4] = input.array("the header of a sound")?;
    let format = match &start {
        b"RIFF" => wave(input)?,
        b"NIST" => sphere(input)?,
        other => {
            let expected = "a WAV file (RIFF) or a NIST SPHERE file";
            let got = format!("bytes {other:02x?}");
            return Err(Error::expected(ErrorKind::Damaged, expected, got).in_file(&input.name));
        }
    };
    if format.steps == 0 || format.channels == 0 {
        let error = Error::expected(ErrorKind::Empty, "at least one sample", "none");
        return Err(error.in_file(&input.name));
    }
    Ok(format)
}

/// How many steps fit into the bytes of samples that a header promises, if the file can hold them.
fn steps_in(input: &ByteReader, promised: u64, sample: Sample, channels: usize) -> Result<usize> {
    let step = (sample.bytes() * channels.max(1)) as u64;
    if promised > input.justified {
        let expected = format!("{promised} bytes of samples, as its header says");
        let error = Error::expected(ErrorKind::Damaged, expected, "a shorter file");
        return Err(error.in_file(&input.name));
    }
    if promised / sample.bytes() as u64 > MAX_SAMPLES {
        let expected = format!("at most {MAX_SAMPLES} samples");
        let error = Error::expected(ErrorKind::Damaged, expected, promised / step);
        return Err(error.in_file(&input.name));
    }
    Ok((promised / step) as usize)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The chunks of a WAV file up to its samples. Other chunks, such as names and cues, are passed over.
fn wave(input: &mut ByteReader) -> Result<SoundFormat> {
    let head: [u8; 8] = input.array("WAV header")?; // the length of all, which says nothing new, and WAVE
    if &head[4..] != b"WAVE" {
        let got = format!("bytes {:02x?}", &head[4..]);
        return Err(Error::expected(ErrorKind::Damaged, "WAVE", got).in_file(&input.name));
    }
    let mut found = None;
    loop {
        let chunk: [u8; 8] = input.array("a chunk of a WAV file")?;
        let (kind, [.., a, b, c, d]) = (&chunk[..4], chunk);
        let size = u32::from_le_bytes([a, b, c, d]);
        match (kind, found) {
            (b"fmt ", _) => found = Some(wave_format(input, size)?),
            (b"data", Some(format)) => return with_steps(input, format, size),
            _ => input.skip(
                u64::from(size) + u64::from(size % 2),
                "a chunk of a WAV file",
            )?,
        }
    }
}

/// The chunk that says how samples are stored.
fn wave_format(input: &mut ByteReader, size: u32) -> Result<SoundFormat> {
    const EXTENSIBLE: u16 = 0xfffe;
    if !(16..=1024).contains(&size) {
        let error = Error::expected(ErrorKind::Damaged, "a format of 16 to 1024 bytes", size);
        return Err(error.in_file(&input.name));
    }
    let mut bytes = Vec::new();
    input.fill(&mut bytes, (size + size % 2) as usize, "WAV format")?;
    let code = match u16_at(&bytes, 0) {
        EXTENSIBLE if size >= 26 => u16_at(&bytes, 24),
        code => code,
    };
    let bits = u16_at(&bytes, 14);
    let sample = match (code, bits) {
        (1, 8) => Sample::Unsigned,
        (1, 16 | 24 | 32) => Sample::Signed(usize::from(bits / 8)),
        (3, 32) => Sample::F32,
        (3, 64) => Sample::F64,
        _ => {
            let expected = "PCM samples of 8, 16, 24 or 32 bits, or floats of 32 or 64";
            let got = format!("format {code} with {bits} bits");
            return Err(Error::expected(ErrorKind::WrongType, expected, got).in_file(&input.name));
        }
    };
    Ok(SoundFormat {
        rate: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        channels: usize::from(u16_at(&bytes, 2)),
        steps: 0,
        sample,
        big_endian: false,
    })
}

/// The same with the number of steps in this many bytes.
fn with_steps(input: &ByteReader, format: SoundFormat, size: u32) -> Result<SoundFormat> {
    let promised = match size {
        u32::MAX => input.justified, // written to a pipe, before the length was known
        size => u64::from(size),
    };
    let steps = steps_in(input, promised, format.sample, format.channels)?;
    Ok(SoundFormat { steps, ..format })
}

/// What a SPHERE file begins with, and the length of this and of the next line.
const SPHERE: &[u8] = b"NIST_1A\n";
const SPHERE_START: usize = 16;

/// The header of a SPHERE file: lines of a name, a type and a value.
fn sphere(input: &mut ByteReader) -> Result<SoundFormat> {
    const LONGEST: usize = 1 << 16;
    let mut text = Vec::new();
    input.fill(&mut text, SPHERE_START - 4, "SPHERE header")?;
    let length = String::from_utf8_lossy(&text[4..]).trim().parse().ok();
    let Some(length) = length.filter(|length| (SPHERE_START..=LONGEST).contains(length)) else {
        let expected = format!("a SPHERE header of {SPHERE_START} to {LONGEST} bytes");
        let got = String::from_utf8_lossy(&text[4..]).trim().to_owned();
        return Err(Error::unexpected(ErrorKind::Damaged, expected, got).in_file(&input.name));
    };
    input.fill(&mut text, length - SPHERE_START, "SPHERE header")?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let sphere = SphereHeader {
        text: &text,
        file: &input.name,
    };
    let (sample, big_endian) = sphere.sample()?;
    let number = |name, usual| sphere.number(name, usual);
    let channels = number("channel_count", Some(1))? as usize;
    let count = number("sample_count", None)?;
    let step = (sample.bytes() * channels) as u64;
    let steps = steps_in(input, count.saturating_mul(step), sample, channels)?;
    Ok(SoundFormat {
        rate: number("sample_rate", None)? as u32,
        channels,
        steps,
        sample,
        big_endian,
    })
}

/// The lines of a header.
struct SphereHeader<'a> {
    text: &'a str,
    file: &'a str,
}

impl SphereHeader<'_> {
    /// The value of a name: what follows it and its type.
    fn value(&self, name: &str) -> Option<&str> {
        let lines = self
            .text
            .lines()
            .take_while(|line| line.trim() != "end_head");
        let mut words = lines.map(|line| line.trim().splitn(3, ' '));
        let mut line = words.find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
        line.nth(1)
    }

    fn number(&self, name: &str, usual: Option<u64>) -> Result<u64> {
        const LARGEST: u64 = u32::MAX as u64;
        let value = self.value(name);
        let parsed = value.map_or(usual, |value| value.trim().parse().ok());
        let wrong = || {
            let expected = format!("a whole number as {name}");
            let got = value.unwrap_or("none");
            Error::unexpected(ErrorKind::Damaged, expected, got).in_file(self.file)
        };
        parsed.filter(|n| *n <= LARGEST).ok_or_else(wrong)
    }

    /// How samples are stored, and whether the largest byte comes first.
    fn sample(&self) -> Result<(Sample, bool)> {
        let coding = self.value("sample_coding").unwrap_or("pcm");
        if coding != "pcm" {
            let expected = "uncompressed PCM samples, as w_decode and sph2pipe write them";
            let error = Error::unexpected(ErrorKind::WrongType, expected, coding);
            return Err(error.in_file(self.file));
        }
        let bytes = self.number("sample_n_bytes", Some(2))?;
        if !(2..=4).contains(&bytes) {
            let expected = "samples of 2 to 4 bytes";
            let error = Error::expected(ErrorKind::WrongType, expected, bytes);
            return Err(error.in_file(self.file));
        }
        let order = self.value("sample_byte_format").unwrap_or("01");
        Ok((Sample::Signed(bytes as usize), order.starts_with('1')))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A WAV file with a chunk that is to be passed over.
    pub(crate) fn wav(code: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
        file.extend(code.to_le_bytes());
        file.extend(channels.to_le_bytes());
        file.extend(16_000u32.to_le_bytes());
        let step = u32::from(channels * bits / 8);
        file.extend((16_000 * step).to_le_bytes());
        file.extend((step as u16).to_le_bytes());
        file.extend(bits.to_le_bytes());
        file.extend(b"LIST\x03\0\0\0abc\0data");
        file.extend((data.len() as u32).to_le_bytes());
        file.extend(data);
        file
    }

    pub(crate) fn sphere_file(lines: &str, data: &[u8]) -> Vec<u8> {
        let mut file = format!("NIST_1A\n   1024\n{lines}end_head\n").into_bytes();
        file.resize(1024, b' ');
        file.extend(data);
        file
    }

    fn read_bytes(bytes: &[u8]) -> Result<Sound, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        fs::write(&path, bytes).unwrap();
        let place = folder.path().display().to_string();
        read(&path).map_err(|error| {
            assert!(error.is_user_error(), "{error}");
            error.to_string().replace(&place, "~")
        })
    }

    fn samples(bytes: &[u8]) -> Vec<f32> {
        read_bytes(bytes).unwrap().samples
    }

    #[test]
    fn all_depths_run_from_minus_one_to_one() {
        assert_eq!(samples(&wav(1, 1, 8, &[0, 128, 192])), [-1.0, 0.0, 0.5]);
        let words = [i16::MIN, 0, 1 << 14].map(i16::to_le_bytes).concat();
        assert_eq!(samples(&wav(1, 1, 16, &words)), [-1.0, 0.0, 0.5]);
        assert_eq!(
            samples(&wav(1, 1, 24, &[0, 0, 0x80, 0, 0, 0x40, 0xff, 0xff, 0xff])),
            [-1.0, 0.5, -1.0 / 8_388_608.0]
        );
        let words = [i32::MIN, 1 << 30].map(i32::to_le_bytes).concat();
        assert_eq!(samples(&wav(1, 1, 32, &words)), [-1.0, 0.5]);
        let floats = [0.25f32, f32::NAN].map(f32::to_le_bytes).concat();
        let read = samples(&wav(3, 1, 32, &floats));
        assert!(read[0] == 0.25 && read[1].is_nan());
        assert_eq!(samples(&wav(3, 1, 64, &(-1.5f64).to_le_bytes())), [-1.5]);
    }

    #[test]
    fn channels_are_side_by_side() {
        let sound = read_bytes(&wav(1, 2, 8, &[128, 0, 192, 64])).unwrap();
        assert_eq!(
            (sound.format.steps, sound.format.channels, sound.format.rate),
            (2, 2, 16_000)
        );
        assert_eq!(sound.samples, [0.0, -1.0, 0.5, -0.5]);
    }

    #[test]
    fn a_format_with_an_extension_and_a_length_that_was_not_known() {
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x28\0\0\0\xfe\xff\x01\0".to_vec();
        file.extend([0x80, 0x3e, 0, 0, 0, 0x7d, 0, 0, 2, 0, 16, 0, 22, 0, 16, 0]);
        file.extend([4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 16, 0, 128, 0, 0, 170]);
        file.extend([0, 56, 155, 113]);
        file.extend(b"data\xff\xff\xff\xff\0\x40\0\xc0");
        assert_eq!(samples(&file), [0.5, -0.5]);
    }

    /// The same samples in both orders of bytes.
    #[test]
    fn sphere_as_the_ldc_ships_it() {
        let lines =
            "channel_count -i 1\nsample_count -i 2\nsample_rate -i 16000\nsample_n_bytes -i 2\n";
        let little = format!("{lines}sample_byte_format -s2 01\nsample_coding -s3 pcm\n");
        let big = format!("{lines}sample_byte_format -s2 10\n");
        let data = [0, 0x40, 0xff, 0xff];
        let sound = read_bytes(&sphere_file(&little, &data)).unwrap();
        assert_eq!(sound.samples, [0.5, -1.0 / 32768.0]);
        assert_eq!((sound.format.rate, sound.format.steps), (16_000, 2));
        let data = [0x40, 0, 0xff, 0xff];
        assert_eq!(
            read_bytes(&sphere_file(&big, &data)).unwrap().samples,
            sound.samples
        );
    }

    #[test]
    fn nonsense_is_named() {
        let says = |bytes: &[u8]| read_bytes(bytes).unwrap_err();
        assert_eq!(
            says(b"abc"),
            "~/a.wav: expected 4 bytes of the header of a sound, got 3"
        );
        assert_eq!(
            says(b"ID3\x04...."),
            "~/a.wav: expected a WAV file (RIFF) or a NIST SPHERE file, got bytes [49, 44, 33, 04]"
        );
        assert_eq!(
            says(&wav(7, 1, 8, &[0])),
            "~/a.wav: expected PCM samples of 8, 16, 24 or 32 bits, or floats of 32 or 64, got format 7 with 8 bits"
        );
        assert_eq!(
            says(&wav(1, 1, 16, &[])),
            "~/a.wav: expected at least one sample, got none"
        );
        let mut short = wav(1, 1, 16, &[0; 100]);
        short.truncate(120);
        assert_eq!(
            says(&short),
            "~/a.wav: expected 100 bytes of samples, as its header says, got a shorter file"
        );
        let infinite = wav(3, 1, 32, &f32::INFINITY.to_le_bytes());
        assert_eq!(
            says(&infinite),
            "~/a.wav row 1: expected finite samples, or NaN for missing, got inf"
        );
        let shorten = "sample_count -i 2\nsample_rate -i 16000\nsample_coding -s26 pcm,embedded-shorten-v2.00\n";
        assert_eq!(
            says(&sphere_file(shorten, &[0; 4])),
            "~/a.wav: expected uncompressed PCM samples, as w_decode and sph2pipe write them, \
             got 'pcm,embedded-shorten-v2.00'"
        );
        assert_eq!(
            says(&sphere_file("sample_rate -i 16000\n", &[0; 4])),
            "~/a.wav: expected a whole number as sample_count, got 'none'"
        );
        let many = "sample_count -i 4294967295\nsample_rate -i 16000\n";
        assert_eq!(
            says(&sphere_file(many, &[0; 4])),
            "~/a.wav: expected 8589934590 bytes of samples, as its header says, got a shorter file"
        );
        assert_eq!(
            says(b"NIST_1A\n   what\n"),
            "~/a.wav: expected a SPHERE header of 16 to 65536 bytes, got 'what'"
        );
    }
}
