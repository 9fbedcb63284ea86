//! Speech: windows of 256 ms of raw sound, and the phone at the centre of each (paper, section on speech).
//!
//! A folder, however deep, holds sounds of 16 kHz and beside each the times of its phones: `.phn` files as TIMIT has them,
//! or `.lab` files. There is one window for each phone. What lies beyond the ends of a sound is missing.
//!
//! - **TIMIT** as the LDC ships it has the folders TRAIN and TEST: one fold. A folder without these is divided by speaker
//!   into four folds; a speaker is a folder. The two sentences that all speakers read (SA1, SA2) are left out.
//! - **One speaker**: four folds of sentences.

use crate::inputs::examples::{Collection, Examples, checksum_of_numbers};
use crate::inputs::phones::folded;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use sumout_data::formats::sound;
use sumout_data::layout::ImageShape;

/// Samples in a second.
const RATE: u32 = 16_000;

/// Samples of a window.
pub const WINDOW: usize = 4096;

/// Folds of a folder that does not say what tests.
const FOLDS: usize = 4;

/// A phone with fewer windows than this cannot be learned, and is left out.
const FEWEST: usize = 8;

/// One phone in a sound.
struct Segment {
    start: usize,
    end: usize,
    phone: String,
}

/// A sound with its phones.
struct Utterance {
    path: PathBuf,
    phones: Vec<Segment>,
}

/// Reads a folder.
pub fn read(folder: &Path) -> Result<Collection> {
    let mut paths = Vec::new();
    find_sounds(folder, &mut paths)?;
    paths.sort();
    let mut utterances = Vec::new();
    for path in paths {
        if let Some(phones) = phones_beside(&path)? {
            utterances.push(Utterance { path, phones });
        }
    }
    ensure!(
        !utterances.is_empty(),
        "{}: expected sounds with .phn or .lab files beside them, got none",
        folder.display()
    );
    let folds = folds_of(&utterances, folder);
    let classes = classes_of(&utterances);
    let mut windows = Windows::default();
    for (utterance, fold) in utterances.iter().zip(folds) {
        windows.add(utterance, fold, &classes)?;
    }
    Ok(windows.collection(classes))
}

/// All sounds of a folder and the folders in it.
fn find_sounds(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let cannot_read = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot_read)? {
        let path = entry?.path();
        let ending = path.extension().unwrap_or_default();
        if path.is_dir() {
            find_sounds(&path, found)?;
        } else if ending.eq_ignore_ascii_case("wav") && !is_shared_sentence(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether it is one of the sentences that all speakers of TIMIT read.
fn is_shared_sentence(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default();
    ["sa1", "sa2"]
        .iter()
        .any(|name| stem.eq_ignore_ascii_case(name))
}

/// Reads the text of a file of phones; none where it is not one.
type Parse = fn(&str) -> Option<Vec<Segment>>;

/// The phones of a sound, if there is a file of them.
fn phones_beside(path: &Path) -> Result<Option<Vec<Segment>>> {
    let kinds: [(&str, Parse); 2] = [("phn", timit), ("lab", lab)];
    for (ending, parse) in kinds {
        for ending in [ending.to_owned(), ending.to_uppercase()] {
            let labels = path.with_extension(&ending);
            if labels.is_file() {
                let text = fs::read_to_string(&labels)?;
                let wrong = || format!("{}: expected times and phones", labels.display());
                return Ok(Some(parse(&text).with_context(wrong)?));
            }
        }
    }
    Ok(None)
}

/// Lines of first sample, one past the last, phone.
fn timit(text: &str) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let (start, end) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        if let Some(phone) = folded(words.next()?) {
            segments.push(Segment {
                start,
                end,
                phone: phone.to_owned(),
            });
        }
    }
    Some(segments)
}

/// After a line `#`: end in seconds, a number that means nothing here, phone.
fn lab(text: &str) -> Option<Vec<Segment>> {
    let (mut segments, mut start) = (Vec::new(), 0);
    let lines = text.lines().skip_while(|line| line.trim() != "#").skip(1);
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let seconds: f64 = words.next()?.parse().ok()?;
        let end = (seconds * f64::from(RATE)).round() as usize;
        segments.push(Segment {
            start,
            end,
            phone: words.nth(1)?.to_owned(),
        });
        start = end;
    }
    Some(segments)
}

/// The fold of each utterance; none where it always trains.
fn folds_of(utterances: &[Utterance], folder: &Path) -> Vec<Option<usize>> {
    let has_part = |path: &Path, wanted: &str| {
        let inside = path.strip_prefix(folder).unwrap_or(path);
        inside.iter().any(|part| part.eq_ignore_ascii_case(wanted))
    };
    if utterances.iter().any(|one| has_part(&one.path, "test")) {
        let fold = |one: &Utterance| has_part(&one.path, "test").then_some(0);
        return utterances.iter().map(fold).collect();
    }
    let speaker = |one: &Utterance| one.path.parent().map(Path::to_owned);
    let speakers: BTreeSet<_> = utterances.iter().map(speaker).collect();
    if speakers.len() < 2 * FOLDS {
        return (0..utterances.len()).map(|i| Some(i % FOLDS)).collect();
    }
    // Two speakers of a region, a woman and a man in the sample of TIMIT, come after each other.
    let number: BTreeMap<_, _> = speakers.into_iter().zip(0..).collect();
    let fold = |one: &Utterance| Some(number[&speaker(one)] / 2 % FOLDS);
    utterances.iter().map(fold).collect()
}

/// The phones that are frequent enough, by name.
fn classes_of(utterances: &[Utterance]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for segment in utterances.iter().flat_map(|one| &one.phones) {
        *counts.entry(&segment.phone).or_default() += 1;
    }
    let frequent = counts.into_iter().filter(|(_, count)| *count >= FEWEST);
    frequent.map(|(phone, _)| phone.to_owned()).collect()
}

/// Windows as they are cut.
#[derive(Default)]
struct Windows {
    values: Vec<f32>,
    labels: Vec<i64>,
    folds: Vec<Option<usize>>,
}

impl Windows {
    /// One window for each phone of an utterance.
    fn add(
        &mut self,
        utterance: &Utterance,
        fold: Option<usize>,
        classes: &[String],
    ) -> Result<()> {
        let sound = sound::read(&utterance.path)?;
        let (rate, channels) = (sound.format.rate, sound.format.channels);
        ensure!(
            rate == RATE && channels == 1,
            "{}: expected {RATE} Hz and one channel, got {rate} Hz and {channels}",
            utterance.path.display()
        );
        for segment in &utterance.phones {
            let class = classes.iter().position(|class| *class == segment.phone);
            if let Some(class) = class {
                self.cut(&sound.samples, (segment.start + segment.end) / 2);
                self.labels.push(class as i64);
                self.folds.push(fold);
            }
        }
        Ok(())
    }

    /// The window around a sample.
    fn cut(&mut self, samples: &[f32], centre: usize) {
        for step in 0..WINDOW {
            let at = (centre + step).checked_sub(WINDOW / 2);
            let sample = at.and_then(|at| samples.get(at));
            self.values.push(sample.copied().unwrap_or(f32::NAN));
        }
    }

    fn collection(self, classes: Vec<String>) -> Collection {
        let shape = ImageShape {
            height: 1,
            width: WINDOW,
            channels: 1,
        };
        let examples = Examples {
            shape,
            values: self.values,
            labels: self.labels,
        };
        Collection {
            checksum: checksum_of_numbers(&examples),
            folds: self.folds,
            classes,
            examples,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SPHERE file of samples as the LDC ships it.
    fn sphere(samples: &[i16]) -> Vec<u8> {
        let count = samples.len();
        let lines = "channel_count -i 1\nsample_rate -i 16000\nsample_n_bytes -i 2\nsample_byte_format -s2 01";
        let head = format!("NIST_1A\n   1024\n{lines}\nsample_count -i {count}\nend_head\n");
        let mut file = head.into_bytes();
        file.resize(1024, b' ');
        file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        file
    }

    /// An utterance of twenty phones of 100 samples, each sample of which is the number of its phone.
    fn write_utterance(folder: &Path, name: &str, endings: [&str; 2]) {
        fs::create_dir_all(folder).unwrap();
        let samples: Vec<i16> = (0..2000).map(|i| 256 * (i / 100)).collect();
        fs::write(
            folder.join(format!("{name}.{}", endings[0])),
            sphere(&samples),
        )
        .unwrap();
        let phone = |i: usize| ["h#", "ix", "q", "tcl"][i % 4];
        let line = |i: usize| format!("{} {} {}\n", 100 * i, 100 * (i + 1), phone(i));
        let lines: String = (0..20).map(line).collect();
        fs::write(folder.join(format!("{name}.{}", endings[1])), lines).unwrap();
    }

    #[test]
    fn a_folder_as_the_ldc_ships_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |place: &str| folder.path().join("TIMIT").join(place);
        let endings = ["WAV", "PHN"];
        write_utterance(&at("TRAIN/DR1/FAAA0"), "SX1", endings);
        write_utterance(&at("TRAIN/DR1/FAAA0"), "SA1", endings);
        write_utterance(&at("TEST/DR1/MBBB0"), "SI2", endings);
        let set = read(folder.path()).unwrap();
        assert_eq!(set.classes, ["ih", "sil"], "folded, and no glottal stop");
        assert_eq!(
            set.examples.len(),
            2 * 15,
            "the shared sentence is left out"
        );
        let data = set.for_seed(3);
        assert_eq!((data.train.len(), data.test.len()), (15, 15));
        assert_eq!(data.test.labels[..4], [1, 0, 1, 1]);
        let window = &data.test.values[WINDOW..2 * WINDOW];
        assert_eq!(
            window[WINDOW / 2],
            1.0 / 128.0,
            "the second phone is in the middle"
        );
        let seen = window.iter().filter(|x| !x.is_nan()).count();
        assert_eq!(seen, 2000, "all of the utterance, and beyond it nothing");
    }

    #[test]
    fn without_halves_speakers_are_divided() {
        let folder = tempfile::tempdir().unwrap();
        for speaker in 0..8 {
            let place = folder.path().join(format!("speaker-{speaker}"));
            write_utterance(&place, "sx1", ["wav", "phn"]);
        }
        let set = read(folder.path()).unwrap();
        assert_eq!(set.fold_count().get(), FOLDS);
        let of_speaker: Vec<_> = set.folds.iter().step_by(15).copied().collect();
        assert_eq!(of_speaker, [0, 0, 1, 1, 2, 2, 3, 3].map(Some));
    }

    #[test]
    fn times_of_a_lab_file_are_ends() {
        let text = "separator ;\nnfields 1\n#\n\t0.5 26\t_\n\t0.75 26\tO\n";
        let segments = lab(text).unwrap();
        let second = &segments[1];
        assert_eq!(
            (second.start, second.end, &*second.phone),
            (8000, 12000, "O")
        );
        assert!(timit("0 one h#").is_none());
    }
}
