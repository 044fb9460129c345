//! The Go command: is it there, is it new enough.

use std::io;

use tokio::process::Command;

use super::{Error, module::Module};

/// A `go` command whose result depends on the module file, not on the user's settings for other work.
pub(super) fn command() -> Command {
    let mut command = Command::new("go");
    command.env("GOWORK", "off").env("GOFLAGS", "").env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local");
    command.kill_on_drop(true);
    command
}

/// An error unless Go can build the module. `what` is meant for users.
pub(super) async fn check(module: &Module, what: &str) -> Result<(), Error> {
    let needed = module.go().to_owned();
    let version = match command().args(["env", "GOVERSION"]).output().await {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("go").to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::NoGo { what: what.to_owned(), needed });
        }
        Err(source) => {
            return Err(Error::Cache { path: "go".into(), source });
        }
    };
    if is_older(&version, &needed) {
        return Err(Error::OldGo { what: what.to_owned(), found: version, needed });
    }
    Ok(())
}

/// A version that cannot be read (a development build) is not old.
fn is_older(found: &str, needed: &str) -> bool {
    match (numbers(found), numbers(needed)) {
        (Some(found), Some(needed)) => found < needed,
        _ => false,
    }
}

/// Major, minor and patch of `1.26.8`, `1.27rc1` or `1.26.3-custom`.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    for (index, part) in version.splitn(3, '.').enumerate() {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        numbers[index] = part[..end].parse().ok()?;
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        for (found, needed, older) in [
            ("1.26.8", "1.26.0", false),
            ("1.26.0", "1.26.0", false),
            ("1.9", "1.26.0", true),
            ("1.25.11", "1.26.0", true),
            ("1.27rc1", "1.26.0", false),
            ("1.26.3-custom X:something", "1.26.4", true),
            ("devel", "1.26.0", false),
        ] {
            assert_eq!(is_older(found, needed), older, "{found} {needed}");
        }
    }
}
