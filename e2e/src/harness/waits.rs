//! How long tests waited, by kind: what the limits in `waiting` are chosen by.

use std::{
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::record;

/// So many of each kind are kept, the longest.
const OF_A_KIND: usize = 20;

/// So many characters of what was waited for are.
const SHOWN: usize = 100;

struct Wait {
    kind: &'static str,
    limit: Duration,
    took: Duration,
    test: String,
    what: String,
}

static WAITS: Mutex<Vec<Wait>> = Mutex::new(Vec::new());

/// A wait of this kind has ended, which may take so long (`limit`).
pub fn note((kind, limit): (&'static str, Duration), took: Duration, what: &str) {
    let wait = Wait { kind, limit, took, test: record::current(), what: what.chars().take(SHOWN).collect() };
    WAITS.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
}

/// The longest of each kind, one a line: seconds, limit, kind, test, and what it waited for.
pub(super) fn table() -> String {
    let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
    waits.sort_by(|one, other| one.kind.cmp(other.kind).then(other.took.cmp(&one.took)));
    let mut text = String::new();
    for of_a_kind in waits.chunk_by(|one, other| one.kind == other.kind) {
        for Wait { kind, limit, took, test, what } in of_a_kind.iter().take(OF_A_KIND) {
            let (took, most) = (took.as_secs_f64(), limit.as_secs());
            let _ = writeln!(text, "{took:7.1} {most:4} {kind}: {test}: {what}");
        }
    }
    text
}
