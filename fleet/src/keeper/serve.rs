//! The keeper's main loop: owner's pipe, signals, requests.

use std::{
    env,
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream, unix::pipe},
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    identity,
    isolation::Isolation,
    launch::Leftovers,
    protocol::{Greeting, PROTOCOL, Refusal, Reply, Request, Signal},
    table::Table,
};
use crate::{cgroup, layout::Layout};

/// How long clients may take to read their last reply.
const FAREWELL: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    Stopping,
    Stopped,
}

struct Keeper {
    table: Table,
    phase: watch::Sender<Phase>,
    attached: AtomicBool,
}

/// Serves until the owner is gone, a client requests the end, or SIGTERM.
pub(super) async fn run(dir: PathBuf, isolation: Isolation, leftovers: Leftovers) -> io::Result<()> {
    let layout = Layout::new(&dir);
    let listener = match open(&layout, &isolation) {
        Ok(listener) => listener,
        Err(error) => return greet(&Greeting::Failed(error.to_string())),
    };
    let keeper = Arc::new(Keeper {
        table: Table::new(dir, isolation),
        phase: watch::channel(Phase::Serving).0,
        attached: AtomicBool::new(true),
    });
    let mut ended = signal(SignalKind::child())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut own = JoinSet::new();
    let reaper = Arc::clone(&keeper);
    own.spawn(async move {
        while ended.recv().await.is_some() {
            reaper.table.reap();
        }
    });
    let owned = Arc::clone(&keeper);
    own.spawn(async move {
        owner_gone().await;
        if owned.attached.load(Ordering::Relaxed) {
            owned.phase.send_replace(Phase::Stopping);
        }
    });
    greet(&Greeting::Ready { protocol: PROTOCOL })?;
    // The owner reads one line and may be gone before we are.
    nix::unistd::dup2_stdout(File::options().write(true).open("/dev/null")?)?;

    let mut phase = keeper.phase.subscribe();
    let mut clients = JoinSet::new();
    tokio::select! {
        _ = phase.wait_for(|phase| *phase >= Phase::Stopping) => {}
        _ = terminated.recv() => {}
        () = accept(&listener, &keeper, &mut clients) => {}
    }
    keeper.phase.send_replace(Phase::Stopping);
    // Requests that come meanwhile are refused.
    tokio::select! {
        () = keeper.table.stop_all() => {}
        () = accept(&listener, &keeper, &mut clients) => {}
    }
    cgroup::remove(&leftovers.cgroups).await?;
    if let Some(files) = leftovers.files.filter(|_| keeper.attached.load(Ordering::Relaxed)) {
        layout.remove(&files)?;
    }
    keeper.phase.send_replace(Phase::Stopped);
    let _late = timeout(FAREWELL, async { while clients.join_next().await.is_some() {} }).await;
    Ok(())
}

/// Never returns.
async fn accept(listener: &UnixListener, keeper: &Arc<Keeper>, clients: &mut JoinSet<()>) {
    loop {
        tokio::select! {
            Some(_) = clients.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let keeper = Arc::clone(keeper);
                    clients.spawn(async move { keeper.serve(stream).await });
                }
                // Out of file descriptors, which passes.
                Err(_) => sleep(Duration::from_millis(100)).await,
            },
        }
    }
}

fn open(layout: &Layout, isolation: &Isolation) -> io::Result<UnixListener> {
    // A socket's path is limited to 108 bytes, a directory's is not.
    env::set_current_dir(layout.dir())?;
    identity::write(layout, isolation.keeper_pid(), &isolation.proc_root())?;
    UnixListener::bind(Layout::SOCKET)
}

fn greet(greeting: &Greeting) -> io::Result<()> {
    let mut line = serde_json::to_vec(greeting)?;
    line.push(b'\n');
    io::stdout().write_all(&line)
}

/// Returns when the other end of stdin is closed; never, if stdin is no pipe.
async fn owner_gone() {
    let reader = io::stdin().as_fd().try_clone_to_owned().and_then(|fd| pipe::Receiver::from_file(fd.into()));
    match reader {
        Ok(mut reader) => while reader.read(&mut [0; 16]).await.is_ok_and(|read| read > 0) {},
        Err(_) => std::future::pending().await,
    }
}

impl Keeper {
    async fn serve(&self, stream: UnixStream) {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        if stream.read_line(&mut line).await.is_err() || line.is_empty() {
            return;
        }
        let reply = match serde_json::from_str(&line) {
            Ok(request) => self.answer(request).await,
            Err(_) => Reply::Refused(Refusal::OtherVersion),
        };
        if let Ok(mut line) = serde_json::to_vec(&reply) {
            line.push(b'\n');
            let _client_gone = stream.write_all(&line).await;
        }
    }

    async fn answer(&self, request: Request) -> Reply {
        let done = match request {
            Request::Shutdown => return self.shut_down().await,
            _ if *self.phase.borrow() >= Phase::Stopping => Err(Refusal::Stopping),
            Request::Start(spec) => self.table.start(&spec),
            Request::Signal { name, signal: Signal::Pause } => self.table.pause(&name).await,
            Request::Signal { name, signal } => self.table.signal(&name, signal),
            Request::Stop { name } => self.table.stop(&name).await,
            Request::Detach => {
                self.attached.store(false, Ordering::Relaxed);
                Ok(())
            }
            Request::List => return Reply::Processes(self.table.list()),
        };
        done.map_or_else(Reply::Refused, |()| Reply::Done)
    }

    async fn shut_down(&self) -> Reply {
        self.phase.send_if_modified(|phase| {
            let serving = *phase == Phase::Serving;
            if serving {
                *phase = Phase::Stopping;
            }
            serving
        });
        let mut phase = self.phase.subscribe();
        let _keeper_gone = phase.wait_for(|phase| *phase == Phase::Stopped).await.is_err();
        Reply::Processes(self.table.list())
    }
}
