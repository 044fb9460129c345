//! Our presence under a leader of Antrea's: reads our announce in the Common Area, creates it, and renews the time in it every ten
//! seconds. Safe to run twice: two processes write the same.
//!
//! There is no Lease, so nothing tells two clusters of the same ID apart; the token of each has one ID, which its leader checks. The
//! announce also shows, as a Lease would, whether the Common Area is the same as before: an announce that is older than before, or
//! gone, means that the API server was restored from a backup, that the Common Area was emptied, or that we were removed from the
//! set.

use std::time::Duration;

use api::{
    announce::{MemberClusterAnnounce, MemberClusterAnnounceFields},
    antrea::TOUCHED,
    label::CLUSTER_UID,
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
use presence::{heartbeat::Announce, lease::Presence};
use serde_json::json;
use tokio::sync::watch;

use crate::identity::{Identity, Target};

/// As Antrea's controllers do.
const EVERY: Duration = Duration::from_secs(10);
const GOING: &str =
    "our MemberClusterAnnounce is being deleted: the leader is removing this cluster from the set";

/// Keeps us announced until it turns out that the API server was restored; tells `presence` what is known about it. `cluster_uid` is that
/// of our Namespace kube-system, which a new announce notes: only its cluster withdraws what is announced.
pub(super) async fn keep(
    announces: Api<Announce>,
    target: Target,
    cluster_uid: String,
    presence: watch::Sender<Presence>,
) {
    let (mut known, mut failures) = (None, 0);
    loop {
        let attempt =
            tokio::time::timeout(EVERY, beat(&announces, &target, &cluster_uid, known.is_none())).await;
        let now = match attempt {
            Ok(Ok(announce)) => judge(announce.as_ref(), &mut known),
            Ok(Err(error)) => Presence::Failing { failure: classify(&error) },
            Err(_) => Presence::Failing { failure: Failure::Unreachable("no answer in time") },
        };
        failures = if matches!(now, Presence::Failing { .. }) { failures + 1 } else { 0 };
        presence.send_if_modified(|old| std::mem::replace(old, now.clone()) != now);
        match now {
            Presence::Restored => return,
            Presence::Failing { .. } => tokio::time::sleep(backoff::LEADER.wait(failures)).await,
            _ => tokio::time::sleep(EVERY).await,
        }
    }
}

/// What the answer to a heartbeat means, after what was `known`: the version of the announce.
fn judge(announce: Option<&Announce>, known: &mut Option<u64>) -> Presence {
    let version = announce.and_then(|announce| announce.resource_version()?.parse().ok());
    if announce.is_none() || version < *known {
        return Presence::Restored;
    }
    *known = version;
    match announce.is_some_and(|announce| announce.meta().deletion_timestamp.is_some()) {
        true => Presence::Failing { failure: Failure::Other(GOING.to_owned()) },
        false => Presence::Held { rival: None },
    }
}

/// Renews the announce, or creates it if this is the `first` attempt; `None` when it is gone.
async fn beat(
    announces: &Api<Announce>,
    target: &Target,
    cluster_uid: &str,
    first: bool,
) -> kube::Result<Option<Announce>> {
    let Target { us, cluster_set, leader, .. } = target;
    let mut announce = announce(us, cluster_set, leader.clone(), Timestamp::now());
    let name = announce.name_any();
    let patch = json!({"metadata": {"annotations": announce.annotations()}});
    announce.annotations_mut().insert(CLUSTER_UID.to_owned(), cluster_uid.to_owned());
    match announces.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() && names_one(&status) => {
            if !first {
                return Ok(None);
            }
            let body = serde_json::to_vec(&announce).map_err(kube::Error::SerdeError)?;
            let request = Request::new(announces.resource_url()).create(&PostParams::default(), body);
            let client = announces.clone().into_client();
            client.request(request.map_err(kube::Error::BuildRequest)?).await.map(Some)
        }
        beaten => beaten.map(Some),
    }
}

/// Whether it is the object that is not found, and not its kind or its Namespace.
fn names_one(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty() && details.kind != "namespaces")
}

/// Our announce, as Antrea's member writes it; [`beat`] adds the uid of our cluster to a new one.
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
        assert_eq!(judge(Some(&at("9")), &mut known), Presence::Held { rival: None });
        assert_eq!(judge(Some(&at("12")), &mut known), Presence::Held { rival: None });
        assert_eq!(judge(Some(&at("10")), &mut known), Presence::Restored);
        assert_eq!(judge(None, &mut known), Presence::Restored);
        let mut going = at("13");
        going.meta_mut().deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        assert!(matches!(judge(Some(&going), &mut known), Presence::Failing { .. }));
    }
}
