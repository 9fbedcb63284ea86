//! Small files that claim to be large, read by a program that may take half a gigabyte: an error of the user each time,
//! and never the end of the program.

#![cfg(target_os = "linux")]

mod program;

use flate2::{Compression, write::GzEncoder};
use program::{Folder, Run};
use std::fs;
use std::io::{self, Read, Write};
use std::process::Command;

/// KiB of addresses; the program itself, its stacks and the longest row take about 200,000.
const LIMIT: usize = 500_000;

fn limited(folder: &Folder, line: &str) -> Run {
    let sumout = env!("CARGO_BIN_EXE_sumout");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("ulimit -v {LIMIT}; exec {sumout} {line}")])
        .current_dir(folder.path("."))
        .env("MALLOC_ARENA_MAX", "1")
        .env("RAYON_NUM_THREADS", "1");
    shell.output().unwrap().into()
}

/// A start and then two gigabytes of one byte, in two megabytes.
fn bomb(start: &[u8], filling: u8) -> Vec<u8> {
    let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
    zip.write_all(start).unwrap();
    io::copy(&mut io::repeat(filling).take(2 << 30), &mut zip).unwrap();
    zip.finish().unwrap()
}

fn npy(shape: &str) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file
}

/// A PNG file that says how large it is, and nothing else.
fn png(side: u32) -> Vec<u8> {
    let mut chunk = b"IHDR".to_vec();
    chunk.extend(side.to_be_bytes());
    chunk.extend(side.to_be_bytes());
    chunk.extend([8, 0, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&chunk);
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    file.extend(chunk);
    file.extend(crc.sum().to_be_bytes());
    file
}

#[test]
fn small_files_that_claim_to_be_large() {
    let folder = Folder::new();
    let whole = |bytes: [u8; 4]| [&[0, 0, 8, 3][..], &bytes, &bytes, &bytes].concat();
    let files: [(&str, Vec<u8>); 8] = [
        ("a.csv.gz", bomb(b"a,b\n1,2\n", b'3')),
        ("b.csv.gz", bomb(b"a,b\n1,\"", b'\n')),
        ("c.jsonl.gz", bomb(b"[1, ", b' ')),
        ("d.npy", npy("(1000000000, 1000000000)")),
        ("e.npy", npy("(1, 3000000000)")),
        ("f.idx", whole([0xff; 4])),
        ("g.png", png(1 << 30)),
        ("h.png", png(4096)),
    ];
    for (name, bytes) in files {
        fs::write(folder.path(name), bytes).unwrap();
        let run = limited(&folder, &format!("train --data {name} --out a.sumout"));
        assert_eq!(run.code, 2, "{name}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: "), "{name}: {}", run.stderr);
    }
    for (start, what) in [(u64::MAX, "length"), (1 << 40, "header")] {
        let bytes = [&start.to_le_bytes()[..], b"{\"__metadata__\":{}}"].concat();
        fs::write(folder.path("m.sumout"), bytes).unwrap();
        let run = limited(&folder, "inspect m.sumout");
        assert_eq!(run.code, 2, "{what}: {}", run.stderr);
    }
}
