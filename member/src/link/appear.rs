//! Our presence at the leader.

use api::{announce::MemberClusterAnnounce, label, lease::Settled, membership::Wire};
use kit::{boot::Env, write::Writer};
use kube::{Api, Client};
use presence::{
    lease::{Keeper, Presence},
    restore::RestoreDetector,
};
use std::time::{Duration, Instant};
use tokio::{sync::watch, task::JoinSet};

use super::{Link, announce::announce, heartbeat};
use crate::{membership::Target, service::entry::EXPORT};

/// How soon an announce that was not written is tried again.
const RETRY: Duration = Duration::from_secs(2);

impl Link {
    /// Begins to be there: by a Lease, and under a leader of Antrea's by heartbeats. How it stands.
    pub(super) fn appear(
        &self,
        tasks: &mut JoinSet<()>,
        client: &Client,
        target: &Target,
        detector: RestoreDetector,
    ) -> watch::Receiver<Presence> {
        let (presence, present) = watch::channel(Presence::Unknown);
        if self.wire == Wire::Antrea {
            let announces = Api::<MemberClusterAnnounce>::namespaced(client.clone(), &target.us.common_area);
            tasks.spawn(heartbeat::keep(announces, target.clone(), presence));
            return present;
        }
        let link = self.clone();
        let settled = move || {
            let now = Instant::now();
            let open = link.local.are_open(now) && link.hub.are_open(now);
            Settled::of(open, link.knowledge.services.is_idle(EXPORT))
        };
        let keeper = Keeper { detector, us: self.env.holder.clone(), pace: self.env.pace };
        tasks.spawn(keeper.keep(settled, presence));
        tasks.spawn(introduce(self.env.clone(), target.clone(), client.clone(), present.clone()));
        present
    }
}

/// Announces us once we are present.
async fn introduce(env: Env, target: Target, client: Client, mut present: watch::Receiver<Presence>) {
    let writer = Writer::new(client.clone(), label::MEMBER, "leader", env.metrics.clone());
    while present.wait_for(|now| *now == Presence::Held).await.is_ok() {
        let announced =
            announce(&target.us, &target.cluster_set, target.leader.as_deref(), &client, &writer).await;
        match announced {
            Ok(()) => return,
            Err(error) => tracing::warn!(%error, "the announce was not written, trying again"),
        }
        tokio::time::sleep(RETRY).await;
    }
}
