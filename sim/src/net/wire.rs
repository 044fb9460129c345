//! Requests and answers as HTTP has them.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::json;
use tower::BoxError;

use super::Caller;
use crate::api;

/// An answer; that of a watch comes bit by bit.
pub(super) type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The request of a caller, when all of it is there.
pub(super) async fn read(caller: &Caller, request: Request<Body>) -> Result<api::Request, BoxError> {
    let (head, body) = request.into_parts();
    Ok(ask(caller, &head, body.collect_bytes().await?))
}

fn ask(caller: &Caller, head: &Parts, body: Bytes) -> api::Request {
    let text = |name: HeaderName| {
        head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let pairs = head.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key), decode(value))
    });
    api::Request {
        method: head.method.as_str().to_owned(),
        path: head.uri.path().to_owned(),
        query: query.collect(),
        content_type: text(header::CONTENT_TYPE),
        accept: text(header::ACCEPT),
        agent: text(header::USER_AGENT),
        user: caller.user.clone(),
        author: caller.author.clone(),
        body,
    }
}

/// Text of a query, without its percent signs.
fn decode(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let number =
                    std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
                number.unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The answer that has all of its body.
pub(super) fn whole(code: u16, body: Bytes) -> Answered {
    let kind = if body.first() == Some(&b'{') { "application/json" } else { "text/plain" };
    let mut answer = Response::new(Full::new(body).map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// The answer of a server that is overloaded, or of something before it.
pub(super) fn refused(code: u16) -> Answered {
    let reason = if code == 429 { "TooManyRequests" } else { "ServiceUnavailable" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the server is currently unable to handle the request", "reason": reason, "code": code,
    });
    whole(code, Bytes::from(status.to_string()))
}
