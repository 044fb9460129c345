//! Objects as commands read them: only the fields that are used, and a part that does not decode hides nothing but itself.

use std::collections::BTreeMap;

use api::{
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus, READY},
    condition::AntreaCondition,
    label,
    lease::LeaseView,
    mcs::{ServiceExport, ServiceImport},
    membership,
    resource_export::{ResourceExport, ResourceExportStatus, Withdrawal},
    resource_import::{Exporter, ResourceImport},
    view::{Lenient, annotated, lean, sourced},
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Node},
    jiff::{SignedDuration, Timestamp},
};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta};
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

/// A ClusterSet, of a member or of a Common Area.
#[derive(Resource, Clone, Debug, Default, Deserialize)]
#[resource(inherit = ClusterSet)]
pub(crate) struct ClusterSetView {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Lenient<Option<ClusterSetSpec>>,
    #[serde(default)]
    pub(crate) status: Lenient<ClusterSetStatus>,
}

impl ClusterSetView {
    /// ID of this cluster, unless a ClusterClaim says it.
    pub(crate) fn cluster_id(&self) -> Option<&str> {
        filled(Some(&self.spec()?.cluster_id))
    }

    /// ID of the cluster that leads.
    pub(crate) fn leader_id(&self) -> Option<&str> {
        filled(self.spec()?.leaders.first()?.cluster_id.as_ref())
    }

    /// URL of the leader's API server.
    pub(crate) fn server(&self) -> Option<&str> {
        filled(self.spec()?.leaders.first()?.server.as_ref())
    }

    fn spec(&self) -> Option<&ClusterSetSpec> {
        self.spec.0.as_ref().ok()?.as_ref()
    }

    pub(crate) fn conditions(&self) -> &[AntreaCondition] {
        self.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }

    /// Its condition `Ready`.
    pub(crate) fn ready(&self) -> Option<&AntreaCondition> {
        self.condition(READY)
    }

    /// Its condition of this type.
    pub(crate) fn condition(&self, type_: &str) -> Option<&AntreaCondition> {
        self.conditions().iter().find(|condition| condition.type_.as_deref() == Some(type_))
    }

    /// Whether the status is about the spec as it is now.
    pub(crate) fn is_observed(&self) -> bool {
        self.status.0.as_ref().is_ok_and(|status| status.observed_generation == self.metadata.generation)
    }
}

fn filled(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
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

/// A ServiceExport.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ServiceExport)]
pub(crate) struct ServiceExportView {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) status: Lenient<Conditions>,
}

/// A ServiceImport.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ServiceImport)]
pub(crate) struct ServiceImportView {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) status: Lenient<Conditions>,
}

/// Conditions of whoever wrote them. Those of Kubernetes and of Antrea have the same fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Conditions {
    pub(crate) conditions: Vec<AntreaCondition>,
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

/// What the last renewal of a Lease says of its holder, by our clock.
pub(crate) enum Sign {
    Alive,
    Silent,
    /// It was renewed this far in our future: the clocks differ, and nothing follows.
    Ahead(SignedDuration),
}

/// Compares the last renewal with `now`.
pub(crate) fn sign(lease: &LeaseView, now: Timestamp) -> Sign {
    let stale = SignedDuration::try_from(lease.stale()).unwrap_or(SignedDuration::MAX);
    match lease.renew_time().map(|renewed| now.duration_since(renewed)) {
        Some(age) if age < -stale => Sign::Ahead(-age),
        Some(age) if age < stale => Sign::Alive,
        _ => Sign::Silent,
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
