//! Numbers as people write them: 1.5, 1,5, 1,065.00 or 1.065,00. Only the first is read as it is; the others need a
//! [`Notation`], because nobody can tell whether 1,065 is about one or about a thousand.

/// How numbers are written in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notation {
    /// What stands before the decimals.
    pub decimal: char,
    /// What stands between groups of three digits.
    pub thousands: Option<char>,
}

impl Default for Notation {
    fn default() -> Self {
        Self {
            decimal: '.',
            thousands: None,
        }
    }
}

/// What a notation makes of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Not for it: words, and numbers that are the same in all notations.
    AsItIs,
    /// A number, as it is written with a point.
    Number(String),
    /// A number of another notation.
    Other,
}

impl Notation {
    /// What a text is.
    pub fn read(&self, text: &str) -> Reading {
        if *self == Self::default() {
            return Reading::AsItIs;
        }
        if let Some(number) = self.with_point(text) {
            return Reading::Number(number);
        }
        let other = text.contains('.') && text.parse::<f64>().is_ok();
        if other && self.decimal != '.' {
            Reading::Other
        } else {
            Reading::AsItIs
        }
    }

    /// A number that has this notation's marks, with a point instead.
    fn with_point(&self, text: &str) -> Option<String> {
        let marks = |c: char| c == self.decimal || Some(c) == self.thousands;
        text.contains(marks).then_some(())?;
        let sign = text.len() - text.trim_start_matches(['+', '-']).len();
        let (sign, rest) = text.split_at(sign);
        let (whole, decimals) = match rest.split_once(self.decimal) {
            Some((whole, decimals)) => (whole, format!(".{decimals}")),
            None => (rest, String::new()),
        };
        let whole = self
            .thousands
            .map_or(Some(whole.to_owned()), |mark| ungrouped(whole, mark))?;
        let number = format!("{sign}{whole}{decimals}");
        number.parse::<f64>().is_ok().then_some(number)
    }
}

/// Groups of three digits, of which the first may be shorter, without the mark between them.
fn ungrouped(text: &str, mark: char) -> Option<String> {
    let groups: Vec<&str> = text.split(mark).collect();
    let (first, rest) = groups.split_first()?;
    let is_whole = rest.is_empty() || (1..=3).contains(&first.len());
    let fits = is_whole && rest.iter().all(|group| group.len() == 3);
    let digits = |group: &&str| group.bytes().all(|byte| byte.is_ascii_digit());
    (fits && groups.iter().all(digits)).then(|| groups.concat())
}

/// The notations that people use besides the plain one, and what tells a computer so.
pub const OTHERS: [Notation; 5] = [
    of(',', None),
    of('.', Some(',')),
    of(',', Some('.')),
    of('.', Some(' ')),
    of(',', Some(' ')),
];

const fn of(decimal: char, thousands: Option<char>) -> Notation {
    Notation { decimal, thousands }
}

/// For each of [`OTHERS`], whether a text is a number in it; none where it is a plain number.
pub fn notations_of(text: &str) -> [bool; OTHERS.len()] {
    let plain = text.parse::<f64>().is_ok();
    OTHERS.map(|notation| !plain && notation.with_point(text).is_some())
}

/// Whether a text is a number with a currency sign or a percent sign.
pub fn has_sign(text: &str) -> bool {
    const SIGNS: [char; 6] = ['$', '€', '£', '¥', '%', '₹'];
    let number = text.trim_matches(|c| SIGNS.contains(&c) || [' ', '+', '-'].contains(&c));
    let is_number = number.parse::<f64>().is_ok() || notations_of(number).contains(&true);
    text.contains(SIGNS) && is_number
}

/// Whether a text is a whole number that begins with a zero, as zip codes do.
pub fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a date such as 2026-01-31, 31.01.2026 or 1/31/2026, perhaps with a time.
pub fn is_date(text: &str) -> bool {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    let is_time =
        time.is_empty() || (time.contains(':') && time.starts_with(|c: char| c.is_ascii_digit()));
    ['-', '.', '/']
        .iter()
        .any(|&mark| are_date_parts(date, mark))
        && is_time
}

/// Three numbers, of which the first or the last is a year.
fn are_date_parts(text: &str, mark: char) -> bool {
    let parts: Vec<&str> = text.split(mark).collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let is_year = matches!(lengths[..], [4, 1..=2, 1..=2] | [1..=2, 1..=2, 4]);
    is_year && parts.iter().all(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(decimal: char, thousands: Option<char>, text: &str) -> String {
        match of(decimal, thousands).read(text) {
            Reading::AsItIs => "as it is".to_owned(),
            Reading::Number(number) => number,
            Reading::Other => "other".to_owned(),
        }
    }

    #[test]
    fn numbers_in_their_notation() {
        for (text, expected) in [
            ("3,5", "3.5"),
            ("-3,5e2", "-3.5e2"),
            (",5", ".5"),
            ("1.065", "other"),
            ("12", "as it is"),
            ("1,2,3", "as it is"),
            ("red, blue", "as it is"),
        ] {
            assert_eq!(read(',', None, text), expected, "{text}");
        }
        for (text, expected) in [
            ("1,065", "1065"),
            ("-1,234,567.5", "-1234567.5"),
            ("1,06", "as it is"),
            ("1065,123", "as it is"),
            ("3.5", "3.5"),
        ] {
            assert_eq!(read('.', Some(','), text), expected, "{text}");
        }
        for (text, expected) in [("1.065,25", "1065.25"), ("1.065", "1065"), ("3.5", "other")] {
            assert_eq!(read(',', Some('.'), text), expected, "{text}");
        }
        assert_eq!(read('.', None, "3,5"), "as it is");
    }

    #[test]
    fn notations_are_recognised() {
        let of = |text| notations_of(text).map(u8::from);
        assert_eq!(of("3,5"), [1, 0, 1, 0, 1]);
        assert_eq!(of("1,065"), [1, 1, 1, 0, 1]);
        assert_eq!(of("1.065,5"), [0, 0, 1, 0, 0]);
        assert_eq!(of("1 065"), [0, 0, 0, 1, 1]);
        assert_eq!(of("3.5"), [0; 5]);
        assert_eq!(of("a,b"), [0; 5]);
    }

    #[test]
    fn signs_zeros_and_dates() {
        assert!(
            ["$1065.00", "5 €", "12 %", "-$1,065"]
                .iter()
                .all(|text| has_sign(text))
        );
        assert!(!["1065", "$ome", "%"].iter().any(|text| has_sign(text)));
        assert!(has_leading_zero("01010") && !has_leading_zero("0") && !has_leading_zero("0.5"));
        for date in [
            "2026-01-31",
            "31.1.2026",
            "1/31/2026",
            "2026-01-31T10:00:00Z",
            "2026-01-31 10:00",
        ] {
            assert!(is_date(date), "{date}");
        }
        for text in ["1.2.3", "2026-01", "10:00", "a-b-c", "2026-01-31 blue"] {
            assert!(!is_date(text), "{text}");
        }
    }
}
