//! A program that was run, and how it ended.

use std::{fmt, path::Path, process::Stdio};

use e2e::{waiting::COMMAND, world::World};
use fleet::program;
use tokio::{io::AsyncWriteExt, process::Command};

/// How a line begins that keeps nobody from going on.
const WARNING: &str = "warning: ";

/// A program that has ended.
pub(crate) struct Ran {
    line: String,
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `program` with the words of `line` as arguments and `stdin` as input.
pub(crate) async fn run(program: &Path, line: &str, env: &[(&str, &Path)], stdin: &str) -> Ran {
    let mut command = Command::new(program);
    command.args(line.split_whitespace()).envs(env.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let line = format!("{} {line}", program.file_name().unwrap_or_default().display());
    let ended = async {
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // Whoever ends early does not read it.
        drop(input.write_all(stdin.as_bytes()).await);
        drop(input);
        child.wait_with_output().await.unwrap()
    };
    let ended = tokio::time::timeout(COMMAND.time, ended).await;
    let ended = ended.unwrap_or_else(|_| panic!("{line}: no end within {:?}", COMMAND.time));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { line, code: ended.status.code(), stdout: text(ended.stdout), stderr: text(ended.stderr) }
}

/// Runs `freeport status` for a cluster of the real fleet.
pub(crate) async fn status(world: &World, context: &str) -> Ran {
    let program = program::path("cli", "freeport").await.unwrap();
    let (line, kubeconfig) = (format!("status --context {context}"), world.real().fleet.kubeconfig());
    run(&program, &line, &[("KUBECONFIG", &kubeconfig)], "").await
}

/// What a command that installs says it changed.
pub(crate) fn touched(said: &str) -> Vec<&str> {
    said.lines().filter(|line| !line.starts_with("next: ") && !is_unchanged(line)).collect()
}

/// Whether the line is of objects or a file that the command left as they were.
pub(crate) fn is_unchanged(line: &str) -> bool {
    line.ends_with("already as it should be")
        || line.ends_with("already as they should be")
        || line.contains(": unchanged ")
}

impl Ran {
    /// It ended with 0. What it printed.
    pub(crate) fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout
    }

    /// It could not be done: it ended with 3 and one clear line, which says all of `parts`. What it printed before that.
    pub(crate) fn refused(self, parts: &[&str]) -> String {
        self.ended_in_one_line(3, parts)
    }

    /// An argument was wrong, or `--yes` is missing: it ended with 2 and one clear line, which says all of `parts`. What it printed before that.
    pub(crate) fn misused(self, parts: &[&str]) -> String {
        self.ended_in_one_line(2, parts)
    }

    /// A wait ran out: it ended with 4 and one clear line, which says all of `parts`. What it printed before that.
    pub(crate) fn timed_out(self, parts: &[&str]) -> String {
        self.ended_in_one_line(4, parts)
    }

    fn ended_in_one_line(self, code: i32, parts: &[&str]) -> String {
        assert_eq!(self.code, Some(code), "{self}");
        let errors: Vec<_> = self.stderr.lines().filter(|line| !line.starts_with(WARNING)).collect();
        let [error] = errors[..] else { panic!("one line says it: {self}") };
        assert!(error.starts_with("freeport: "), "{self}");
        for part in parts {
            assert!(error.contains(part), "says {part:?}: {self}");
        }
        self.stdout
    }

    /// It did what it was asked to, and warned in one line that says all of `parts`.
    pub(crate) fn warned(&self, parts: &[&str]) {
        assert_eq!(self.code, Some(0), "{self}");
        let warnings = self.stderr.lines().filter(|line| line.starts_with(WARNING));
        let said = warnings.filter(|line| parts.iter().all(|part| line.contains(part))).count();
        assert_eq!(said, 1, "warns once of {parts:?}: {self}");
    }

    /// It ended with this code and printed a report that says all of `parts`, and no error.
    pub(crate) fn reported(self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.stderr.as_str()), (Some(code), ""), "{self}");
        for part in parts {
            assert!(self.stdout.contains(part), "says {part:?}: {self}");
        }
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, code, stdout, stderr } = self;
        write!(f, "{line}\nexit code: {code:?}\nstdout:\n{stdout}\nstderr:\n{stderr}")
    }
}
