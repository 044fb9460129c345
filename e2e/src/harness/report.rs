//! The last lines of a run: what is wrong, one line each, and where the rest is. `.ci/run` repeats those that begin with `failed: ` and
//! `unsteady: `.

use std::{collections::BTreeMap, fmt::Write, ops::Range, time::Instant};

use super::{
    PREFIX,
    record::{self, Failure},
};

/// A test that ran.
pub(super) struct Ran {
    pub path: String,
    /// Its turn.
    pub turn: Range<Instant>,
    pub failure: Option<Failure>,
}

impl Ran {
    /// It is to run once more: what is kept of it gets out of the way.
    pub(super) fn set_aside(&mut self) {
        if let Some(failure) = &mut self.failure {
            failure.kept = record::set_aside(&self.path);
        }
    }
}

/// Prints them. `again` are those of `ran` that failed, and then ran alone.
pub(super) fn print(ran: &[Ran], again: &[Ran]) {
    print!("{}{}", folders(ran), failures(ran, again));
}

/// How many tests ran in each folder, and how long they took.
fn folders(ran: &[Ran]) -> String {
    let mut folders = BTreeMap::<String, (usize, f64)>::new();
    for ran in ran {
        let sum = folders.entry(folder(&ran.path)).or_default();
        *sum = (sum.0 + 1, sum.1 + (ran.turn.end - ran.turn.start).as_secs_f64());
    }
    let mut text = "tests  seconds (several run side by side)\n".to_owned();
    for (folder, (tests, seconds)) in folders {
        let _ = writeln!(text, "{tests:5}  {seconds:7.0}  {folder}");
    }
    text
}

/// `set/service` of `set::service::own::name`, `rights` of `rights::own::name`.
pub fn folder(path: &str) -> String {
    let (ground, path) = match path.strip_prefix(PREFIX) {
        Some(path) => ("simulated/", path),
        None => ("", path),
    };
    let modules: Vec<_> = path.split("::").collect();
    let parts = if modules[0] == "set" && modules.len() > 3 { 2 } else { 1 };
    format!("{ground}{}", modules[..parts].join("/"))
}

/// Lines `begin end test`, in seconds since the first turn began: what ran side by side.
pub(super) fn turns(ran: &[Ran]) -> String {
    let mut turns: Vec<_> = ran.iter().map(|ran| (ran.turn.start, ran.turn.end, &ran.path)).collect();
    turns.sort();
    let first = turns.first().map(|(start, ..)| *start);
    let seconds = |at: Instant| first.map_or(0.0, |first| (at - first).as_secs_f32());
    let line = |(start, end, path)| format!("{:.1}\t{:.1}\t{path}\n", seconds(start), seconds(end));
    turns.into_iter().map(line).collect()
}

fn failures(ran: &[Ran], again: &[Ran]) -> String {
    let mut text = String::new();
    for Ran { path, failure, .. } in ran {
        let Some(first) = failure else { continue };
        let second = again.iter().find(|again| again.path == *path).map(|again| &again.failure);
        let (what, failure) = match second {
            Some(None) => ("unsteady", first),
            Some(Some(second)) => ("failed", second),
            None => ("failed", first),
        };
        let _ = writeln!(text, "{what}: {path}: {}; kept: {}", failure.first_line(), failure.kept.display());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ran(path: &str, failure: Option<&str>) -> Ran {
        let failure =
            failure.map(|words| Failure { words: words.to_owned(), last: vec![], kept: "kept".into() });
        let begun = Instant::now();
        Ran { path: path.to_owned(), turn: begun..begun + Duration::from_millis(1500), failure }
    }

    #[test]
    fn a_test_that_passes_alone_is_unsteady_and_says_how_it_failed_at_first() {
        let all = [
            ran("a::passes", None),
            ran("a::late", Some("\nnot within 60s\nmore")),
            ran("b::broken", Some("first")),
        ];
        let again = [ran("a::late", None), ran("b::broken", Some("second"))];
        let said = "unsteady: a::late: not within 60s; kept: kept\nfailed: b::broken: second; kept: kept\n";
        assert_eq!(failures(&all, &again), said);
        assert!(failures(&all, &[]).starts_with("failed: a::late: not within 60s;"), "it did not run again");
    }

    #[test]
    fn tests_are_counted_by_folder() {
        let all =
            ["rights::own::a", "set::replicas::b", "set::service::own::c", "set::service::odd::deep::d"];
        let table = folders(&all.map(|path| ran(path, None)));
        let rows: Vec<_> =
            table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(rows, [["1", "2", "rights"], ["1", "2", "set"], ["2", "3", "set/service"]]);
    }
}
