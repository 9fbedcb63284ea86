//! Dictionaries that claim more values than their bytes can hold: the crate `parquet` makes room for what is claimed.

use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::sync::Arc;

/// An error if a dictionary of the file claims more values than it has bytes. Of other pages only the heads are read.
pub fn check_dictionaries(file: &Arc<File>, metadata: &ParquetMetaData) -> Result<()> {
    for group in metadata.row_groups() {
        let rows = usize::try_from(group.num_rows())?;
        for column in group.columns() {
            check_pages(SerializedPageReader::new(
                Arc::clone(file),
                column,
                rows,
                None,
            )?)?;
        }
    }
    Ok(())
}

/// The same for the pages of a column.
fn check_pages(mut pages: SerializedPageReader<File>) -> Result<()> {
    while let Some(page) = pages.peek_next_page()? {
        if !page.is_dict {
            pages.skip_next_page()?;
            continue;
        }
        if let Some(Page::DictionaryPage {
            buf, num_values, ..
        }) = pages.get_next_page()?
            && num_values as usize > buf.len()
        {
            let words = format!(
                "a dictionary of {num_values} values has {} bytes",
                buf.len()
            );
            return Err(ParquetError::General(words));
        }
    }
    Ok(())
}
