//! `/healthz`, `/readyz` and `/metrics` over plain HTTP.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Whether the daemon has seen all of its own cluster it needs. Says nothing about the leader or other clusters.
#[derive(Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// From now on `/readyz` says so.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }
}

/// Answers on `listener` until `stop`.
pub async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    ready: Readiness,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(render))
        .with_state((metrics, ready));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn readyz(State((_, ready)): State<(Metrics, Readiness)>) -> (StatusCode, &'static str) {
    if ready.0.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "waiting for the first look at this cluster")
    }
}

async fn render(State((metrics, _)): State<(Metrics, Readiness)>) -> Response {
    match metrics.render() {
        Ok((format, text)) => ([(header::CONTENT_TYPE, format)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
