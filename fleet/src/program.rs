//! Programs of this workspace that another of its programs starts: the keeper, the daemons.

use std::{
    env,
    ffi::OsStr,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::Stdio,
};

use serde::Deserialize;
use tokio::process::Command;

use crate::installed;

/// Why there is no such program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Cargo failed; its messages are on stderr.
    #[error("building {0} failed, see above")]
    Build(String),
    /// Neither built nor found.
    #[error("the program {name} was not found near {} and there is no cargo to build it", exe.display())]
    Missing {
        /// Of the program.
        name: String,
        /// This program.
        exe: PathBuf,
    },
    /// Cargo could not be run.
    #[error("cargo build: {0}")]
    Io(#[from] io::Error),
}

/// The path of a program of this workspace, up to date.
///
/// If cargo started this program (`cargo test`, `cargo run`), cargo builds the other one, optimized if this one is:
/// `cargo test` of one package does not build another's programs. Otherwise it is expected beside this program,
/// or a directory up, where cargo puts programs relative to tests.
///
/// It is linked as for an image if that is possible here: then it is linked once for both.
///
/// # Errors
/// See [`Error`].
pub async fn path(package: &str, name: &str) -> Result<PathBuf, Error> {
    match env::var_os("CARGO").filter(|_| manifest().is_file()) {
        Some(cargo) => {
            let linking = if installed::has_static_libc() { Linking::Static } else { Linking::Dynamic };
            build(&cargo, package, name, linking).await
        }
        None => {
            let exe = env::current_exe()?;
            let found = exe.ancestors().skip(1).take(2).map(|dir| dir.join(name)).find(|path| path.is_file());
            found.ok_or_else(|| Error::Missing { name: name.to_owned(), exe })
        }
    }
}

/// The path of a program of this workspace that needs no other file to run, for a container image. Always built by cargo.
///
/// # Errors
/// See [`Error`].
pub async fn static_path(package: &str, name: &str) -> Result<PathBuf, Error> {
    if !manifest().is_file() {
        return Err(Error::Missing { name: name.to_owned(), exe: env::current_exe()? });
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    build(&cargo, package, name, Linking::Static).await
}

/// Of the workspace.
fn manifest() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Linking {
    Dynamic,
    Static,
}

fn profile(package: &str) -> &'static str {
    match package {
        _ if cfg!(debug_assertions) => "dev",
        "leader" | "member" => "daemon",
        _ => "release",
    }
}

async fn build(cargo: &OsStr, package: &str, name: &str, linking: Linking) -> Result<PathBuf, Error> {
    let mut command = Command::new(cargo);
    command
        .args(["rustc", "--package", package, "--bin", name, "--message-format", "json-render-diagnostics"])
        .args(["--profile", profile(package)])
        .arg("--manifest-path")
        .arg(manifest())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    if !io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    if linking == Linking::Static {
        // For the program alone: what it is linked from is compiled alike for both, once.
        command.args(["--", "-C", "target-feature=+crt-static", "-C", "strip=debuginfo"]);
    }
    // The variables that cargo sets for the programs it runs look like a change to some build scripts (ring), and everything
    // above them would be compiled again each time.
    for (key, _) in env::vars_os() {
        if key.to_str().is_some_and(is_about_this_program) {
            command.env_remove(key);
        }
    }
    // `output` would keep what cargo says of errors.
    let output = command.spawn()?.wait_with_output().await?;
    let built = executable(&String::from_utf8_lossy(&output.stdout), name);
    built.filter(|_| output.status.success()).ok_or_else(|| Error::Build(name.to_owned()))
}

fn is_about_this_program(key: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|start| key.starts_with(start))
        || ["CARGO_PRIMARY_PACKAGE", "OUT_DIR"].contains(&key)
}

/// The executable in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    let mut executables =
        messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok()?.executable);
    executables.rfind(|path| path.file_name() == Some(OsStr::new(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_is_found_among_messages() {
        let messages = r#"{"reason":"compiler-artifact","executable":null}
{"reason":"compiler-artifact","executable":"/target/debug/other"}
{"reason":"compiler-artifact","executable":"/target/debug/fleet"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "fleet"), Some("/target/debug/fleet".into()));
        assert_eq!(executable(messages, "missing"), None);
    }

    #[test]
    fn settings_of_cargo_are_kept() {
        assert!(is_about_this_program("CARGO_PKG_NAME") && is_about_this_program("CARGO_MANIFEST_DIR"));
        assert!(!is_about_this_program("CARGO_HOME") && !is_about_this_program("CARGO_TARGET_DIR"));
    }
}
