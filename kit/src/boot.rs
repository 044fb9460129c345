//! The life of a daemon, and of any other program that runs in a cluster, from flags to exit.

use std::{
    io::{self, IsTerminal},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use api::{lease::Pace, view::Meta};
use clap::Parser;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::{
    args::{self, DaemonArgs, LogFormat, LogLevel, ProcessArgs},
    client::{self, Dial},
    election::{Election, Ended},
    events::{self, Events},
    failure,
    hold::{Grant, Hold},
    holder::Holder,
    metrics::Metrics,
    serve::{self, Readiness},
};

/// After SIGTERM: time for running writes.
const GRACE: Duration = Duration::from_secs(15);

/// What every part of a daemon works with. Cloning shares it.
#[derive(Clone)]
pub struct Env {
    /// Client for the cluster this daemon serves.
    pub client: Client,
    /// Makes clients for other clusters.
    pub dial: Dial,
    /// Namespace of this daemon.
    pub namespace: String,
    /// Who we are among the holders of Leases.
    pub holder: Holder,
    /// Whether we may write, where several replicas run. [`client`](Self::client) heeds it, and so does every other client that it
    /// guards.
    pub hold: Hold,
    /// How often Leases are renewed.
    pub pace: Pace,
    /// Metrics to count in.
    pub metrics: Metrics,
    /// Where to leave Events for objects of this cluster.
    pub events: Events,
    /// To be set once this cluster has been seen.
    pub ready: Readiness,
    /// Cancelled when the daemon shall end.
    pub stop: CancellationToken,
}

/// Why a daemon cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No client for its own cluster.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The address to listen on is taken or not there.
    #[error("cannot listen on {0} (--listen): {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The operating system refused something.
    #[error("{0}")]
    System(#[from] io::Error),
    /// Metrics do not fit together.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// A task ended that never should.
    #[error("{0} ended unexpectedly")]
    Ended(&'static str),
}

/// What every program works with. Cloning shares it.
#[derive(Clone)]
pub struct Process {
    /// Client for the cluster it serves.
    pub client: Client,
    /// Makes clients for other clusters.
    pub dial: Dial,
    /// Metrics to count in.
    pub metrics: Metrics,
    /// To be set once it can do its work.
    pub ready: Readiness,
    /// Cancelled when it shall end.
    pub stop: CancellationToken,
}

/// Tells a process from all others of the same cluster.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Name of the process: holder of Leases, and the reporting instance of Events.
    pub name: String,
    /// Random text that no other process has.
    pub random: String,
}

/// [`run`] for a daemon: one of those who hold Leases and say what they do by Events.
pub fn main<A, F, Fut>(name: &'static str, args_of: impl Fn(&A) -> &DaemonArgs, daemon: F) -> ExitCode
where
    A: Parser + Send + 'static,
    F: FnOnce(A, Env) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let process_of = |args: &A| args_of(args).process.clone();
    let daemon_of = |args: A, process: Process| {
        let of_daemon = args_of(&args).clone();
        live_as_daemon(name, of_daemon, process, Instance::of_this_process(name), |env| daemon(args, env))
    };
    run(name, process_of, daemon_of)
}

/// Parses `A`, sets everything up, runs `program` until SIGTERM or SIGINT, and gives the exit code of the process.
///
/// A task that panics or ends by itself ends the process: a program that does half its work looks alive and is not.
pub fn run<A, F, Fut>(name: &'static str, args_of: impl Fn(&A) -> ProcessArgs, program: F) -> ExitCode
where
    A: Parser,
    F: FnOnce(A, Process) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let parsed = match args::parse::<A>(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => error.exit(),
    };
    let args = args_of(&parsed);
    log(&args);
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider is installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(live(name, args, |process| program(parsed, process)));
            runtime.shutdown_timeout(Duration::from_secs(1));
            ended
        }
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "giving up");
            ExitCode::FAILURE
        }
    }
}

/// Listens on `address`; on all of IPv4 where all of both families are meant and there is no IPv6.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

async fn live<Fut>(
    name: &'static str,
    args: ProcessArgs,
    program: impl FnOnce(Process) -> Fut,
) -> Result<(), Error>
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let stop = CancellationToken::new();
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let metrics = Metrics::new()?;
    let ready = Readiness::default();
    let listener = listen(args.listen).await.map_err(|e| Error::Listen(args.listen, e))?;
    let client = client::local(args.kubeconfig.as_deref()).await?;

    let mut parts = JoinSet::new();
    let served = serve::serve(listener, metrics.clone(), ready.clone(), stop.clone());
    parts.spawn(async {
        if let Err(error) = served.await {
            tracing::error!(%error, "the admin server failed");
        }
        "the admin server"
    });
    tracing::info!(version = env!("CARGO_PKG_VERSION"), listen = %args.listen, "{name} starts");
    let dial = Dial::default();
    let program = program(Process { client, dial, metrics, ready, stop: stop.clone() });
    parts.spawn(async move {
        program.await;
        name
    });

    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        Some(part) = parts.join_next() => return Err(Error::Ended(part.unwrap_or("a part that panicked"))),
    }
    tracing::info!("stopping");
    stop.cancel();
    finish(parts).await;
    Ok(())
}

/// Runs a daemon and sends its Events, until it has ended and all are sent; of several replicas, until another one is active.
pub fn live_as_daemon<Fut>(
    name: &'static str,
    args: DaemonArgs,
    process: Process,
    instance: Instance,
    daemon: impl FnOnce(Env) -> Fut + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let (namespace, pace) = (args.namespace(), args.pace());
    let Instance { name: instance, random } = instance;
    let Process { client: unguarded, dial, metrics, ready, stop } = process;
    let replica = args.replica.map(|replica| (Grant::new(), replica));
    let hold = replica.as_ref().map_or_else(Hold::sole, |(grant, replica)| grant.hold(name, replica));
    let client = hold.guard(unguarded.clone());
    let (events, send) = events::channel(client.clone(), name, instance.clone(), metrics.clone());
    let ended = CancellationToken::new();
    let elected = replica.map(|(grant, replica)| {
        let of = (replica.as_str(), random.as_str());
        let election = Election::new(hold.sign(unguarded), name, &namespace, of, metrics.clone());
        election.run(grant, events.clone(), stop.clone(), ended.clone())
    });
    metrics.active().set(i64::from(elected.is_none()));
    ready.heeds(hold.clone());
    async move {
        let life = async move {
            let cluster_uid = tokio::select! {
                uid = cluster_uid(&client) => uid,
                () = stop.cancelled() => return,
            };
            let holder = Holder { cluster_uid, instance };
            tracing::info!(%holder, "{name} knows its cluster");
            daemon(Env { client, dial, namespace, holder, hold, pace, metrics, events, ready, stop }).await;
        };
        // Tasks of their own, so that Events are sent and the Lease of the active replica is renewed whatever the daemon is doing.
        let mut parts = JoinSet::new();
        parts.spawn(async move {
            life.await;
            ended.cancel();
            Ended::Stopped
        });
        parts.spawn(async move {
            send.await;
            Ended::Stopped
        });
        if let Some(elected) = elected {
            parts.spawn(elected);
        }
        while let Some(part) = parts.join_next().await {
            match part {
                // What the daemon does under way is refused already.
                Ok(Ended::Lost) => return,
                Ok(Ended::Stopped) => {}
                Err(error) => crate::drive::resume(error),
            }
        }
    }
}

/// Waits for the requests under way, but not for ever.
async fn finish(mut parts: JoinSet<&'static str>) {
    let rest = async { while parts.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, rest).await.is_err() {
        tracing::warn!("some requests did not end within {GRACE:?}");
    }
}

/// uid of the Namespace kube-system: what tells clusters apart. Waits for an API server that is not there yet.
async fn cluster_uid(client: &Client) -> String {
    loop {
        match Api::<Meta<Namespace>>::all(client.clone()).get("kube-system").await.map(|ns| ns.uid()) {
            Ok(Some(uid)) => return uid,
            Ok(None) => tracing::warn!("Namespace kube-system has no uid, trying again"),
            Err(error) => {
                let failure = failure::classify(&error);
                tracing::warn!(%failure, "cannot read Namespace kube-system of this cluster, trying again");
            }
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

impl Instance {
    /// That of the running process: a Pod's host name is its own, a process on a shared host has its pid. If a machine was copied,
    /// its Pods were, too; then the random part differs.
    fn of_this_process(program: &str) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or(program);
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
        let random: String = uuid.chars().take_while(char::is_ascii_hexdigit).collect();
        Self { name: format!("{host}-{}-{random}", std::process::id()), random }
    }
}

/// kube's client logs whole answers that do not decode, Secrets included: only its errors are let through, at any level. Its
/// watches say each failure, which [`watch`](crate::watch) does, too, but not each time.
fn log(args: &ProcessArgs) {
    let level = match args.log_level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
    };
    let filter = EnvFilter::new(format!(
        "{level},kube_client=error,kube_runtime=error,hyper=warn,hyper_util=warn,rustls=warn,h2=warn,tower=warn"
    ));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let lines = lines.with_ansi(std::io::stderr().is_terminal());
    match args.log_format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().init(),
    }
}
