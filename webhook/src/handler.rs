//! From a request to the answer.
//!
//! What cannot be answered is an error of HTTP with a sentence, so that the `failurePolicy` of the configuration decides: a body that
//! is no review (400, 413), and an API server that does not say what it holds (503). Everything else is a verdict.

use std::time::Instant;

use api::{
    offload::{
        namespace::NamespaceOffloadingSpec,
        review::{Denial, review},
    },
    view::Lenient,
};
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use kit::failure::Failure;

use crate::{
    admission::{Malformed, Request, Verdict},
    metrics::Metrics,
    offloadings::Offloadings,
};

/// Longest body: as much as an API server takes itself.
const BODY_MAX: usize = 3 << 20;

/// What is needed to answer. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Handler {
    /// Where Pods may run.
    pub(crate) offloadings: Offloadings,
    /// To count in.
    pub(crate) metrics: Metrics,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// Of the connection or of its length.
    #[error("{0}")]
    Body(BytesRejection),
    /// What came is no question.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It would place Pods as was asked for once.
    #[error("cannot watch NamespaceOffloadings: {0}")]
    Blind(Failure),
    /// Try again.
    #[error(
        "cannot read NamespaceOffloading {namespace}/offloading, so nobody knows where the Pod may run: {failure}"
    )]
    Unavailable {
        /// Where the Pod is to be.
        namespace: String,
        /// What the API server says.
        failure: Failure,
    },
}

impl Handler {
    /// What is served.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/mutate/pod", post(mutate_pod))
            .layer(DefaultBodyLimit::max(BODY_MAX))
            .with_state(self)
    }

    async fn answer(&self, body: Result<Bytes, BytesRejection>) -> Result<(String, Verdict), Error> {
        let request = Request::read(&body.map_err(Error::Body)?)?;
        // That it is asked about nothing is how the member finds out whether it works.
        if !request.creates_a_pod() {
            if let Some(failure) = self.offloadings.refused() {
                return Err(Error::Blind(failure));
            }
            return Ok((request.uid, Verdict::Allowed(vec![])));
        }
        let offloading = self
            .offloadings
            .of(&request.namespace)
            .await
            .map_err(|failure| Error::Unavailable { namespace: request.namespace.clone(), failure })?;
        let verdict = decide(&request, offloading).map_or_else(Verdict::Denied, Verdict::Allowed);
        Ok((request.uid, verdict))
    }
}

/// The changes that the Pod needs.
fn decide(
    request: &Request,
    offloading: Option<Lenient<NamespaceOffloadingSpec>>,
) -> Result<Vec<serde_json::Value>, Denial> {
    let namespace = || request.namespace.clone();
    let Lenient(spec) = offloading.ok_or_else(|| Denial::NotOffloaded { namespace: namespace() })?;
    let spec = spec.map_err(|problem| Denial::Unreadable { namespace: namespace(), problem })?;
    review(&request.object, &spec)
}

async fn mutate_pod(State(handler): State<Handler>, body: Result<Bytes, BytesRejection>) -> Response {
    let begun = Instant::now();
    let answer = handler.answer(body).await;
    let (result, response) = match answer {
        Ok((uid, verdict)) => {
            let body = ([(CONTENT_TYPE, "application/json")], verdict.answer(&uid).to_string());
            (verdict.result(), body.into_response())
        }
        Err(error) => {
            let (result, code) = match &error {
                Error::Body(rejection) => ("malformed", rejection.status()),
                Error::Malformed(_) => ("malformed", StatusCode::BAD_REQUEST),
                Error::Blind(_) | Error::Unavailable { .. } => {
                    ("unavailable", StatusCode::SERVICE_UNAVAILABLE)
                }
            };
            (result, (code, error.to_string()).into_response())
        }
    };
    handler.metrics.answered(result, begun.elapsed());
    response
}
