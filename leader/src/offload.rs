//! Offloading: what clusters that have left leave behind. The leader merges and judges nothing of it: homes and hosts say to each other
//! what they have to say. But who leaves while a host does not run leaves its map to that host, by which it deletes the twins when it is
//! back; then nobody is there to delete the map.
//!
//! Reads the names of NamespaceMaps, OffloadOffers and ShadowPods every now and then; deletes those of clusters that have left, bound to
//! uid and version, when no twin and no Pod depends on them any more ([`sweep`]). It watches nothing: where the CRDs or the rights are
//! missing there is nothing to do, and nothing is amiss. Safe to run twice: each look decides anew.

mod sweep;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Instant,
};

use api::{
    offload::{
        names,
        view::{NamespaceMapView, OffloadOfferView, ShadowPodView},
    },
    unwritten::OFFLOADING,
    view::Named,
};
use kit::{
    failure::{Failure, classify},
    list::Pages,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, api::ListParams, core::NamespaceResourceScope};
use presence::standing::Standing;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use self::sweep::has_ended;
use crate::{
    absent::{Absent, end},
    feature::{Access, Look},
};

/// The feature.
pub(crate) struct Offloading {
    access: Access,
    writer: Writer,
}

impl Offloading {
    pub(crate) fn new(access: Access) -> Self {
        Self { writer: access.writer(), access }
    }

    /// Deletes what clusters have left behind that have been absent for long.
    async fn look(&self, absent: &mut Absent, members: &BTreeMap<String, Standing>) -> Result<(), Error> {
        let now = Instant::now();
        let mut named = BTreeSet::new();
        self.pairs::<NamespaceMapView>(of_map, &mut named).await?;
        self.pairs::<OffloadOfferView>(of_offer, &mut named).await?;
        self.pairs::<ShadowPodView>(of_pod, &mut named).await?;
        let ids = named.iter().flat_map(|(one, other)| [one.as_str(), other]);
        absent.look(ids.filter(|id| !members.contains_key(*id)), now);
        let has_left = |id: &str| absent.has_left(id, now);
        if !named.iter().any(|(one, other)| has_left(one) || has_left(other)) {
            return Ok(());
        }
        let (maps, ended) = self.end_maps(has_left).await?;
        let is_left = |name: &str| of_offer(name).is_some_and(|(host, _)| has_left(&host));
        let offers = self.delete_those::<OffloadOfferView>(is_left).await;
        // While there is a map its host may still have to end them.
        let is_left = |name: &str| of_pod(name).is_some_and(|of| has_left(&of.0) && !maps.contains(&of));
        let pods = self.delete_those::<ShadowPodView>(is_left).await;
        ended.and(offers).and(pods)
    }

    /// Those whose home has left; and what became of deleting them.
    async fn end_maps(
        &self,
        has_left: impl Fn(&str) -> bool,
    ) -> Result<(BTreeSet<Pair>, Result<(), Error>), Error> {
        let (mut maps, mut ended, mut pages) = (BTreeSet::new(), Ok(()), self.pages::<NamespaceMapView>());
        while let Some(names) = page(&mut pages).await? {
            for name in names {
                let Some(of) = of_map(&name).filter(|(home, _)| has_left(home)) else { continue };
                maps.insert(of);
                ended = ended.and(self.end_map(&name, &has_left).await);
            }
        }
        Ok((maps, ended))
    }

    /// One that cannot be read or deleted keeps no other one.
    async fn delete_those<K>(&self, is_one: impl Fn(&str) -> bool) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let (mut ended, mut pages) = (Ok(()), self.pages::<K>());
        while let Some(names) = page(&mut pages).await? {
            for name in names.iter().filter(|name| is_one(name)) {
                ended = ended.and(self.delete::<K>(name).await);
            }
        }
        ended
    }

    async fn end_map(&self, name: &str, has_left: impl Fn(&str) -> bool) -> Result<(), Error> {
        let Some(map) = self.read::<NamespaceMapView>(name).await? else { return Ok(()) };
        match has_ended(&map, has_left) {
            true => end(&self.writer, &map).await,
            false => Ok(()),
        }
    }

    async fn delete<K>(&self, name: &str) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        match self.read::<K>(name).await? {
            Some(record) => end(&self.writer, &record).await,
            None => Ok(()),
        }
    }

    async fn read<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Ok(self.access.api::<K>().get_opt(name).await?)
    }

    /// Whom records of a kind are of.
    async fn pairs<K>(&self, of: fn(&str) -> Option<Pair>, all: &mut BTreeSet<Pair>) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let mut pages = self.pages::<K>();
        while let Some(names) = page(&mut pages).await? {
            all.extend(names.iter().filter_map(|name| of(name)));
        }
        Ok(())
    }

    fn pages<K>(&self) -> Pages<Named<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Pages::of(self.access.api::<Named<K>>(), ListParams::default())
    }
}

/// The names of the next records of a kind; none where there are no such records.
async fn page<K>(pages: &mut Pages<Named<K>>) -> Result<Option<Vec<String>>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    match pages.next().await {
        Ok(page) => Ok(page.map(|page| page.iter().map(ResourceExt::name_any).collect())),
        Err(error) if matches!(classify(&error), Failure::KindMissing | Failure::Forbidden(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Two clusters: a home and its host, or a host and whom it offers something.
type Pair = (String, String);

fn of_map(name: &str) -> Option<Pair> {
    names::of_namespace_map(name).map(owned)
}

fn of_offer(name: &str) -> Option<Pair> {
    names::of_offer(name).map(owned)
}

fn of_pod(name: &str) -> Option<Pair> {
    names::of_shadow_pod(name).map(|(home, host, _)| owned((home, host)))
}

fn owned((one, other): (&str, &str)) -> Pair {
    (one.to_owned(), other.to_owned())
}

impl Look for Offloading {
    const NAME: &'static str = OFFLOADING;

    async fn run(&self, stop: &CancellationToken) {
        let mut absent = Absent::new(self.access.env.pace.stale());
        while let Some(members) = absent.next_look(&self.access, stop).await {
            if let Err(error) = self.look(&mut absent, &members).await {
                tracing::warn!(%error, "cannot look for records of offloading that clusters left behind");
            }
        }
    }
}
