//! Building programs into the cache, once: all that are missing by one `go build`.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    time::{Instant, MissedTickBehavior, interval_at},
};

use super::{
    Error, Tool, go,
    lock::{interval, lock},
    minutes,
    module::{COMPILER_FLAGS, KUBERNETES, MODULE},
};
use crate::{disk, log_tail};

/// Compiling Kubernetes fills Go's own cache as well, which is mostly on the same disk.
const NEEDED_MIB: u64 = 4096;
const PARTIAL: &str = ".partial";
/// How many of Go's messages are kept for an error.
const KEPT_LINES: usize = 50;

/// Paths of the programs, after building those that are not in the cache.
pub(super) async fn cached(
    tools: &[Tool],
    cache: &Path,
    progress: &impl Fn(&str),
) -> Result<Vec<(Tool, PathBuf)>, Error> {
    let dir = cache.join(MODULE.directory());
    let missing =
        || tools.iter().copied().filter(|tool| !dir.join(tool.name()).is_file()).collect::<Vec<_>>();
    if !missing().is_empty() {
        fs::create_dir_all(&dir).map_err(Error::cache(&dir))?;
        let _lock = lock(&dir, progress).await?;
        // Another process may have built them while we waited.
        let missing = missing();
        if !missing.is_empty() {
            build(&missing, &dir, progress).await?;
        }
    }
    Ok(tools.iter().map(|tool| (*tool, dir.join(tool.name()))).collect())
}

async fn build(tools: &[Tool], dir: &Path, progress: &impl Fn(&str)) -> Result<(), Error> {
    let names = tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ");
    go::check(&MODULE, &names).await?;
    let free_mib = disk::free_mib(dir).map_err(Error::cache(dir))?;
    if free_mib < NEEDED_MIB {
        return Err(Error::DiskFull { dir: dir.to_owned(), free_mib, needed_mib: NEEDED_MIB });
    }
    progress(&format!(
        "building {names} (Kubernetes {}) from source: happens once, takes about {} min on 2 cores; kept in {}",
        MODULE.version(KUBERNETES),
        minutes(tools),
        dir.display()
    ));
    let source = dir.join("source");
    for (path, content) in MODULE.files() {
        let path = source.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&source)).map_err(Error::cache(&source))?;
        fs::write(&path, content).map_err(Error::cache(path))?;
    }
    let begun = Instant::now();
    let partial = fresh_partial(dir)?;
    go_build(tools, &source, &partial, progress).await?;
    for tool in tools {
        let built = partial.join(built_name(*tool));
        fs::rename(&built, dir.join(tool.name())).map_err(Error::cache(built))?;
    }
    fs::remove_dir_all(&partial).map_err(Error::cache(partial))?;
    progress(&format!("built {names} in {} s", begun.elapsed().as_secs()));
    Ok(())
}

/// An empty directory for what is built. Programs get their final place when all are complete, so that an interrupted build
/// leaves no half program; and a killed predecessor's linker may still be writing to its own.
fn fresh_partial(dir: &Path) -> Result<PathBuf, Error> {
    for entry in fs::read_dir(dir).map_err(Error::cache(dir))?.flatten() {
        if entry.path().extension() == Some(OsStr::new(&PARTIAL[1..])) {
            let _gone = fs::remove_dir_all(entry.path());
        }
    }
    let partial = dir.join(format!("{}{PARTIAL}", std::process::id()));
    fs::create_dir_all(&partial).map_err(Error::cache(&partial))?;
    Ok(partial)
}

/// What `go build` calls the program: the last element of its package's path that is no version.
fn built_name(tool: Tool) -> &'static str {
    let mut elements = tool.package().rsplit('/');
    let is_name = |element: &&str| !element.trim_start_matches('v').chars().all(|c| c.is_ascii_digit());
    elements.find(is_name).unwrap_or(tool.name())
}

async fn go_build(tools: &[Tool], source: &Path, into: &Path, progress: &impl Fn(&str)) -> Result<(), Error> {
    let mut child = go::command()
        // -v names each package when it is compiled, which shows progress.
        .args(["build", "-v", "-trimpath", "-mod=readonly"])
        .args(COMPILER_FLAGS.map(|flags| format!("-gcflags={flags}")))
        .args(["-ldflags", &MODULE.linker_flags(), "-o"])
        // With the slash, a directory, however many programs there are.
        .arg(into.join(""))
        .args(tools.iter().map(|tool| tool.package()))
        // The compiler collects its garbage less often: a seventh less CPU time for 100 MB more of memory.
        .env("GOGC", "300")
        .current_dir(source)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::cache(source))?;
    let mut output = Output::default();
    if let Some(stderr) = child.stderr.take() {
        output.follow(stderr, progress).await;
    }
    let status = child.wait().await.map_err(Error::cache(source))?;
    if status.success() { Ok(()) } else { Err(output.error(tools, status)) }
}

/// The output of `go build` so far.
#[derive(Default)]
struct Output {
    last: Vec<String>,
    downloaded: u32,
    compiled: u32,
}

impl Output {
    async fn follow(&mut self, stderr: impl AsyncRead + Unpin, progress: &impl Fn(&str)) {
        let begun = Instant::now();
        let mut lines = BufReader::new(stderr).lines();
        let mut tick = interval_at(begun + interval(), interval());
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.take(line),
                    Ok(None) | Err(_) => return,
                },
                _ = tick.tick() => progress(&format!(
                    "go build: {} s, {} modules downloaded, {} packages compiled",
                    begun.elapsed().as_secs(),
                    self.downloaded,
                    self.compiled
                )),
            }
        }
    }

    fn take(&mut self, line: String) {
        if line.starts_with("go: downloading ") {
            self.downloaded += 1;
        } else {
            self.compiled += 1;
        }
        self.last.push(line);
        if self.last.len() > 2 * KEPT_LINES {
            self.last.drain(..KEPT_LINES);
        }
    }

    fn error(&self, tools: &[Tool], status: ExitStatus) -> Error {
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        let tail = log_tail::of_text(&self.last.join("\n"));
        Error::Build { tools: names.join(", "), status: status.to_string(), tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_names_programs_after_their_packages() {
        assert_eq!(built_name(Tool::Etcd), "server");
        for tool in Tool::CONTROL_PLANE.into_iter().chain(Tool::NODE).filter(|tool| *tool != Tool::Etcd) {
            assert_eq!(built_name(tool), tool.name());
        }
    }
}
