//! freeport-webhook: when a Pod is created in an offloaded Namespace, gives it the affinity and the toleration that its
//! NamespaceOffloading asks for. What that is, is decided in [`api::offload::review`](mod@api::offload::review).
//!
//! | module | holds |
//! |---|---|
//! | [`run`] | the parts, until the process shall stop |
//! | [`admission`] | AdmissionReview: what an API server asks and is answered (pure) |
//! | [`handler`] | from a request to the answer |
//! | [`offloadings`] | the NamespaceOffloadings of this cluster |
//! | [`tls`] | the certificate: read from files, and read again when they change |
//! | [`server`] | connections: TLS, limits, an end that cuts nobody off |
//! | [`metrics`] | what an operator sees |
//!
//! It reads NamespaceOffloadings and writes nothing. Any number of it may run side by side.

mod admission;
mod handler;
mod metrics;
mod offloadings;
mod server;
mod tls;

use std::{borrow::Cow, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use kit::{args::ProcessArgs, boot::Process, failure::Failure};
use tokio::net::TcpListener;

use self::{handler::Handler, metrics::Metrics, offloadings::Offloadings, server::Server, tls::Tls};

/// How often the files of the certificate are looked at: a kubelet changes them when the Secret changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// freeport-webhook gives new Pods the affinity and the toleration that the NamespaceOffloading of their Namespace asks for.
#[derive(clap::Parser, Clone, Debug)]
#[command(name = "freeport-webhook", version)]
pub struct Args {
    /// Flags of every program.
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Address on which API servers ask, by HTTPS; `[::]` is all addresses of both IP families.
    #[arg(long, env = "FREEPORT_WEBHOOK_LISTEN", default_value = "[::]:8443")]
    pub webhook_listen: SocketAddr,
    /// Folder with the certificate tls.crt and its key tls.key: a mounted Secret. They are read again when they change.
    #[arg(long, env = "FREEPORT_TLS_DIR", value_name = "DIR", default_value = "/etc/freeport-webhook/tls")]
    pub tls_dir: PathBuf,
    /// Seconds for which it goes on to answer when it is told to stop: so long it may take until nobody asks it any more.
    #[arg(long, env = "FREEPORT_DRAIN_SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u8).range(..=10))]
    pub drain_seconds: u8,
    /// Seconds between two lists of all NamespaceOffloadings, which find what a restored API server has told no watch of.
    #[arg(long, env = "FREEPORT_RELIST_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u16).range(5..=3600))]
    pub relist_seconds: u16,
}

/// Why it cannot begin.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot listen on {0} (--webhook-listen): {1}")]
    Listen(SocketAddr, #[source] std::io::Error),
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Answers API servers until the process shall stop.
pub async fn run(args: Args, process: Process) {
    if let Err(error) = serve(args, process).await {
        tracing::error!(%error, "the webhook cannot serve");
    }
}

async fn serve(args: Args, process: Process) -> Result<(), Error> {
    let listener = kit::boot::listen(args.webhook_listen)
        .await
        .map_err(|error| Error::Listen(args.webhook_listen, error))?;
    serve_on(listener, args, process).await
}

async fn serve_on(listener: TcpListener, args: Args, process: Process) -> Result<(), Error> {
    let Process { client, metrics: registry, ready, stop, .. } = process;
    let metrics = Metrics::new(&registry)?;
    let (offloadings, watch) =
        Offloadings::watch(client, registry, Duration::from_secs(args.relist_seconds.into()));
    let tls = Arc::new(Tls::default());
    let handler = Handler::new(offloadings.clone(), metrics.clone());
    let server = Server {
        tls: tls.clone().server_config()?,
        router: handler.router(),
        drain: Duration::from_secs(args.drain_seconds.into()),
    };
    let look = async {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        loop {
            ticks.tick().await;
            tls.read(&args.tls_dir, Timestamp::now());
            metrics.certificate(tls.expiry(), tls.problem().is_some());
            ready.set(if stop.is_cancelled() {
                Err("stopping".into())
            } else {
                readiness(&tls, &offloadings)
            });
        }
    };
    tokio::select! {
        () = server.serve(listener, stop.clone()) => {}
        () = look => {}
        () = watch => {}
    }
    Ok(())
}

/// Whether it can answer, or why not. A certificate that cannot be used does no harm while there is an older one.
fn readiness(tls: &Tls, offloadings: &Offloadings) -> Result<(), Cow<'static, str>> {
    match (tls.expiry(), tls.problem()) {
        (Some(_), _) => match offloadings.refused() {
            // It can answer, with what there is to do.
            Some(Failure::KindMissing) => Ok(()),
            Some(failure) => Err(format!("cannot watch NamespaceOffloadings: {failure}").into()),
            None if offloadings.are_listed() => Ok(()),
            None => Err("waiting for the list of NamespaceOffloadings".into()),
        },
        (None, Some(problem)) => Err(format!("no certificate: {problem}").into()),
        (None, None) => Err("no certificate was read yet".into()),
    }
}

#[cfg(test)]
mod tests;
