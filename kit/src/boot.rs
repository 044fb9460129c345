//! A daemon's life from flags to exit.

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
    args::{self, DaemonArgs, LogFormat, LogLevel},
    client,
    events::{self, Events},
    failure,
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
    /// Namespace of this daemon.
    pub namespace: String,
    /// Who we are among the holders of Leases.
    pub holder: Holder,
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

/// Parses `A`, sets everything up, runs `daemon` until SIGTERM or SIGINT, and gives the exit code of the process.
///
/// A task that panics or ends by itself ends the process: a daemon that does half its work looks alive and is not.
pub fn main<A, F, Fut>(name: &'static str, args_of: impl Fn(&A) -> &DaemonArgs, daemon: F) -> ExitCode
where
    A: Parser,
    F: FnOnce(A, Env) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let parsed = match args::parse::<A>(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(error) => error.exit(),
    };
    log(args_of(&parsed));
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider is installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(live(name, args_of(&parsed).clone(), |env| daemon(parsed, env)));
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
async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

async fn live<Fut>(name: &'static str, args: DaemonArgs, daemon: impl FnOnce(Env) -> Fut) -> Result<(), Error>
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let stop = CancellationToken::new();
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let metrics = Metrics::new()?;
    let ready = Readiness::default();
    let listener = listen(args.listen).await.map_err(|e| Error::Listen(args.listen, e))?;
    let client = client::local(args.kubeconfig.as_deref()).await?;
    let instance = instance(name);

    let mut parts = JoinSet::new();
    let served = serve::serve(listener, metrics.clone(), ready.clone(), stop.clone());
    parts.spawn(async {
        if let Err(error) = served.await {
            tracing::error!(%error, "the admin server failed");
        }
        "the admin server"
    });
    let (events, send) = events::channel(client.clone(), name, instance.clone(), metrics.clone());
    parts.spawn(async {
        send.await;
        "the Event sender"
    });

    let cluster_uid = tokio::select! {
        uid = cluster_uid(&client) => uid,
        _ = term.recv() => return Ok(()),
        _ = int.recv() => return Ok(()),
    };
    let holder = Holder { cluster_uid, instance };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %holder, listen = %args.listen, "{name} starts");
    let env = Env {
        client,
        namespace: args.namespace(),
        holder,
        pace: args.pace(),
        metrics,
        events,
        ready,
        stop: stop.clone(),
    };
    let daemon = daemon(env);
    parts.spawn(async move {
        daemon.await;
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

/// Tells this process from others of the same cluster: a Pod's host name is its own, a process on a shared host has its pid. Where
/// a machine was copied, its Pods were, too: so each process has something random besides.
fn instance(name: &str) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (host, uuid) = (read("/proc/sys/kernel/hostname"), read("/proc/sys/kernel/random/uuid"));
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or(name);
    let random: String = uuid.chars().take_while(char::is_ascii_hexdigit).collect();
    format!("{host}-{}-{random}", std::process::id())
}

/// kube's client logs whole answers that do not decode, Secrets included: only its errors are let through, at any level. Its
/// watches say each failure, which [`watch`](crate::watch) does, too, but not each time.
fn log(args: &DaemonArgs) {
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
