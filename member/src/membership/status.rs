//! The status of a member's ClusterSet: pure.

use std::collections::BTreeMap;

use api::{
    cluster_set::{ClusterSetStatus, ClusterStatus, IS_LEADER, READY},
    condition::{AntreaCondition, Status, Verdict},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use presence::standing::Standing;

use super::{desk::Set, verdict};

/// What there is to say about a ClusterSet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    /// About our part in it.
    pub verdict: Verdict,
    /// About its other members, by cluster ID: known only as long as the leader is heard.
    pub members: BTreeMap<String, Standing>,
}

impl From<Verdict> for Word {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, members: BTreeMap::new() }
    }
}

/// The status that says it: an entry for the leader, then one for every other member but us.
pub(super) fn desired(set: &Set, word: &Word, now: &Time) -> ClusterSetStatus {
    let have = set.status.0.clone().unwrap_or_default();
    let spec = set.spec.0.as_ref().ok();
    let leader = spec.and_then(|spec| spec.leaders.first()?.cluster_id.clone());
    let said = |cluster: Option<&str>| {
        let entry = have.cluster_statuses.iter().find(|entry| entry.cluster_id.as_deref() == cluster);
        entry.map(|entry| entry.conditions.as_slice()).unwrap_or_default()
    };
    let leads =
        Verdict::new(IS_LEADER, Status::True, "", "This leader cluster is the leader for local cluster");
    let conditions = [&word.verdict, &leads].map(|v| AntreaCondition::of(v, said(leader.as_deref()), now));
    let mut clusters = vec![ClusterStatus { cluster_id: leader.clone(), conditions: conditions.into() }];
    for (cluster, verdict) in others(&have, word) {
        if Some(&cluster) != leader.as_ref() {
            let conditions = match verdict {
                Some(verdict) => vec![AntreaCondition::of(&verdict, said(Some(&cluster)), now)],
                None => said(Some(&cluster)).to_vec(),
            };
            clusters.push(ClusterStatus { cluster_id: Some(cluster), conditions });
        }
    }
    let ready = |entry: &&ClusterStatus| {
        let is_ready = |c: &AntreaCondition| {
            c.type_.as_deref() == Some(READY) && c.status.as_deref() == Some(Status::True.as_str())
        };
        entry.conditions.iter().any(is_ready)
    };
    ClusterSetStatus {
        total_clusters: i32::try_from(clusters.len()).ok(),
        ready_clusters: i32::try_from(clusters.iter().filter(ready).count()).ok(),
        conditions: vec![AntreaCondition::of(&word.verdict, &have.conditions, now)],
        cluster_statuses: clusters,
        observed_generation: set.metadata.generation,
    }
}

/// What is known of members: `None` where what was said stands. Without the leader, of those we knew nothing is known.
fn others(have: &ClusterSetStatus, word: &Word) -> BTreeMap<String, Option<Verdict>> {
    if word.verdict.status == Status::True {
        let new =
            || Verdict::new(READY, Status::Unknown, "Unheard", "its Lease is there, but was not renewed yet");
        let known =
            |cluster: &String| have.cluster_statuses.iter().any(|e| e.cluster_id.as_ref() == Some(cluster));
        let verdict = |(cluster, standing): (&String, &Standing)| {
            let verdict = standing.verdict().or_else(|| (!known(cluster)).then(new));
            (cluster.clone(), verdict)
        };
        return word.members.iter().map(verdict).collect();
    }
    let unknown =
        Verdict::new(READY, Status::Unknown, "LeaderNotHeard", "not known while the leader is not heard");
    let had = have.cluster_statuses.iter().filter_map(|entry| entry.cluster_id.clone());
    had.map(|cluster| (cluster, Some(unknown.clone()))).collect()
}

/// What a status says stands while we only just set out to ask the leader again.
pub(super) fn stands(set: &Set, word: &Word) -> bool {
    let said = set.status.0.as_ref().is_ok_and(|status| {
        !status.conditions.is_empty() && status.observed_generation == set.metadata.generation
    });
    said && verdict::is_connecting(&word.verdict)
}

/// What is said about a ClusterSet that is still there when it has been left: it is not joined again.
pub(super) fn left() -> Verdict {
    let message = "this cluster has left the set: `freeport leave` deletes this ClusterSet, `freeport join` joins again";
    verdict::no(LEFT, message)
}

const LEFT: &str = "Left";

/// Whether [`left`] has been said about the ClusterSet as it is now.
pub(super) fn has_left(set: &Set) -> bool {
    let observed = set.status.0.as_ref().ok().and_then(|status| status.observed_generation);
    reason(set) == Some(LEFT) && observed == set.metadata.generation
}

/// The reason of the condition `Ready` as it stands.
pub(super) fn reason(set: &Set) -> Option<&str> {
    let conditions = &set.status.0.as_ref().ok()?.conditions;
    conditions.iter().find(|c| c.type_.as_deref() == Some(READY))?.reason.as_deref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::membership::Wire;

    use crate::{
        link::State,
        membership::desk::tests::{desk, target},
    };
    use kit::failure::Failure;

    const CONNECTED: State =
        State::Connected { wire: Wire::Freeport, skew: None, leader_is_silent: false, lacking: vec![] };

    fn now() -> Time {
        Time("2026-11-02T00:00:00Z".parse().unwrap())
    }

    fn word(state: &State, members: &[(&str, Standing)]) -> Word {
        let members = members.iter().map(|(id, standing)| ((*id).to_owned(), standing.clone())).collect();
        Word { verdict: verdict::of(state, &target()), members }
    }

    #[test]
    fn it_says_how_it_stands_and_saying_it_again_changes_nothing() {
        let desk = desk(|_| {});
        let mut set = desk.chosen().unwrap().clone();
        let connected = word(&CONNECTED, &[("leader", Standing::Present), ("west", Standing::Present)]);
        let first = desired(&set, &connected, &now());
        assert_eq!((first.total_clusters, first.ready_clusters), (Some(2), Some(2)), "the leader, and west");
        let had = set.status.0.clone().unwrap();
        assert_eq!(first.conditions[0].last_transition_time, had.conditions[0].last_transition_time);
        set.status.0 = Ok(first.clone());
        let later = Time("2026-11-03T00:00:00Z".parse().unwrap());
        assert_eq!(desired(&set, &connected, &later), first);
        let restarted = word(&CONNECTED, &[("west", Standing::Unheard)]);
        assert_eq!(desired(&set, &restarted, &later), first, "what was known stands");

        let gone = word(&CONNECTED, &[("west", Standing::Silent { since: None })]);
        assert_eq!(desired(&set, &gone, &now()).ready_clusters, Some(1));
        let lost = word(&State::Lost { failure: Failure::Unreachable("refused") }, &[]);
        let lost = desired(&set, &lost, &now());
        assert_eq!((lost.total_clusters, lost.ready_clusters), (Some(2), Some(0)));
        assert_eq!(lost.conditions[0].reason.as_deref(), Some("LeaderUnreachable"));
        assert!(stands(&set, &word(&State::Connecting, &[])));
    }
}
