//! Lines of Markdown tables.

/// The head of a table: a corner, and a cell for each column.
pub fn head(corner: &str, heads: &[String]) -> String {
    let corner = if corner.is_empty() {
        String::new()
    } else {
        format!(" {corner}")
    };
    let rules = "---|".repeat(heads.len());
    format!("|{corner} | {} |\n|---|{rules}\n", heads.join(" | "))
}

/// One row: its name, and a cell for each column.
pub fn row(name: &str, cells: &[String]) -> String {
    format!("| {name} | {} |\n", cells.join(" | "))
}
