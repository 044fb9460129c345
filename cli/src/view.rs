//! Objects as commands read them: only the fields that are used, and a part that does not decode hides nothing but itself.

use std::collections::BTreeMap;

use api::{
    label,
    lease::LeaseView,
    membership,
    resource_export::{ResourceExport, ResourceExportStatus, Withdrawal},
    resource_import::{Exporter, ResourceImport},
    view::{Lenient, annotated, lean, sourced},
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Node},
    jiff::Timestamp,
};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta};
pub(crate) use picture::{
    sign::{Sign, sign},
    view::{ClusterSetView, Conditions, ServiceExportView, ServiceImportView},
};
use serde::{Deserialize, de::IgnoredAny};

use crate::{Error, cluster::Cluster, objects::SYSTEM};

/// A Node.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Node)]
pub(crate) struct NodeView {
    #[serde(deserialize_with = "annotated")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) status: Lenient<Conditions>,
}

/// A ResourceExport. Of what it exports only that is kept which a command looks at.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct RecordView {
    #[serde(deserialize_with = "sourced")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Lenient<RecordSpec>,
    #[serde(default)]
    pub(crate) status: Lenient<ResourceExportStatus>,
}

/// What a record is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RecordSpec {
    #[serde(rename = "clusterID")]
    pub(crate) cluster_id: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) service: Lenient<Option<Withdrawal>>,
    pub(crate) endpoint_slice: Lenient<Option<Endpoints>>,
}

/// How many endpoints there are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Endpoints {
    pub(crate) endpoints: Vec<IgnoredAny>,
}

impl RecordSpec {
    /// Whether it takes its Service back.
    pub(crate) fn is_withdrawn(&self) -> bool {
        matches!(&self.service.0, Ok(Some(service)) if service.withdrawn)
    }
}

/// A ResourceImport.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceImport)]
pub(crate) struct ResourceImportView {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Lenient<ImportSpec>,
}

/// What a ResourceImport is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ImportSpec {
    pub(crate) kind: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) exporters: Vec<Exporter>,
}

/// What a member noted about its membership. It deletes the note when it has left.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Note {
    pub(crate) cluster_set: Option<String>,
    pub(crate) cluster_id: Option<String>,
    pub(crate) server: Option<String>,
    /// Which addresses its endpoints may have, if that is limited.
    pub(crate) ranges: Option<String>,
    /// How it was told to leave, if it was.
    pub(crate) leave: Option<String>,
    /// What API servers refuse to the member that leaves, as it says.
    pub(crate) refused: Option<String>,
}

impl Note {
    /// What the member of this cluster noted, if it is a member.
    pub(crate) async fn of(cluster: &Cluster) -> Result<Option<Self>, Error> {
        let notes: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), SYSTEM);
        let doing = format!("read ConfigMap {SYSTEM}/{}", membership::NAME);
        let note = cluster.request(doing, notes.get_opt(membership::NAME)).await?;
        Ok(note.as_ref().map(Self::read))
    }

    pub(crate) fn read(note: &ConfigMap) -> Self {
        let empty = BTreeMap::new();
        let data = note.data.as_ref().unwrap_or(&empty);
        let text = |key: &str| data.get(key).filter(|text| !text.is_empty()).cloned();
        Self {
            cluster_set: text(membership::CLUSTER_SET),
            cluster_id: text(membership::CLUSTER_ID),
            server: text(membership::SERVER),
            ranges: text(membership::RANGES),
            leave: text(membership::LEAVE_KEY),
            refused: note.annotations().get(label::REFUSED).cloned(),
        }
    }
}

/// Who holds the Lease and renews it. Nobody holds that of a member that was removed.
pub(crate) fn live_holder(lease: &LeaseView, now: Timestamp) -> Option<&str> {
    lease.holder().filter(|_| matches!(sign(lease, now), Sign::Alive))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_stale_lease_holds_nothing() {
        let now: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
        let held = |spec: Value| -> LeaseView {
            serde_json::from_value(json!({"metadata": {"name": "freeport-member-east"}, "spec": spec}))
                .unwrap()
        };
        let lease = |renewed: &str| held(json!({"holderIdentity": "uid/pod", "renewTime": renewed}));
        let removed = held(json!({"holderIdentity": "", "renewTime": "2026-11-01T11:59:50.000000Z"}));
        assert_eq!(live_holder(&removed, now), None);
        assert_eq!(live_holder(&lease("2026-11-01T11:59:50.000000Z"), now), Some("uid/pod"));
        assert_eq!(live_holder(&lease("2026-11-01T11:59:20.000000Z"), now), None);
        assert_eq!(live_holder(&held(json!({})), now), None);
        let short = held(json!({
            "holderIdentity": "uid/pod",
            "leaseDurationSeconds": 3,
            "renewTime": "2026-11-01T11:59:55.000000Z",
        }));
        assert_eq!(live_holder(&short, now), None, "it says itself how long it lasts");
    }

    #[test]
    fn what_does_not_decode_hides_nothing_else() {
        let set: ClusterSetView = serde_json::from_value(json!({
            "metadata": {"name": "demo", "generation": 2},
            "spec": {"leaders": "not a list"},
            "status": {"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .unwrap();
        assert_eq!((set.cluster_id(), set.leader_id(), set.is_observed()), (None, None, true));
        assert_eq!(set.ready().unwrap().status.as_deref(), Some("True"));
        let record: RecordView = serde_json::from_value(json!({
            "metadata": {"name": "r"},
            "spec": {"clusterID": "east", "kind": "Service", "service": {"withdrawn": 80}},
        }))
        .unwrap();
        let spec = record.spec.0.unwrap();
        assert!(spec.service.0.is_err() && !spec.is_withdrawn());
        assert_eq!(spec.cluster_id.as_deref(), Some("east"));
    }
}
