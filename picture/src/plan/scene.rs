//! Members of the ClusterSet that the change is about, and its Common Area.

use std::collections::{BTreeMap, BTreeSet};

use api::ServiceName;
use kube::ResourceExt;

use super::held::{Area, Cluster};

/// Members and Common Area of a ClusterSet.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    /// Members that were looked at, by their IDs.
    pub(super) members: BTreeMap<String, &'a Cluster>,
    /// The Common Area, if the leader was looked at.
    pub(super) area: Option<&'a Area>,
    /// Services of a member whose EndpointSlices will change in a way that is not known.
    pub(super) unsettled: Option<(&'a str, &'a BTreeSet<ServiceName>)>,
}

impl<'a> Scene<'a> {
    /// Those of the ClusterSet of this name.
    pub(super) fn of(clusters: impl IntoIterator<Item = &'a Cluster>, set: &str) -> Self {
        let clusters: Vec<_> = clusters.into_iter().collect();
        let is_in = |cluster: &&Cluster| cluster.set().is_some_and(|own| own.name_any() == set);
        let members = clusters.iter().copied().filter(is_in);
        let members = members.filter_map(|cluster| Some((cluster.id()?.to_owned(), cluster))).collect();
        let mut areas = clusters.iter().copied().flat_map(|cluster| cluster.areas.iter().flatten());
        let area = areas.find(|area| area.set().as_deref() == Some(set) && area.records.is_ok());
        Self { members, area, unsettled: None }
    }

    /// IDs of members that were not looked at, as far as the leader knows them.
    pub(super) fn others(&self) -> BTreeSet<String> {
        let all = self.area.into_iter().flat_map(Area::members).map(|(id, _)| id);
        all.filter(|id| !self.members.contains_key(id)).collect()
    }

    /// Reports whether clusters that were not looked at may export the Service. The leader knows that, and each import.
    pub(super) fn hides_exports(&self) -> bool {
        self.area.is_none() && self.members.values().all(|cluster| cluster.imports.is_err())
    }

    /// Reports whether the endpoints are known that a member has for a Service.
    pub(super) fn knows_endpoints(&self, id: &str, service: &ServiceName) -> bool {
        let is_unsettled =
            self.unsettled.is_some_and(|(of, services)| of == id && services.contains(service));
        !is_unsettled && self.members.get(id).is_none_or(|cluster| cluster.slices.is_ok())
    }

    /// IDs of members that lack this Namespace, as far as that is known.
    pub(super) fn lacking(&self, namespace: &str) -> BTreeSet<String> {
        let looked_at =
            self.members.iter().filter(|(_, cluster)| matches!(cluster.namespace(namespace), Ok(None)));
        let looked_at = looked_at.map(|(id, _)| id.clone());
        let others = self.area.into_iter().flat_map(Area::members).filter(|(id, lease)| {
            !self.members.contains_key(id) && lease.lacks().is_some_and(|lacks| lacks.contains(namespace))
        });
        looked_at.chain(others.map(|(id, _)| id)).collect()
    }
}
