//! What is suspicious about data: a column and what was found, which can be shown as text.

use std::fmt;

/// Something about a column that is worth a warning. It stops nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The column.
    pub column: String,
    /// What was found.
    pub what: FindingKind,
}

/// What was found about a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FindingKind {
    /// A target of many classes that are all numbers, each in a few rows.
    LooksContinuous {
        /// How many classes.
        classes: u64,
        /// In how many rows.
        rows: u64,
    },
    /// A word such as None, which is read as missing beside other words.
    DefaultNa {
        /// The first such word.
        word: String,
        /// How many cells hold one.
        cells: u64,
        /// Of how many that are not empty.
        of: u64,
    },
    /// Numbers with a currency or percent sign, which are read as words.
    SignedNumbers {
        /// The first of them.
        example: String,
    },
    /// Dates, which are read as words.
    Dates {
        /// The first of them.
        example: String,
    },
    /// Numbers that begin with a zero, as codes do.
    Codes {
        /// The first of them.
        example: String,
    },
    /// Words of which hardly any comes twice.
    Identifier {
        /// How many different ones.
        words: u64,
        /// In how many rows.
        rows: u64,
    },
    /// It numbers the rows.
    RowNumbers,
    /// It has no value in any row.
    NoValues,
    /// Its numbers are so large that 32 bits cannot tell neighbours apart.
    Coarse {
        /// The largest of them.
        largest: f32,
        /// The distance to the next number of 32 bits.
        step: f32,
    },
    /// It has one value only.
    Constant {
        /// The value, as a message shows it.
        value: String,
    },
    /// One of its values is far from all others.
    Outlier {
        /// The value.
        value: f32,
    },
    /// A category or class that the model does not know was read as missing.
    UnknownCategory {
        /// The first one.
        name: String,
    },
}

impl Finding {
    /// A finding about a column.
    pub fn new(column: impl Into<String>, what: FindingKind) -> Self {
        Self {
            column: column.into(),
            what,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FindingKind as Kind;
        let name = &self.column;
        match &self.what {
            Kind::LooksContinuous { classes, rows } => write!(
                f,
                "target '{name}' looks continuous: {classes} classes, all numbers, in {rows} rows"
            ),
            Kind::DefaultNa { word, cells, of } => write!(
                f,
                "column '{name}': '{word}' stands beside other words and is read as missing, in \
                 {cells} of {of} cells"
            ),
            Kind::SignedNumbers { example } => write!(
                f,
                "column '{name}' looks like numbers with a sign, such as '{example}', and is read \
                 as words: remove the sign"
            ),
            Kind::Dates { example } => write!(
                f,
                "column '{name}' looks like dates, such as '{example}', and is read as words: \
                 write all of them as 2026-01-31"
            ),
            Kind::Codes { example } => write!(
                f,
                "column '{name}' looks like codes, such as '{example}', and is read as numbers"
            ),
            Kind::Identifier { words, rows } => write!(
                f,
                "column '{name}' looks like an identifier: {words} different words in {rows} rows"
            ),
            Kind::RowNumbers => write!(f, "column '{name}' numbers the rows"),
            Kind::NoValues => write!(f, "column '{name}' has no values in the training rows"),
            Kind::Coarse { largest, step } => write!(
                f,
                "column '{name}': numbers as large as {largest:?} are kept in steps of {step}; \
                 subtract a constant from it first"
            ),
            Kind::Constant { value } => write!(
                f,
                "column '{name}' is {value} wherever it is known: nothing can be learned from it"
            ),
            Kind::Outlier { value } => write!(
                f,
                "column '{name}': {value:?} is far from the rest and spoils the scale"
            ),
            Kind::UnknownCategory { name: category } => write!(
                f,
                "column '{name}': the model does not know '{category}' (and maybe others): \
                 read as missing"
            ),
        }
    }
}
