//! How much memory rows may take.

use std::fs;

/// Where the system does not say how much memory is free.
const USUAL: u64 = 8 << 30;

/// A size as people write it: 2GB, 500MB, 1.5GiB, or bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let scale: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" | "k" => 1e3,
        "mb" | "m" => 1e6,
        "gb" | "g" => 1e9,
        "tb" | "t" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024f64.powi(2),
        "gib" => 1024f64.powi(3),
        "tib" => 1024f64.powi(4),
        _ => return Err("expected a size such as 2GB or 500MB".into()),
    };
    let number = number.parse::<f64>().ok().filter(|x| *x > 0.0);
    let number = number.ok_or("expected a size such as 2GB or 500MB")?;
    Ok((number * scale) as u64)
}

/// Half of the memory that is free.
pub fn half_of_free() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map_or(USUAL, |kilobytes| kilobytes * 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = ["2GB", "500 mb", "1.5GiB", "64", "1k"].map(|text| bytes(text).unwrap());
        assert_eq!(read, [2_000_000_000, 500_000_000, 3 << 29, 64, 1_000]);
        assert!(
            ["", "GB", "2 apples", "-1GB", "0"]
                .iter()
                .all(|text| bytes(text).is_err())
        );
        assert!(half_of_free() > 1 << 20);
    }
}
