//! Everything that this member knows about Services, and who has to reconcile when it changes.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use api::{ServiceName, antrea::namesakes, lacking::Lacking, membership::Wire};
use kit::{
    events::Events,
    index::{Index, Part, Readers, Shared},
    objects::{Change, Streamed},
    queue::{Outcome, Queue},
    store::Store,
    write::{Error, Writer},
};
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    antrea::leader,
    copies::{COPY, SAID},
    index::{
        EXPORT, IMPORT, READ, STATUS,
        cluster::Cluster,
        entry::{NamespaceEntry, ServiceEntry},
        known::{Known, UnderAntrea},
        limits::Limits,
        links::Links,
        reports::Reports,
        view::{Namespace, OwnRecord, is_ours},
    },
    irregular::Irregular,
};

/// A slice record is written at once, then at most this often.
const EXPORT_PACE: Duration = Duration::from_millis(250);

/// Everything this member knows, and the queues of its controllers. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Knowledge {
    /// By Service name.
    pub(crate) services: Store<ServiceName, ServiceEntry>,
    /// What the controllers found.
    pub(crate) irregular: Shared<Irregular>,
    namespaces: Shared<Index<String, NamespaceEntry>>,
    cluster: Shared<Arc<Cluster>>,
}

impl Knowledge {
    /// Nothing yet but what holds for this cluster.
    pub(crate) fn new(cluster: Cluster) -> Self {
        // In the order of `EXPORT`, `IMPORT`, `STATUS` and `READ`.
        let queues = [EXPORT_PACE, Duration::ZERO, Duration::ZERO, Duration::ZERO].map(Queue::new);
        let services = match cluster.wire {
            Wire::Freeport => Store::new(queues),
            // Other Services may want the same names for their records.
            Wire::Antrea => Store::new(queues).with_related(namesakes),
        };
        Self {
            services,
            irregular: Shared::default(),
            namespaces: Shared::default(),
            cluster: Shared::new(Arc::new(cluster)),
        }
    }

    /// Takes in a change of Namespaces: all Services in them are reconciled.
    pub(crate) fn change_namespaces(&self, change: Change<Namespace>) {
        let namespaces: BTreeMap<String, Readers> =
            self.namespaces.with(|namespaces| namespaces.change(change));
        let services = self.services.keys().into_iter();
        let dirty =
            services.filter_map(|service| Some((service.clone(), *namespaces.get(&service.namespace)?)));
        self.services.enqueue(dirty.collect());
    }

    /// Takes in which IP families this cluster has; whether that is news.
    pub(crate) fn have_families(&self, families: &[String]) -> bool {
        let is_news = self.cluster.with(|cluster| {
            let is_news = cluster.families != families;
            if is_news {
                Arc::make_mut(cluster).families = families.to_vec();
            }
            is_news
        });
        if is_news {
            self.services.enqueue_all(Readers::ALL);
        }
        is_news
    }

    /// Takes in how it stands with other clusters: what is imported of those with which it stands differently now is reconciled.
    pub(crate) fn have_links(&self, change: impl FnOnce(&mut Links)) {
        let turned = self.cluster.with(|cluster| {
            let mut links = cluster.links.clone();
            change(&mut links);
            let turned = links.turned(&cluster.links);
            if links != cluster.links {
                Arc::make_mut(cluster).links = links;
            }
            turned
        });
        if turned.is_empty() {
            return;
        }
        let is_of_them = |service: &ServiceName| {
            self.services.get(service).is_some_and(|entry| !entry.parts().is_disjoint(&turned))
        };
        let dirty = self.services.keys().into_iter().filter(is_of_them);
        self.services.enqueue(dirty.map(|service| (service, IMPORT)).collect());
    }

    /// Takes in which addresses the endpoints of other clusters may have: what is imported of others is reconciled if that is news.
    pub(crate) fn have_limits(&self, change: impl FnOnce(&mut Limits)) {
        let is_news = self.cluster.with(|cluster| {
            let mut limits = cluster.limits.clone();
            change(&mut limits);
            let is_news = limits != cluster.limits;
            if is_news {
                Arc::make_mut(cluster).limits = limits;
            }
            is_news
        });
        if is_news {
            let is_of_others = |service: &ServiceName| {
                let matters =
                    |entry: &ServiceEntry| !entry.peers.is_empty() || !entry.imported_slices.is_empty();
                self.services.get(service).is_some_and(|entry| matters(&entry))
            };
            let dirty = self.services.keys().into_iter().filter(is_of_others);
            self.services.enqueue(dirty.map(|service| (service, IMPORT)).collect());
        }
    }

    /// Takes in which clusters lack Namespaces: exports from those of which that is news report it.
    pub(crate) fn have_lacking(&self, lacking: &Lacking) {
        let before = self.cluster.with(|cluster| {
            let is_news = cluster.lacking.as_ref() != Some(lacking);
            is_news.then(|| Arc::make_mut(cluster).lacking.replace(lacking.clone()))
        });
        let Some(before) = before else { return };
        let turned = before.as_ref().map(|before| lacking.turned(before));
        let is_news = |service: &ServiceName| {
            let in_turned = turned.as_ref().is_none_or(|turned| turned.contains(&service.namespace));
            in_turned && self.services.get(service).is_some_and(|entry| entry.export.is_some())
        };
        let dirty = self.services.keys().into_iter().filter(is_news);
        self.services.enqueue(dirty.map(|service| (service, STATUS)).collect());
    }

    /// Takes in what the clusters report: exports of which that is news report it.
    pub(crate) fn have_reports(&self, reports: &Reports) {
        let before = self.cluster.with(|cluster| {
            let is_news = cluster.reports != *reports;
            is_news.then(|| std::mem::replace(&mut Arc::make_mut(cluster).reports, reports.clone()))
        });
        let Some(before) = before else { return };
        let is_news = |service: &ServiceName| {
            let is_exported = self.services.get(service).is_some_and(|entry| entry.export.is_some());
            is_exported && reports.is_news_of(&before, service)
        };
        let dirty = self.services.keys().into_iter().filter(is_news);
        self.services.enqueue(dirty.map(|service| (service, STATUS)).collect());
    }

    /// Takes in what a watch of this kind told: of copies under other names it is said once.
    pub(crate) fn hear_copies<P>(
        &self,
        kind: &'static str,
        told: &Streamed<P>,
        is_copy: impl Fn(&P) -> bool,
        events: &Events,
    ) where
        P: Resource<DynamicType = ()>,
    {
        let is_news = self.irregular.with(|all| all.copies.hear(kind, told, is_copy));
        if let Streamed::Change(Change::Apply(copy)) = told
            && is_news
        {
            events.tell(copy.object_ref(&()), "Import", COPY, SAID);
        }
    }

    /// All about one Service name, if anything is known.
    pub(crate) fn known(&self, service: &ServiceName) -> Option<Known> {
        let known = self.alone(service)?;
        if !known.antrea_leads() {
            return Some(known);
        }
        let rival = leader::rival(&known, |other| self.alone(other));
        let exporters = leader::exporters(&known, rival.is_some());
        Some(Known { under_antrea: UnderAntrea { rival, exporters }, ..known })
    }

    /// What is known about one Service name without looking at others.
    fn alone(&self, service: &ServiceName) -> Option<Known> {
        Some(Known {
            entry: self.services.get(service)?,
            service: service.clone(),
            namespace: self.namespace(&service.namespace),
            cluster: self.cluster.with(|cluster| cluster.clone()),
            under_antrea: UnderAntrea::default(),
        })
    }

    /// Services of which not all that has to be in the Common Area was written: there is something to do about them, or to read first.
    pub(crate) fn unwritten(&self) -> Vec<ServiceName> {
        self.services.busy(EXPORT.and(READ))
    }

    /// Whether the Namespace is there and not going.
    pub(crate) fn is_active(&self, namespace: &str) -> bool {
        self.namespace(namespace).active
    }

    /// How a reconcile ended that wrote to this Namespace.
    pub(crate) fn outcome(&self, namespace: &str, done: Result<Outcome, Error>) -> Result<Outcome, Error> {
        match done {
            // The Namespace is going: if it comes back its event asks again.
            Err(Error::Gone) if !self.is_active(namespace) => Ok(Outcome::Done),
            Err(Error::Gone) => Ok(Outcome::Failed),
            other => other,
        }
    }

    fn namespace(&self, name: &str) -> NamespaceEntry {
        self.namespaces
            .with(|namespaces| namespaces.get(&name.to_owned()).map(|entry| **entry))
            .unwrap_or_default()
    }

    /// Writes a record, for the export controller. One of that name that is not labelled as ours is, if it `is_ours`.
    pub(crate) async fn put_record(
        &self,
        writer: &Writer,
        have: Option<&OwnRecord>,
        want: &OwnRecord,
        is_ours: impl FnOnce(&OwnRecord) -> bool,
    ) -> Result<Option<OwnRecord>, Error> {
        self.services.put_ours(writer, EXPORT, (have, want), is_ours).await
    }

    /// Writes an object of an import, for the import controller.
    pub(crate) async fn put_imported<P>(
        &self,
        writer: &Writer,
        have: Option<&P>,
        want: &P,
    ) -> Result<Option<P>, Error>
    where
        P: Part<ServiceName, ServiceEntry, DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug,
    {
        self.services.put_ours(writer, IMPORT, (have, want), |there| is_ours(there.meta())).await
    }

    /// Makes the member an owner of an object of an import that somebody created in the place of the member's, for the import controller.
    pub(crate) async fn own_imported<P>(&self, writer: &Writer, there: &P) -> Result<P, Error>
    where
        P: Part<ServiceName, ServiceEntry, DynamicType = ()> + DeserializeOwned + Clone,
    {
        self.services.write(IMPORT, there, writer.own(there)).await
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
