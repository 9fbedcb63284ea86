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

/// Text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
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
        assert_eq!(escape("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}
