//! The page of figures: tables between two markers, and charts, of one or several runs side by side.

mod chart;
mod charts;
mod details;
mod figures;
mod targets;

use std::{fs, path::Path};

use crate::run::Run;

pub(crate) use self::charts::draw;

const BEGIN: &str = "<!-- figures: written by `make bench` -->";
const END: &str = "<!-- end of figures -->";

/// Figures against targets, one column for each run, and all about the last of them.
pub(crate) fn tables(runs: &[Run]) -> String {
    let mut text = targets::table(runs);
    if let Some(last) = runs.last() {
        text.push_str(&details::tables(last));
    }
    text
}

/// Puts the tables between the markers of a page.
pub(crate) fn write(page: &Path, runs: &[Run]) {
    let text = fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{}: no {BEGIN}", page.display()));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{}: no {END}", page.display()));
    let tables = tables(runs);
    fs::write(page, format!("{before}{BEGIN}\n\n{tables}\n{END}{after}")).unwrap();
}

/// A line of a table.
fn row(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The first two lines of a table.
fn head(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    let line = format!("|{}\n", "---|".repeat(cells.len()));
    row(cells) + &line
}
