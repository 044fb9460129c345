//! From a request to the answer.
//!
//! What cannot be answered is an error of HTTP with a sentence, so that the `failurePolicy` of the configuration decides: a body that
//! is no review or does not come (400, 408, 413), and an API server that does not say what it holds (503). Everything else is a verdict.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::offload::{
    namespace::PodOffloadingStrategy,
    review::{Denial, is_placed, review, review_untravelling},
};
use axum::{
    Router,
    body::Bytes,
    extract::{self, DefaultBodyLimit, FromRequest, State, rejection::BytesRejection},
    http::{
        StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use kit::failure::Failure;
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    admission::{Malformed, NewPod, Request, Verdict},
    metrics::Metrics,
    offloadings::{Offloading, Offloadings},
};

/// Longest body: as much as an API server takes itself.
const BODY_MAX: usize = 3 << 20;

/// Longest body that any number may send at once. Pods rarely have more.
const SMALL: usize = 64 << 10;
/// So many longer ones are in memory at once; the others wait.
const LARGE_AT_ONCE: usize = 8;
/// For a longer one to arrive when it is its turn: an API server sends it at once, and others wait for it.
const ARRIVAL: Duration = Duration::from_secs(5);

/// What is needed to answer. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Handler {
    /// Where Pods may run.
    pub(crate) offloadings: Offloadings,
    /// To count in.
    pub(crate) metrics: Metrics,
    large: Arc<Semaphore>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// Of the connection or of its length.
    #[error("{0}")]
    Body(BytesRejection),
    /// Others wait for it.
    #[error("the body did not arrive within {ARRIVAL:?}")]
    Slow,
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
    /// Answers by what is known of these.
    pub(crate) fn new(offloadings: Offloadings, metrics: Metrics) -> Self {
        Self { offloadings, metrics, large: Arc::new(Semaphore::new(LARGE_AT_ONCE)) }
    }

    /// What is served.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/mutate/pod", post(mutate_pod))
            .layer(DefaultBodyLimit::max(BODY_MAX))
            .with_state(self)
    }

    /// Reads a request. One without a length may have any.
    async fn read(&self, request: extract::Request) -> Result<Request, Error> {
        let length =
            request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: usize| length <= SMALL) {
            let body = Bytes::from_request(request, &()).await.map_err(Error::Body)?;
            return Ok(Request::read(&body)?);
        }
        // Held until no more than what is looked at is left of it. Nobody closes the semaphore.
        let _turn = self.large.acquire().await;
        let body = timeout(ARRIVAL, Bytes::from_request(request, &())).await.map_err(|_| Error::Slow)?;
        Ok(Request::read(&body.map_err(Error::Body)?)?)
    }

    async fn answer(&self, request: Request) -> Result<(String, Verdict), Error> {
        // That it is asked about nothing is how the member finds out whether it works.
        let Some(pod) = &request.pod else {
            if let Some(failure) = self.offloadings.unknown() {
                return Err(Error::Blind(failure));
            }
            return Ok((request.uid, Verdict::Allowed(vec![], None)));
        };
        // Also where nobody knows what its Namespace asks for.
        if pod.looked_at.get("spec").is_some_and(|spec| is_placed(&pod.looked_at, spec)) {
            return Ok((request.uid, Verdict::Allowed(vec![], None)));
        }
        let namespace = request.namespace;
        let decided = match self.offloadings.of(&namespace).await {
            Ok(offloading) => decide(&namespace, pod, offloading),
            Err(Failure::KindMissing) => Err(Denial::KindMissing { namespace }),
            Err(failure) => return Err(Error::Unavailable { namespace, failure }),
        };
        Ok((request.uid, decided.unwrap_or_else(Verdict::Denied)))
    }
}

/// The changes that the Pod needs.
fn decide(namespace: &str, pod: &NewPod, offloading: Option<Offloading>) -> Result<Verdict, Denial> {
    let namespace = || namespace.to_owned();
    let offloading = offloading.ok_or_else(|| Denial::NotOffloaded { namespace: namespace() })?;
    let is_going = offloading.is_going();
    let spec = offloading.spec.0.map_err(|problem| Denial::Unreadable { namespace: namespace(), problem })?;
    let patch = match &pod.cannot_travel {
        None => review(&pod.looked_at, &spec)?,
        Some(_) => review_untravelling(&pod.looked_at, &spec)?,
    };
    let is_remote = spec.pod_offloading_strategy == PodOffloadingStrategy::Remote;
    let stays_at_home = pod.cannot_travel.is_some() && !is_remote;
    // Its twin goes, or is gone already: nobody could send it, and where it is bound it stays for life.
    if is_going && !stays_at_home && !patch.is_empty() {
        return Err(Denial::Ending { namespace: namespace() });
    }
    let why = pod.cannot_travel.as_ref().filter(|_| is_remote);
    let warning = why.map(|why| {
        format!(
            "the Pod stays Pending: strategy Remote of Namespace {} runs it in another cluster, and {why}",
            namespace()
        )
    });
    Ok(Verdict::Allowed(patch, warning))
}

async fn mutate_pod(State(handler): State<Handler>, request: extract::Request) -> Response {
    let request = handler.read(request).await;
    let begun = Instant::now();
    let answer = match request {
        Ok(request) => handler.answer(request).await,
        Err(error) => Err(error),
    };
    let (result, response) = match answer {
        Ok((uid, verdict)) => {
            let body = ([(CONTENT_TYPE, "application/json")], verdict.answer(&uid).to_string());
            (verdict.result(), body.into_response())
        }
        Err(error) => {
            let (result, code) = match &error {
                Error::Body(rejection) => ("malformed", rejection.status()),
                Error::Slow => ("malformed", StatusCode::REQUEST_TIMEOUT),
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
