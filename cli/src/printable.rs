//! Words of other clusters, as a terminal may get them, and tables.

pub(crate) use api::words::printable;

/// The rows as lines, in columns that are as wide as their widest cell.
pub(crate) fn table<R: AsRef<[String]>>(rows: &[R]) -> Vec<String> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.as_ref().len()), 0);
        for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &R| {
        let cells: Vec<_> =
            row.as_ref().iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
