//! The keeper's processes: start, reap, signal, stop.

use std::{
    collections::BTreeMap,
    fs::{DirBuilder, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{
        signal::{Signal as Number, kill},
        wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid},
    },
    unistd::Pid,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    isolation::Isolation,
    protocol::{Exit, ProcessSpec, ProcessState, Refusal, Signal, Stage},
};

/// How long a process may take to end after SIGTERM, and to stop after SIGSTOP.
const GRACE: Duration = Duration::from_secs(10);
/// The same for daemons, which promise to end within 20 seconds.
const DAEMON_GRACE: Duration = Duration::from_secs(25);
/// How long the kernel may take to end a process after SIGKILL.
const KILL_GRACE: Duration = Duration::from_secs(10);

/// How often a wait for processes polls.
const POLL: Duration = Duration::from_millis(20);

pub(super) struct Table {
    dir: PathBuf,
    isolation: Isolation,
    entries: Mutex<BTreeMap<String, Entry>>,
    changed: watch::Sender<()>,
}

struct Entry {
    pid: Pid,
    outer_pid: Option<u32>,
    log: PathBuf,
    stage: Stage,
    exit: Option<Exit>,
}

impl Table {
    pub(super) fn new(dir: PathBuf, isolation: Isolation) -> Self {
        Self { dir, isolation, entries: Mutex::default(), changed: watch::channel(()).0 }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn list(&self) -> Vec<ProcessState> {
        self.entries()
            .iter()
            .map(|(name, entry)| ProcessState {
                name: name.clone(),
                pid: entry.outer_pid,
                log: entry.log.clone(),
                stage: entry.stage,
                exit: entry.exit.clone(),
            })
            .collect()
    }

    /// Must be called on the thread that lives as long as the keeper: a parent-death signal follows the thread.
    pub(super) fn start(&self, spec: &ProcessSpec) -> Result<(), Refusal> {
        let mut entries = self.entries();
        if entries.get(&spec.name).is_some_and(|entry| entry.exit.is_none()) {
            return Err(Refusal::AlreadyRunning(spec.name.clone()));
        }
        let log = spec.log.clone().unwrap_or_else(|| self.default_log(&spec.name));
        let inside = match &spec.inside {
            None => None,
            Some(machine) => match entries.get(machine) {
                Some(entry) if entry.exit.is_none() => Some(entry.pid),
                _ => return Err(Refusal::NotRunning(machine.clone())),
            },
        };
        let pid = self
            .spawn(spec, inside, &log)
            .map_err(|error| Refusal::Spawn { name: spec.name.clone(), reason: error.to_string() })?;
        let entry =
            Entry { pid, outer_pid: self.isolation.outer_pid(pid), log, stage: spec.stage, exit: None };
        entries.insert(spec.name.clone(), entry);
        Ok(())
    }

    fn default_log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{}.log", name.replace('/', "-")))
    }

    fn spawn(&self, spec: &ProcessSpec, inside: Option<Pid>, log: &Path) -> io::Result<Pid> {
        if let Some(parent) = log.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let out = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
        let mut command = self.isolation.command(&spec.program, inside);
        command.args(&spec.args).env_clear().stdin(Stdio::null()).stderr(out.try_clone()?).stdout(out);
        inherit(&mut command, &["PATH", "HOME", "TMPDIR"]);
        // The handle is dropped: `reap` waits for every child, adopted ones included.
        let child = command.envs(&spec.env).spawn()?;
        Ok(Pid::from_raw(child.id().cast_signed()))
    }

    /// Notes every child that has ended.
    pub(super) fn reap(&self) {
        loop {
            let (pid, exit) = match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) => (pid, Exit::Status(status)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Exit::Signal(signal.to_string())),
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(_) => break,
            };
            let mut entries = self.entries();
            let ended = entries.iter_mut().find(|(_, entry)| entry.pid == pid && entry.exit.is_none());
            if let Some((name, entry)) = ended {
                let pid = entry.outer_pid.map_or("?".into(), |pid| pid.to_string());
                eprintln!("{} {name} (pid {pid}) ended: {exit}", jiff::Timestamp::now());
                entry.exit = Some(exit);
            }
        }
        self.changed.send_replace(());
    }

    pub(super) fn signal(&self, name: &str, signal: Signal) -> Result<(), Refusal> {
        let number = match signal {
            Signal::Terminate => Number::SIGTERM,
            Signal::Kill => Number::SIGKILL,
            Signal::Pause => Number::SIGSTOP,
            Signal::Resume => Number::SIGCONT,
        };
        match self.entries().get(name) {
            Some(entry) if entry.exit.is_none() => {
                kill(entry.pid, number).map_err(|_| Refusal::NotRunning(name.to_owned()))
            }
            _ => Err(Refusal::NotRunning(name.to_owned())),
        }
    }

    /// SIGSTOP. Waits until all threads of the process have stopped: those that run go on for a moment.
    pub(super) async fn pause(&self, name: &str) -> Result<(), Refusal> {
        self.signal(name, Signal::Pause)?;
        let has_stopped = async {
            let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            while let Some(pid) = self.running(name) {
                if let Ok(WaitStatus::Stopped(..)) | Err(_) = waitid(Id::Pid(pid), flags) {
                    break;
                }
                sleep(POLL).await;
            }
        };
        // Somebody else may let it go on meanwhile.
        let _resumed = timeout(GRACE, has_stopped).await;
        Ok(())
    }

    fn running(&self, name: &str) -> Option<Pid> {
        self.entries().get(name).filter(|entry| entry.exit.is_none()).map(|entry| entry.pid)
    }

    /// SIGTERM, then SIGKILL. Waits for the end of the process.
    pub(super) async fn stop(&self, name: &str) -> Result<(), Refusal> {
        self.signal(name, Signal::Terminate)?;
        self.end(&[name.to_owned()]).await;
        Ok(())
    }

    /// Stops everything, stage by stage.
    pub(super) async fn stop_all(&self) {
        for stage in Stage::IN_ORDER {
            let names: Vec<String> = self
                .entries()
                .iter()
                .filter(|(_, entry)| entry.stage == stage && entry.exit.is_none())
                .map(|(name, _)| name.clone())
                .collect();
            for name in &names {
                let _gone = self.signal(name, Signal::Terminate);
            }
            self.end(&names).await;
            if stage == Stage::Node && self.entries().values().any(|entry| entry.stage == Stage::Machine) {
                self.end_pods().await;
            }
        }
    }

    /// Kills what nodes have left behind, before an API server waits for it, and waits until the kernel is done
    /// with it.
    async fn end_pods(&self) {
        let deadline = Instant::now() + KILL_GRACE;
        loop {
            let ours: Vec<Pid> = self.entries().values().map(|entry| entry.pid).collect();
            if !self.isolation.kill_others(&ours) {
                return;
            }
            if Instant::now() >= deadline {
                eprintln!("{} Pods are still there after SIGKILL", jiff::Timestamp::now());
                return;
            }
            sleep(POLL).await;
            self.reap();
        }
    }

    /// Waits for processes that were sent SIGTERM and kills those that do not follow.
    async fn end(&self, names: &[String]) {
        for name in names {
            // A paused process would sleep through its SIGTERM.
            let _gone = self.signal(name, Signal::Resume);
        }
        let is_daemon = |name| self.entries().get(name).is_some_and(|entry| entry.stage == Stage::Daemon);
        let grace = if names.iter().any(is_daemon) { DAEMON_GRACE } else { GRACE };
        if timeout(grace, self.ended(names)).await.is_ok() {
            return;
        }
        for name in names {
            if self.signal(name, Signal::Kill).is_ok() {
                eprintln!("{} {name}: did not end in time, killed", jiff::Timestamp::now());
            }
        }
        if timeout(KILL_GRACE, self.ended(names)).await.is_err() {
            eprintln!("{} {names:?}: still there after SIGKILL", jiff::Timestamp::now());
        }
    }

    async fn ended(&self, names: &[String]) {
        let mut changed = self.changed.subscribe();
        while names.iter().any(|name| self.entries().get(name).is_some_and(|entry| entry.exit.is_none())) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

fn inherit(command: &mut Command, keys: &[&str]) {
    for key in keys {
        if let Some(value) = std::env::var_os(key) {
            command.env(key, value);
        }
    }
}
