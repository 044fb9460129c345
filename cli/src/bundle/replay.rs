//! An API server that answers from the files of one cluster, which are called as the paths that were asked for.
//!
//! | asked for | answer |
//! |---|---|
//! | a path that was asked | what the API server said, a refusal included |
//! | a list in a Namespace, an object | out of the list that holds them |
//! | anything else | that the bundle does not hold it |

use http::{HeaderValue, Method, Request, Response, StatusCode, header::DATE};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::{client::Body, core::SelectorExt};
use serde_json::{Value, json};

use super::{Files, manifest::Seen, selector};

/// No answer, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Silent(String);

/// Path of the file with the answer to a request for this path.
pub(crate) fn file(folder: &str, path: &str) -> String {
    format!("clusters/{folder}/api-server{path}.json")
}

/// Answers a request.
pub(super) fn answer(
    files: &Files,
    cluster: &Seen,
    now: Timestamp,
    request: &Request<Body>,
) -> Result<Response<Body>, Silent> {
    let found = match &cluster.away {
        Some(away) => match away.code {
            Some(code) => refusal(code, &away.message),
            None => return Err(Silent(away.message.clone())),
        },
        None if request.method() != Method::GET => refusal(405, "a bundle can only be read"),
        None => Shelf { files, folder: &cluster.folder }.get(request.uri()),
    };
    let code = match found.get("kind").and_then(Value::as_str) {
        Some("Status") => found.get("code").and_then(Value::as_u64),
        _ => None,
    };
    let mut response = Response::new(Body::from(found.to_string().into_bytes()));
    let code = code.and_then(|code| u16::try_from(code).ok()?.try_into().ok());
    *response.status_mut() = code.unwrap_or(StatusCode::OK);
    let date = date(now, cluster.clock_ahead);
    response.headers_mut().extend(date.map(|date| (DATE, date)));
    Ok(response)
}

/// The time by the clock of the API server.
fn date(now: Timestamp, ahead: Option<i64>) -> Option<HeaderValue> {
    let date = now.checked_add(SignedDuration::from_millis(ahead?)).ok()?;
    date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string().parse().ok()
}

/// A refusal, as API servers say it.
pub(crate) fn refusal(code: u16, message: &str) -> Value {
    let reason = match code {
        401 => "Unauthorized",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        504 => "Timeout",
        _ => "Unknown",
    };
    status(&kube::core::Status::failure(message, reason).with_code(code))
}

/// The answer of an API server, as the bundle holds it.
pub(crate) fn status(status: &kube::core::Status) -> Value {
    let mut status = json!(status);
    status["kind"] = "Status".into();
    status["apiVersion"] = "v1".into();
    status
}

/// The files of one cluster.
struct Shelf<'a> {
    files: &'a Files,
    folder: &'a str,
}

impl Shelf<'_> {
    fn get(&self, uri: &http::Uri) -> Value {
        let path = uri.path();
        let labels = query(uri.query().unwrap_or_default(), "labelSelector");
        let Some(selector) = selector::parse(&labels) else {
            return refusal(400, &format!("{labels:?} is no label selector"));
        };
        let mut found = self.whole(path);
        if let Some(items) = found.get_mut("items").and_then(Value::as_array_mut) {
            items.retain(|item| selector.matches(&labels_of(item)));
        }
        found
    }

    /// Returns all that the bundle holds at a path, without a selector.
    fn whole(&self, path: &str) -> Value {
        if let Some(found) = self.at(path) {
            return found;
        }
        let Some((parent, name)) = path.rsplit_once('/') else { return self.unknown(path) };
        // In all Namespaces it was refused, or there is the list of all.
        if let Some((root, namespace, plural)) = within(path) {
            return match self.at(&format!("{root}/{plural}")) {
                Some(mut list) => {
                    if let Some(items) = list.get_mut("items").and_then(Value::as_array_mut) {
                        items.retain(|item| field(item, "namespace") == Some(namespace));
                    }
                    list
                }
                None => self.unknown(path),
            };
        }
        let list = match within(parent) {
            Some(_) => self.whole(parent),
            None => self.at(parent).unwrap_or_else(|| self.unknown(path)),
        };
        let Some(items) = list.get("items").and_then(Value::as_array) else { return list };
        match items.iter().find(|item| field(item, "name") == Some(name)) {
            Some(found) => typed(found.clone(), &list),
            None => refusal(404, &format!("{name:?} not found")),
        }
    }

    fn at(&self, path: &str) -> Option<Value> {
        serde_json::from_slice(self.files.get(&file(self.folder, path))?).ok()
    }

    fn unknown(&self, path: &str) -> Value {
        refusal(501, &format!("the bundle does not hold {path}"))
    }
}

/// Root, Namespace and plural of a path of a list in a Namespace.
fn within(path: &str) -> Option<(&str, &str, &str)> {
    let (root, rest) = path.split_once("/namespaces/")?;
    let (namespace, plural) = rest.split_once('/')?;
    (!plural.contains('/')).then_some((root, namespace, plural))
}

/// The item of a list with its kind, which the list says.
fn typed(mut item: Value, list: &Value) -> Value {
    let text = |name: &str| list.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind").trim_end_matches("List"));
    if let Some(item) = item.as_object_mut() {
        item.insert("apiVersion".into(), version.into());
        item.insert("kind".into(), kind.into());
    }
    item
}

fn field<'a>(item: &'a Value, name: &str) -> Option<&'a str> {
    item.get("metadata")?.get(name)?.as_str()
}

fn labels_of(item: &Value) -> std::collections::BTreeMap<String, String> {
    let labels = item.pointer("/metadata/labels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The value of a field of a query, decoded.
fn query(query: &str, name: &str) -> String {
    let pair = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
    decoded(pair.map(|(_, value)| value).unwrap_or_default())
}

fn decoded(text: &str) -> String {
    let (bytes, mut plain, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let hex = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        let code = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(code.unwrap_or(if byte == b'+' { b' ' } else { byte }));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}
