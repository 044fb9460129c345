//! Eviction: the records of a member that is silent for too long go, in its place: what it told last is not true any more, and its addresses may
//! be others' by now. One whose endpoints answer another member is no such one: only the way to the leader is lost. Reads how it stands with the members, now and then; withdraws the Service records of one that is evicted, and
//! when the imports do not name it any more, empties and deletes its other records. Its Lease, its rights and its announce stay: when it
//! is back, it writes its records again by itself. Safe to run twice: each look decides anew, and nothing is touched of who is heard. A member
//! that writes records again after they were withdrawn is heard: it cannot renew its Lease, but it is there.

mod progress;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::{
    ServiceName, label, name,
    resource_export::{ENDPOINT_SLICE, ResourceExport, SERVICE},
    view::Named,
};
use jiff::Timestamp;
use kit::{
    backoff::Backoff,
    drive::before,
    list,
    write::{Error, Writer},
};
use kube::{ResourceExt, api::ListParams};
use presence::standing::Standing;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::progress::Progress;
use crate::{
    feature::{Access, Look},
    silences::Heard,
};

/// How soon the leader looks again at a member of which records are left, and with each renewal of its Lease at the latest.
const CHECK_AGAIN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(10) };

/// The feature.
pub(crate) struct Evictions {
    access: Access,
    writer: Writer,
}

impl Evictions {
    pub(crate) fn new(access: Access) -> Self {
        Self { writer: access.writer(), access }
    }

    /// Counts the silence of members. Who is evicted.
    fn look(&self) -> BTreeSet<String> {
        let now = Instant::now();
        let heard = self.access.leases.with(|leases| {
            let own = self.access.env.holder.cluster_uid.as_str();
            let is_elsewhere = |cluster: &String| {
                leases.cluster_uid(&name::member_lease(cluster)).is_some_and(|uid| uid != own)
            };
            let hears = leases.is_heard(now) && leases.members().keys().any(is_elsewhere);
            hears.then(|| (leases.silent(), leases.answering()))
        });
        let heard = heard.map(|((silent, mut unknown), (answering, perhaps))| {
            unknown.extend(perhaps.difference(&answering).cloned());
            let is_ours =
                |cluster: &String| !self.access.antrea.contains(cluster) && !unknown.contains(cluster);
            Heard { silent: silent.into_keys().filter(is_ours).collect(), answering, unknown }
        });
        self.access.silences.with(|silences| {
            silences.look(heard.as_ref(), now, Timestamp::now());
            silences.evicted().keys().cloned().collect()
        })
    }

    /// Withdraws in the place of a member; whether nothing is left to do.
    async fn evict(&self, cluster: &str, so_far: &mut Progress) -> Result<bool, Error> {
        let selector = ListParams::default().labels(&format!("{}={cluster}", label::SOURCE_CLUSTER_ID));
        let records =
            list::all(&self.access.api::<Named<ResourceExport>>(), selector, |record| record).await?;
        if so_far.shows_life(&records) {
            tracing::warn!(
                cluster,
                "the member does not renew its Lease, but writes records: it counts as heard"
            );
            self.access.silences.with(|silences| silences.heard(cluster));
            return Ok(true);
        }
        let exported = |record| Some((service_of(record, cluster)?, record));
        let services: BTreeMap<_, _> = records.iter().filter_map(exported).collect();
        let new: Vec<_> = services.iter().filter(|(_, record)| !so_far.has_withdrawn(record)).collect();
        if !new.is_empty() {
            let services = new.len();
            tracing::warn!(
                cluster,
                services,
                "the member is silent for too long: withdrawing what it exports"
            );
        }
        let mut failed = None;
        for (service, record) in new {
            match self.change(cluster, record, withdrawal(cluster, service)).await {
                Ok(answer) => answer.iter().for_each(|answer| so_far.withdrawn(answer)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        // While an import names the cluster, its endpoints have their word.
        let is_free = |record: &&Named<ResourceExport>| {
            service_of(record, cluster).is_none() && !services.contains_key(&said(record))
        };
        for record in records.iter().filter(is_free) {
            failed = failed.or(self.empty_and_delete(cluster, record).await.err());
        }
        // One record that cannot be withdrawn keeps no other one.
        failed.map_or(Ok(records.is_empty()), Err)
    }

    async fn empty_and_delete(&self, cluster: &str, record: &Named<ResourceExport>) -> Result<(), Error> {
        if kind(record) == Some(ENDPOINT_SLICE) {
            let emptied = json!({"spec": {"endpointSlice": {"endpoints": []}}});
            match self.change(cluster, record, emptied).await {
                // It may have no payload. No import names its cluster any more, so nobody needs to see it empty first.
                Err(Error::Refused(_)) => {}
                emptied => drop(emptied?),
            }
        }
        if self.is_silent(cluster) {
            self.writer.delete(record, false).await?;
        }
        Ok(())
    }

    /// Changes a record of a member that is silent still; as it is then.
    async fn change(
        &self,
        cluster: &str,
        record: &Named<ResourceExport>,
        patch: Value,
    ) -> Result<Option<Named<ResourceExport>>, Error> {
        if !self.is_silent(cluster) {
            return Ok(None);
        }
        match self.writer.merge(record, None, patch).await {
            Err(Error::Gone) => Ok(None),
            changed => changed.map(Some),
        }
    }

    fn is_silent(&self, cluster: &str) -> bool {
        let standing = self.access.leases.with(|leases| leases.member(cluster));
        matches!(standing, Some(Standing::Silent { .. }))
    }
}

/// The Service whose record this is by its name, whatever else it says: one that lies about itself would never be merged.
fn service_of(record: &Named<ResourceExport>, cluster: &str) -> Option<ServiceName> {
    let (of, service) = name::of_service_export(&record.name_any())?;
    (of == cluster).then_some(service)
}

/// The Service that a record says it is about.
fn said(record: &Named<ResourceExport>) -> ServiceName {
    let label = |key| record.labels().get(key).cloned().unwrap_or_default();
    ServiceName::new(label(label::SOURCE_NAMESPACE), label(label::SOURCE_NAME))
}

/// Makes a valid withdrawal of whatever a Service record says.
fn withdrawal(cluster: &str, service: &ServiceName) -> Value {
    let labels = json!({
        label::SOURCE_CLUSTER_ID: cluster,
        label::SOURCE_NAMESPACE: service.namespace,
        label::SOURCE_NAME: service.name,
        label::SOURCE_KIND: SERVICE,
    });
    json!({"metadata": {"labels": labels}, "spec": {
        "clusterID": cluster, "namespace": service.namespace, "name": service.name, "kind": SERVICE,
        "service": {"withdrawn": true}, "endpointSlice": null, "endpoints": null,
    }})
}

fn kind(record: &Named<ResourceExport>) -> Option<&str> {
    record.labels().get(label::SOURCE_KIND).map(String::as_str)
}

impl Look for Evictions {
    const NAME: &'static str = "Evictions";

    async fn run(&self, stop: &CancellationToken) {
        let every = self.access.env.pace.renew();
        let mut all = BTreeMap::<String, Progress>::new();
        let mut wait = every;
        while before(stop, tokio::time::sleep(wait)).await {
            let evicted = self.look();
            all.retain(|cluster, _| evicted.contains(cluster));
            wait = every;
            for cluster in &evicted {
                let so_far = all.entry(cluster.clone()).or_default();
                if so_far.is_done {
                    continue;
                }
                match self.evict(cluster, so_far).await {
                    Ok(is_done) => {
                        so_far.is_done = is_done;
                        wait = if is_done { wait } else { wait.min(CHECK_AGAIN.wait(so_far.looks)) };
                    }
                    Err(error) => {
                        tracing::warn!(cluster, %error, "cannot withdraw what a silent member exports")
                    }
                }
            }
        }
    }
}
