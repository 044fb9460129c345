//! The leader's half of leaving: the features withdraw what they wrote, then announce and Lease are deleted.

use std::{sync::Arc, time::Instant};

use api::{
    antrea::Members,
    label,
    lease::{LeaseView, STALE, Settled},
    membership::Wire,
    name,
};
use kit::{
    boot::Env,
    failure::{Failure, classify},
    index::Shared,
    write::Writer,
};
use kube::{Api, Client, ResourceExt};
use presence::{
    claim::{Claim, LOOK, Standing, noted_other},
    heartbeat::{Announce, Heartbeats},
    lease::{Keeper, Presence},
    leases::Leases,
    restore::RestoreDetector,
};
use serde_json::json;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{
    feature::{Access, Features},
    home::Home,
    identity::Target,
};

/// Logged where nothing is withdrawn.
const ANOTHERS: &str =
    "another cluster uses our cluster ID: the records at the leader are not ours, so none is withdrawn";

/// Removes everything that we wrote at the leader. Returns the holder of our cluster ID if that is another cluster: then nothing is removed.
pub(super) async fn withdraw(
    env: &Env,
    features: &Features,
    home: &Home,
    target: &Target,
    leader: Client,
) -> Result<Option<String>, Failure> {
    let access = Access {
        env: env.clone(),
        home: home.clone(),
        us: target.us.clone(),
        leader,
        wire: target.wire.unwrap_or_default(),
        antrea: Members::default(),
        leases: Shared::new(Leases::new(env.pace, Heartbeats::new(Members::default()), false)),
        guard: None,
        changed: Arc::new(Notify::new()),
    };
    match access.wire {
        Wire::Freeport => withdraw_under_lease(features, &access).await,
        // There is no Lease: the announce shows that the ID is ours. The leader deletes what is left when our announce is gone.
        Wire::Antrea => {
            if let Some(holder) = other_cluster(&access).await? {
                tracing::warn!(holder, "{ANOTHERS}");
                return Ok(Some(holder));
            }
            withdraw_features(features, &access).await?;
            delete_announce(&access).await?;
            Ok(None)
        }
    }
}

/// Returns the uid of another cluster that uses our ID under a leader of Antrea's. The announce of a cluster that was rebuilt since is not renewed: it
/// is waited for that.
async fn other_cluster(access: &Access) -> Result<Option<String>, Failure> {
    let mut claim = Claim::default();
    loop {
        let Some(announce) = announce(access).await? else { return Ok(None) };
        match claim.standing(&announce, &access.env.holder.cluster_uid, Instant::now()) {
            // Noted first, as with a Lease: one that wakes while its records are withdrawn does not write them again.
            Standing::Ours if noted_other(&announce, &access.env.holder.cluster_uid).is_some() => {
                note_us(access, &announce).await?;
            }
            Standing::Ours => return Ok(None),
            Standing::Taken(holder) => return Ok(Some(holder)),
            Standing::Unknown => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Notes this cluster on the announce, in the version that was read.
async fn note_us(access: &Access, announce: &Announce) -> Result<(), Failure> {
    let noted = json!({"metadata": {"resourceVersion": announce.resource_version(),
        "annotations": {label::CLUSTER_UID: access.env.holder.cluster_uid}}});
    writer(access).merge(announce, None, noted).await.map(drop).map_err(|error| error.failure())
}

/// Withdraws while our Lease keeps the ID ours.
async fn withdraw_under_lease(features: &Features, access: &Access) -> Result<Option<String>, Failure> {
    let leases = Api::<LeaseView>::namespaced(access.leader.clone(), &access.us.common_area);
    let (presence, mut present) = watch::channel(Presence::Unknown);
    let lease = name::member_lease(&access.us.cluster);
    let mut tasks = JoinSet::new();
    // Never settled: nobody may take what we remove for something that we confirm to be gone.
    let detector = RestoreDetector::new(leases.clone(), lease.clone());
    let keeper = Keeper {
        detector,
        us: access.env.holder.clone(),
        hold: access.env.hold.clone(),
        kinship: access.home.kinship(),
        pace: access.env.pace,
    };
    tasks.spawn(keeper.keep(|| Settled::No, presence));
    match known_presence(&mut present).await {
        Presence::Held { .. } => {}
        Presence::Taken { holder, .. } => {
            tracing::warn!(holder, "{ANOTHERS}");
            return Ok(Some(holder));
        }
        Presence::Failing { failure } => return Err(failure),
        Presence::Unknown | Presence::Restored | Presence::Replaced => {
            return Err(Failure::Unreachable("no answer in time"));
        }
    }
    withdraw_features(features, access).await?;
    tasks.shutdown().await;

    delete_announce(access).await?;
    let ours = |lease: &LeaseView| lease.holder_cluster() == Some(&access.env.holder.cluster_uid);
    let lease = leases.get_opt(&lease).await.map_err(|error| classify(&error))?;
    if let Some(lease) = lease.filter(ours) {
        writer(access).delete(&lease, true).await.map_err(|error| error.failure())?;
    }
    Ok(None)
}

/// Has all features withdraw. One that fails does not stop the others.
async fn withdraw_features(features: &Features, access: &Access) -> Result<(), Failure> {
    let mut withdrawn = Ok(());
    for feature in features.iter() {
        withdrawn = withdrawn.and(feature.withdraw(access.clone()).await);
    }
    withdrawn
}

async fn delete_announce(access: &Access) -> Result<(), Failure> {
    match announce(access).await? {
        Some(announce) => writer(access).delete(&announce, false).await.map_err(|error| error.failure()),
        None => Ok(()),
    }
}

/// The announce under our ID, if there is one.
async fn announce(access: &Access) -> Result<Option<Announce>, Failure> {
    let announces = Api::<Announce>::namespaced(access.leader.clone(), &access.us.common_area);
    match announces.get_opt(&name::announce(&access.us.cluster)).await {
        Err(error) if classify(&error) == Failure::KindMissing => Ok(None),
        read => read.map_err(|error| classify(&error)),
    }
}

/// The presence of this member, once it is known. If another cluster holds our Lease, we wait long enough to see whether it renews
/// it: the Lease of a cluster that was rebuilt since is taken over.
async fn known_presence(present: &mut watch::Receiver<Presence>) -> Presence {
    let is_known =
        |now: &Presence| !matches!(now, Presence::Unknown | Presence::Replaced | Presence::Taken { .. });
    let answered = present.wait_for(|now| *now != Presence::Unknown);
    let answered = tokio::time::timeout(2 * STALE, answered).await.map(|now| now.map(|now| now.clone()));
    let Ok(Ok(Presence::Taken { stale, .. })) = answered else {
        return answered.map_or(Presence::Unknown, |now| now.unwrap_or(Presence::Unknown));
    };
    let known = tokio::time::timeout(2 * stale, present.wait_for(is_known)).await;
    let known = known.map(|now| now.map_or(Presence::Unknown, |now| now.clone()));
    known.unwrap_or_else(|_| present.borrow().clone())
}

fn writer(access: &Access) -> Writer {
    Writer::new(access.leader.clone(), label::MEMBER, "leader", access.env.metrics.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::fixture::{access, features};

    #[tokio::test]
    async fn leaving_waits_until_every_feature_has_withdrawn() {
        assert_eq!(withdraw_features(&[].into(), &access()).await, Ok(()));
        let failure = withdraw_features(&features(), &access()).await.unwrap_err();
        assert!(matches!(failure, Failure::Unreachable(_)), "the API server does not answer: {failure}");
    }
}
