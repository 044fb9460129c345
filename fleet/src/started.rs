//! With what a running process was started, read from /proc, to decide whether it has to be restarted.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::ProcessSpec;

/// A process at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    /// Device and inode of its program. A program that was built anew has another inode, and the one that runs keeps its own.
    program: (u64, u64),
    args: Vec<String>,
    env: Vec<String>,
}

impl Started {
    /// Reads it for a process of this user.
    ///
    /// # Errors
    /// The process does not exist.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let strings = |file: &str| fs::read(proc.join(file)).map(|bytes| split(&bytes));
        let args = strings("cmdline")?.into_iter().skip(1).collect();
        Ok(Self { program: identity(&proc.join("exe"))?, args, env: strings("environ")? })
    }

    /// Whether starting `spec` now would give the same: program file, arguments, and environment as far as `spec` names it.
    pub(crate) fn matches(&self, spec: &ProcessSpec) -> bool {
        identity(&spec.program).is_ok_and(|program| program == self.program)
            && self.args == spec.args
            && spec.env.iter().all(|(key, value)| self.env.contains(&format!("{key}={value}")))
    }

    /// The argument after this flag.
    pub(crate) fn value_of(&self, flag: &str) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == flag)?;
        self.args.get(at + 1).map(String::as_str)
    }
}

fn identity(file: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(file).map(|file| (file.dev(), file.ino()))
}

fn split(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    bytes.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_itself_and_nothing_else() {
        let started = Started::of(std::process::id()).unwrap();
        let spec =
            || ProcessSpec::new("test", std::env::current_exe().unwrap()).args(std::env::args().skip(1));
        assert!(started.matches(&spec()));
        assert!(!started.matches(&spec().arg("--more")));
        assert!(!started.matches(&spec().env("FREEPORT_TEST_NEVER_SET", "1")));
        assert!(!started.matches(&ProcessSpec { program: "/bin/sh".into(), ..spec() }));
    }

    #[test]
    fn value_follows_its_flag() {
        let args = split(b"daemon\0--listen\0localhost:80\0--last\0").into_iter().skip(1).collect();
        let started = Started { program: (0, 0), args, env: Vec::new() };
        assert_eq!(started.value_of("--listen"), Some("localhost:80"));
        assert_eq!(started.value_of("--last"), None);
        assert_eq!(started.value_of("--other"), None);
    }
}
