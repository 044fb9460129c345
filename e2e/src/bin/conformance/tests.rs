//! Tests of the workspace that name rules: a test function whose name begins with `r<number>_`, or several of these.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A test that shows rules.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    /// Where it is, from the workspace on.
    pub file: String,
    /// Its function.
    pub name: String,
    /// The rules it names, as `7` and `6a`.
    pub rules: Vec<String>,
}

/// All of them, in the order of files and names.
pub(crate) fn find(workspace: &Path) -> Result<Vec<Test>, (PathBuf, io::Error)> {
    let mut tests = Vec::new();
    walk(workspace, workspace, &mut tests)?;
    tests.sort();
    Ok(tests)
}

fn walk(workspace: &Path, folder: &Path, tests: &mut Vec<Test>) -> Result<(), (PathBuf, io::Error)> {
    let failed = |error| (folder.to_owned(), error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().map_err(failed)?.is_dir() {
            let is_built = name == "target" && folder == workspace;
            if !is_built && !name.starts_with('.') {
                walk(workspace, &path, tests)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| (path.clone(), error))?;
            let file = path.strip_prefix(workspace).unwrap_or(&path).display().to_string();
            tests.extend(named(&text).map(|name| Test {
                file: file.clone(),
                rules: rules(name),
                name: name.to_owned(),
            }));
        }
    }
    Ok(())
}

/// Names of the test functions in a source file that name rules.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().map(str::trim).filter_map(move |line| {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        let name = function.and_then(|rest| rest.split(['(', '<']).next());
        let found = name.filter(|name| is_test && !rules(name).is_empty());
        // Between the attribute and its function there are other attributes and comments alone.
        is_test = line == "#[test]"
            || line.starts_with("#[tokio::test")
            || is_test && (line.starts_with("#[") || line.starts_with("//"));
        found
    })
}

/// The rules a name begins with: `37` and `39` of `r37_r39_conflicts_are_told`.
fn rules(name: &str) -> Vec<String> {
    let rule = |word: &str| {
        let number = word.strip_prefix('r')?;
        let digits = number.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && number.len() - digits.len() <= 1).then(|| number.to_owned())
    };
    name.split('_').map_while(rule).collect()
}

#[test]
fn rules_are_what_a_name_begins_with() {
    assert_eq!(rules("r7_nothing_is_exported"), ["7"]);
    assert_eq!(rules("r37_r39_r6a_all_are_told_r4"), ["37", "39", "6a"]);
    for none in ["records_r7", "r_7", "ready_again", "r7x9_odd", "7_r"] {
        assert!(rules(none).is_empty(), "{none}");
    }
}

#[test]
fn only_tests_are_found() {
    let text = "
        #[test]
        #[ignore = \"slow\"]
        // Why.
        fn R1_a() {}
        fn R2_helps() {}
        #[tokio::test(flavor = \"current_thread\")]
        async fn R3_r4_b() {}
        #[test]
        fn other() {}
            #[test]
            fn R5_order(offers in offers()) {}
    ";
    // Not to be found here.
    let text = text.replace("fn R", "fn r");
    assert_eq!(named(&text).collect::<Vec<_>>(), ["r1_a", "r3_r4_b", "r5_order"]);
}
