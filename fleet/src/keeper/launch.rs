//! Starting a keeper: which program, and the pipe to it.

use std::{fs::File, io, path::PathBuf, process::Stdio, sync::atomic::Ordering, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{ChildStdin, Command},
    sync::OnceCell,
    time::timeout,
};

use super::{
    CAN_BECOME_KEEPER, START,
    isolation::OWN_EXECUTABLE,
    protocol::{Greeting, PROTOCOL},
};
use crate::{cgroup::Hierarchy, layout::Layout, program};

/// The owner's end of the pipe: closed when dropped, and by the kernel when the owner dies. Other programs the
/// owner starts do not inherit it (the standard library opens pipes with `O_CLOEXEC`).
pub(crate) type Pipe = ChildStdin;

const GREETING_LIMIT: Duration = Duration::from_secs(30);

/// Why no keeper runs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This program cannot become a keeper, and the program `fleet`, which can, is missing.
    #[error("no program can be the keeper: {0}")]
    NoProgram(#[from] program::Error),
    /// It was started and did not get ready.
    #[error("the keeper of the processes does not start: {0}")]
    Failed(String),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What a keeper removes when its processes have ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Leftovers {
    pub(crate) cgroups: Vec<Hierarchy>,
    /// In this order, and not by a detached keeper.
    pub(crate) files: Option<Vec<PathBuf>>,
}

/// Starts a keeper for the directory. It stops everything when the pipe is closed before it was told to detach.
pub(crate) async fn launch(layout: &Layout, leftovers: &Leftovers) -> Result<Pipe, Error> {
    let program = keeper_program().await?;
    let log = File::options().create(true).append(true).open(layout.keeper_log())?;
    let mut starter = Command::new(program)
        .arg(START)
        .arg(layout.dir())
        .arg(serde_json::to_string(leftovers).map_err(io::Error::from)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let (Some(pipe), Some(stdout)) = (starter.stdin.take(), starter.stdout.take()) else {
        return Err(Error::Failed("no pipes".into()));
    };
    let mut line = String::new();
    let read = timeout(GREETING_LIMIT, BufReader::new(stdout).read_line(&mut line)).await;
    starter.wait().await?;
    match (read, serde_json::from_str(&line)) {
        (Ok(Ok(_)), Ok(Greeting::Ready { protocol: PROTOCOL })) => Ok(pipe),
        (Ok(Ok(_)), Ok(Greeting::Failed(reason))) => Err(Error::Failed(reason)),
        _ => Err(Error::Failed(format!("see {}", layout.keeper_log().display()))),
    }
}

/// This program if it can, else `fleet`.
async fn keeper_program() -> Result<PathBuf, Error> {
    static FOUND: OnceCell<PathBuf> = OnceCell::const_new();
    if CAN_BECOME_KEEPER.load(Ordering::Relaxed) {
        return Ok(OWN_EXECUTABLE.into());
    }
    Ok(FOUND.get_or_try_init(|| program::path("fleet", "fleet")).await?.clone())
}
