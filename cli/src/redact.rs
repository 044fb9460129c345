//! Cuts credentials out of what leaves a cluster in a bundle: pure.
//!
//! | module | finds |
//! |---|---|
//! | `encoded` | base64 in which something is found |
//! | `field` | values of fields, variables and flags whose names say what they hold |
//! | `kubeconfig` | whole kubeconfigs |
//! | `pattern` | private keys, tokens, passwords in URLs: what is known by its looks |
//! | `value` | whether a value may be a credential |
//!
//! Public data stays: certificates, names of Secrets, UIDs, digests of images.

mod encoded;
mod field;
mod kubeconfig;
mod pattern;
mod value;

use std::{collections::BTreeSet, fmt, ops::Range};

use serde_json::{Map, Value};

/// Kind of data that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A private key.
    Key,
    /// A token.
    Token,
    /// Value of an `Authorization` header.
    Authorization,
    /// A password, or the value of a field whose name promises a credential.
    Field,
    /// A password in a URL.
    Url,
    /// A kubeconfig.
    Kubeconfig,
    /// Value of a Secret of the cluster.
    Secret,
    /// Compressed text that is too long to search.
    Compressed,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "private key",
            Self::Token => "token",
            Self::Authorization => "Authorization",
            Self::Field => "credential by its name",
            Self::Url => "password of a URL",
            Self::Kubeconfig => "kubeconfig",
            Self::Secret => "value of a Secret",
            Self::Compressed => "compressed, and too long to look through",
        })
    }
}

/// Something to cut.
#[derive(Clone, Debug, PartialEq)]
struct Find {
    at: Range<usize>,
    kind: Kind,
}

/// Something that was cut, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// `line 7` or a path of fields.
    pub(crate) place: String,
    /// What.
    pub(crate) kind: Kind,
}

/// Shortest value of a Secret that is looked for elsewhere: shorter ones are words.
const SECRET_MIN: usize = 8;

/// Shortest value that is no text and is looked for in base64.
const BINARY_MIN: usize = 16;

/// Keys of Secrets whose values are public.
const PUBLIC: [&str; 3] = ["ca.crt", "tls.crt", "namespace"];

/// Limit of nested base64.
const DEPTH: u8 = 3;

/// Cuts what looks like a credential, and what Secrets hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    /// Values of Secrets.
    secrets: BTreeSet<String>,
    /// Their encodings in base64.
    encoded: BTreeSet<String>,
}

impl Redactor {
    /// Learns what a Secret holds under this key.
    pub(crate) fn learn(&mut self, key: &str, held: &[u8]) {
        if PUBLIC.contains(&key) {
            return;
        }
        let Ok(text) = std::str::from_utf8(held) else {
            if held.len() >= BINARY_MIN {
                self.encoded.append(&mut encoded::needles(held));
            }
            return;
        };
        let text = text.trim();
        let is_word = text.len() < SECRET_MIN || text.contains("://") || value::is_word(text);
        if !is_word {
            self.secrets.insert(text.to_owned());
            self.encoded.append(&mut encoded::needles(text.as_bytes()));
        }
    }

    /// The text without credentials, and what was cut by line.
    pub(crate) fn text(&self, text: &str) -> (String, Vec<Cut>) {
        let (text, finds) = self.cut(text, false);
        let place = |(line, kind)| Cut { place: format!("line {line}"), kind };
        (text, finds.into_iter().map(place).collect())
    }

    /// Cuts credentials out of all strings of a value. Returns what was cut, by paths of fields.
    pub(crate) fn json(&self, value: &mut Value) -> Vec<Cut> {
        let mut cuts = Vec::new();
        self.walk(value, &mut Vec::new(), &mut cuts);
        for cut in &mut cuts {
            cut.place = self.cut(&cut.place, true).0;
        }
        cuts
    }

    fn walk(&self, value: &mut Value, path: &mut Vec<String>, cuts: &mut Vec<Cut>) {
        match value {
            Value::String(text) => {
                let is_credential = path.last().is_some_and(|key| field::is_credential(last(key)));
                let found = if is_credential && value::may_be_one(text) {
                    *text = mark(Kind::Field);
                    vec![Kind::Field]
                } else {
                    let (left, found) = self.cut(text, true);
                    *text = left;
                    found.into_iter().map(|(_, kind)| kind).collect()
                };
                cuts.extend(found.into_iter().map(|kind| Cut { place: path.join("."), kind }));
            }
            Value::Array(items) => {
                Self::command_line(items, path, cuts);
                for (at, item) in items.iter_mut().enumerate() {
                    path.push(named(item).unwrap_or_else(|| at.to_string()));
                    self.walk(item, path, cuts);
                    path.pop();
                }
            }
            Value::Object(fields) => self.fields(fields, path, cuts),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Cuts arguments behind flags whose names promise a credential.
    fn command_line(items: &mut [Value], path: &[String], cuts: &mut Vec<Cut>) {
        for at in 1..items.len() {
            let is_flag = items[at - 1].as_str().is_some_and(field::is_flag);
            if let Value::String(argument) = &mut items[at]
                && is_flag
                && field::is_argument(argument)
            {
                *argument = mark(Kind::Field);
                cuts.push(Cut { place: format!("{}.{at}", path.join(".")), kind: Kind::Field });
            }
        }
    }

    fn fields(&self, fields: &mut Map<String, Value>, path: &mut Vec<String>, cuts: &mut Vec<Cut>) {
        // An environment variable.
        let variable = fields.get("name").and_then(Value::as_str).is_some_and(field::is_credential);
        if variable && let Some(Value::String(text)) = fields.get_mut("value") {
            *text = mark(Kind::Field);
            cuts.push(Cut { place: format!("{}.value", path.join(".")), kind: Kind::Field });
        }
        for (key, mut value) in std::mem::take(fields) {
            let (key, found) = self.cut(&key, true);
            cuts.extend(found.into_iter().map(|(_, kind)| Cut { place: path.join("."), kind }));
            path.push(key.clone());
            self.walk(&mut value, path, cuts);
            path.pop();
            fields.insert(key, value);
        }
    }

    /// The text without what is found, and the lines where it was. `is_value`: the text is one value, and no log.
    fn cut(&self, text: &str, is_value: bool) -> (String, Vec<(usize, Kind)>) {
        let finds = self.find(text, is_value, DEPTH);
        let (mut left, mut end, mut line) = (String::with_capacity(text.len()), 0, 1);
        let mut lines = Vec::new();
        for Find { at, kind } in finds {
            let between = text.get(end..at.start).unwrap_or_default();
            line += between.matches('\n').count();
            lines.push((line, kind));
            line += text.get(at.clone()).unwrap_or_default().matches('\n').count();
            left += between;
            left += &mark(kind);
            end = at.end;
        }
        left += text.get(end..).unwrap_or_default();
        (left, lines)
    }

    /// Finds the ranges to cut, in order, without overlaps.
    fn find(&self, text: &str, is_value: bool, depth: u8) -> Vec<Find> {
        if is_value && kubeconfig::is_one(text) {
            return vec![Find { at: 0..text.len(), kind: Kind::Kubeconfig }];
        }
        let mut finds = pattern::find(text);
        finds.extend(field::find(text));
        for secret in &self.secrets {
            let found = text.match_indices(secret.as_str());
            finds.extend(found.map(|(at, held)| Find { at: at..at + held.len(), kind: Kind::Secret }));
        }
        for part in &self.encoded {
            let found = text.match_indices(part.as_str()).map(|(at, part)| at..at + part.len());
            finds.extend(found.map(|at| Find { at: encoded::around(text, at), kind: Kind::Secret }));
        }
        if depth > 0 {
            let within = |decoded: &str| self.find(decoded, true, depth - 1).first().map(|find| find.kind);
            finds.extend(encoded::find(text, within));
        }
        joined(finds)
    }
}

/// Returns the text that replaces a cut.
fn mark(kind: Kind) -> String {
    format!("[cut: {kind}]")
}

/// The name within a label's or an annotation's key.
fn last(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

/// Returns the name of an item of a list, if the item is an object.
fn named(item: &Value) -> Option<String> {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").or_else(|| text("/name"))?;
    let namespace = text("/metadata/namespace").map(|namespace| format!("{namespace}/"));
    Some(format!("[{}{name}]", namespace.unwrap_or_default()))
}

/// In order; those that overlap are one, of the kind of the longer one.
fn joined(mut finds: Vec<Find>) -> Vec<Find> {
    finds.retain(|find| !find.at.is_empty());
    finds.sort_by_key(|find| (find.at.start, usize::MAX - find.at.end));
    let mut joined: Vec<Find> = Vec::new();
    for find in finds {
        match joined.last_mut() {
            Some(before) if find.at.start < before.at.end => {
                before.at.end = before.at.end.max(find.at.end);
            }
            _ => joined.push(find),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
