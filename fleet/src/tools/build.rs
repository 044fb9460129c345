//! Building programs into the cache, once.

use std::{
    fs::{self, File, TryLockError},
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::{Instant, MissedTickBehavior, interval_at, sleep},
};

use super::{Error, Tool, go, module::Module};
use crate::{disk, log_tail};

/// Compiling Kubernetes fills Go's own cache as well, which is mostly on the same disk.
const NEEDED_MIB: u64 = 2048;
const PARTIAL: &str = ".partial";
/// How many of Go's messages are kept for an error.
const KEPT_LINES: usize = 50;

/// Paths of the module's programs, after building those that are not in the cache.
pub(super) async fn cached(
    module: &Module,
    tools: &[Tool],
    cache: &Path,
    progress: &impl Fn(&str),
) -> Result<Vec<(Tool, PathBuf)>, Error> {
    let dir = cache.join(module.directory());
    let missing =
        || tools.iter().copied().filter(|tool| !dir.join(tool.name()).is_file()).collect::<Vec<_>>();
    if !missing().is_empty() {
        fs::create_dir_all(&dir).map_err(in_cache(&dir))?;
        let _lock = lock(&dir.join("lock"), progress).await?;
        // Another process may have built them while we waited.
        let missing = missing();
        if !missing.is_empty() {
            build_all(module, &missing, &dir, progress).await?;
        }
    }
    Ok(tools.iter().map(|tool| (*tool, dir.join(tool.name()))).collect())
}

/// Released when the file is dropped, and by the kernel when this process dies.
async fn lock(path: &Path, progress: &impl Fn(&str)) -> Result<File, Error> {
    let file = File::options().create(true).write(true).truncate(false).open(path).map_err(in_cache(path))?;
    let mut said = Instant::now();
    let mut waited = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if waited && said.elapsed() < interval() => {}
            Err(TryLockError::WouldBlock) => {
                progress("another process is building the Kubernetes programs; waiting for it");
                (said, waited) = (Instant::now(), true);
            }
            Err(TryLockError::Error(source)) => return Err(in_cache(path)(source)),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn build_all(
    module: &Module,
    tools: &[Tool],
    dir: &Path,
    progress: &impl Fn(&str),
) -> Result<(), Error> {
    let names = tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ");
    go::check(module, &names).await?;
    let free_mib = disk::free_mib(dir).map_err(in_cache(dir))?;
    if free_mib < NEEDED_MIB {
        return Err(Error::DiskFull { dir: dir.to_owned(), free_mib, needed_mib: NEEDED_MIB });
    }
    let minutes: u32 = tools.iter().map(|tool| tool.minutes()).sum();
    progress(&format!(
        "building {names} {} from source: happens once, takes about {minutes} min on 2 cores; kept in {}",
        module.version(),
        dir.display()
    ));
    let source = dir.join("source");
    fs::create_dir_all(&source).map_err(in_cache(&source))?;
    for (file, content) in [("go.mod", module.go_mod), ("go.sum", module.go_sum)] {
        fs::write(source.join(file), content).map_err(in_cache(&source))?;
    }
    for entry in fs::read_dir(dir).map_err(in_cache(dir))?.flatten() {
        if entry.file_name().to_string_lossy().ends_with(PARTIAL) {
            let _gone = fs::remove_file(entry.path());
        }
    }
    for tool in tools {
        build(module, *tool, dir, &source, progress).await?;
    }
    Ok(())
}

async fn build(
    module: &Module,
    tool: Tool,
    dir: &Path,
    source: &Path,
    progress: &impl Fn(&str),
) -> Result<(), Error> {
    // Not under the final name, so that an interrupted build leaves no half program; and not under the name
    // that a killed predecessor's compiler may still be writing to.
    let partial = dir.join(format!("{}.{}{PARTIAL}", tool.name(), std::process::id()));
    let start = Instant::now();
    let mut child = go::command()
        // -v names each package when it is compiled, which shows that something goes on.
        .args(["build", "-v", "-trimpath", "-mod=readonly", "-ldflags", &module.linker_flags(), "-o"])
        .arg(&partial)
        .arg(tool.package())
        .current_dir(source)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(in_cache(source))?;
    let mut said = Vec::new();
    let (mut downloaded, mut compiled) = (0_u32, 0_u32);
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        let mut tick = interval_at(start + interval(), interval());
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => {
                        if line.starts_with("go: downloading ") {
                            downloaded += 1;
                        } else {
                            compiled += 1;
                        }
                        said.push(line);
                        if said.len() > 2 * KEPT_LINES {
                            said.drain(..KEPT_LINES);
                        }
                    }
                    Ok(None) | Err(_) => break,
                },
                _ = tick.tick() => progress(&format!(
                    "{}: {} s, {downloaded} modules downloaded, {compiled} packages compiled",
                    tool.name(),
                    start.elapsed().as_secs()
                )),
            }
        }
    }
    let status = child.wait().await.map_err(in_cache(source))?;
    if !status.success() {
        let _absent = fs::remove_file(&partial);
        let tail = log_tail::of_text(&said.join("\n"));
        return Err(Error::Build { tool: tool.name(), status: status.to_string(), tail });
    }
    fs::rename(&partial, dir.join(tool.name())).map_err(in_cache(dir))?;
    progress(&format!("{}: built in {} s", tool.name(), start.elapsed().as_secs()));
    Ok(())
}

fn interval() -> Duration {
    Duration::from_secs(if io::stderr().is_terminal() { 10 } else { 30 })
}

fn in_cache(path: &Path) -> impl FnOnce(io::Error) -> Error {
    |source| Error::Cache { path: path.to_owned(), source }
}
