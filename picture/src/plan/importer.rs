//! The import of a merged Service in each cluster.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    condition::{Condition, Status, Verdict},
    mcs::{NO_READY_ENDPOINTS, READY, ServiceImportSpec, ServiceImportType},
    name,
    resource_import::{MergedMetadata, MergedService},
    slice::SlicePayload,
};
use kube::ResourceExt;
use rules::{
    import::{
        address, foreign, in_place, metadata,
        slice::{Source, imported},
        unanswered, unusable,
    },
    unanswered::answered,
    view::{Slice, is_ours},
};
use serde::Serialize;

use super::{exporter::Exporter, held::Cluster};

/// Number of endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Endpoints {
    /// All of them.
    pub total: usize,
    /// Those that get traffic.
    pub ready: usize,
}

impl Endpoints {
    /// Those in these slices.
    pub(super) fn of<'a>(slices: impl Iterator<Item = &'a Slice>) -> Self {
        let endpoints = slices.flat_map(|slice| &slice.endpoints);
        endpoints.fold(Self::default(), |count, endpoint| Self {
            total: count.total + 1,
            ready: count.ready + usize::from(endpoint.shared.is_ready()),
        })
    }
}

/// Change of the address of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Address {
    /// It stays.
    Kept,
    /// There is a new one.
    New,
    /// A headless import has none, and one that cannot be used neither.
    None,
}

/// An import in one cluster, as it will be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The ServiceImport's spec. A new address is not known.
    pub spec: ServiceImportSpec,
    /// Labels and annotations that exporters give it.
    pub metadata: MergedMetadata,
    /// Clusters that take part.
    pub clusters: Vec<String>,
    /// Change of its address.
    pub address: Address,
    /// Conditions of the ServiceImport.
    #[serde(serialize_with = "super::condition::serialized")]
    pub conditions: Vec<Verdict>,
    /// Its EndpointSlices, by name.
    #[serde(skip)]
    pub(super) slices: BTreeMap<String, Slice>,
    /// Clusters that take part, and of whose endpoints it is not known which they are.
    #[serde(skip)]
    pub(super) hidden: BTreeSet<String>,
    /// True if its Service exists.
    #[serde(skip)]
    pub(super) has_service: bool,
}

impl Imported {
    /// Reports whether it can be used.
    pub fn is_ready(&self) -> bool {
        self.trouble().is_none()
    }

    /// Endpoints that are certain.
    pub(super) fn certain(&self) -> Endpoints {
        let is_certain = |slice: &&Slice| {
            let from = slice.labels().get(api::label::MCS_SOURCE_CLUSTER);
            from.is_none_or(|from| !self.hidden.contains(from))
        };
        Endpoints::of(self.slices.values().filter(is_certain))
    }

    /// Its condition `Ready`, if it is not ready.
    pub(super) fn trouble(&self) -> Option<&Verdict> {
        self.conditions.iter().find(|said| said.type_ == READY && said.status != Status::True)
    }
}

/// The import that a cluster makes. `taking_part` are the clusters that take part.
pub(super) fn import(
    id: &str,
    cluster: &Cluster,
    service: &ServiceName,
    merged: &MergedService,
    exporters: &BTreeMap<String, Exporter>,
    taking_part: &BTreeSet<String>,
) -> Imported {
    let spec = &merged.spec;
    let is_headless = spec.type_ == ServiceImportType::Headless;
    let derived = cluster.derived(service);
    let own = derived.filter(|derived| is_ours(&derived.metadata));
    let taken = derived.is_some() && own.is_none();
    let here = cluster.families.as_deref().unwrap_or_default();
    let families = address::served(spec, here, own.map(|own| &own.spec));
    let is_usable = !taken && !families.is_empty();
    let stays = own.filter(|own| is_usable && address::can_become(&own.spec, &families, is_headless));
    let asked = address::asked(&families, is_headless, stays.map(|stays| &stays.spec), &[]);
    let (ips, ip_families) = match () {
        () if is_headless => (vec![], families.clone()),
        () if !is_usable => (vec![], vec![]),
        () => (asked.addresses().cloned().collect(), asked.ip_families.clone()),
    };
    let address = match stays {
        _ if is_headless || !is_usable => Address::None,
        Some(_) => Address::Kept,
        None => Address::New,
    };
    let clusters: Vec<_> = taking_part.iter().cloned().collect();
    let slices = if taken {
        BTreeMap::new()
    } else {
        slices(id, cluster, service, spec, &families, exporters, &clusters)
    };
    let is_hidden = |from: &&String| match exporters.get(*from) {
        Some(exporter) => exporter.hides_endpoints,
        None => cluster.slices.is_err(),
    };
    let hidden: BTreeSet<_> = clusters.iter().filter(is_hidden).cloned().collect();
    let mut conditions =
        conditions((id, cluster), service, spec, (taken, &families), &slices, exporters, &clusters);
    conditions.retain(|said| hidden.is_empty() || said.type_ != NO_READY_ENDPOINTS);
    Imported {
        spec: ServiceImportSpec { ips, ip_families, ..spec.clone() },
        metadata: given(service, merged.metadata.as_ref()),
        clusters,
        address,
        conditions,
        slices,
        hidden,
        has_service: is_usable,
    }
}

/// The exported labels and annotations that a ServiceImport gets.
fn given(service: &ServiceName, exported: Option<&MergedMetadata>) -> MergedMetadata {
    let mut all = metadata::of_ours(service, service.name.clone());
    metadata::add(&exported.cloned().unwrap_or_default(), &mut all);
    metadata::exported(&all)
}

fn slices(
    id: &str,
    cluster: &Cluster,
    service: &ServiceName,
    merged: &ServiceImportSpec,
    families: &[String],
    exporters: &BTreeMap<String, Exporter>,
    clusters: &[String],
) -> BTreeMap<String, Slice> {
    let mut all = BTreeMap::new();
    for from in clusters {
        let Some(exporter) = exporters.get(from) else {
            // Of a cluster that is not known the endpoints stay that are here.
            let is_its = |slice: &Slice| slice.labels().get(api::label::MCS_SOURCE_CLUSTER) == Some(from);
            all.extend(cluster.imported_slices(service).into_iter().filter(|(_, slice)| is_its(slice)));
            continue;
        };
        let payloads = if from == id { &exporter.own_slices } else { &exporter.slices };
        let served = payloads.iter().filter(|(_, payload)| families.contains(&payload.address_type));
        for (record, payload) in served {
            let source = Source { cluster: from, record, local: None };
            let slice = imported(service, &source, payload, merged);
            all.extend(slice.map(|slice| (name::imported_slice(&service.name, record), slice)));
        }
    }
    all
}

fn conditions(
    (id, cluster): (&str, &Cluster),
    service: &ServiceName,
    merged: &ServiceImportSpec,
    (taken, families): (bool, &[String]),
    slices: &BTreeMap<String, Slice>,
    exporters: &BTreeMap<String, Exporter>,
    clusters: &[String],
) -> Vec<Verdict> {
    let there = cluster.import(service);
    if there.is_some_and(|there| !is_ours(&there.metadata)) {
        return vec![foreign()];
    }
    if let Some(unusable) = unusable(&service.name, taken, families, merged) {
        return vec![unusable];
    }
    // A member knows this of other clusters alone.
    let has_endpoints = |from: &str| {
        let exporter = exporters.get(from).filter(|_| from != id);
        exporter.is_some_and(|exporter| exporter.slices.values().any(has_any))
    };
    let have =
        there.and_then(|there| there.status.0.as_ref().ok()).map(|status| status.conditions.as_slice());
    let why = unanswered(&slices.values().collect::<Vec<_>>(), clusters, has_endpoints);
    let lasting =
        why.map_or_else(|| has_been_said(have.unwrap_or_default()).then(answered), |why| Some(why.verdict()));
    [in_place(merged, &BTreeSet::new())].into_iter().chain(lasting).collect()
}

fn has_any(slice: &SlicePayload) -> bool {
    !slice.endpoints.is_empty()
}

/// Reports whether the conditions have `NoReadyEndpoints`. Once set, it stays, with status `False` if an endpoint can answer.
pub(super) fn has_been_said(have: &[Condition]) -> bool {
    have.iter().any(|condition| condition.type_ == NO_READY_ENDPOINTS)
}
