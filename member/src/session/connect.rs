//! How a session reaches the Common Area, and whose leader it is: Freeport's or Antrea's. Reads Leases and records of the Common Area
//! and its Namespace, and asks the features. Writes nothing.
//!
//! A leader of Antrea's lets its members read all records and has no Leases. So the API server refuses us Leases (403) and lets us
//! list records, and that is the same after a pause. Any other answer (not found, no answer, an error) shows nothing: the session
//! goes on asking. The leader is not Antrea's but Freeport's, with a Role that somebody is changing, if the Namespace has our label
//! or if a feature sees something that only Freeport writes. One case remains that could be mistaken: a leader of Freeport's whose
//! Role lacks just Leases, in a Common Area that is still empty, and a member that never imported anything. Nothing is lost there.
//!
//! The answer is noted with the membership and does not change: to have another kind of leader, leave and join.

use std::{sync::Arc, time::Duration};

use api::{antrea::Members, label, lease::LeaseView, membership::Wire, view::Meta};
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    boot::Env,
    crowd::Place,
    failure::{Failure, classify},
    index::Shared,
    watch::Guard,
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use presence::{heartbeat::Heartbeats, lease::Presence, leases::Leases, restore::RestoreDetector};
use tokio::sync::watch;

use crate::{
    feature::{Access, Feature},
    home::Home,
    identity::Identity,
};

/// Between two checks: nobody applies a Role in parts for that long.
const PAUSE: Duration = Duration::from_secs(10);

/// What is known of the leader when a session starts, or starts again.
#[derive(Clone, Default)]
pub(super) struct Start {
    pub(super) wire: Wire,
    /// Whether the wire is certain, by the note or because the session was present at the leader.
    pub(super) is_certain: bool,
    /// Whether the Common Area was restored from a backup during this session.
    pub(super) is_restored: bool,
    /// Members that run Antrea's controllers.
    pub(super) antrea: Members,
    /// Whether the leader's Lease tells of other members.
    pub(super) hearing: Hearing,
    /// Our place among the members, who may have to list when we do; none in the first session of a process with this leader.
    pub(super) place: Shared<Option<Place>>,
}

/// How the Leases of other members are heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hearing {
    /// The leader's Lease tells of them, and is watched alone.
    #[default]
    ByLeader,
    /// Each is watched: there is no leader's Lease, or it tells nothing of them.
    Directly,
}

impl Start {
    pub(super) fn new(noted: Option<Wire>, place: Shared<Option<Place>>) -> Self {
        let wire = noted.unwrap_or_default();
        let antrea = if wire == Wire::Antrea { Members::everyone() } else { Members::default() };
        Self {
            wire,
            is_certain: noted.is_some(),
            is_restored: false,
            antrea,
            hearing: Hearing::default(),
            place,
        }
    }

    /// Whether the leader's Lease tells of other members.
    pub(super) fn hears_by_leader(&self) -> bool {
        self.wire == Wire::Freeport && self.hearing == Hearing::ByLeader
    }

    /// What the features work with.
    pub(super) fn access(
        &self,
        env: &Env,
        home: &Home,
        us: &Identity,
        leader: &Client,
        detector: &RestoreDetector,
    ) -> Access {
        let (heartbeats, guard): (_, Option<Arc<dyn Guard>>) = match self.wire {
            Wire::Freeport => (Heartbeats::new(self.antrea.clone()), Some(Arc::new(detector.clone()))),
            // Each heartbeat checks the announce.
            Wire::Antrea => (Heartbeats::under_antrea(us.cluster.clone()), None),
        };
        let leases = Leases::new(env.pace, heartbeats, self.is_restored);
        Access {
            env: env.clone(),
            home: home.clone(),
            us: us.clone(),
            leader: leader.clone(),
            wire: self.wire,
            antrea: self.antrea.clone(),
            leases: Shared::new(match self.hears_by_leader() {
                true => leases.told_by_leader(&us.cluster),
                false => leases,
            }),
            guard,
            changed: Arc::default(),
        }
    }
}

/// Signs of whose leader it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signs {
    /// The API server refuses us Leases.
    no_leases: bool,
    /// The Namespace has the label of Freeport's Common Areas; `None` where we may not read that.
    labelled: Option<bool>,
    /// A feature sees something that only Freeport writes.
    known_to_features: bool,
}

impl Signs {
    fn are_of_antrea(self) -> bool {
        self.no_leases && self.labelled != Some(true) && !self.known_to_features
    }
}

/// Returns once it is certain that the leader is Antrea's: never, if we have ever held our Lease. Checks only while the API server
/// refuses our Lease.
pub(super) async fn antrea_leads(
    features: &[Box<dyn Feature>],
    access: &Access,
    mut present: watch::Receiver<Presence>,
) {
    let refused = |now: &Presence| matches!(now, Presence::Failing { failure: Failure::Forbidden(_) });
    let mut in_a_row = 0;
    loop {
        let known = present.wait_for(|now| now.is_held() || refused(now)).await;
        let is_refused = known.is_ok_and(|now| refused(&now));
        if !is_refused {
            std::future::pending::<()>().await;
        }
        let signs = read_signs(features, access).await;
        tracing::info!(?signs, "the API server refuses our Lease: checking whether the leader is Antrea's");
        in_a_row = if signs.is_ok_and(Signs::are_of_antrea) { in_a_row + 1 } else { 0 };
        if in_a_row == 2 {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            // A leader that has our Lease is never Antrea's.
            () = held(&mut present) => std::future::pending().await,
        }
    }
}

async fn held(present: &mut watch::Receiver<Presence>) {
    drop(present.wait_for(Presence::is_held).await);
}

async fn read_signs(features: &[Box<dyn Feature>], access: &Access) -> Result<Signs, Failure> {
    let (leader, area) = (&access.leader, &access.us.common_area);
    let leases = Api::<Meta<LeaseView>>::namespaced(leader.clone(), area);
    let no_leases = match leases.list(&ListParams::default().limit(1)).await {
        Ok(_) => false,
        Err(error) => match classify(&error) {
            Failure::Forbidden(_) => true,
            failure => return Err(failure),
        },
    };
    let mut known_to_features = false;
    for feature in features {
        known_to_features |= feature.knows_freeport(access.clone()).await?;
    }
    let namespace = Api::<Meta<Namespace>>::all(leader.clone()).get(area).await;
    let labelled = match namespace.map_err(|error| classify(&error)) {
        Ok(namespace) => Some(namespace.labels().get(label::COMMON_AREA).is_some_and(|is| is == label::TRUE)),
        Err(Failure::Forbidden(_)) => None,
        Err(failure) => return Err(failure),
    };
    Ok(Signs { no_leases, labelled, known_to_features })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_common_area_without_any_sign_of_ours_is_antreas() {
        let antrea = Signs { no_leases: true, labelled: None, known_to_features: false };
        assert!(antrea.are_of_antrea());
        assert!(Signs { labelled: Some(false), ..antrea }.are_of_antrea());
        for ours in [
            Signs { no_leases: false, ..antrea },
            Signs { labelled: Some(true), ..antrea },
            Signs { known_to_features: true, ..antrea },
        ] {
            assert!(!ours.are_of_antrea(), "{ours:?}");
        }
    }
}
