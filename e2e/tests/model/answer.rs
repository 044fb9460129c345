//! Requests of a script, and what a server answers.

use std::collections::BTreeMap;

use http::Request;
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::Value;

use crate::model::script::{Script, Step};

/// An answer to a request: a body that is not JSON is a text, one of a watch a list of events.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub code: u16,
    pub body: Value,
}

/// Sends the requests of a script one after the other.
pub(crate) async fn all(client: &Client, script: &Script) -> Vec<Answer> {
    let (mut kept, mut answers) = (BTreeMap::new(), Vec::new());
    for step in &script.steps {
        let fill = |text: &str| filled(&text.replace("$NS", &script.namespace()), &kept);
        let body = if step.body.is_null() { String::new() } else { fill(&step.body.to_string()) };
        let request = Request::builder()
            .method(method(&step.verb))
            .uri(fill(&step.path))
            .header("accept", accepted(step))
            .header("content-type", content_type(&step.verb))
            .header("user-agent", "script/1");
        let answer = one(client, step, request.body(Body::from(body.into_bytes())).unwrap()).await;
        if let Some(name) = &step.keep {
            kept.insert(name.as_str(), answer.body.clone());
        }
        answers.push(answer);
    }
    answers
}

async fn one(client: &Client, step: &Step, request: Request<Body>) -> Answer {
    let answer = client.send(request).await.unwrap();
    let code = answer.status().as_u16();
    if step.verb == "watch" && code == 200 {
        return Answer { code, body: Value::Array(events(answer.into_body()).await) };
    }
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    Answer { code, body: serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned())) }
}

/// Events of a watch, to the last one that a script is interested in.
async fn events(mut body: Body) -> Vec<Value> {
    let (mut events, mut rest) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.unwrap().into_data() else { continue };
        rest.extend_from_slice(&data);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).unwrap();
            let is_last = event["object"]["metadata"]["name"] == "end" || event["type"] == "BOOKMARK";
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
    events
}

fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "POST",
        "get" | "list" | "watch" => "GET",
        "update" => "PUT",
        "merge" | "apply" => "PATCH",
        "delete" => "DELETE",
        _ => panic!("no such verb: {verb}"),
    }
}

fn content_type(verb: &str) -> &'static str {
    match verb {
        "merge" => "application/merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        _ => "application/json",
    }
}

fn accepted(step: &Step) -> &'static str {
    match (step.wants_metadata, step.verb.as_str()) {
        (false, _) => "application/json",
        (true, "list") => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        (true, _) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    }
}

/// A text with parts of earlier answers in it.
fn filled(text: &str, kept: &BTreeMap<&str, Value>) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (path, after) = after.split_once('}').unwrap();
        let (name, path) = path.split_once('.').unwrap();
        let answer = kept.get(name).unwrap_or_else(|| panic!("no request is kept as {name}"));
        let part = answer.pointer(&format!("/{}", path.replace('.', "/")));
        filled.push_str(before);
        filled.push_str(part.and_then(Value::as_str).unwrap_or("missing"));
        rest = after;
    }
    filled + rest
}
