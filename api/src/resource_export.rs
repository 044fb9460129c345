//! `ResourceExport`: what one member offers to the set.

mod check;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, ServicePort, ServiceSpec},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::check::{Unfit, check_size};
use crate::{
    condition::AntreaCondition,
    schema::preserved_object,
    slice::{Endpoint, SlicePayload, SlicePort},
};

/// Kind of a record with a Service.
pub const SERVICE: &str = "Service";
/// Kind of a record with one EndpointSlice.
pub const ENDPOINT_SLICE: &str = "EndpointSlice";

/// Kind of a record with all endpoints of a Service (Antrea), and of an import made of such records.
pub const ENDPOINTS: &str = "Endpoints";

/// ResourceExport is what one member cluster offers to the others. Members write it into the Common Area; users never do.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.crd.antrea.io",
    version = "v1alpha1",
    kind = "ResourceExport",
    namespaced,
    status = "ResourceExportStatus",
    derive = "PartialEq",
    printcolumn(name = "Cluster ID", type_ = "string", json_path = ".spec.clusterID"),
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceExportSpec {
    /// ID of the cluster that exports.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Name of the exported object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the exported object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `Service`, `EndpointSlice`, `Endpoints`, `ClusterInfo`, `LabelIdentity` or `AntreaClusterNetworkPolicy`: which of
    /// the fields below is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The Service, for kind `Service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServicePayload>,
    /// The slice, for kind `EndpointSlice` (Freeport).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_slice: Option<SlicePayload>,
    /// All endpoints in one, for kind `Endpoints` (Antrea).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsPayload>,
    /// Networks and gateways of a cluster, for kind `ClusterInfo` (Antrea; Freeport ignores it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub cluster_info: Option<Value>,
    /// Antrea's ExternalEntity; Freeport ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub external_entity: Option<Value>,
    /// Antrea's ClusterNetworkPolicy; Freeport ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub cluster_network_policy: Option<Value>,
    /// Antrea's LabelIdentity; Freeport ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub label_identity: Option<Value>,
    /// Raw data (Antrea); Freeport ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "preserved_object")]
    pub raw: Option<Value>,
}

/// An exported Service: Antrea's `serviceSpec`, and beside it what the Multi-Cluster Services API needs.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePayload {
    /// Ports, session affinity, traffic policies, IP families; `clusterIP` only to say `None`.
    #[serde(default)]
    pub service_spec: ServiceSpec,
    /// When the ServiceExport was created: the oldest one wins a conflict (rule R-34).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_at: Option<Time>,
    /// Labels for the ServiceImport.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_labels: BTreeMap<String, String>,
    /// Annotations for the ServiceImport.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_annotations: BTreeMap<String, String>,
    /// The cluster takes its export back: the leader takes it out of the import, then deletes this record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

/// Of a [`ServicePayload`] whether it is taken back, whatever else it says.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub struct Withdrawal {
    /// As in [`ServicePayload`].
    pub withdrawn: bool,
}

/// What a Service without an address has in place of one.
pub const HEADLESS: &str = "None";

impl ServicePayload {
    /// Whether the Service has no address of its own (rule R-12).
    pub fn is_headless(&self) -> bool {
        self.service_spec.cluster_ip.as_deref() == Some(HEADLESS)
    }
}

/// Whether the time can be written again: it has to have a year of four digits in UTC. One that an API server took may not: it does
/// not look at the offset.
pub fn can_be_written(time: &Time) -> bool {
    (1..=9999).contains(&time.0.to_zoned(jiff::tz::TimeZone::UTC).year())
}

impl ServicePayload {
    /// About how much memory a copy of it takes, in bytes: a daemon keeps it, or the import that is made of it.
    pub fn weight(&self) -> usize {
        /// A key and its value in a map, beside their texts: its nodes are half full where keys came in their order.
        const ENTRY: usize = 128;
        let entries = self.exported_labels.iter().chain(&self.exported_annotations);
        let entries: usize = entries.map(|(key, value)| ENTRY + key.len() + value.len()).sum();
        let port = |port: &ServicePort| {
            let texts = [&port.name, &port.protocol, &port.app_protocol].into_iter().flatten();
            size_of::<ServicePort>() + texts.map(|text| text.len().max(32)).sum::<usize>()
        };
        entries + self.service_spec.ports.iter().flatten().map(port).sum::<usize>()
    }
}

/// All endpoints of a Service in one record (Antrea).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct EndpointsPayload {
    /// Addresses and their ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<EndpointSubset>,
}

impl EndpointsPayload {
    /// Takes out the addresses that are not to stay; which these were.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) -> Vec<String> {
        let mut taken = Vec::new();
        for subset in &mut self.subsets {
            for addresses in [&mut subset.addresses, &mut subset.not_ready_addresses].into_iter().flatten() {
                taken.extend(
                    addresses.extract_if(.., |address| !stays(&address.ip)).map(|address| address.ip),
                );
            }
        }
        let has_any = |addresses: &Option<Vec<EndpointAddress>>| addresses.iter().any(|all| !all.is_empty());
        if !taken.is_empty() {
            self.subsets.retain(|subset| has_any(&subset.addresses) || has_any(&subset.not_ready_addresses));
        }
        taken
    }

    /// About how much memory a copy of it takes, in bytes, with the slices that importers make of it.
    pub fn weight(&self) -> usize {
        let heap = |text: &String| text.len().max(32);
        let address = |address: &EndpointAddress| {
            let texts = [Some(&address.ip), address.hostname.as_ref()];
            let texts: usize = texts.into_iter().flatten().map(heap).sum();
            size_of::<EndpointAddress>() + size_of::<Endpoint>() + size_of::<String>() + 2 * texts
        };
        let port = |port: &EndpointPort| {
            let texts = [&port.name, &port.protocol, &port.app_protocol];
            let texts: usize = texts.into_iter().flatten().map(heap).sum();
            size_of::<EndpointPort>() + size_of::<SlicePort>() + 2 * texts
        };
        let subset = |subset: &EndpointSubset| {
            let addresses = subset.addresses.iter().chain(&subset.not_ready_addresses).flatten();
            let ports = subset.ports.iter().flatten().map(port);
            size_of::<EndpointSubset>() + addresses.map(address).chain(ports).sum::<usize>()
        };
        self.subsets.iter().map(subset).sum()
    }
}

/// What the leader says about a record.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct ResourceExportStatus {
    /// `Failure` when the record cannot be judged, with the reason; `Succeeded` when it could again.
    #[serde(default)]
    pub conditions: Vec<AntreaCondition>,
}

/// Condition type: the record could be merged.
pub const SUCCEEDED: &str = "Succeeded";
/// Condition type: the record cannot be judged.
pub const FAILURE: &str = "Failure";

/// Most ports that a record can say a Service has: more than the leader takes in, which says so.
pub const PORTS_MAX: u16 = 250;

/// Reason of a failure: the member has too many records. Importers do not take in such a slice.
pub const OVER_QUOTA: &str = "OverQuota";

/// Reason of a failure: some addresses are not those that the member may export. The record takes part without them.
pub const OUT_OF_RANGE: &str = "OutOfRange";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_out_and_nothing_is_left_of_an_empty_subset() {
        let mut payload: EndpointsPayload = serde_json::from_value(serde_json::json!({"subsets": [
            {"addresses": [{"ip": "10.1.0.1"}, {"ip": "10.9.0.1"}], "ports": [{"port": 80}]},
            {"notReadyAddresses": [{"ip": "10.9.0.2"}], "ports": [{"port": 81}]},
        ]}))
        .unwrap();
        let all = payload.clone();
        assert_eq!((payload.retain(|_| true), &payload), (vec![], &all));
        assert_eq!(payload.retain(|ip| ip.starts_with("10.1.")), ["10.9.0.1", "10.9.0.2"]);
        let [subset] = payload.subsets.try_into().unwrap();
        assert_eq!(subset.addresses.unwrap().len(), 1);
    }
}
