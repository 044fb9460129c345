//! Each row of docs/failure-modes.md names tests that exist, where it says: `folder/module::test` below e2e/tests, or
//! `crate: module::test`.

use std::{fs, path::Path};

/// The tests that a row names; none where it is no row with a test.
fn tests(row: &str) -> Option<Vec<&str>> {
    let cell = row.strip_suffix('|')?.rsplit('|').next()?.trim();
    let is_head = cell == "test" || cell.starts_with("---");
    (!is_head).then(|| cell.split('`').skip(1).step_by(2).collect())
}

fn is_there(workspace: &Path, name: &str) -> bool {
    let Some((modules, function)) = name.rsplit_once("::") else { return false };
    let (base, modules) = match modules.split_once(": ") {
        Some((of, modules)) => (format!("{of}/src"), modules.to_owned()),
        None => ("e2e/tests".to_owned(), modules.replace('/', "::")),
    };
    let modules: Vec<_> = modules.split("::").collect();
    // The longest path that is a file; what comes after that are modules in it.
    let found = (0..=modules.len()).rev().find_map(|count| {
        let stem = workspace.join(&base).join(modules[..count].join("/"));
        let files = [stem.with_extension("rs"), stem.join("mod.rs"), stem.join("lib.rs")];
        let text = files.iter().find_map(|file| fs::read_to_string(file).ok())?;
        Some((text, &modules[count..]))
    });
    found.is_some_and(|(text, within)| {
        text.contains(&format!("fn {function}("))
            && within.iter().all(|module| text.contains(&format!("mod {module} {{")))
    })
}

#[test]
fn every_row_of_the_failure_modes_names_tests_that_are_there() {
    let workspace = super::workspace();
    let page = fs::read_to_string(workspace.join("docs/failure-modes.md")).unwrap();
    let rows: Vec<_> = page.lines().filter_map(|row| Some((row, tests(row)?))).collect();
    assert!(rows.len() > 60, "{}", rows.len());
    for (row, tests) in rows {
        // As the row before.
        assert!(!tests.is_empty() || row.ends_with("| the same |"), "no test: {row}");
        let missing: Vec<_> = tests.iter().filter(|test| !is_there(&workspace, test)).collect();
        assert!(missing.is_empty(), "{missing:?} in {row}");
    }
}

#[test]
fn a_test_is_found_where_it_is_said_to_be_and_nowhere_else() {
    let workspace = super::workspace();
    assert!(is_there(&workspace, "kit: list::tests::all_pages_are_read_one_after_the_other"));
    assert!(!is_there(&workspace, "kit: watch::tests::all_pages_are_read_one_after_the_other"));
    assert!(!is_there(&workspace, "set/vanish/restore"), "no test");
}
