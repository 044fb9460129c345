//! The tests of the workspace, as their attributes tell.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// By its attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `#[test]`, or one of tokio's.
    Unit,
    /// `#[e2e::test]`.
    WholeSystem,
    /// `#[e2e::test(real)]`.
    OnRealPrograms,
}

/// A test.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    /// Where it is, from the workspace on.
    pub file: String,
    /// Its function.
    pub name: String,
    pub kind: Kind,
    /// `#[ignore]`.
    pub is_ignored: bool,
}

impl Test {
    /// The rules it names, as `7` and `6a`: `37` and `39` of `r37_r39_conflicts_are_told`.
    pub(crate) fn rules(&self) -> Vec<&str> {
        rules(&self.name)
    }

    /// `folder::file::name` of a whole-system test.
    pub(crate) fn path(&self) -> Option<String> {
        let module = self.file.strip_prefix("e2e/tests/").filter(|_| self.kind != Kind::Unit)?;
        let module = module.strip_suffix("/mod.rs").or_else(|| module.strip_suffix(".rs"))?;
        Some(format!("{}::{}", module.replace('/', "::"), self.name))
    }
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
            tests.extend(functions(&text).into_iter().map(|function| Test {
                file: file.clone(),
                name: function.name.to_owned(),
                kind: function.kind,
                is_ignored: function.is_ignored,
            }));
        }
    }
    Ok(())
}

/// A test function.
#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    kind: Kind,
    is_ignored: bool,
}

/// The test functions in a source file.
fn functions(text: &str) -> Vec<Function<'_>> {
    let (mut found, mut attribute, mut is_ignored) = (Vec::new(), None, false);
    for line in text.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        let name = function.and_then(|rest| rest.split(['(', '<']).next());
        if let (Some(name), Some(kind)) = (name, attribute) {
            found.push(Function { name, kind, is_ignored });
        }
        is_ignored = line.starts_with("#[ignore") || is_ignored && line.starts_with(['#', '/']);
        attribute = match line {
            "#[test]" => Some(Kind::Unit),
            "#[e2e::test]" => Some(Kind::WholeSystem),
            "#[e2e::test(real)]" => Some(Kind::OnRealPrograms),
            _ if line.starts_with("#[tokio::test") => Some(Kind::Unit),
            // Between the attribute and its function there are other attributes and comments alone.
            _ if line.starts_with("#[") || line.starts_with("//") => attribute,
            _ => None,
        };
    }
    found
}

fn rules(name: &str) -> Vec<&str> {
    let rule = |word: &'_ str| {
        let number = word.strip_prefix('r').unwrap_or_default();
        let digits = number.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number && number.len() - digits.len() <= 1
    };
    name.split('_').take_while(|word| rule(word)).map(|word| &word[1..]).collect()
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
        #[A]
        #[ignore = \"slow\"]
        // Why.
        fn a() {}
        fn helps() {}
        #[tokio::A(flavor = \"current_thread\")]
        async fn b() {}
        #[e2e::A]
        fn whole() {}
        #[e2e::A(real)]
        async fn real() {}
            #[A]
            fn order(offers in offers()) {}
    ";
    // Not to be found here.
    let text = text.replace('A', "test");
    let found: Vec<_> =
        functions(&text).iter().map(|found| (found.name, found.kind, found.is_ignored)).collect();
    let plain = |name| (name, Kind::Unit, false);
    let whole = [("whole", Kind::WholeSystem, false), ("real", Kind::OnRealPrograms, false)];
    assert_eq!(found, [("a", Kind::Unit, true), plain("b"), whole[0], whole[1], plain("order")]);
}

#[test]
fn a_whole_system_test_is_named_by_its_file() {
    let test = |file: &str, kind| {
        let (file, name, is_ignored) = (file.into(), "t".into(), false);
        Test { file, name, kind, is_ignored }
    };
    assert_eq!(
        test("e2e/tests/set/service/own.rs", Kind::WholeSystem).path().as_deref(),
        Some("set::service::own::t")
    );
    assert_eq!(test("e2e/tests/nodes/mod.rs", Kind::OnRealPrograms).path().as_deref(), Some("nodes::t"));
    assert_eq!(test("e2e/tests/arrows/main.rs", Kind::Unit).path(), None);
}
