//! Discovery: which groups are served, and which resources in a version of one.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{Kind, State, request::Request, response::Response};

/// Verbs of a resource, in the order of kube-apiserver.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// Verbs of its status.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

impl State {
    /// Answers a question about what is served; none for other requests.
    pub(super) fn discover(&self, request: &Request) -> Option<Response> {
        if request.method != "GET" {
            return None;
        }
        let steps: Vec<_> = request.path.split('/').filter(|step| !step.is_empty()).collect();
        match steps.as_slice() {
            ["apis"] => Some(Response::json(200, &self.groups())),
            ["api", version] => self.resources_in("", version),
            ["apis", group, version] => self.resources_in(group, version),
            _ => None,
        }
    }

    /// All groups but the one without a name.
    fn groups(&self) -> Value {
        let mut groups = BTreeMap::<&str, Vec<&str>>::new();
        for kind in self.kinds().filter(|kind| !kind.group.is_empty()) {
            let versions = groups.entry(&kind.group).or_default();
            versions.extend(kind.versions.iter().map(String::as_str));
        }
        let group = |(name, mut versions): (&str, Vec<&str>)| {
            versions.sort_unstable();
            versions.dedup();
            let version =
                |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
            let versions: Vec<_> = versions.iter().map(version).collect();
            json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
        };
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.into_iter().map(group).collect::<Vec<_>>()})
    }

    /// The resources of a version; none if it is not served.
    fn resources_in(&self, group: &str, version: &str) -> Option<Response> {
        let is_of =
            |kind: &&Arc<Kind>| kind.group == group && kind.versions.iter().any(|served| served == version);
        let kinds: Vec<_> = self.kinds().filter(is_of).collect();
        let group_version = kinds.first()?.api_version(version);
        let resources: Vec<_> = kinds.into_iter().flat_map(|kind| resources_of(kind)).collect();
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources});
        Some(Response::json(200, &list))
    }
}

/// A kind, and its status if that is a subresource.
fn resources_of(kind: &Kind) -> Vec<Value> {
    let resource = |name: String, singular: String, verbs: &[&str]| json!({"name": name, "singularName": singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs});
    let mut all = vec![resource(kind.plural.clone(), kind.kind.to_lowercase(), &VERBS)];
    if kind.status {
        all.push(resource(format!("{}/status", kind.plural), String::new(), &STATUS_VERBS));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{send, server};

    #[test]
    fn a_crd_is_discovered_as_long_as_it_exists() {
        let server = server();
        let names = || {
            let groups = send(&server, "GET", "/apis", &Value::Null).1;
            let (code, list) = send(&server, "GET", "/apis/example.com/v1", &Value::Null);
            let is_known =
                groups["groups"].as_array().unwrap().iter().any(|group| group["name"] == "example.com");
            let names = list["resources"].as_array().cloned().unwrap_or_default();
            (is_known, code, names.iter().map(|of| of["name"].clone()).collect::<Vec<_>>())
        };
        assert_eq!(names(), (true, 200, vec![json!("widgets"), json!("widgets/status")]));
        server.remove("apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.com");
        assert_eq!(names(), (false, 404, Vec::new()));
    }
}
