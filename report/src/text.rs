//! Numbers and names, as people read them.

/// 1234567 as 1,234,567.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A probability in percent, with a decimal if it is small.
pub fn percent(p: f64) -> String {
    if p >= 0.0995 {
        format!("{:.0} %", 100.0 * p)
    } else {
        format!("{:.1} %", 100.0 * p)
    }
}

/// A number with so many decimals; never −0.
pub fn fixed(x: f64, decimals: usize) -> String {
    let text = format!("{x:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

/// A number with four digits that count, or all digits of a large whole part.
pub fn four_digits(x: f64) -> String {
    let magnitude = x.abs();
    if x == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e9).contains(&magnitude) {
        return format!("{x:.3e}");
    }
    let decimals = (3 - magnitude.log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{x:.decimals$}");
    if decimals == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A column's name for a cell of a table in HTML; it may break after an underscore.
pub fn breakable(name: &str) -> String {
    escape(name).replace('_', "_<wbr>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_written_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_586_176), "1,586,176");
        assert_eq!(percent(0.0312), "3.1 %");
        assert_eq!(percent(0.25), "25 %");
        let numbers = [0.0, 1.5, 39.099998, 181.0, 12345.6, 0.00123, 2e12, -0.5];
        let texts = [
            "0", "1.5", "39.1", "181", "12346", "0.00123", "2.000e12", "-0.5",
        ];
        assert_eq!(numbers.map(four_digits), texts);
        assert_eq!(
            (fixed(-0.004, 2), fixed(-0.006, 2)),
            ("0.00".into(), "-0.01".into())
        );
        assert_eq!(escape("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}
