//! What tests say while they run.

use std::io::Write;

pub use crate::harness::record::note;

/// Prints a line of a test that passes, too.
pub fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// [`note`](say::note) of what `format!` makes of its arguments.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::say::note(&format!($($text)*)) };
}
