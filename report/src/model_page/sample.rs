//! The rows that a report is about: all rows of the data, or some drawn at random.

use anyhow::Result;
use sumout::random::{Purpose, Stream};
use sumout_data::data_digest::DataDigest;
use sumout_data::layout::{Chunk, Layout, RowStream};

/// Rows in memory, in the order of the data.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What all rows have in common.
    pub layout: Layout,
    /// (n, width); NaN is missing.
    pub values: Vec<f32>,
    /// (n); −1 is missing.
    pub labels: Vec<i64>,
    /// (n): the number of each row in the data, from 0.
    pub numbers: Vec<usize>,
    /// Rows in the data.
    pub total: usize,
    /// The digest of all of them.
    pub digest: String,
}

/// One row on its way.
struct Row {
    number: usize,
    values: Vec<f32>,
    label: i64,
}

impl Sample {
    /// Reads all rows and keeps at most so many, each with the same probability.
    pub fn draw(stream: RowStream, most: usize, seed: u64) -> Result<Self> {
        let layout = stream.layout.clone();
        let mut digest = DataDigest::default();
        let mut random = Stream::new(seed, Purpose::Sampling, 0, 0);
        let mut kept: Vec<Row> = Vec::new();
        let mut total = 0;
        for chunk in stream.read_ahead() {
            let chunk = chunk?;
            digest.add(&chunk.values, chunk.labels.as_deref());
            for (at, values) in chunk.values.chunks_exact(layout.width).enumerate() {
                let place = if total < most {
                    total
                } else {
                    random.below(total + 1)
                };
                if place < most {
                    let row = row_of(&chunk, at, values);
                    match kept.get_mut(place) {
                        Some(old) => *old = row,
                        None => kept.push(row),
                    }
                }
                total += 1;
            }
        }
        kept.sort_by_key(|row| row.number);
        Ok(Self {
            values: kept.iter().flat_map(|row| &row.values).copied().collect(),
            labels: kept.iter().map(|row| row.label).collect(),
            numbers: kept.iter().map(|row| row.number).collect(),
            digest: digest.finish(),
            total,
            layout,
        })
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.numbers.len()
    }

    /// How many cells are missing.
    pub fn holes(&self) -> usize {
        self.values.iter().filter(|x| x.is_nan()).count()
    }

    /// The numbers of one column, (n).
    pub fn column(&self, column: usize) -> impl Iterator<Item = f32> {
        let from = self.values.iter().skip(column);
        from.step_by(self.layout.width).copied()
    }

    /// The rows with some columns hidden: those for which `is_hidden` says so.
    pub fn without(&self, is_hidden: impl Fn(usize) -> bool) -> Vec<f32> {
        let width = self.layout.width;
        let shown = |(at, &x): (usize, &f32)| if is_hidden(at % width) { f32::NAN } else { x };
        self.values.iter().enumerate().map(shown).collect()
    }
}

fn row_of(chunk: &Chunk, at: usize, values: &[f32]) -> Row {
    Row {
        number: chunk.first + at,
        values: values.to_vec(),
        label: chunk.labels.as_ref().map_or(-1, |labels| labels[at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(rows: usize) -> RowStream {
        let mut chunks = (0..rows / 10).map(|chunk| Chunk {
            first: 10 * chunk,
            values: (0..20).map(|i| (20 * chunk + i) as f32).collect(),
            labels: Some(vec![chunk as i64; 10]),
            ..Chunk::default()
        });
        RowStream::new("rows", Layout::unnamed(2, None), move || Ok(chunks.next()))
    }

    #[test]
    fn all_rows_or_as_many_as_asked_for() {
        let all = Sample::draw(stream(50), 50, 1).unwrap();
        assert_eq!((all.rows(), all.total), (50, 50));
        assert_eq!(all.values, (0..100).map(|i| i as f32).collect::<Vec<_>>());
        assert_eq!(all.column(1).nth(2), Some(5.0));
        let some = Sample::draw(stream(1000), 100, 1).unwrap();
        assert_eq!((some.rows(), some.total), (100, 1000));
        assert!(some.numbers.is_sorted_by(|a, b| a < b));
        for (at, &number) in some.numbers.iter().enumerate() {
            assert_eq!(some.values[2 * at], 2.0 * number as f32);
            assert_eq!(some.labels[at], number as i64 / 10);
        }
        let late = some.numbers.iter().filter(|&&number| number >= 500).count();
        assert!((30..70).contains(&late), "{late} of the second half");
        let again = Sample::draw(stream(1000), 100, 1).unwrap();
        assert_eq!(again.numbers, some.numbers);
    }

    #[test]
    fn columns_can_be_hidden() {
        let sample = Sample::draw(stream(10), 10, 1).unwrap();
        let rows = sample.without(|column| column == 0);
        assert!(rows[0].is_nan() && rows[1] == 1.0 && rows[2].is_nan());
    }
}
