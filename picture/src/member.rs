//! The member of one cluster: whether it belongs to a set, runs, and is connected with the leader. `why` and `check` say the same of it.

use api::lease::LeaseView;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;

use crate::{
    age,
    gap::{Gap, Seen},
    sign::{Sign, sign},
    view::{ClusterSetView, PodView},
};

/// Reason of a ClusterSet's condition `Ready` while freeport-leader does not renew its Lease.
pub(crate) const LEADER_SILENT: &str = "LeaderSilent";

/// What is known of the member of a cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its ClusterSets.
    pub sets: Seen<Vec<ClusterSetView>>,
    /// Lease that it renews in its own cluster.
    pub lease: Seen<Option<LeaseView>>,
    /// Its Deployment.
    pub deployment: Seen<Option<Deployment>>,
    /// Its Pods.
    pub pods: Seen<Vec<PodView>>,
}

/// In which part a cluster is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It imports.
    Importer,
    /// It exports.
    Exporter,
}

impl Part {
    /// Code of a member that does not run.
    pub(crate) fn silent(self) -> u16 {
        match self {
            Self::Exporter => 102,
            Self::Importer => 103,
        }
    }
}

/// What is wrong with a member: a code, and a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) code: u16,
    pub(crate) what: String,
}

impl Member {
    /// A member of which nothing is known, and why.
    pub fn unknown(gap: &Gap) -> Self {
        Self {
            sets: Err(gap.clone()),
            lease: Err(gap.clone()),
            deployment: Err(gap.clone()),
            pods: Err(gap.clone()),
        }
    }

    /// Its ClusterSet, if it has one.
    pub fn set(&self) -> Option<&ClusterSetView> {
        self.sets.as_ref().ok()?.first()
    }

    /// Reports that it does not run, or that its image cannot be pulled. `id`: how its cluster is called.
    pub(crate) fn away(&self, id: &str, part: Part, now: Timestamp) -> Option<Wrong> {
        self.image(id).or_else(|| self.silent(id, part, now))
    }

    /// Whether its image cannot be pulled, and no other Pod of it runs.
    fn image(&self, id: &str) -> Option<Wrong> {
        let status = self.deployment.as_ref().ok()?.as_ref()?.status.clone().unwrap_or_default();
        let pod = self.pods.iter().flatten().find(|pod| pod.lacks_image())?;
        let is_away = status.available_replicas.unwrap_or_default() == 0;
        let state = state(pod).filter(|_| is_away)?;
        Some(Wrong { code: 104, what: format!("freeport-member of {id} does not run: {state}") })
    }

    fn silent(&self, id: &str, part: Part, now: Timestamp) -> Option<Wrong> {
        let deployment = self.deployment.as_ref().ok().and_then(Option::as_ref);
        let replicas = deployment.and_then(|deployment| deployment.spec.replicas);
        let lease = self.lease.as_ref().ok()?;
        let is_silent = lease.as_ref().is_none_or(|lease| sign(lease, now) == Sign::Silent);
        let renewed = lease
            .as_ref()
            .map_or_else(|| "it never renewed its Lease".to_owned(), |lease| renewed(lease, now));
        let why = match replicas {
            Some(0) => format!("its Deployment has 0 replicas; {renewed}"),
            _ if is_silent => match self.pods.iter().flatten().find_map(state) {
                Some(state) => format!("{renewed}; {state}"),
                None => renewed,
            },
            _ => return None,
        };
        Some(Wrong { code: part.silent(), what: format!("freeport-member of {id} does not run: {why}") })
    }
}

/// Reports that the member is not connected with the leader, as its ClusterSet says.
pub(crate) fn link(set: &ClusterSetView, id: &str, now: Timestamp) -> Option<Wrong> {
    let Some(ready) = set.ready() else {
        let what = format!("freeport-member of {id} has not looked at its ClusterSet yet");
        return Some(Wrong { code: 111, what });
    };
    if ready.status.as_deref() == Some("True") {
        return None;
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (reason, message) = (text(&ready.reason), text(&ready.message));
    let code = match reason.as_str() {
        "LeaderUnreachable" if message.contains("refused") => 106,
        "LeaderUnreachable" => 105,
        "TokenRefused" => 107,
        "CertificateUntrusted" | "CertificateExpired" => 108,
        "CRDMissing" => 109,
        _ => 111,
    };
    let what = format!("{id} is not connected{}: {reason}: {message}", since(set, now));
    Some(Wrong { code, what })
}

/// For how long the link is as it is: ` for 3d`.
pub(crate) fn since(set: &ClusterSetView, now: Timestamp) -> String {
    let since = set.ready().and_then(|ready| ready.last_transition_time.as_ref());
    since.map_or_else(String::new, |since| format!(" for {}", age::text(now.duration_since(since.0))))
}

/// When its holder last renewed a Lease.
pub(crate) fn renewed(lease: &LeaseView, now: Timestamp) -> String {
    lease.renew_time().map_or_else(
        || "it never renewed its Lease".to_owned(),
        |at| format!("it renewed its Lease {} ago", age::text(now.duration_since(at))),
    )
}

/// What a Pod waits for, or how it ended.
pub(crate) fn state(pod: &PodView) -> Option<String> {
    let (reason, message) = pod.state()?;
    let words: Vec<_> = [reason, message].into_iter().filter(|word| !word.is_empty()).collect();
    Some(format!("Pod {}: {}", pod.name_any(), words.join(": ")))
}
