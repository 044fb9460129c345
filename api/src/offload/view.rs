//! The kinds as they are read. A field that does not decode is an error in its place: it stops no list, and nothing else of its object.
//!
//! What does not decode counts as vanished, never as empty.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;

use super::{
    map::{NamespaceMap, NamespaceMapSpec, NamespaceMapStatus},
    namespace::{NamespaceOffloading, NamespaceOffloadingSpec, NamespaceOffloadingStatus},
    offer::{OffloadOffer, OffloadOfferSpec},
    peer::{OffloadPeer, OffloadPeerSpec, OffloadPeerStatus},
    shadow_pod::{ShadowPod, ShadowPodSpec, ShadowPodStatus},
};
use crate::view::{Lenient, annotated, lean};

/// A NamespaceOffloading. One without a spec has the defaults.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = NamespaceOffloading)]
pub struct NamespaceOffloadingView {
    /// With annotations: they say who made it.
    #[serde(deserialize_with = "annotated")]
    pub metadata: ObjectMeta,
    /// What is asked for.
    #[serde(default)]
    pub spec: Lenient<NamespaceOffloadingSpec>,
    /// What was said about it last.
    #[serde(default)]
    pub status: Lenient<NamespaceOffloadingStatus>,
}

/// A NamespaceMap.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = NamespaceMap)]
pub struct NamespaceMapView {
    /// Name and uid.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// What the origin wants. None if there is no spec.
    #[serde(default)]
    pub spec: Lenient<Option<NamespaceMapSpec>>,
    /// What the destination says.
    #[serde(default)]
    pub status: Lenient<NamespaceMapStatus>,
}

/// An OffloadPeer. One without a spec allows and asks for nothing.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = OffloadPeer)]
pub struct OffloadPeerView {
    /// Its name is the ID of a cluster.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// What is allowed and asked for.
    #[serde(default)]
    pub spec: Lenient<OffloadPeerSpec>,
    /// What was said about it last.
    #[serde(default)]
    pub status: Lenient<OffloadPeerStatus>,
}

/// An OffloadOffer.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = OffloadOffer)]
pub struct OffloadOfferView {
    /// Name and uid.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// What is offered. None if there is no spec.
    #[serde(default)]
    pub spec: Lenient<Option<OffloadOfferSpec>>,
}

/// A ShadowPod.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = ShadowPod)]
pub struct ShadowPodView {
    /// Name and uid.
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    /// What the origin wants. None if there is no spec.
    #[serde(default)]
    pub spec: Lenient<Option<ShadowPodSpec>>,
    /// What the destination says.
    #[serde(default)]
    pub status: Lenient<ShadowPodStatus>,
}

#[cfg(test)]
mod tests {
    use kube::{ResourceExt, core::ObjectList};
    use proptest::prelude::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    /// The object with this content, read in a list with one that has none.
    fn read<K: DeserializeOwned + Resource + Clone>(content: Value) -> K {
        let mut odd = content;
        odd["metadata"] = json!({"name": "odd"});
        let list = json!({"metadata": {}, "items": [odd, {"metadata": {"name": "good"}}]});
        let list: ObjectList<K> = serde_json::from_value(list).unwrap();
        let names: Vec<_> = list.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["odd", "good"]);
        list.items[0].clone()
    }

    const FIELDS: &[&str] = &[
        "origin",
        "destination",
        "desiredMapping",
        "currentMapping",
        "remoteNamespace",
        "phase",
        "host",
        "home",
        "clusterSelector",
        "nodeSelectorTerms",
        "matchExpressions",
        "remoteNamespacesConditions",
        "conditions",
        "lastTransitionTime",
        "incoming",
        "outgoing",
        "resources",
        "nodeLabels",
        "maxNamespaces",
        "sealed",
        "pod",
        "containerStatuses",
        "deletion",
        "publicKey",
        "uid",
        "name",
    ];

    proptest! {
        #[test]
        fn a1_no_object_stops_a_list(odd in odd::anything(FIELDS)) {
            odd::everywhere::<NamespaceOffloadingView>(&odd).unwrap();
            odd::everywhere::<NamespaceMapView>(&odd).unwrap();
            odd::everywhere::<OffloadPeerView>(&odd).unwrap();
            odd::everywhere::<OffloadOfferView>(&odd).unwrap();
            odd::everywhere::<ShadowPodView>(&odd).unwrap();
        }
    }

    #[test]
    fn a1_one_odd_field_stops_no_list() {
        for content in [
            json!({"spec": {"podOffloadingStrategy": ""}, "status": {"conditions": 7}}),
            json!({"spec": "odd", "status": {"offloadingPhase": {}}}),
        ] {
            let odd = read::<NamespaceOffloadingView>(content);
            assert!(odd.spec.0.is_err() && odd.status.0.is_err());
        }
        let mapping = json!({"shop": {"phase": "Later"}, "odd": {"phase": 7}});
        let odd = read::<NamespaceMapView>(
            json!({"spec": {"origin": "west"}, "status": {"currentMapping": mapping}}),
        );
        assert!(odd.spec.0.is_err(), "half a spec is no spec");
        let current = odd.status.0.unwrap().current_mapping;
        assert_eq!(current.keys().collect::<Vec<_>>(), ["shop"]);
        assert_eq!(current["shop"].phase, "Later", "a phase of a later version");
        assert!(
            read::<OffloadPeerView>(json!({"spec": {"incoming": {"maxNamespaces": "all"}}})).spec.0.is_err()
        );
        assert!(read::<OffloadOfferView>(json!({"spec": {"host": "east"}})).spec.0.is_err());
        let odd = read::<ShadowPodView>(json!({"status": {"pod": {"phase": "Odd"}, "deleted": "perhaps"}}));
        assert!(odd.status.0.is_err() && odd.spec.0 == Ok(None));
    }
}
