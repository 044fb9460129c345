//! What a provider knows: what it offers, who asked for it, and what was made for whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

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
use kit::objects::{Decoded, Objects};
use kube::{Resource, ResourceExt};

/// A Namespace that is there for a consumer.
pub(super) type Place = Meta<Namespace>;

/// Names of the templates that the consumer was granted.
pub(super) fn granted_templates(contract: &Place) -> Vec<String> {
    let all = contract.annotations().get(label::GRANTED_TEMPLATES).map(String::as_str).unwrap_or_default();
    all.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// An object in a cluster namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) cluster_namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn of<P: Resource>(object: &P) -> Self {
        Self {
            cluster_namespace: object.meta().namespace.clone().unwrap_or_default(),
            name: object.name_any(),
        }
    }

    /// The APIServiceNamespace that a Namespace was made for.
    pub(super) fn made_for(place: &Place) -> Option<Self> {
        let (cluster_namespace, name) =
            place.annotations().get(label::API_SERVICE_NAMESPACE)?.split_once('/')?;
        Some(Self { cluster_namespace: cluster_namespace.to_owned(), name: name.to_owned() })
    }

    pub(super) fn pair(&self) -> (String, String) {
        (self.cluster_namespace.clone(), self.name.clone())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster_namespace, self.name)
    }
}

/// What the watches told.
#[derive(Default)]
pub(super) struct Known {
    pub(super) crds: Decoded<CustomResourceDefinition>,
    pub(super) templates: Decoded<APIServiceExportTemplate>,
    pub(super) asks: Decoded<BindableResourcesRequest>,
    pub(super) requests: Decoded<APIServiceExportRequest>,
    pub(super) exports: Decoded<APIServiceExport>,
    pub(super) schemas: Decoded<BoundSchema>,
    pub(super) namespaces: Decoded<APIServiceNamespace>,
    /// Cluster namespaces, and Namespaces that stand for those of consumers.
    pub(super) places: Objects<Place>,
}

impl Known {
    /// The cluster namespace, if it is one and is not going.
    pub(super) fn contract(&self, name: &str) -> Option<&Place> {
        let place = self.places.get(name)?;
        let is_contract = place.labels().get(label::BIND).is_some_and(|value| value == label::CONTRACT);
        (is_contract && place.metadata.deletion_timestamp.is_none()).then_some(place)
    }

    /// The cluster namespace that this identity has, whatever its prefix was then.
    pub(super) fn contract_of(&self, identity: &str) -> Option<String> {
        let has =
            |place: &&Place| place.annotations().get(label::IDENTITY).is_some_and(|has| has == identity);
        let names = self.places.iter().filter(has).map(ResourceExt::name_any);
        let mut contracts = names.filter(|name| !identity.is_empty() && self.contract(name).is_some());
        contracts.next()
    }

    /// How many contracts use an API, and how many none.
    pub(super) fn contracts(&self) -> [(&'static str, i64); 2] {
        let exporting: BTreeSet<_> =
            self.exports.iter().filter_map(|export| export.metadata.namespace.as_deref()).collect();
        let names = self.places.iter().map(ResourceExt::name_any);
        let all: Vec<_> = names.filter(|name| self.contract(name).is_some()).collect();
        let using = all.iter().filter(|name| exporting.contains(name.as_str())).count();
        let count = |many: usize| i64::try_from(many).unwrap_or(i64::MAX);
        [("Exporting", count(using)), ("Idle", count(all.len() - using))]
    }

    /// Exports of a cluster namespace.
    pub(super) fn exports_of<'a>(
        &'a self,
        cluster_namespace: &'a str,
    ) -> impl Iterator<Item = &'a APIServiceExport> {
        self.exports
            .iter()
            .filter(move |export| export.metadata.namespace.as_deref() == Some(cluster_namespace))
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
