//! `/healthz`, `/readyz` and `/metrics` over plain HTTP.

use std::{borrow::Cow, io};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{hold::Hold, index::Shared, metrics::Metrics};

/// Whether the program can do its work: a daemon has seen all of its own cluster it needs. Says nothing about the leader or other
/// clusters.
#[derive(Clone)]
pub struct Readiness {
    known: Shared<Result<(), Cow<'static, str>>>,
    hold: Shared<Hold>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            known: Shared::new(Err("waiting for the first answers of this cluster's API server".into())),
            hold: Shared::new(Hold::sole()),
        }
    }
}

impl Readiness {
    /// From now on `/readyz` says that it is, or why it is not.
    pub fn set(&self, ready: Result<(), Cow<'static, str>>) {
        self.known.with(|known| *known = ready);
    }

    /// What `/readyz` says.
    pub fn get(&self) -> Result<(), Cow<'static, str>> {
        self.known.with(|known| known.clone())
    }

    /// From now on `/readyz` says which replica stands by, too.
    pub fn heeds(&self, hold: Hold) {
        self.hold.with(|heeded| *heeded = hold);
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

async fn readyz(State((_, ready)): State<(Metrics, Readiness)>) -> (StatusCode, Cow<'static, str>) {
    match ready.get() {
        Ok(()) if ready.hold.with(|hold| hold.is_active()) => (StatusCode::OK, "ok".into()),
        Ok(()) => (StatusCode::OK, "standby".into()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
    }
}

async fn render(State((metrics, _)): State<(Metrics, Readiness)>) -> Response {
    match metrics.render() {
        Ok((format, text)) => ([(header::CONTENT_TYPE, format)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
