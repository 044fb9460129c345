//! Words of other clusters, as a terminal may get them.

/// The line without what could end it or move the cursor.
pub(crate) fn printable(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
