//! Reading what was not kept: of a Service that is exported from now on, itself and its EndpointSlices, by their names. Watches nothing,
//! writes and deletes nothing. Safe to run twice: what is read counts only where the watch has not told later news.

use std::fmt::Debug;

use api::ServiceName;
use futures::{StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use kit::{index::Part, queue::Outcome, write::Error};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::{
    index::{
        entry::ServiceEntry,
        view::{Service, Slice},
    },
    knowledge::Knowledge,
};

/// EndpointSlices of one Service that are read at once: it may have any number, and each takes a connection.
const AT_ONCE: usize = 8;

/// Whom this controller asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Reading {
    pub(super) knowledge: Knowledge,
    /// Reads from this cluster.
    pub(super) client: Client,
}

impl Reading {
    /// Reads what is not known of one Service that is exported.
    pub(super) async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let entry = self.knowledge.services.get(&service);
        let Some(unread) = entry.as_deref().and_then(ServiceEntry::unread) else { return Ok(Outcome::Done) };
        let own = async {
            match unread.has_service() {
                true => self.read::<Service>(&service.namespace, &service.name).await,
                false => Ok(()),
            }
        };
        let slices: Vec<_> =
            unread.slices().map(|slice| self.read::<Slice>(&service.namespace, slice)).collect();
        // One that cannot be read must not keep the others from being.
        let slices =
            stream::iter(slices).buffer_unordered(AT_ONCE).fold(Ok(()), async |done, read| done.and(read));
        let (own, slices) = futures::join!(own, slices);
        own.and(slices)?;
        let is_unread = self.knowledge.services.get(&service).is_some_and(|entry| entry.unread().is_some());
        // What was read does not count, since the watch has told something else, or will: until then it is not done.
        Ok(if is_unread { Outcome::Failed } else { Outcome::Done })
    }

    async fn read<P>(&self, namespace: &str, name: &str) -> Result<(), Error>
    where
        P: Part<ServiceName, ServiceEntry>
            + Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let objects = Api::<P>::namespaced(self.client.clone(), namespace);
        self.knowledge.services.read(async { Ok(objects.get_opt(name).await?) }).await
    }
}
