//! How numbers and letters are written in text files: `--decimal`, `--thousands`, `--encoding`.

use crate::terminal::user_error::user_error;
use anyhow::Result;
use clap::ValueEnum;
use sumout_data::encoding::Encoding;
use sumout_data::notation::Notation;

/// How numbers and letters are written.
#[derive(Clone, Debug, clap::Args)]
pub struct TextArgs {
    /// What stands before the decimals of a number in CSV files: `.` or `,` [default: .]
    #[arg(long, value_name = "SIGN")]
    decimal: Option<Decimal>,
    /// What stands between groups of three digits in CSV files: `,`, `.`, `'`, `_` or a space
    #[arg(long, value_name = "SIGN", value_parser = thousands)]
    thousands: Option<char>,
    /// How letters are written in text files [default: utf-8, or utf-16 where a file says so]
    #[arg(long, value_enum)]
    encoding: Option<EncodingArg>,
}

/// What stands before the decimals of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Decimal {
    /// A point
    #[value(name = ".")]
    Point,
    /// A comma
    #[value(name = ",")]
    Comma,
}

/// How letters are written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EncodingArg {
    /// UTF-8
    #[value(name = "utf-8", alias = "utf8")]
    Utf8,
    /// Latin-1 or Windows-1252: the letters of Western Europe
    #[value(name = "latin-1", aliases = ["latin1", "iso-8859-1", "windows-1252", "cp1252"])]
    Latin1,
    /// UTF-16
    #[value(name = "utf-16", alias = "utf16")]
    Utf16,
}

/// A sign that can stand between groups of three digits.
fn thousands(text: &str) -> Result<char, String> {
    match text.chars().collect::<Vec<_>>()[..] {
        [sign] if ",.'_ ".contains(sign) => Ok(sign),
        _ => Err("expected one of , . ' _ or a space".to_owned()),
    }
}

impl TextArgs {
    /// How numbers are written.
    pub fn notation(&self) -> Result<Notation> {
        let decimal = match self.decimal {
            Some(Decimal::Comma) => ',',
            _ => '.',
        };
        if self.thousands == Some(decimal) {
            return Err(user_error(format!(
                "--thousands {decimal}: expected another sign than the one before decimals; \
                 --decimal chooses that"
            )));
        }
        let thousands = self.thousands;
        Ok(Notation { decimal, thousands })
    }

    /// How letters are written.
    pub fn encoding(&self) -> Encoding {
        match self.encoding {
            Some(EncodingArg::Latin1) => Encoding::Latin1,
            Some(EncodingArg::Utf16) => Encoding::Utf16,
            Some(EncodingArg::Utf8) | None => Encoding::Unknown,
        }
    }

    /// Names and values of the options that were given.
    pub fn given(&self) -> [(&'static str, Option<String>); 3] {
        [
            ("decimal", self.decimal.map(name)),
            ("thousands", self.thousands.map(String::from)),
            ("encoding", self.encoding.map(name)),
        ]
    }
}

/// What the command line calls a value.
pub fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
