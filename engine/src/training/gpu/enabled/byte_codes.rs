//! Numbers as bytes, where few different ones are: pixels, categories.

use std::collections::HashMap;

/// Bytes and what they stand for, if there are at most 256 different numbers.
pub(crate) fn codes(values: &[f32]) -> Option<(Vec<u8>, Vec<f32>)> {
    let mut table: Vec<u32> = Vec::new();
    let mut known = HashMap::new();
    let mut coded = Vec::with_capacity(values.len());
    let (mut last, mut last_code) = (None, 0);
    for value in values {
        let bits = if value.is_nan() {
            f32::NAN.to_bits()
        } else {
            value.to_bits()
        };
        if last != Some(bits) {
            last_code = *known.entry(bits).or_insert_with(|| {
                table.push(bits);
                table.len() - 1
            });
            if last_code > 255 {
                return None;
            }
            last = Some(bits);
        }
        coded.push(last_code as u8);
    }
    Some((coded, table.into_iter().map(f32::from_bits).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_for_the_same_numbers() {
        let values: Vec<f32> = (0..1000)
            .map(|i| {
                if i % 7 == 0 {
                    f32::NAN
                } else {
                    (i % 255) as f32 * 0.1 - 3.0
                }
            })
            .collect();
        let (bytes, table) = codes(&values).unwrap();
        assert!(table.len() <= 256);
        for (value, byte) in values.iter().zip(bytes) {
            let back = table[byte as usize];
            assert!(back.to_bits() == value.to_bits() || (back.is_nan() && value.is_nan()));
        }
        let many: Vec<f32> = (0..257).map(|i| i as f32).collect();
        assert!(codes(&many).is_none());
    }
}
