//! Offloading: what clusters that have left leave behind. The leader merges and judges nothing of it: homes and hosts say to each other
//! what they have to say. But who leaves while a host does not run leaves its map to that host, by which it deletes the twins when it is
//! back; then nobody is there to delete the map.
//!
//! Reads the names of NamespaceMaps, OffloadOffers and ShadowPods every now and then; deletes those of clusters that have left, bound to
//! uid and version, when no twin and no Pod depends on them any more ([`sweep`]). It watches nothing: where the CRDs or the rights are
//! missing there is nothing to do, and nothing is amiss. Safe to run twice: each look decides anew.

mod sweep;

use std::{collections::BTreeSet, fmt::Debug, time::Instant};

use api::{
    offload::{
        names,
        view::{NamespaceMapView, OffloadOfferView, ShadowPodView},
    },
    unwritten::OFFLOADING,
    view::Meta,
};
use futures::{FutureExt, future::BoxFuture};
use kit::{
    drive::before,
    failure::{Failure, classify},
    watch::Watches,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, core::NamespaceResourceScope};
use presence::leases::News;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::sweep::{Absent, has_ended};
use crate::feature::{Access, Feature};

/// How often it is looked for what is left behind, in times of a Lease.
const EVERY: u32 = 2;
/// For how many times of a Lease a cluster has to have none.
const PATIENCE: u32 = 4;

/// The feature.
pub(crate) struct Offloading {
    access: Access,
    none: Watches,
    writer: Writer,
}

impl Offloading {
    pub(crate) fn new(access: Access) -> Self {
        Self { none: Watches::default(), writer: access.writer(), access }
    }

    async fn sweep(&self, stop: &CancellationToken) {
        let lease = self.access.env.pace.stale();
        let mut absent = Absent::new(lease * PATIENCE);
        while before(stop, tokio::time::sleep(lease * EVERY)).await {
            if let Err(error) = self.look(&mut absent).await {
                tracing::warn!(%error, "cannot look for records of offloading that clusters left behind");
            }
        }
    }

    /// Deletes what clusters have left behind that have been absent for long.
    async fn look(&self, absent: &mut Absent) -> Result<(), Error> {
        let now = Instant::now();
        let members = self.access.leases.with(|leases| leases.is_heard(now).then(|| leases.members()));
        let Some(members) = members else {
            absent.forget();
            return Ok(());
        };
        let maps = self.names::<NamespaceMapView>().await?;
        let offers = self.names::<OffloadOfferView>().await?;
        let pods = self.names::<ShadowPodView>().await?;
        let of_maps = maps.iter().filter_map(|map| names::of_namespace_map(map));
        let of_offers = offers.iter().filter_map(|offer| names::of_offer(offer));
        let of_pods =
            pods.iter().filter_map(|pod| names::of_shadow_pod(pod)).map(|(home, host, _)| (home, host));
        let named = of_maps.chain(of_offers).chain(of_pods).flat_map(|(one, other)| [one, other]);
        absent.look(named.filter(|id| !members.contains_key(*id)), now);
        let has_left = |id: &str| absent.has_left(id, now);

        for name in
            maps.iter().filter(|map| names::of_namespace_map(map).is_some_and(|(home, _)| has_left(home)))
        {
            self.end_map(name, has_left).await?;
        }
        for name in
            offers.iter().filter(|offer| names::of_offer(offer).is_some_and(|(host, _)| has_left(host)))
        {
            self.delete::<OffloadOfferView>(name).await?;
        }
        // While there is a map its host may still have to end them.
        let is_ended = |pod: &&String| {
            names::of_shadow_pod(pod).is_some_and(|(home, host, _)| {
                has_left(home) && !maps.contains(&names::namespace_map(home, host))
            })
        };
        for name in pods.iter().filter(is_ended) {
            self.delete::<ShadowPodView>(name).await?;
        }
        Ok(())
    }

    async fn end_map(&self, name: &str, has_left: impl Fn(&str) -> bool) -> Result<(), Error> {
        let Some(map) = self.read::<NamespaceMapView>(name).await? else { return Ok(()) };
        match has_ended(&map, has_left) {
            true => self.end(&map).await,
            false => Ok(()),
        }
    }

    async fn delete<K>(&self, name: &str) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        match self.read::<K>(name).await? {
            Some(record) => self.end(&record).await,
            None => Ok(()),
        }
    }

    async fn end<K: Resource<DynamicType = ()>>(&self, record: &K) -> Result<(), Error> {
        match self.writer.delete(record, true).await {
            Ok(()) => {
                tracing::info!(record = record.name_any(), "the cluster of this record has left: deleted");
                Ok(())
            }
            // It was written meanwhile: the next look decides.
            Err(Error::Stale | Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn read<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Ok(self.access.api::<K>().get_opt(name).await?)
    }

    /// Names of all records of a kind; none where there are no such records.
    async fn names<K>(&self) -> Result<BTreeSet<String>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        match kit::list::metadata(&self.access.api::<Meta<K>>(), |record| record.name_any()).await {
            Ok(names) => Ok(names.into_iter().collect()),
            Err(error) => match classify(&error) {
                Failure::KindMissing | Failure::Forbidden(_) => Ok(BTreeSet::new()),
                _ => Err(error.into()),
            },
        }
    }
}

impl Feature for Offloading {
    fn name(&self) -> &'static str {
        OFFLOADING
    }

    fn watch(&self, _: &mut JoinSet<()>) {}

    fn watches(&self) -> &Watches {
        &self.none
    }

    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, ()> {
        async move { self.sweep(&stop).await }.boxed()
    }

    fn hear(&self, _: &News) {}

    fn unwritten(&self) -> Vec<String> {
        Vec::new()
    }

    fn retry_failed(&self) {}

    fn pruned(&self) -> Option<String> {
        None
    }

    fn write_again(&self) {}
}
