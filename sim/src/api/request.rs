//! Requests, and the resource that a path leads to.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde_json::Value;

use super::{
    Kind, State,
    refusal::{Refusal, Result},
    selector::Selector,
};
use crate::invariant::Author;

/// What a client sends.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub content_type: String,
    pub accept: String,
    /// Header User-Agent.
    pub agent: String,
    /// Name of the user, as the server sees it.
    pub user: String,
    pub(crate) author: Author,
    pub body: Bytes,
}

impl Request {
    /// A parameter of the query; empty if there is none.
    pub(super) fn parameter(&self, key: &str) -> &str {
        self.query.get(key).map(String::as_str).unwrap_or_default()
    }

    /// Reports whether a parameter is true.
    pub(super) fn is_set(&self, key: &str) -> bool {
        matches!(self.parameter(key), "true" | "1")
    }

    /// Reports whether nothing is to be stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.query.contains_key("dryRun")
    }

    /// The field manager: the parameter, or the program of the User-Agent.
    pub(super) fn manager(&self) -> &str {
        let agent = self.agent.split('/').next().unwrap_or_default();
        self.query.get("fieldManager").map_or(agent, String::as_str)
    }

    pub(super) fn selector(&self) -> Result<Selector> {
        Selector::parse(self.parameter("labelSelector"), self.parameter("fieldSelector"))
            .map_err(Refusal::bad_request)
    }

    /// The version in parameter `resourceVersion`; 0 if there is none.
    pub(super) fn version(&self) -> Result<u64> {
        match self.parameter("resourceVersion") {
            "" => Ok(0),
            text => text.parse().map_err(|_| {
                Refusal::bad_request(format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint"))
            }),
        }
    }

    /// The object in the body.
    pub(super) fn json(&self) -> Result<Value> {
        let body: Value =
            serde_json::from_slice(&self.body).map_err(|error| Refusal::bad_request(error.to_string()))?;
        if body.is_object() { Ok(body) } else { Err(Refusal::bad_request("the body is no object")) }
    }
}

/// Where a request leads: a collection if `name` is empty.
#[derive(Clone)]
pub(crate) struct Target {
    pub(super) kind: Arc<Kind>,
    /// Version of the group.
    pub(super) version: String,
    /// Empty for cluster-scoped kinds, and for all Namespaces.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
}

impl Target {
    pub(super) fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    pub(super) fn api_version(&self) -> String {
        self.kind.api_version(&self.version)
    }
}

/// A path in parts: `/apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/NAME/SUBRESOURCE`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Path<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) namespace: &'a str,
    pub(super) plural: &'a str,
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
}

impl<'a> Path<'a> {
    /// Splits a path; none if it is none of a resource.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let (group, version, rest) = match steps.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // Subresources of a Namespace.
            ["namespaces", _, "status" | "finalize"] if group.is_empty() => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default();
        let parts = Self { group, version, namespace, plural: part(0), name: part(1), subresource: part(2) };
        (rest.len() <= 3).then_some(parts)
    }
}

impl State {
    /// Finds the resource of a path.
    pub(super) fn target(&self, path: &str) -> Result<Target> {
        let path = Path::parse(path).ok_or_else(Refusal::no_path)?;
        let kind = self.kind(path.group, path.plural).ok_or_else(Refusal::no_path)?;
        let is_served = kind.versions.iter().any(|served| served == path.version);
        if !is_served || !kind.has_subresource(path.subresource) {
            return Err(Refusal::no_path());
        }
        Ok(Target {
            kind,
            version: path.version.to_owned(),
            namespace: path.namespace.to_owned(),
            name: path.name.to_owned(),
            subresource: path.subresource.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_namespace_or_none() {
        let path = Path::parse("/apis/apps/v1/namespaces/shop/deployments/web/status");
        let expected = Path {
            group: "apps",
            version: "v1",
            namespace: "shop",
            plural: "deployments",
            name: "web",
            subresource: "status",
        };
        assert_eq!(path, Some(expected));
        let core = |plural, name, subresource| {
            Some(Path { version: "v1", plural, name, subresource, ..Path::default() })
        };
        assert_eq!(Path::parse("/api/v1/namespaces/shop"), core("namespaces", "shop", ""));
        assert_eq!(Path::parse("/api/v1/namespaces/shop/finalize"), core("namespaces", "shop", "finalize"));
        assert_eq!(Path::parse("/api/v1/services"), core("services", "", ""));
        assert_eq!(Path::parse("/healthz"), None);
    }

    #[test]
    fn the_manager_is_the_program_unless_the_query_names_one() {
        let mut request = Request { agent: "kubectl/v1.36.3 (linux)".into(), ..Request::default() };
        assert_eq!(request.manager(), "kubectl");
        request.query.insert("fieldManager".into(), "me".into());
        assert_eq!(request.manager(), "me");
    }
}
