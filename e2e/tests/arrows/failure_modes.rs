//! docs/failure-modes.md names tests that exist.

use std::{fs, path::Path};

/// The text of all sources below a folder.
fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_failure_modes_name_is_there() {
    let workspace = super::workspace();
    let mut text = String::new();
    sources(&workspace, &mut text);
    let page = fs::read_to_string(workspace.join("docs/failure-modes.md")).unwrap();
    let quoted = page.split('`').skip(1).step_by(2);
    let names: Vec<_> = quoted.filter_map(|quoted| Some(quoted.rsplit_once("::")?.1)).collect();
    assert!(names.len() > 20, "{names:?}");
    let functions = names.iter().filter(|name| name.contains('_'));
    let missing: Vec<_> = functions.filter(|name| !text.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
