//! `NamespaceMap`: the twins that a home wants of a host, and what became of them.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names;
use crate::view::decodable;

/// Most entries of a map: what a home wants of one host, and what that says, have to fit into one object.
pub const ENTRIES_MAX: usize = 2000;
/// Most bytes that a host may take for a message. The schema leaves room for dots behind it.
pub const MESSAGE_MAX: usize = 300;

/// NamespaceMap says which Namespaces of one cluster, the origin, have twins in another, the destination. There is one for each pair,
/// in the Common Area. The member of the origin writes `spec`, the member of the destination `status`; users write neither.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "NamespaceMap",
    namespaced,
    status = "NamespaceMapStatus",
    derive = "PartialEq",
    shortname = "nm",
    shortname = "nsmap",
    category = "liqo",
    selectable = ".spec.origin",
    selectable = ".spec.destination",
    printcolumn(name = "Origin", type_ = "string", json_path = ".spec.origin"),
    printcolumn(name = "Destination", type_ = "string", json_path = ".spec.destination"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapSpec {
    /// ID of the cluster with the Namespaces: their home.
    #[schemars(length(max = 63))]
    pub origin: String,
    /// ID of the cluster with the twins: their host.
    #[schemars(length(max = 63))]
    pub destination: String,
    /// For each Namespace of the origin, by name, the name that its twin shall have. It cannot be left out: none is said on purpose.
    #[schemars(extend("maxProperties" = ENTRIES_MAX))]
    pub desired_mapping: BTreeMap<String, String>,
    /// For each Namespace of the origin whose twins shall be deleted, by name, the generation that the map had when the origin wrote this.
    /// When the destination has acted on a later generation, and `currentMapping` does not have the Namespace any more, the origin removes
    /// the key. A Namespace that is in neither mapping keeps its twins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = ENTRIES_MAX))]
    pub withdrawn: BTreeMap<String, i64>,
}

impl NamespaceMapSpec {
    /// The only name that the record of this pair may have.
    pub fn name(&self) -> String {
        names::namespace_map(&self.origin, &self.destination)
    }

    /// Whether the destination shall delete the twins of this Namespace.
    pub fn withdraws(&self, namespace: &str) -> bool {
        self.withdrawn.contains_key(namespace) && !self.desired_mapping.contains_key(namespace)
    }

    /// Number of Namespaces that the map has: [`ENTRIES_MAX`] at the most.
    pub fn count(&self) -> usize {
        self.desired_mapping.len() + self.withdrawn.keys().filter(|name| self.withdraws(name)).count()
    }

    /// The same without any Namespace: the twins of all that were desired, and of those that the destination has `said`, are withdrawn.
    /// `generation` is the one of the map with this spec.
    pub fn emptied(&self, generation: i64, said: &NamespaceMapStatus) -> Self {
        let mut withdrawn = self.withdrawn.clone();
        withdrawn.extend(self.desired_mapping.keys().map(|namespace| (namespace.clone(), generation)));
        for namespace in said.current_mapping.keys() {
            withdrawn.entry(namespace.clone()).or_insert(generation);
        }
        Self { desired_mapping: BTreeMap::new(), withdrawn, ..self.clone() }
    }
}

/// What became of the twins, as their host says.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapStatus {
    /// For each Namespace of the origin that has, shall have or had a twin: what the destination says about that.
    // An entry that does not decode says nothing, and hides no other.
    #[serde(default, deserialize_with = "decodable", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = ENTRIES_MAX))]
    pub current_mapping: BTreeMap<String, MappedNamespace>,
    /// Generation of the map that the destination acted on last: of what was withdrawn by then, nothing is left that `currentMapping` does
    /// not name. The largest number there is where the destination has left: it acts on no generation any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl NamespaceMapStatus {
    /// Whether the destination has deleted the twins of a Namespace that was withdrawn when the map had generation `withdrawn`. `now` is the
    /// generation that it has: if somebody wrote the map again as it had been, it begins anew.
    pub fn has_ended(&self, namespace: &str, withdrawn: i64, now: i64) -> bool {
        !self.current_mapping.contains_key(namespace)
            && self.observed_generation.is_some_and(|observed| observed > withdrawn || observed >= now)
    }
}

/// What a host says about one twin.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MappedNamespace {
    /// Name of the twin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub remote_namespace: String,
    /// `Accepted`: the twin is there. `CreationLoopBackOff`: it cannot be made. `Terminating`: it is being deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub phase: String,
    /// Why, in one CamelCase word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MESSAGE_MAX + 10))]
    pub message: Option<String>,
}

/// Phase of a twin: it is there.
pub const ACCEPTED: &str = "Accepted";
/// Phase of a twin: it cannot be made.
pub const CREATION_LOOP_BACK_OFF: &str = "CreationLoopBackOff";
/// Phase of a twin: it is being deleted.
pub const TERMINATING: &str = "Terminating";
/// Reason of phase Terminating: the host's API server refuses to delete the twin.
pub const DELETION_REFUSED: &str = "DeletionRefused";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(mut spec: Value) -> NamespaceMapSpec {
        (spec["origin"], spec["destination"]) = (json!("west"), json!("east"));
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn only_what_is_withdrawn_in_writing_and_not_desired_ends() {
        let map = spec(json!({"desiredMapping": {"shop": "shop-west"}, "withdrawn": {"shop": 1, "web": 2}}));
        assert!(map.withdraws("web") && !map.withdraws("shop") && !map.withdraws("db"));
        let older = spec(json!({"desiredMapping": {}}));
        assert_eq!(serde_json::to_value(&older).unwrap().get("withdrawn"), None, "as older daemons write it");
    }

    #[test]
    fn a_map_that_is_emptied_withdraws_all_that_was_ever_in_it() {
        let map = spec(json!({"desiredMapping": {"shop": "shop-west"}, "withdrawn": {"web": 2}}));
        let entry = MappedNamespace { phase: ACCEPTED.to_owned(), ..MappedNamespace::default() };
        let said =
            NamespaceMapStatus { current_mapping: [("db".to_owned(), entry)].into(), ..Default::default() };
        let emptied = map.emptied(7, &said);
        assert_eq!(emptied, spec(json!({"desiredMapping": {}, "withdrawn": {"shop": 7, "web": 2, "db": 7}})));
        assert_eq!(emptied.emptied(8, &said), emptied, "a second time");
    }

    #[test]
    fn an_end_is_carried_out_when_a_later_generation_was_acted_on_and_nothing_is_left() {
        let said = |status: Value| serde_json::from_value::<NamespaceMapStatus>(status).unwrap();
        let left = json!({"shop": {"phase": "Terminating"}});
        assert!(!said(json!({})).has_ended("shop", 6, 9));
        assert!(!said(json!({"observedGeneration": 6})).has_ended("shop", 6, 9));
        assert!(said(json!({"observedGeneration": 7})).has_ended("shop", 6, 9));
        assert!(!said(json!({"observedGeneration": 7, "currentMapping": left})).has_ended("shop", 6, 9));
        assert!(said(json!({"observedGeneration": 1})).has_ended("shop", 6, 1), "the map is another one");
    }
}
