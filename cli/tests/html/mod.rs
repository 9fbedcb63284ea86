//! Checks of pages that the program writes.

/// The names of elements that are opened and never closed, or closed and never opened.
pub fn unbalanced(html: &str) -> Vec<String> {
    const VOID: [&str; 4] = ["meta", "img", "br", "wbr"];
    let mut open: Vec<String> = Vec::new();
    let mut wrong = Vec::new();
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        assert!(
            part.contains('>') && tag.matches('"').count() % 2 == 0,
            "a tag that does not end: {tag}"
        );
        let name = tag
            .trim_start_matches('/')
            .split_whitespace()
            .next()
            .unwrap()
            .trim_end_matches('/')
            .to_owned();
        if tag.starts_with('!') || tag.ends_with('/') || VOID.contains(&name.as_str()) {
            continue;
        }
        if !tag.starts_with('/') {
            open.push(name);
        } else if open.pop().as_ref() != Some(&name) {
            wrong.push(name);
        }
    }
    wrong.extend(open);
    wrong
}
