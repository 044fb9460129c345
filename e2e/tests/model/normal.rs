//! Answers without what differs from server to server.
//!
//! UIDs, versions and addresses become names, by the order in which a script meets them: whether two are the same is compared. Times that a
//! server sets, versions of lists and of bookmarks, tokens of pages and random ends of names become words. Entries of `managedFields` become a map by
//! manager, operation, version and subresource, since their order depends on times. Resources of a group are sorted by name.

use std::{collections::BTreeMap, net::IpAddr};

use serde_json::{Map, Value};

use crate::model::answer::Answer;

/// Day of all times that scripts have in conditions.
const OF_SCRIPTS: &str = "2026-01-01T";

/// Begins the name of the volume that a Pod has for its token.
const TOKENS: &str = "kube-api-access-";

/// Names for what a script met in the answers of one server.
pub(crate) struct Normal {
    names: BTreeMap<String, String>,
    namespace: String,
}

impl Normal {
    pub(crate) fn of(namespace: &str) -> Self {
        Self { names: BTreeMap::new(), namespace: namespace.to_owned() }
    }

    pub(crate) fn answer(&mut self, answer: Answer) -> Answer {
        let mut body = answer.body;
        match &mut body {
            // Events of a watch.
            Value::Array(events) => events.iter_mut().for_each(|event| self.event(event)),
            body => self.value("", body),
        }
        Answer { code: answer.code, body }
    }

    fn event(&mut self, event: &mut Value) {
        if event["type"] == "BOOKMARK" {
            event["object"]["metadata"]["resourceVersion"] = Value::from("<version>");
        }
        self.value("", event);
    }

    fn value(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::Object(object) => self.object(object),
            Value::Array(list) if key == "managedFields" => {
                let mut entries: Map<_, _> =
                    list.drain(..).map(|entry| (name_of_entry(&entry), entry)).collect();
                self.object(&mut entries);
                *value = Value::Object(entries);
            }
            Value::Array(list) if key == "resources" => {
                list.sort_by_key(|resource| resource["name"].to_string());
                list.iter_mut().for_each(|item| self.value("", item));
            }
            Value::Array(list) => list.iter_mut().for_each(|item| self.value(key, item)),
            Value::String(text) => *text = self.text(key, text),
            _ => {}
        }
    }

    fn object(&mut self, object: &mut Map<String, Value>) {
        let is_list = object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
        if is_list
            && let Some(version) = object.get_mut("metadata").and_then(|of| of.get_mut("resourceVersion"))
        {
            *version = Value::from("<version>");
        }
        let prefix = object.get("generateName").and_then(Value::as_str).map(str::to_owned);
        if let (Some(prefix), Some(Value::String(name))) = (prefix, object.get_mut("name"))
            && name.len() == prefix.len() + 5
        {
            *name = prefix + "<random>";
        }
        object.iter_mut().for_each(|(key, value)| self.value(key, value));
    }

    fn text(&mut self, key: &str, text: &str) -> String {
        match key {
            _ if text.is_empty() || text.starts_with('<') => text.to_owned(),
            "uid" | "resourceVersion" => self.name(key, text),
            "clusterIP" | "clusterIPs" if text.parse::<IpAddr>().is_ok() => self.name("address", text),
            "creationTimestamp" | "deletionTimestamp" | "time" => "<time>".to_owned(),
            "lastTransitionTime" if !text.starts_with(OF_SCRIPTS) => "<time>".to_owned(),
            "continue" => "<continue>".to_owned(),
            "message" => self.message(text),
            "name" if text.starts_with(TOKENS) => format!("{TOKENS}<random>"),
            _ => text.replace(&self.namespace, "$NS"),
        }
    }

    fn name(&mut self, what: &str, text: &str) -> String {
        let number = self.names.len() + 1;
        self.names.entry(text.to_owned()).or_insert_with(|| format!("<{what} {number}>")).clone()
    }

    /// A message with the names of what is known. Numbers in one about versions are versions.
    fn message(&self, text: &str) -> String {
        let text = text.replace(&self.namespace, "$NS");
        let is_about_versions = text.to_lowercase().contains("resource version");
        let (mut message, mut word) = (String::new(), String::new());
        for letter in text.chars().chain(['\n']) {
            if letter.is_ascii_alphanumeric() || letter == '-' {
                word.push(letter);
                continue;
            }
            let is_number = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_digit());
            match self.names.get(&word) {
                Some(name) => message.push_str(name),
                None if is_number && is_about_versions => message.push_str("<version>"),
                None => message.push_str(&word),
            }
            word.clear();
            message.push(letter);
        }
        message.pop();
        message
    }
}

fn name_of_entry(entry: &Value) -> String {
    let parts = ["manager", "operation", "apiVersion", "subresource"]
        .map(|key| entry[key].as_str().unwrap_or_default());
    parts.join(" ").trim_end().to_owned()
}
