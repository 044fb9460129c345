//! Dependencies point one way: between crates, and inside each crate between the modules of one parent. A circle fails with the files
//! that make it, one arrow a line.

#![cfg(test)]

mod failure_modes;
mod modules;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use modules::Crate;

/// Each crate of the workspace, and those it may use.
const CRATES: [(&str, &[&str]); 12] = [
    ("odd", &[]),
    ("api", &["odd"]),
    ("rules", &["api"]),
    ("picture", &["api", "rules"]),
    ("kit", &["api"]),
    ("presence", &["api", "kit", "odd"]),
    ("leader", &["api", "rules", "kit", "presence", "odd"]),
    ("member", &["api", "rules", "kit", "presence", "odd"]),
    ("webhook", &["api", "kit", "odd"]),
    ("cli", &["api", "picture", "kit"]),
    ("fleet", &["api", "cli"]),
    ("e2e", &["api", "picture", "kit", "presence", "cli", "fleet"]),
];

/// A crate, a module of it, and a module that it never uses, with what is below each: features are known by their table only, and
/// controllers do not use each other.
const NEVER: [(&str, &[&str], &[&str]); 11] = [
    ("member", &["session"], &["service"]),
    ("member", &["membership"], &["service"]),
    ("member", &["service", "index"], &["service", "offer"]),
    ("member", &["service", "export"], &["service", "import"]),
    ("member", &["service", "export"], &["service", "status"]),
    ("member", &["service", "import"], &["service", "export"]),
    ("member", &["service", "import"], &["service", "status"]),
    ("member", &["service", "status"], &["service", "export"]),
    ("member", &["service", "status"], &["service", "import"]),
    ("leader", &["area"], &["service"]),
    ("leader", &["cluster_set"], &["service"]),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("")
}

#[test]
fn crates_use_only_those_below_them() {
    let names: BTreeSet<_> = CRATES.iter().map(|(name, _)| *name).collect();
    for (name, below) in CRATES {
        let manifest = fs::read_to_string(workspace().join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        let used: BTreeSet<_> = dependencies.filter(|used| names.contains(used)).collect();
        let above: Vec<_> = used.iter().filter(|used| !below.contains(used)).collect();
        assert!(above.is_empty(), "{name}/Cargo.toml uses {above:?}; it may use {below:?}");
    }
}

#[test]
fn modules_of_one_parent_never_use_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for root in roots() {
        let uses = Crate::read(&root).circles();
        circles.extend(uses.iter().map(|used| format!("{} -> {}", short(&used.from), short(&used.to))));
    }
    assert!(circles.is_empty(), "these uses go in circles:\n{}", circles.join("\n"));
}

#[test]
fn nobody_reaches_past_the_table_of_features_or_into_another_controller() {
    for (name, by, to) in NEVER {
        let read = Crate::read(&workspace().join(name).join("src/lib.rs"));
        let used = read.uses_of(to, by).map(|used| format!("{} -> {}", short(&used.from), short(&used.to)));
        assert_eq!(used, None, "{} never uses {} in {name}", by.join("::"), to.join("::"));
        assert!(read.has(by) && read.has(to), "{} or {} is not in {name}", by.join("::"), to.join("::"));
    }
}

/// The root file of each crate, programs and test programs included.
fn roots() -> Vec<PathBuf> {
    let mut roots: Vec<_> =
        CRATES.iter().map(|(name, _)| workspace().join(name).join("src/lib.rs")).collect();
    for tests in CRATES.iter().map(|(name, _)| workspace().join(name).join("tests")) {
        let programs = fs::read_dir(tests).into_iter().flatten().flatten();
        let programs = programs.map(|program| program.path());
        roots.extend(programs.flat_map(|program| [program.join("main.rs"), program]));
    }
    roots.retain(|root| root.is_file() && root.extension().is_some_and(|rs| rs == "rs"));
    roots
}

fn short(file: &Path) -> String {
    file.strip_prefix(workspace()).unwrap_or(file).display().to_string()
}

#[test]
fn a_circle_is_found_also_through_a_name_that_the_parent_brings_in() {
    let dir = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = dir.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod c; use b::B;");
    write("a.rs", "mod below;");
    write(
        "a/below.rs",
        "use super::super::B; pub(crate) struct A(B); #[cfg(test)] mod tests { use crate::c::C; }",
    );
    write(
        "b.rs",
        "use crate::{a::below, c}; pub(crate) struct B; fn b(_: c::C) -> Option<below::A> { None }",
    );
    write("c.rs", "pub(crate) struct C(Option<crate::a::below::A>);");
    let circles = Crate::read(&dir.path().join("lib.rs")).circles();
    let files = circles.iter().map(|used| {
        let name = |file: &Path| file.strip_prefix(dir.path()).unwrap().display().to_string();
        (name(&used.from), name(&used.to))
    });
    let files: BTreeSet<_> = files.collect();
    for (from, to) in
        [("a/below.rs", "b.rs"), ("b.rs", "a/below.rs"), ("b.rs", "c.rs"), ("c.rs", "a/below.rs")]
    {
        assert!(files.contains(&(from.to_owned(), to.to_owned())), "{from} -> {to} is not in {files:?}");
    }
    assert_eq!(files.len(), 4, "{files:?}");
}
