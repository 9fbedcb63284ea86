//! SHA-256 of the numbers and labels of a data set, to tell data apart.

use sha2::{Digest, Sha256};

/// A digest on its way.
#[derive(Clone, Default)]
pub struct DataDigest {
    numbers: Sha256,
    labels: Vec<i64>,
}

impl DataDigest {
    /// Adds some rows.
    pub fn add(&mut self, values: &[f32], labels: Option<&[i64]>) {
        for piece in values.chunks(1 << 16) {
            let bytes: Vec<u8> = piece.iter().flat_map(|x| x.to_le_bytes()).collect();
            self.numbers.update(bytes);
        }
        self.labels.extend(labels.unwrap_or_default());
    }

    /// The digest of all rows: all numbers, then all labels.
    pub fn finish(mut self) -> String {
        for piece in self.labels.chunks(1 << 16) {
            let bytes: Vec<u8> = piece.iter().flat_map(|label| label.to_le_bytes()).collect();
            self.numbers.update(bytes);
        }
        let digest = self.numbers.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_do_not_matter_and_labels_do() {
        let mut whole = DataDigest::default();
        whole.add(&[1.0, 2.0, f32::NAN], Some(&[0, 1, -1]));
        let mut parts = DataDigest::default();
        parts.add(&[1.0], Some(&[0]));
        parts.add(&[2.0, f32::NAN], Some(&[1, -1]));
        let mut others = DataDigest::default();
        others.add(&[1.0, 2.0, f32::NAN], Some(&[0, 1, 0]));
        let whole = whole.finish();
        assert_eq!(whole, parts.finish());
        assert!(whole != others.finish() && whole.len() == 64);
    }
}
