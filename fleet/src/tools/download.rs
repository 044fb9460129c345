//! A file from an HTTP server.

use std::{io::Write, time::Duration};

use http::{StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::time::{Instant, timeout};
use tower::Layer;
use tower::ServiceExt;
use tower_http::follow_redirect::FollowRedirectLayer;

use super::{Error, lock::interval};

/// For an answer, and for each further part of it.
const SILENCE: Duration = Duration::from_secs(30);

/// An answer whose content is on its way.
pub(super) struct Download {
    url: String,
    length: Option<u64>,
    body: Incoming,
}

impl Download {
    /// Requests a file and follows redirects.
    pub(super) async fn start(url: &str) -> Result<Self, Error> {
        let failed = |why: String| Error::Download { url: url.to_owned(), why };
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .map_err(|error| failed(error.to_string()))?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build::<_, Empty<Bytes>>(connector);
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| failed(error.to_string()))?;
        let request =
            http::Request::get(uri).body(Empty::new()).map_err(|error| failed(error.to_string()))?;
        let answer = timeout(SILENCE, FollowRedirectLayer::new().layer(client).oneshot(request)).await;
        let answer = answer.map_err(|_| failed(silent()))?.map_err(|error| failed(chain(&error)))?;
        if answer.status() != StatusCode::OK {
            return Err(failed(format!("the server answers {}", answer.status())));
        }
        let length =
            answer.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Self { url: url.to_owned(), length, body: answer.into_body() })
    }

    /// The number of bytes, if the server announces it.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Writes the content as it comes. `progress` gets now and then how much has been received, and of how much.
    pub(super) async fn write_to(
        mut self,
        file: &mut impl Write,
        progress: &impl Fn(u64, Option<u64>),
    ) -> Result<(), Error> {
        let mut received = 0;
        let mut said = Instant::now();
        while let Some(frame) = self.next().await? {
            file.write_all(&frame).map_err(|error| self.failed(error.to_string()))?;
            received += frame.len() as u64;
            if said.elapsed() >= interval() {
                progress(received, self.length);
                said = Instant::now();
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        match timeout(SILENCE, self.body.frame()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(frame))) => Ok(Some(frame.into_data().unwrap_or_default())),
            Ok(Some(Err(error))) => Err(self.failed(chain(&error))),
            Err(_) => Err(self.failed(silent())),
        }
    }

    fn failed(&self, why: String) -> Error {
        Error::Download { url: self.url.clone(), why }
    }
}

fn silent() -> String {
    format!("nothing was received for {} s", SILENCE.as_secs())
}

/// An error with its causes, which hold the reason.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
