//! Lines that are shown of tests that pass, too.

use std::io::Write;

/// Prints a line that the test runner shows even if the test passes.
pub fn say(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
