//! Starting a keeper: which program, and the pipe to it.

use std::{
    env,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::Ordering,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{ChildStdin, Command},
    sync::OnceCell,
    time::timeout,
};

use super::{
    CAN_BECOME_KEEPER, LEAVE, REMOVE, START,
    protocol::{Greeting, PROTOCOL},
};
use crate::layout::Layout;

/// The owner's end of the pipe: closed when dropped, and by the kernel when the owner dies. Other programs the
/// owner starts do not inherit it (the standard library opens pipes with `O_CLOEXEC`).
pub(crate) type Pipe = ChildStdin;

const GREETING_LIMIT: Duration = Duration::from_secs(30);

/// Why no keeper runs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This program cannot become a keeper, and the program `fleet` was not found nor built.
    #[error("the program `fleet`, which keeps the processes, could not be built: {0}")]
    NoProgram(String),
    /// It was started and did not get ready.
    #[error("the keeper of the processes does not start: {0}")]
    Failed(String),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Starts a keeper for the directory. It stops everything, and with `remove` clears the directory, when the
/// pipe is closed before it was told to detach.
pub(crate) async fn launch(layout: &Layout, remove: bool) -> Result<Pipe, Error> {
    let program = program().await?;
    let log = File::options()
        .create(true)
        .append(true)
        .open(layout.keeper_log())?;
    let mut starter = Command::new(program)
        .arg(START)
        .arg(layout.dir())
        .arg(if remove { REMOVE } else { LEAVE })
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

/// This program if it can, else `fleet`. A program that cargo started has cargo bring `fleet` up to date
/// first: `cargo test` of another package does not. Without cargo it is expected beside this program, or one
/// directory up, where cargo puts it relative to test programs.
async fn program() -> Result<PathBuf, Error> {
    static FOUND: OnceCell<PathBuf> = OnceCell::const_new();
    let own = Path::new(super::isolation::OWN_EXECUTABLE);
    if CAN_BECOME_KEEPER.load(Ordering::Relaxed) {
        return Ok(own.to_owned());
    }
    let found = FOUND.get_or_try_init(|| async {
        let exe = env::current_exe()?;
        let beside = |dir: &Path| Some(dir.join("fleet")).filter(|path| path.is_file());
        let dirs = || exe.ancestors().skip(1).take(2);
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        if let (Some(cargo), true) = (env::var_os("CARGO"), manifest.is_file()) {
            // target/<profile>/fleet for target/<profile>/deps/<test> as for target/<profile>/<program>.
            let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
            let built = Command::new(cargo)
                .args([
                    "build",
                    "--quiet",
                    "--package",
                    "fleet",
                    "--bin",
                    "fleet",
                    "--profile",
                    profile,
                ])
                .arg("--manifest-path")
                .arg(manifest)
                .output()
                .await?;
            if !built.status.success() {
                return Err(Error::NoProgram(
                    String::from_utf8_lossy(&built.stderr).into_owned(),
                ));
            }
        }
        dirs()
            .find_map(beside)
            .ok_or_else(|| Error::NoProgram(format!("not found near {}", exe.display())))
    });
    found.await.cloned()
}
