//! Our presence under a leader of Antrea's: reads our announce in the Common Area, creates it, and renews the time in it every ten
//! seconds. Safe to run twice: two processes write the same.
//!
//! There is no Lease, so the announce tells two clusters of the same ID apart: it notes the uid of its cluster. While another cluster renews
//! it, this one exports and imports nothing; one that nobody renews was a cluster's that was rebuilt, and is taken over. The
//! announce also shows, as a Lease would, whether the Common Area is the same as before: an announce that is older than before, or
//! gone, means that the API server was restored from a backup, that the Common Area was emptied, or that we were removed from the
//! set.

use std::time::{Duration, Instant};

use api::{
    announce::{MemberClusterAnnounce, MemberClusterAnnounceFields},
    antrea::TOUCHED,
    label::CLUSTER_UID,
    lease::STALE,
    name,
};
use jiff::Timestamp;
use kit::{
    backoff,
    failure::{Failure, classify},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::Request,
};
use presence::{
    claim::{Claim, LOOK, Standing, noted_other},
    heartbeat::Announce,
    lease::Presence,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::identity::{Identity, Target};

/// As Antrea's controllers do.
const EVERY: Duration = Duration::from_secs(10);
const GOING: &str =
    "our MemberClusterAnnounce is being deleted: the leader is removing this cluster from the set";

/// Keeps us announced until it turns out that the API server was restored; tells `presence` what is known about it. `cluster_uid` is that
/// of our Namespace kube-system, which the announce notes.
pub(super) async fn keep(
    announces: Api<Announce>,
    target: Target,
    cluster_uid: String,
    presence: watch::Sender<Presence>,
) {
    let mut heart = Heart { announces, target, cluster_uid, known: None, claim: Claim::default() };
    let mut failures = 0;
    loop {
        let now = match tokio::time::timeout(EVERY, heart.beat()).await {
            Ok(Ok(now)) => now,
            // Somebody else wrote it meanwhile: it is read again.
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Presence::Unknown,
            Ok(Err(error)) => Presence::Failing { failure: classify(&error) },
            Err(_) => Presence::Failing { failure: Failure::Unreachable("no answer in time") },
        };
        let failed = matches!(now, Presence::Failing { .. });
        failures = if failed { failures + 1 } else { 0 };
        if failed {
            // What the API server does not answer to us, it may not have taken from another cluster.
            heart.claim = Claim::default();
        }
        presence.send_if_modified(|old| std::mem::replace(old, now.clone()) != now);
        match now {
            Presence::Restored => return,
            // A longer silence would look as if this cluster were gone.
            Presence::Failing { .. } => {
                tokio::time::sleep(backoff::LEADER.wait(failures).min(EVERY)).await;
            }
            Presence::Held { .. } => tokio::time::sleep(EVERY).await,
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Our announce, and what is known of it.
struct Heart {
    announces: Api<Announce>,
    target: Target,
    cluster_uid: String,
    /// Version of the announce after our last write; `None` before the first one.
    known: Option<u64>,
    claim: Claim,
}

impl Heart {
    /// Renews the announce. Before the first time creates it or takes it over, unless another cluster renews it.
    async fn beat(&mut self) -> kube::Result<Presence> {
        let announce = match self.known {
            Some(_) => self.renew().await?,
            None => match self.read().await? {
                None => Some(self.create().await?),
                Some(announce) => match self.claim.standing(&announce, &self.cluster_uid, Instant::now()) {
                    Standing::Ours => Some(self.take(&announce).await?),
                    Standing::Unknown => return Ok(Presence::Unknown),
                    Standing::Taken(holder) => return Ok(Presence::Taken { holder, stale: STALE }),
                },
            },
        };
        Ok(judge(announce.as_ref(), &self.cluster_uid, &mut self.known))
    }

    async fn read(&self) -> kube::Result<Option<Announce>> {
        self.announces.get_opt(&name::announce(&self.target.us.cluster)).await
    }

    async fn create(&self) -> kube::Result<Announce> {
        let mut announce = self.now();
        announce.annotations_mut().insert(CLUSTER_UID.to_owned(), self.cluster_uid.clone());
        let body = serde_json::to_vec(&announce).map_err(kube::Error::SerdeError)?;
        let request = Request::new(self.announces.resource_url()).create(&PostParams::default(), body);
        let client = self.announces.clone().into_client();
        client.request(request.map_err(kube::Error::BuildRequest)?).await
    }

    /// Notes this cluster on the announce, in the version that was read.
    async fn take(&self, read: &Announce) -> kube::Result<Announce> {
        let mut announce = self.now();
        announce.annotations_mut().insert(CLUSTER_UID.to_owned(), self.cluster_uid.clone());
        let version = read.resource_version();
        let patch = json!({"metadata": {"annotations": announce.annotations(), "resourceVersion": version}});
        self.patch(patch).await
    }

    /// Writes the time; `None` when the announce is gone.
    async fn renew(&self) -> kube::Result<Option<Announce>> {
        match self.patch(json!({"metadata": {"annotations": self.now().annotations()}})).await {
            Err(kube::Error::Api(status)) if status.is_not_found() && names_one(&status) => Ok(None),
            renewed => renewed.map(Some),
        }
    }

    async fn patch(&self, patch: Value) -> kube::Result<Announce> {
        let name = name::announce(&self.target.us.cluster);
        self.announces.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    fn now(&self) -> MemberClusterAnnounce {
        let Target { us, cluster_set, leader, .. } = &self.target;
        announce(us, cluster_set, leader.clone(), Timestamp::now())
    }
}

/// What the answer to a heartbeat of cluster `us` means, after what was `known`: the version of the announce.
fn judge(announce: Option<&Announce>, us: &str, known: &mut Option<u64>) -> Presence {
    let version = announce.and_then(|announce| announce.resource_version()?.parse().ok());
    let Some(announce) = announce.filter(|_| version >= *known) else {
        return Presence::Restored;
    };
    if let Some(holder) = noted_other(announce, us) {
        *known = None;
        return Presence::Taken { holder: holder.to_owned(), stale: STALE };
    }
    // Somebody took our uid off: it is noted again.
    *known = version.filter(|_| announce.annotations().contains_key(CLUSTER_UID));
    match announce.meta().deletion_timestamp.is_some() {
        true => Presence::Failing { failure: Failure::Other(GOING.to_owned()) },
        false => Presence::Held { rival: None },
    }
}

/// Whether it is the object that is not found, and not its kind or its Namespace.
fn names_one(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty() && details.kind != "namespaces")
}

/// Our announce, as Antrea's member writes it.
fn announce(
    us: &Identity,
    cluster_set: &str,
    leader: Option<String>,
    now: Timestamp,
) -> MemberClusterAnnounce {
    let fields = MemberClusterAnnounceFields {
        cluster_id: Some(us.cluster.clone()),
        cluster_set_id: Some(cluster_set.to_owned()),
        leader_cluster_id: leader,
    };
    let mut announce = MemberClusterAnnounce::new(&name::announce(&us.cluster), fields);
    announce.metadata.namespace = Some(us.common_area.clone());
    announce.annotations_mut().insert(TOUCHED.to_owned(), now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    announce
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn ours(now: &str) -> MemberClusterAnnounce {
        let us = Identity { cluster: "east".into(), common_area: "antrea-multicluster".into() };
        announce(&us, "demo", Some("leader".into()), now.parse().unwrap())
    }

    fn at(version: &str) -> Announce {
        let mut announce = ours("2026-11-01T12:00:00Z");
        announce.metadata.resource_version = Some(version.into());
        announce.annotations_mut().insert(CLUSTER_UID.to_owned(), "us".to_owned());
        serde_json::from_value(serde_json::to_value(announce).unwrap()).unwrap()
    }

    #[test]
    fn the_announce_is_that_of_the_wire_contract() {
        let golden: Value =
            serde_json::from_str(include_str!("../../../../api/tests/golden/announce-to-antrea.json"))
                .unwrap();
        assert_eq!(serde_json::to_value(ours("2026-11-01T12:00:00.5Z")).unwrap(), golden);
    }

    #[test]
    fn an_announce_that_is_older_or_gone_is_another_common_area() {
        let mut known = None;
        let judge = |announce: Option<&Announce>, known: &mut _| super::judge(announce, "us", known);
        assert_eq!(judge(Some(&at("9")), &mut known), Presence::Held { rival: None });
        assert_eq!(judge(Some(&at("12")), &mut known), Presence::Held { rival: None });
        assert_eq!(judge(Some(&at("10")), &mut known), Presence::Restored);
        assert_eq!(judge(None, &mut known), Presence::Restored);
        let mut going = at("13");
        going.meta_mut().deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        assert!(matches!(judge(Some(&going), &mut known), Presence::Failing { .. }));
    }

    #[test]
    fn who_finds_another_cluster_on_its_announce_holds_it_no_longer() {
        let (mut known, mut announce) = (Some(9), at("12"));
        announce.annotations_mut().insert(CLUSTER_UID.to_owned(), "them".to_owned());
        let taken = judge(Some(&announce), "us", &mut known);
        assert_eq!(taken, Presence::Taken { holder: "them".into(), stale: STALE });
        assert_eq!(known, None, "it is read again before it is written");
        announce.annotations_mut().remove(CLUSTER_UID);
        known = Some(9);
        assert_eq!(judge(Some(&announce), "us", &mut known), Presence::Held { rival: None });
        assert_eq!(known, None, "it is noted on the announce again");
        announce.annotations_mut().insert(CLUSTER_UID.to_owned(), "them".to_owned());
        assert_eq!(judge(Some(&announce), "them", &mut known), Presence::Held { rival: None });
    }
}
