//! Our presence at the leader: a Lease and an announce, or heartbeats under a leader of Antrea's.

mod announce;
mod heartbeat;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{label, lease, membership::Wire};
use kit::{boot::Env, watch::Watches, write::Writer};
use kube::{Api, Client};
use presence::{
    heartbeat::Announce,
    lease::{Annotations, Keeper, Presence},
    restore::RestoreDetector,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use self::announce::announce;
use super::table::Table;
use crate::{feature::Access, identity::Target};

/// How soon an announce that was not written is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// After so many renewals of the Lease the announce is read again: somebody may have deleted or changed it.
const RENEWALS: u32 = 6;

/// Starts to be present; gives what is known about it. Our Lease vouches for our records when all features and the watches in
/// `common` allow it.
pub(super) fn start(
    access: &Access,
    target: &Target,
    detector: RestoreDetector,
    table: &Arc<Table>,
    common: &Watches,
    tasks: &mut JoinSet<()>,
) -> watch::Receiver<Presence> {
    let (presence, present) = watch::channel(Presence::Unknown);
    let (env, leader) = (&access.env, &access.leader);
    if access.wire == Wire::Antrea {
        let announces = Api::<Announce>::namespaced(leader.clone(), &target.us.common_area);
        let (hold, target, uid) = (env.hold.clone(), target.clone(), env.holder.cluster_uid.clone());
        tasks.spawn(async move {
            hold.active().await;
            heartbeat::keep(announces, target, uid, presence).await;
        });
        return present;
    }
    let (table, common) = (table.clone(), common.clone());
    let settled = move || table.settled(&common, Instant::now());
    let (home, hold) = (access.home.clone(), env.hold.clone());
    let (us, kinship) = (env.holder.clone(), home.kinship());
    let keeper = Keeper { detector, us, hold, kinship, pace: env.pace };
    let (leases, connected) = (access.leases.clone(), access.home.clone());
    let answering = move |at| -> Annotations {
        let silent = leases.with(|leases| leases.silent().0);
        let these = connected.connected(Instant::now()).into_iter();
        let these = these.filter(|cluster| silent.contains_key(cluster));
        [(label::ANSWERING.to_owned(), lease::answering(these, at))].into()
    };
    tasks.spawn(async move {
        if !keeper.hold.is_active() {
            if !keeper.stand_by().await {
                presence.send_replace(Presence::Restored);
                return;
            }
            // Who took the place of another replica must have done so in its own cluster first.
            home.known().await;
        }
        keeper.keep_saying(answering, &Notify::new(), settled, presence).await;
    });
    tasks.spawn(introduce(env.clone(), target.clone(), leader.clone(), present.clone()));
    present
}

/// Announces us as long as we are present.
async fn introduce(env: Env, target: Target, leader: Client, mut present: watch::Receiver<Presence>) {
    let writer = Writer::new(leader.clone(), label::MEMBER, "leader", env.metrics.clone());
    while present.wait_for(Presence::is_held).await.is_ok() {
        let wait = match announce(&target, &leader, &writer).await {
            Ok(()) => RENEWALS * env.pace.renew(),
            Err(error) => {
                tracing::warn!(%error, "cannot write the MemberClusterAnnounce, trying again");
                RETRY
            }
        };
        tokio::time::sleep(wait).await;
    }
}
