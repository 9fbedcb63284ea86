//! The style that the report, its pictures and the page of the service share: `base.css` has
//! each colour once.

/// Colours, type, cards and tables.
pub const BASE: &str = include_str!("base.css");

/// What the pages of the demo and of `sumout report` add to it.
pub const REPORT: &str = include_str!("style.css");

/// The colour of that name on light paper. In a constant it is read from the style while this is compiled; a name
/// that is not there is an error of the compiler.
pub(crate) const fn light(name: &str) -> [u8; 3] {
    colour_at(first_colour(name))
}

/// The same on dark paper.
pub(crate) const fn dark(name: &str) -> [u8; 3] {
    let at = first_colour(name) + "ffffff".len();
    assert!(stands_at(at, ", #"));
    colour_at(at + ", #".len())
}

/// Where the light colour of a name stands; the dark one follows.
const fn first_colour(name: &str) -> usize {
    let mut at = 0;
    while !stands_at(at, "--") || !stands_at(at + 2, name) {
        at += 1;
    }
    at += 2 + name.len();
    assert!(stands_at(at, ": light-dark(#"));
    at + ": light-dark(#".len()
}

const fn colour_at(at: usize) -> [u8; 3] {
    [byte(at), byte(at + 2), byte(at + 4)]
}

const fn stands_at(at: usize, text: &str) -> bool {
    let (style, text) = (BASE.as_bytes(), text.as_bytes());
    let mut i = 0;
    while i < text.len() {
        if style[at + i] != text[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Two hexadecimal digits.
const fn byte(at: usize) -> u8 {
    16 * digit(BASE.as_bytes()[at]) + digit(BASE.as_bytes()[at + 1])
}

const fn digit(letter: u8) -> u8 {
    match letter {
        b'0'..=b'9' => letter - b'0',
        b'a'..=b'f' => letter - b'a' + 10,
        _ => panic!("expected a hexadecimal digit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Luminance and contrast as in WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    /// Both colours of a name: light and dark.
    fn colours(name: &str) -> [&str; 2] {
        let (_, rest) = BASE.split_once(&format!("--{name}: light-dark(")).unwrap();
        let (light, rest) = rest.split_once(", ").unwrap();
        [light, rest.split_once(')').unwrap().0]
    }

    #[test]
    fn colours_are_read_from_the_style() {
        assert_eq!(light("page"), [0xf6, 0xf4, 0xef]);
        assert_eq!(dark("page"), [0x14, 0x17, 0x1b]);
        assert_ne!(light("ink"), light("model"));
    }

    #[test]
    fn words_can_be_read_and_edges_seen() {
        let pairs = [
            ("text", "page", 7.0),
            ("text", "accent-soft", 7.0),
            ("soft", "page", 4.5),
            ("soft", "card", 4.5),
            ("accent", "card", 4.5),
            ("card", "accent", 4.5),
            ("warn", "warn-soft", 4.5),
            ("edge", "card", 3.0),
            ("model", "paper", 3.0),
            ("heat", "paper", 3.0),
        ];
        for (front, back, least) in pairs {
            for (front, back) in colours(front).into_iter().zip(colours(back)) {
                let (a, b) = (luminance(front), luminance(back));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= least, "{front} on {back}: {contrast:.2}");
            }
        }
    }
}
