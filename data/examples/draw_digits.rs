//! Draws the digits that come with the program, the same ones every time: `digits/README.md` has the rule.
//!
//!     SUMOUT_DATA=… cargo run --release -p sumout-data --example draw_digits -- data/digits
//!
//! `SUMOUT_DATA/mnist` must have MNIST's four files; `sumout data get mnist` fetches them. Expect four files with the
//! SHA-256 sums that are printed, which stand in the README too.

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::PathBuf;
use sumout_data::atomic_file::Staged;
use sumout_data::formats::idx;
use sumout_data::layout::{ReadOptions, Split};

/// SplitMix64 (Steele, Lea, Flood 2014), the shortest generator that is good enough to draw with.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below n; the bias of the remainder is below n / 2⁶⁴.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// The first `each` of a random order of every class, then in the order of the original file.
fn draw(labels: &[i64], each: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64(seed);
    let mut drawn = Vec::new();
    for class in 0..10 {
        let mut rows: Vec<usize> = (0..labels.len())
            .filter(|&row| labels[row] == class)
            .collect();
        for i in 0..each {
            let j = i + random.below(rows.len() - i);
            rows.swap(i, j);
        }
        drawn.extend(&rows[..each]);
    }
    drawn.sort_unstable();
    drawn
}

fn main() -> Result<()> {
    let folder = PathBuf::from(
        std::env::args()
            .nth(1)
            .context("expected the folder to write to")?,
    );
    for (split, prefix, each, seed) in [
        (Split::Train, "train", 500, 1),
        (Split::Test, "t10k", 100, 2),
    ] {
        let table = sumout_data::read(
            "mnist",
            &ReadOptions {
                split,
                ..ReadOptions::default()
            },
        )?;
        let labels = table.labels.context("expected labels")?;
        ensure!(table.layout.width == 784, "expected images of 28×28");
        let rows = draw(&labels, each, seed);
        let pixels: Vec<u8> = rows
            .iter()
            .flat_map(|&row| &table.values[row * 784..(row + 1) * 784])
            .map(|&x| x as u8)
            .collect();
        let classes: Vec<u8> = rows.iter().map(|&row| labels[row] as u8).collect();
        let count = rows.len() as u32;
        write(
            &folder,
            &format!("{prefix}-images-idx3-ubyte.gz"),
            &idx::encode(&[count, 28, 28], &pixels),
        )?;
        write(
            &folder,
            &format!("{prefix}-labels-idx1-ubyte.gz"),
            &idx::encode(&[count], &classes),
        )?;
    }
    Ok(())
}

/// Gzip without name or time, so that the bytes depend on nothing else.
fn write(folder: &std::path::Path, name: &str, bytes: &[u8]) -> Result<()> {
    let mut staged = Staged::create(&folder.join(name))?;
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    let packed = encoder.finish()?;
    staged.write_all(&packed)?;
    staged.commit()?;
    let sum = |bytes: &[u8]| {
        Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    writeln!(
        io::stdout(),
        "{name}: {} bytes, gzip undone {}\n  {}\n  {}",
        packed.len(),
        bytes.len(),
        sum(&packed),
        sum(bytes)
    )?;
    Ok(())
}
