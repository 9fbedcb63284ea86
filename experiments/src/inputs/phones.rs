//! The phones of TIMIT: 61 are folded to 39, as is usual since Lee and Hon (1989); the glottal stop is left out.

/// Which phones count as another one.
const FOLDED: [(&str, &[&str]); 14] = [
    ("aa", &["ao"]),
    ("ah", &["ax", "ax-h"]),
    ("er", &["axr"]),
    ("hh", &["hv"]),
    ("ih", &["ix"]),
    ("l", &["el"]),
    ("m", &["em"]),
    ("n", &["en", "nx"]),
    ("ng", &["eng"]),
    ("sh", &["zh"]),
    ("uw", &["ux"]),
    ("sil", &["pcl", "tcl", "kcl", "bcl", "dcl", "gcl"]),
    ("sil", &["h#", "pau", "epi"]),
    ("", &["q"]),
];

/// The phone that it counts as; none for the glottal stop.
pub fn folded(phone: &str) -> Option<&str> {
    let same = FOLDED.iter().find(|(_, phones)| phones.contains(&phone));
    let folded = same.map_or(phone, |(folded, _)| *folded);
    (!folded.is_empty()).then_some(folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The list of TIMIT's documentation.
    const PHONES: &str = "b d g p t k dx q jh ch s sh z zh f th v dh m n ng em en eng nx l r w y hh hv el \
        iy ih eh ey ae aa aw ay ah ao oy ow uh uw ux er ax ix axr ax-h \
        bcl dcl gcl pcl tcl kcl pau epi h#";

    #[test]
    fn sixty_one_become_thirty_nine() {
        let all: BTreeSet<&str> = PHONES.split_whitespace().collect();
        assert_eq!(all.len(), 61);
        let folded: BTreeSet<&str> = all.iter().filter_map(|phone| folded(phone)).collect();
        assert_eq!(folded.len(), 39);
    }
}
