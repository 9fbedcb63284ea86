//! Stands in where nothing can be fetched.

use std::io::Read;

/// An error that says so.
pub fn body(_: &str) -> Result<Box<dyn Read>, String> {
    Err("this program was built without the feature 'download'".to_owned())
}
