//! Scripts of requests: what a file of `scripts/` holds.
//!
//! ```text
//! # A comment.
//! create configmaps as one
//!   {"metadata": {"name": "a"}, "data": {"k": "v"}}
//! merge configmaps/a
//!   {"metadata": {"resourceVersion": "${one.metadata.resourceVersion}"}, "data": {"k": "w"}}
//! apply serviceexports/a/status?fieldManager=us&force=true
//!   {"status": {"conditions": []}}
//! watch configmaps?resourceVersion=${one.metadata.resourceVersion}
//! list configmaps?labelSelector=x+in+(1,2) metadata
//! ```
//!
//! A request is a line `VERB KIND[/NAME[/SUBRESOURCE]][?QUERY] [metadata] [as NAME]` and a body, indented. Verbs are `create`, `get`, `list`,
//! `watch`, `update`, `merge` (merge patch), `apply` and `delete` (also of a collection). [`Kind`] has the kinds; a path that starts with `/` is
//! sent as it is. `metadata` asks for nothing but metadata. `as NAME` keeps the answer: `${NAME.path.of.a.field}` in later requests is what it
//! had there. `$NS` is the script's Namespace. A body of `create`, `update` and `apply` gets `apiVersion` and `kind` unless it has them or the
//! path is a raw one; one of `apply` gets the name, too.
//!
//! A watch is read until it tells of an object `end` or of a bookmark, or until it ends, after 20 s if `timeoutSeconds` does not say otherwise.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::model::kinds::Kind;

/// Requests in one Namespace.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub name: String,
    pub steps: Vec<Step>,
}

/// A request, with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub verb: String,
    /// As the script names it, without query.
    pub target: String,
    pub path: String,
    pub wants_metadata: bool,
    /// Name by which the answer is kept.
    pub keep: Option<String>,
    /// `null` if there is none.
    pub body: Value,
}

impl Script {
    /// The scripts of a folder, by name.
    pub(crate) fn all(folder: &Path) -> Vec<Self> {
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let script = |file: &std::path::PathBuf| {
            let name = file.file_stem().unwrap().to_str().unwrap();
            Self { name: name.to_owned(), steps: steps(name, &fs::read_to_string(file).unwrap()) }
        };
        files.iter().map(script).collect()
    }

    pub(crate) fn namespace(&self) -> String {
        format!("model-{}", self.name)
    }
}

fn steps(name: &str, text: &str) -> Vec<Step> {
    let mut steps: Vec<(&str, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match (line.starts_with(' '), steps.last_mut()) {
            (true, Some((_, body))) => body.push_str(line),
            (true, None) => panic!("{name}: a body without a request: {line}"),
            (false, _) => steps.push((line, String::new())),
        }
    }
    steps
        .iter()
        .map(|(line, body)| step(line, body).unwrap_or_else(|why| panic!("{name}: {line}: {why}")))
        .collect()
}

fn step(line: &str, body: &str) -> Result<Step, String> {
    let mut words = line.split(' ');
    let (verb, target) = (words.next().unwrap_or_default(), words.next().ok_or("no kind")?);
    let rest: Vec<_> = words.collect();
    let (wants_metadata, keep) = match rest.as_slice() {
        [] => (false, None),
        ["metadata"] => (true, None),
        ["as", name] => (false, Some((*name).to_owned())),
        ["metadata", "as", name] => (true, Some((*name).to_owned())),
        _ => return Err(format!("{rest:?}")),
    };
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(body).map_err(|error| error.to_string())?
    };
    let named = target.split('?').next().unwrap_or_default();
    let (kind, rest) = target.split_at(target.find(['/', '?']).unwrap_or(target.len()));
    let (path, body) = match kind {
        "" => (target.to_owned(), body),
        _ => {
            let kind = Kind::find(kind).ok_or("no such kind in kinds.rs")?;
            (kind.path() + rest, whole(verb, &kind, named, body))
        }
    };
    let path = if verb == "watch" { as_watch(&path) } else { path };
    Ok(Step { verb: verb.to_owned(), target: named.to_owned(), path, wants_metadata, keep, body })
}

/// An object with everything that its path says of it.
fn whole(verb: &str, kind: &Kind, named: &str, mut body: Value) -> Value {
    if body.is_object() && matches!(verb, "create" | "update" | "apply") {
        let object = body.as_object_mut().unwrap();
        object.entry("apiVersion").or_insert_with(|| json!(kind.api_version));
        object.entry("kind").or_insert_with(|| json!(kind.kind));
        if let Some(name) = named.split('/').nth(1).filter(|_| verb == "apply") {
            let metadata = object.entry("metadata").or_insert_with(|| json!({})).as_object_mut().unwrap();
            metadata.entry("name").or_insert_with(|| json!(name));
        }
    }
    body
}

fn as_watch(path: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    let timeout = if path.contains("timeoutSeconds=") { "" } else { "&timeoutSeconds=20" };
    format!("{path}{mark}watch=true{timeout}")
}
