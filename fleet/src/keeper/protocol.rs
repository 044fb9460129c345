//! What a keeper and its clients say to each other: one JSON line each way per connection.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

/// Changes whenever a message changes, so that a keeper of another build is recognised.
pub(crate) const PROTOCOL: u32 = 2;

/// A process to run under a keeper's care.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSpec {
    /// Unique in the fleet; components are `<cluster>/<component>`.
    pub name: String,
    /// The executable, absolute.
    pub program: PathBuf,
    /// Arguments without the program's name.
    pub args: Vec<String>,
    /// The environment beside `PATH`, `HOME` and `TMPDIR`. Nothing else is inherited, so that a process does
    /// not depend on who started it.
    pub env: BTreeMap<String, String>,
    /// Where stdout and stderr are appended; `None` is `DIR/logs/<name>.log`.
    pub log: Option<PathBuf>,
    /// When it is stopped, compared with others.
    pub stage: Stage,
    /// The process whose network, mounts and cgroup it shares: a machine of the fleet.
    pub inside: Option<String>,
}

impl ProcessSpec {
    /// A daemon of this name without arguments.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            log: None,
            stage: Stage::Daemon,
            inside: None,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets one environment variable.
    #[must_use]
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(key.into(), value.into());
        self
    }

    /// Sets the log file.
    #[must_use]
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }
}

/// The order of stopping: what uses a server goes before the server. Started in the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// Whatever talks to the API servers: stopped first.
    Daemon,
    /// What makes a node.
    Node,
    /// kube-apiserver, kube-controller-manager and kube-scheduler.
    ControlPlane,
    /// etcd.
    Store,
    /// What all others of a cluster run in: stopped last.
    Machine,
}

impl Stage {
    pub(super) const IN_ORDER: [Self; 5] =
        [Self::Daemon, Self::Node, Self::ControlPlane, Self::Store, Self::Machine];
}

/// A signal that may be sent to a process of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGSTOP: connections stay open and nothing answers.
    Pause,
    /// SIGCONT.
    Resume,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It exited with this status.
    Status(i32),
    /// This signal ended it.
    Signal(String),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A process as its keeper knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessState {
    /// The name of its [`ProcessSpec`].
    pub name: String,
    /// Process id as seen outside of the keeper's PID namespace; `None` if that could not be found out.
    pub pid: Option<u32>,
    /// Its log file.
    pub log: PathBuf,
    /// When it is stopped, compared with others.
    pub stage: Stage,
    /// How it ended; `None` while it runs.
    pub exit: Option<Exit>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Start(ProcessSpec),
    Signal { name: String, signal: Signal },
    Stop { name: String },
    List,
    Detach,
    Shutdown,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done,
    Processes(Vec<ProcessState>),
    Refused(Refusal),
}

/// Why a keeper refused a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// A process of that name runs.
    #[error("a process named {0} is already running")]
    AlreadyRunning(String),
    /// No process of that name runs.
    #[error("no process named {0} is running")]
    NotRunning(String),
    /// The process could not be started at all.
    #[error("cannot start {name}: {reason}")]
    Spawn {
        /// Of the process.
        name: String,
        /// The operating system's.
        reason: String,
    },
    /// The keeper is stopping everything.
    #[error("the fleet is being stopped")]
    Stopping,
    /// The request was not understood.
    #[error("the fleet was started by another version of this program: take it down first")]
    OtherVersion,
}

/// The single line a keeper prints once it accepts requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    Ready { protocol: u32 },
    Failed(String),
}
