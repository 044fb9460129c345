//! The OpenAPI schemas that an API server publishes.

use kube::Client;
use serde_json::Value;

use crate::waiting::eventually;

/// The schemas of one group and version.
pub(crate) struct Schemas(Value);

impl Schemas {
    /// `path` is `api/v1` or `apis/GROUP/VERSION`.
    pub(crate) async fn read(client: &Client, path: &str) -> Self {
        // That of a CRD comes some seconds after the CRD.
        let read = async || {
            let request = http::Request::get(format!("/openapi/v3/{path}")).body(vec![]).unwrap();
            client.request(request).await.map(Self).map_err(|error| error.to_string())
        };
        eventually(&format!("the schemas of {path} are there"), read).await
    }

    /// The schema of a kind.
    pub(crate) fn of(&self, kind: &str) -> &Value {
        let is_it = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| matches!(kinds.as_slice(), [one] if one["kind"] == kind))
        };
        self.0["components"]["schemas"].as_object().unwrap().values().find(is_it).unwrap()
    }

    /// The schema itself, where there is a reference to it.
    pub(crate) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        match reference {
            Some(path) => self.0.pointer(path.trim_start_matches('#')).unwrap(),
            None => schema,
        }
    }
}
