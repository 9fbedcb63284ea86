//! The number of a category or a class by its name, however a program writes it.

use crate::rows::cells::Cell;
use std::collections::HashMap;

/// False and true as JSON, Python and spreadsheets write them. Who takes one of these takes all.
const TRUTHS: [[&str; 2]; 3] = [["false", "true"], ["False", "True"], ["FALSE", "TRUE"]];

/// Names and their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodesOfNames {
    pub names: Vec<String>,
    codes: HashMap<String, usize>,
}

impl CodesOfNames {
    pub fn new(names: &[String]) -> Self {
        let mut codes: HashMap<_, _> = names.iter().cloned().zip(0..).collect();
        let are_truths = |truths: &[&str; 2]| names.iter().all(|name| truths.contains(&&**name));
        if TRUTHS.iter().any(are_truths) {
            for word in TRUTHS.concat() {
                let mut known = names.iter();
                if let Some(code) = known.position(|name| name.eq_ignore_ascii_case(word)) {
                    codes.entry(word.into()).or_insert(code);
                }
            }
        }
        Self {
            names: names.to_vec(),
            codes,
        }
    }

    pub fn code(&self, cell: Cell<'_>) -> Option<usize> {
        self.codes.get(&cell.category()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths_may_be_written_otherwise() {
        let codes = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
            let codes = CodesOfNames::new(&names);
            ["true", "True", "TRUE", "tRUE"].map(|word| codes.code(Cell::Text(word)))
        };
        assert_eq!(codes(&["False", "True"]), [Some(1), Some(1), Some(1), None]);
        assert_eq!(codes(&["true"]), [Some(0), Some(0), Some(0), None]);
        assert_eq!(codes(&["False", "true"]), [Some(1), None, None, None]);
        assert_eq!(codes(&["no", "True"]), [None, Some(1), None, None]);
    }
}
