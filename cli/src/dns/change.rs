//! The Corefile as it is to be: shown, or written where it was read.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use similar::TextDiff;

use super::server::{KEY, Server};
use crate::{Error, cluster::Cluster, install::MANAGER};

/// As `diff -u` and `kubectl diff` show it.
pub(super) fn diff(server: &Server, to: &str) -> String {
    let name = format!("ConfigMap {}: {KEY}", server.name);
    let diff = TextDiff::from_lines(server.corefile.as_str(), to);
    let [old, new] = ["as it is", "as it is to be"].map(|which| format!("{name} ({which})"));
    diff.unified_diff().header(&old, &new).to_string().trim_end_matches('\n').to_owned()
}

/// Refused by the API server if somebody has changed the ConfigMap since.
pub(super) async fn write(cluster: &Cluster, server: &Server, to: &str) -> Result<(), Error> {
    let config_maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &server.name.namespace);
    let patch = json!({"metadata": {"resourceVersion": server.resource_version}, "data": {KEY: to}});
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    let patch = Patch::Merge(&patch);
    let write = config_maps.patch(&server.name.name, &params, &patch);
    cluster.request(format!("change ConfigMap {}", server.name), write).await.map(drop)
}
