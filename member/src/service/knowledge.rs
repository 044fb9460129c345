//! What a member knows, and who has to reconcile when it changes.

use std::{collections::BTreeSet, fmt::Debug, time::Duration};

use api::{ServiceName, antrea::namesakes};
use kit::{
    drive::Queue,
    index::{Index, Part, Readers, Shared},
    objects::Change,
    store::Store,
    write::{Error, Writer},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    antrea::leader,
    entry::{EXPORT, IMPORT, Local, NamespaceEntry, ServiceEntry},
    view::Namespace,
};

/// A slice record is written at once, then at most this often.
const EXPORT_PACE: Duration = Duration::from_millis(250);

/// Everything this member knows, and the queues of its controllers. Cloning shares it.
#[derive(Clone)]
pub struct Knowledge {
    /// By Service name.
    pub services: Store<ServiceName, ServiceEntry>,
    namespaces: Shared<Index<String, NamespaceEntry>>,
    /// This cluster.
    pub local: Shared<Local>,
    /// Our cluster ID, where the leader is Antrea's.
    under_antrea: Option<String>,
}

impl Default for Knowledge {
    fn default() -> Self {
        // In the order of `EXPORT`, `IMPORT` and `STATUS`.
        let queues = [EXPORT_PACE, Duration::ZERO, Duration::ZERO].map(Queue::new);
        Self {
            services: Store::new(queues),
            namespaces: Shared::default(),
            local: Shared::default(),
            under_antrea: None,
        }
    }
}

impl Knowledge {
    /// Nothing yet, under a leader of Antrea's, where we are cluster `us`: other Services may want the same names for records.
    pub fn under_antrea(us: &str) -> Self {
        let knowledge = Self::default();
        Self {
            services: knowledge.services.with_related(namesakes),
            under_antrea: Some(us.to_owned()),
            ..knowledge
        }
    }

    /// Takes in what the watch of Namespaces told: all Services in them are looked at.
    pub fn change_namespaces(&self, change: Change<Namespace>) {
        let namespaces: BTreeSet<String> =
            self.namespaces.with(|namespaces| namespaces.change(change)).into_keys().collect();
        let within =
            self.services.keys().into_iter().filter(|service| namespaces.contains(&service.namespace));
        self.services.enqueue(within.map(|service| (service, Readers::ALL)).collect());
    }

    /// Everything about one Service name, as a controller looks at it: with what its Namespace says.
    pub fn entry(&self, service: &ServiceName) -> Option<ServiceEntry> {
        let entry = self.with_namespace(service)?;
        let Some(us) = &self.under_antrea else { return Some(entry) };
        let rival = leader::rival(us, service, &entry, |other| self.with_namespace(other));
        Some(leader::as_told(us, service, entry, rival))
    }

    fn with_namespace(&self, service: &ServiceName) -> Option<ServiceEntry> {
        let namespace = self.namespace(&service.namespace);
        let (local, antrea_leads) = (self.local.with(|local| local.clone()), self.under_antrea.is_some());
        let entry = self.services.get(service)?;
        Some(ServiceEntry { is_excluded: namespace.excluded, local, antrea_leads, ..(*entry).clone() })
    }

    /// Whether the Namespace is there and not going.
    pub fn is_active(&self, namespace: &str) -> bool {
        self.namespace(namespace).active
    }

    fn namespace(&self, name: &str) -> NamespaceEntry {
        self.namespaces
            .with(|namespaces| namespaces.get(&name.to_owned()).map(|entry| **entry))
            .unwrap_or_default()
    }

    /// Writes a record of ours, for the export controller.
    pub async fn put_record<P>(&self, writer: &Writer, have: Option<&P>, want: &P) -> Result<Option<P>, Error>
    where
        P: Part<ServiceName, ServiceEntry> + Serialize + DeserializeOwned + Clone + Debug,
    {
        self.services.put(writer, EXPORT, have, want).await
    }

    /// Writes an object that realises an import, for the import controller.
    pub async fn put_imported<P>(
        &self,
        writer: &Writer,
        have: Option<&P>,
        want: &P,
    ) -> Result<Option<P>, Error>
    where
        P: Part<ServiceName, ServiceEntry> + Serialize + DeserializeOwned + Clone + Debug,
    {
        self.services.put(writer, IMPORT, have, want).await
    }
}
