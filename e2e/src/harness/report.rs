//! The last lines of a run: what is wrong, one line each, and where the rest is. `.ci/run` repeats those that begin with `failed: ` and
//! `unsteady: `.

use std::{collections::BTreeMap, fmt::Write};

use super::record::Failure;

/// A test that ran.
pub(super) struct Ran {
    pub path: String,
    /// Without the wait for its turn.
    pub seconds: f64,
    pub failure: Option<Failure>,
}

/// Prints them. `again` are those of `ran` that failed, and then ran alone.
pub(super) fn print(ran: &[Ran], again: &[Ran]) {
    print!("{}{}", folders(ran), wrong(ran, again));
}

/// How many tests ran in each folder, and how long they took.
fn folders(ran: &[Ran]) -> String {
    let mut folders = BTreeMap::<String, (usize, f64)>::new();
    for ran in ran {
        let mut parts = ran.path.split("::");
        let folder: Vec<_> = parts.by_ref().take(2).collect();
        // What comes after two parts is a test of a file, or a file of a folder.
        let name = if parts.next().is_some() { folder.join("/") } else { folder[0].to_owned() };
        let sum = folders.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + ran.seconds);
    }
    let mut text = "tests  seconds (several run side by side)\n".to_owned();
    for (folder, (tests, seconds)) in folders {
        let _ = writeln!(text, "{tests:5}  {seconds:7.0}  {folder}");
    }
    text
}

fn wrong(ran: &[Ran], again: &[Ran]) -> String {
    let mut text = String::new();
    for Ran { path, failure, .. } in ran {
        let Some(first) = failure else { continue };
        let second = again.iter().find(|again| again.path == *path).map(|again| &again.failure);
        let _ = match second {
            Some(None) => writeln!(text, "unsteady: {path}: {}", first.in_a_line()),
            Some(Some(failure)) => {
                writeln!(text, "failed: {path}: {}; kept: {}", failure.in_a_line(), failure.kept.display())
            }
            None => writeln!(text, "failed: {path}: {}; kept: {}", first.in_a_line(), first.kept.display()),
        };
    }
    text
}
