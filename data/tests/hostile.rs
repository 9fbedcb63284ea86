//! Damaged and hostile files: no reader panics, takes more memory than the file justifies, or calls it anything but a
//! user's error. And long files: memory does not grow with rows.

use flate2::{Compression, write::GzEncoder};
use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use sumout_data::formats::idx;
use sumout_data::layout::{Keep, Layout, ReadOptions, RowStream, Table};
use sumout_data::{Result, open};

/// The system's memory, with a note of how much is taken, the most ever taken, and the largest piece.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches no memory it hands out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        LARGEST.fetch_max(memory.size(), Relaxed);
        MOST.fetch_max(
            TAKEN.fetch_add(memory.size(), Relaxed) + memory.size(),
            Relaxed,
        );
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, place: *mut u8, memory: Memory) {
        TAKEN.fetch_sub(memory.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`, and `place` came from the system.
        unsafe { System.dealloc(place, memory) }
    }
}

#[global_allocator]
static MEMORY: Counting = Counting;

/// Tests of this file take turns, so that each counts its own memory.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn data(name: &str) -> Vec<u8> {
    fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name),
    )
    .unwrap()
}

fn zip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn norb() -> Vec<u8> {
    let header: [u32; 6] = [0x1e3d_4c55, 4, 2, 2, 2, 2];
    header
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .chain(0..16)
        .collect()
}

fn wav() -> Vec<u8> {
    let mut file = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    file.extend(b"\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data\x08\0\0\0");
    file.extend([0, 0, 0, 0x40, 0, 0x80, 0xff, 0x7f]);
    file
}

fn sphere() -> Vec<u8> {
    let mut file = b"NIST_1A\n    128\nsample_count -i 4\nsample_rate -i 16000\n".to_vec();
    file.extend(b"sample_coding -s3 pcm\nend_head\n");
    file.resize(128, b' ');
    file.extend([0, 0, 0, 0x40, 0, 0x80, 0xff, 0x7f]);
    file
}

/// A file of every format.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let images = idx::encode(&[3, 2, 2], &[7; 12]);
    vec![
        ("a.idx", images.clone()),
        ("a.idx.gz", zip(&images)),
        ("a-dat.mat", norb()),
        ("a.wav", wav()),
        ("b.wav", sphere()),
        ("hole.npy", data("hole.npy")),
        ("fortran.npy", data("fortran.npy")),
        ("fortran.npy.gz", zip(&data("fortran.npy"))),
        ("halves.npz", data("halves.npz")),
        ("grey.png", data("grey.png")),
        ("palette.png", data("palette.png")),
        ("rgb_holes.png", data("rgb_holes.png")),
        ("a.csv", b"a,b,\"c d\"\n1,,x\n2.5,NA,\"y\"\"z\"\n".to_vec()),
        (
            "a.jsonl",
            b"{\"a\":1,\"b\":null,\"c\":\"x\"}\n{\"a\":2.5}\n".to_vec(),
        ),
        ("list.jsonl", b"[1,2]\n[3,null]\n".to_vec()),
        ("unnamed", images),
    ]
}

/// Opens a file as it is, or for a model.
fn opened(path: &Path, options: &ReadOptions, model: Option<&Layout>) -> Result<RowStream> {
    let data = open(path.to_str().unwrap(), options)?;
    match model {
        Some(model) => data.fitted_to(model),
        None => data.rows(),
    }
}

fn table_for(path: &Path, model: Option<&Layout>, target: Option<&str>) -> Result<Table> {
    let options = ReadOptions {
        target: target.map(str::to_owned),
        ..ReadOptions::default()
    };
    opened(path, &options, model)?.collect_table()
}

/// Reads the file in every way; anything but numbers or a user's error fails.
fn read(path: &Path) {
    let input = path.display();
    let model = Layout::unnamed(4, None);
    for (model, target) in [(None, None), (Some(&model), Some("c"))] {
        let read = catch_unwind(AssertUnwindSafe(|| table_for(path, model, target)));
        match read {
            Ok(Ok(table)) => assert!(table.values.iter().all(|x| !x.is_infinite())),
            Ok(Err(error)) => assert!(error.is_user_error(), "{error}"),
            Err(_) => panic!("a reader panicked on {input}: {:?}", fs::read(path)),
        }
    }
}

#[test]
fn damaged_files_are_user_errors() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    for (name, sound) in files() {
        let path = folder.path().join(name);
        LARGEST.store(0, Relaxed);
        let read_changed = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read(&path);
        };
        read_changed(&sound);
        (0..sound.len()).for_each(|cut| read_changed(&sound[..cut]));
        for at in 0..sound.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] ^= change;
                read_changed(&bytes);
            }
            let mut bytes = sound.clone();
            bytes[at..sound.len().min(at + 4)].fill(0xff);
            read_changed(&bytes);
            bytes[at..sound.len().min(at + 4)].fill(0);
            read_changed(&bytes);
        }
        let largest = LARGEST.load(Relaxed);
        assert!(
            largest < 4 << 20,
            "{name} of {} bytes made us take {largest}",
            sound.len()
        );
    }
}

#[test]
fn noise_is_a_user_error() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    for (name, sound) in files() {
        let path = folder.path().join(name);
        for round in 0..40 {
            // All noise, or noise after a sound beginning.
            let kept = sound.len() * (round % 4) / 4;
            let bytes: Vec<u8> = sound[..kept]
                .iter()
                .copied()
                .chain((0..300).map(|_| random()))
                .collect();
            fs::write(&path, bytes).unwrap();
            read(&path);
        }
    }
}

/// The most memory taken while all rows pass, beyond what was taken before.
fn passing(path: &Path, keep: Keep, model: Option<&Layout>, rows: usize) -> usize {
    let before = TAKEN.load(Relaxed);
    MOST.store(before, Relaxed);
    let options = ReadOptions {
        keep,
        ..ReadOptions::default()
    };
    let opened = opened(path, &options, model).unwrap();
    let width = opened.layout.width;
    let seen: usize = opened
        .map(|chunk| chunk.unwrap().values.len() / width)
        .sum();
    assert_eq!(seen, rows);
    MOST.load(Relaxed) - before
}

#[test]
fn memory_does_not_grow_with_rows() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let npy = |name: &str, fortran: &str, rows: usize| {
        let path = folder.path().join(name);
        let header =
            format!("{{'descr': '|u1', 'fortran_order': {fortran}, 'shape': ({rows}, 256), }}\n");
        let mut out = BufWriter::new(fs::File::create(&path).unwrap());
        out.write_all(b"\x93NUMPY\x01\x00").unwrap();
        out.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        out.write_all(header.as_bytes()).unwrap();
        (0..rows).for_each(|_| out.write_all(&[1; 256]).unwrap());
        path
    };
    let rows = 60_000; // 15 MB, 61 MB as f32
    for (name, fortran) in [("c.npy", "False"), ("f.npy", "True")] {
        let taken = passing(&npy(name, fortran, rows), Keep::Nothing, None, rows);
        assert!(taken < 24 << 20, "{name}: {taken}");
    }
    let path = folder.path().join("a.idx.gz");
    fs::write(
        &path,
        zip(&idx::encode(&[30_000, 16, 16], &vec![3; 30_000 * 256])),
    )
    .unwrap();
    let taken = passing(&path, Keep::Nothing, None, 30_000);
    assert!(taken < 24 << 20, "idx: {taken}");
    let rows = 40_000; // of 20 cells: 3.2 MB as f32
    let names: Vec<String> = (0..20).map(|i| format!("n{i}")).collect();
    let header = format!("{}\n", names.join(","));
    let line = format!("word{}\n", ",1.5".repeat(19));
    let object = format!(
        "{{\"n0\":\"word\"{}}}\n",
        names[1..]
            .iter()
            .map(|name| format!(",\"{name}\":1.5"))
            .collect::<String>()
    );
    for (name, header, line) in [("a.csv", &*header, line), ("a.jsonl", "", object)] {
        let path = folder.path().join(name);
        let mut out = BufWriter::new(fs::File::create(&path).unwrap());
        out.write_all(header.as_bytes()).unwrap();
        (0..rows).for_each(|_| out.write_all(line.as_bytes()).unwrap());
        drop(out);
        let first = passing(&path, Keep::Nothing, None, rows);
        let layout = opened(&path, &ReadOptions::default(), None).unwrap().layout;
        let again = passing(&path, Keep::Nothing, Some(&layout), rows);
        assert!(first.max(again) < 2 << 20, "{name}: {first} {again}");
        let kept = passing(&path, Keep::All, Some(&layout), rows); // 40 MB if all were held
        assert!(kept < 10 << 20, "{name}: {kept}");
    }
}

/// A zipped file of `start`, then a filling of so many MiB, then `end`, and so on.
fn inflated(path: &Path, parts: &[(&str, u8, u64)]) {
    let mut out = GzEncoder::new(fs::File::create(path).unwrap(), Compression::fast());
    for &(start, filling, size) in parts {
        out.write_all(start.as_bytes()).unwrap();
        io::copy(&mut io::repeat(filling).take(size << 20), &mut out).unwrap();
    }
    out.finish().unwrap();
}

#[test]
fn a_line_that_never_ends_is_a_user_error() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let says = |name: &str, parts: &[(&str, u8, u64)]| {
        let path = folder.path().join(name);
        inflated(&path, parts);
        let before = TAKEN.load(Relaxed);
        MOST.store(before, Relaxed);
        let error = table_for(&path, Some(&Layout::unnamed(2, None)), None).unwrap_err();
        let taken = MOST.load(Relaxed) - before;
        assert!(taken < 300 << 20, "{name}: {taken}");
        assert!(error.is_user_error());
        error
            .to_string()
            .replace(&format!("{}/", folder.path().display()), "")
    };
    let long = "expected rows of at most 64 MiB, got more";
    assert_eq!(
        says("a.csv.gz", &[("", b'y', 500)]),
        format!("a.csv.gz line 1: {long}")
    );
    assert_eq!(
        says("b.csv.gz", &[("a,b\n1,2\n\n3,", b'4', 500)]),
        format!("b.csv.gz line 4: {long}")
    );
    let open = format!("c.csv.gz line 2: {long}; is a quote left open?");
    assert_eq!(says("c.csv.gz", &[("a,b\n1,\"2\n", b'3', 500)]), open);
    assert_eq!(
        says("d.jsonl.gz", &[("[1, 2]\n[", b' ', 500)]),
        format!("d.jsonl.gz line 2: {long}")
    );
}

#[test]
fn rows_may_be_wide() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in [
        (
            "a.csv.gz",
            [
                ("a,b\n1,2.", b'0', 60),
                ("\n3,4.", b'0', 60),
                ("\n", b'\n', 0),
            ],
        ),
        (
            "a.jsonl.gz",
            [("[1,", b' ', 60), ("2]\n[3,", b' ', 60), ("4]\n", b'\n', 0)],
        ),
    ] {
        let path = folder.path().join(name);
        inflated(&path, &rows);
        let table = table_for(&path, Some(&Layout::unnamed(2, None)), None).unwrap();
        assert_eq!(table.values, [1.0, 2.0, 3.0, 4.0], "{name}");
    }
}
