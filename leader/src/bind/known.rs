//! What a provider knows: what it offers, who asked for it, and what was made for whom.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    bind::{
        bound_schema::BoundSchema,
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace},
        label,
        offer::{APIServiceExportTemplate, BindableResourcesRequest},
    },
    view::Meta,
};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kit::objects::{Decoded, ObjectName, Objects};
use kube::ResourceExt;

use super::lean::Bounded;

/// A Namespace that is there for a consumer.
pub(super) type Place = Meta<Namespace>;

/// Names of the templates that the consumer was granted.
pub(super) fn granted_templates(contract: &Place) -> Vec<String> {
    let all = contract.annotations().get(label::GRANTED_TEMPLATES).map(String::as_str).unwrap_or_default();
    all.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// What the watches told.
#[derive(Default)]
pub(super) struct Known {
    pub(super) crds: Decoded<CustomResourceDefinition>,
    pub(super) templates: Decoded<APIServiceExportTemplate>,
    pub(super) asks: Decoded<BindableResourcesRequest>,
    pub(super) requests: Bounded<APIServiceExportRequest>,
    pub(super) exports: Decoded<APIServiceExport>,
    pub(super) schemas: Decoded<BoundSchema>,
    pub(super) namespaces: Bounded<APIServiceNamespace>,
    /// Cluster namespaces, and Namespaces that stand for those of consumers.
    pub(super) places: Objects<Place>,
}

impl Known {
    /// The Namespace of this name that is there for a consumer.
    pub(super) fn place(&self, name: &str) -> Option<&Place> {
        self.places.named(&everywhere(name))
    }

    /// The template of this name.
    pub(super) fn template(&self, name: &str) -> Option<&APIServiceExportTemplate> {
        self.templates.named(&everywhere(name))
    }

    /// The CRD of this name, if it may be offered.
    pub(super) fn crd(&self, name: &str) -> Option<&CustomResourceDefinition> {
        self.crds.named(&everywhere(name))
    }

    /// The cluster namespace, if it is one and is not going.
    pub(super) fn contract(&self, name: &str) -> Option<&Place> {
        self.place(name).filter(|place| is_contract(place))
    }

    /// Whether it is a cluster namespace that is going.
    pub(super) fn is_ending(&self, name: &str) -> bool {
        let is_going = |place: &Place| place.metadata.deletion_timestamp.is_some();
        self.place(name).is_some_and(|place| was_contract(place) && is_going(place))
    }

    /// The cluster namespace that this identity has, whatever its prefix was then.
    pub(super) fn contract_of(&self, identity: &str) -> Option<String> {
        let has = |place: &&Place| {
            is_contract(place) && place.annotations().get(label::IDENTITY).is_some_and(|has| has == identity)
        };
        self.places.iter().find(has).map(ResourceExt::name_any).filter(|_| !identity.is_empty())
    }

    /// How many contracts use an API, and how many none.
    pub(super) fn contracts(&self) -> [(&'static str, i64); 2] {
        let exporting: BTreeSet<_> =
            self.exports.iter().filter_map(|export| export.metadata.namespace.as_deref()).collect();
        let names = self.places.iter().filter(|place| is_contract(place));
        let names = names.filter_map(|place| place.metadata.name.as_deref());
        let (using, idle): (Vec<_>, Vec<_>) = names.partition(|name| exporting.contains(name));
        let count = |of: &[&str]| i64::try_from(of.len()).unwrap_or(i64::MAX);
        [("Exporting", count(&using)), ("Idle", count(&idle))]
    }

    /// Exports of a cluster namespace.
    pub(super) fn exports_of<'a>(
        &'a self,
        cluster_namespace: &'a str,
    ) -> impl Iterator<Item = &'a APIServiceExport> {
        self.exports.within(cluster_namespace)
    }

    /// APIs that are exported in a cluster namespace, and by which export.
    pub(super) fn bound(&self, cluster_namespace: &str) -> BTreeMap<String, String> {
        let exports = self.exports_of(cluster_namespace);
        let of = |export: &APIServiceExport| {
            let name = export.name_any();
            export.spec.resources.iter().map(|resource| (resource.name(), name.clone())).collect::<Vec<_>>()
        };
        exports.flat_map(of).collect()
    }

    /// The BoundSchema of an API in a cluster namespace.
    pub(super) fn schema(&self, cluster_namespace: &str, api: &str) -> Option<&BoundSchema> {
        self.schemas.named(&(cluster_namespace.to_owned(), api.to_owned()))
    }
}

/// How an object outside of Namespaces is found.
fn everywhere(name: &str) -> ObjectName {
    (String::new(), name.to_owned())
}

fn is_contract(place: &Place) -> bool {
    was_contract(place) && place.metadata.deletion_timestamp.is_none()
}

fn was_contract(place: &Place) -> bool {
    place.labels().get(label::BIND).is_some_and(|value| value == label::CONTRACT)
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_namespace_is_a_contract_until_it_goes() {
        let mut known = Known::default();
        let deleted = "2026-01-01T00:00:00Z";
        for (name, label, deleted) in [
            ("a", label::CONTRACT, None),
            ("b", label::CONTRACT, None),
            ("c", label::CONTRACT, Some(deleted)),
            ("a-team1", label::OBJECTS, Some(deleted)),
        ] {
            let metadata =
                json!({"name": name, "labels": {label::BIND: label}, "deletionTimestamp": deleted});
            known
                .places
                .change(Change::Apply(serde_json::from_value(json!({ "metadata": metadata })).unwrap()));
        }
        let export = json!({"metadata": {"name": "x", "namespace": "a"},
            "spec": {"informerScope": "Namespaced", "isolation": "None", "resources": []}});
        known.exports.change(Change::Apply(serde_json::from_value(export).unwrap()));
        assert_eq!(known.contracts(), [("Exporting", 1), ("Idle", 1)]);
        let is = |name: &str| (known.contract(name).is_some(), known.is_ending(name));
        assert_eq!(
            (is("a"), is("c"), is("a-team1"), is("gone")),
            ((true, false), (false, true), (false, false), (false, false))
        );
    }
}
