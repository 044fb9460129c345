//! Requests to a fleet's keeper.

use std::{fs::File, io, os::fd::AsRawFd, time::Duration};

use nix::sys::signal::Signal as Number;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time::{Instant, sleep, timeout},
};

use super::{
    identity::{end_leftover, is_alive},
    protocol::{ProcessSpec, ProcessState, Refusal, Reply, Request, Signal},
};
use crate::layout::Layout;

/// The three stages, each with the time after SIGTERM and after SIGKILL, take 75 seconds at worst.
const STOP_LIMIT: Duration = Duration::from_secs(80);
/// Stopping one process is the longest of the other requests.
const ANSWER_LIMIT: Duration = Duration::from_secs(45);
/// How long a keeper may take to end after its processes.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Why a request to a keeper failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No keeper runs for this directory.
    #[error("the fleet is not running")]
    Gone,
    /// The keeper refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It ended without an answer, which happens when the fleet is taken down meanwhile.
    #[error("the fleet ended meanwhile")]
    EndedMeanwhile,
    /// It runs but does not answer.
    #[error("the fleet's keeper does not answer: {0}")]
    NoAnswer(#[source] io::Error),
}

/// A client of the keeper of one directory.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    layout: Layout,
}

impl Client {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout }
    }

    pub(crate) async fn start(&self, spec: ProcessSpec) -> Result<(), Error> {
        self.ask(Request::Start(spec)).await.map(drop)
    }

    pub(crate) async fn signal(&self, name: &str, signal: Signal) -> Result<(), Error> {
        self.ask(Request::Signal { name: name.to_owned(), signal }).await.map(drop)
    }

    pub(crate) async fn stop(&self, name: &str) -> Result<(), Error> {
        self.ask(Request::Stop { name: name.to_owned() }).await.map(drop)
    }

    pub(crate) async fn detach(&self) -> Result<(), Error> {
        self.ask(Request::Detach).await.map(drop)
    }

    pub(crate) async fn list(&self) -> Result<Vec<ProcessState>, Error> {
        self.ask(Request::List).await
    }

    /// The process of this name, running or ended.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<ProcessState>, Error> {
        Ok(self.list().await?.into_iter().find(|process| process.name == name))
    }

    /// The process id of a process that runs.
    pub(crate) async fn pid(&self, name: &str) -> Result<u32, Error> {
        let running = self.find(name).await?.filter(|process| process.exit.is_none());
        let pid = running.and_then(|process| process.pid);
        pid.ok_or_else(|| Refusal::NotRunning(name.to_owned()).into())
    }

    /// Ends the keeper and all its processes, by force if it does not answer. The states it reports are the
    /// last ones; there are none if no keeper answers.
    pub(crate) async fn shut_down(&self) -> Vec<ProcessState> {
        let stopped = match self.ask(Request::Shutdown).await {
            Ok(stopped) => stopped,
            Err(Error::Refused(_)) => {
                // Another version: a signal is understood by all.
                end_leftover(&self.layout, Number::SIGTERM);
                self.ended(STOP_LIMIT).await;
                Vec::new()
            }
            Err(_) => Vec::new(),
        };
        if !self.ended(END_LIMIT).await {
            end_leftover(&self.layout, Number::SIGKILL);
            self.ended(END_LIMIT).await;
        }
        stopped
    }

    async fn ended(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while is_alive(&self.layout).is_some() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(Duration::from_millis(20)).await;
        }
        true
    }

    async fn ask(&self, request: Request) -> Result<Vec<ProcessState>, Error> {
        let limit = if matches!(request, Request::Shutdown) { STOP_LIMIT } else { ANSWER_LIMIT };
        let answer = timeout(limit, self.exchange(&request)).await;
        let line = answer.unwrap_or_else(|late| Err(Error::NoAnswer(late.into())))?;
        match serde_json::from_str(&line) {
            Ok(Reply::Done) => Ok(Vec::new()),
            Ok(Reply::Processes(processes)) => Ok(processes),
            Ok(Reply::Refused(refusal)) => Err(refusal.into()),
            Err(_) => Err(Refusal::OtherVersion.into()),
        }
    }

    async fn exchange(&self, request: &Request) -> Result<String, Error> {
        let mut stream = BufReader::new(self.connect().await?);
        let mut line = serde_json::to_vec(request).map_err(|error| Error::NoAnswer(error.into()))?;
        line.push(b'\n');
        let mut reply = String::new();
        let broken = |_| Error::EndedMeanwhile;
        stream.write_all(&line).await.map_err(broken)?;
        match stream.read_line(&mut reply).await.map_err(broken)? {
            0 => Err(Error::EndedMeanwhile),
            _ => Ok(reply),
        }
    }

    async fn connect(&self) -> Result<UnixStream, Error> {
        // Through /proc, since a socket's path is limited to 108 bytes and a directory's is not.
        let dir = File::open(self.layout.dir()).map_err(|_| Error::Gone)?;
        let path = format!("/proc/self/fd/{}/{}", dir.as_raw_fd(), Layout::SOCKET);
        UnixStream::connect(path).await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Error::Gone,
            _ => Error::NoAnswer(error),
        })
    }
}
