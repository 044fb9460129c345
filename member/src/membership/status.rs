//! The status of a member's ClusterSet. Pure; [`write`](mod@write) writes it.

pub(super) mod write;

use std::collections::BTreeMap;

use api::{
    cluster_set::{
        CREDENTIAL_RENEWED, ClusterSetStatus, ClusterStatus, EXPORTS_DECLARED, IMPORTS_COMPLETE, IS_LEADER,
        READY, WRITES_ACCEPTED,
    },
    condition::{AntreaCondition, Status, Verdict},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use presence::standing::Standing;

use super::{
    object::{LEFT, Set},
    verdict,
};

/// What the status of a ClusterSet reports.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    /// About this cluster.
    pub(super) verdict: Verdict,
    /// About what is imported and exported here, if that is known.
    pub(super) complete: Option<Vec<verdict::Complete>>,
    /// About the token for the leader, if that is known.
    pub(super) credential: Option<verdict::Complete>,
    /// About what API servers refuse, if the member writes.
    pub(super) writes: Option<verdict::Complete>,
    /// About the other members, by cluster ID: known only while the leader answers.
    pub(super) members: BTreeMap<String, Standing>,
}

impl From<Verdict> for Report {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, complete: None, credential: None, writes: None, members: BTreeMap::new() }
    }
}

/// The status that reports it: an entry for the leader, then one for every member other than this cluster.
pub(super) fn desired(set: &Set, report: &Report, now: &Time) -> ClusterSetStatus {
    let have = set.status.0.clone().unwrap_or_default();
    let spec = set.spec.0.as_ref().ok();
    let leader = spec.and_then(|spec| spec.leaders.first()?.cluster_id.clone());
    let had = |cluster: Option<&str>| {
        let entry = have.cluster_statuses.iter().find(|entry| entry.cluster_id.as_deref() == cluster);
        entry.map(|entry| entry.conditions.as_slice()).unwrap_or_default()
    };
    let leads =
        Verdict::new(IS_LEADER, Status::True, "", "This leader cluster is the leader for local cluster");
    let of_leader = [&report.verdict, &leads].map(|v| AntreaCondition::of(v, had(leader.as_deref()), now));
    let mut clusters = vec![ClusterStatus { cluster_id: leader.clone(), conditions: of_leader.into() }];
    for (cluster, verdict) in others(&have, report) {
        if Some(&cluster) != leader.as_ref() {
            let conditions = match verdict {
                Some(verdict) => vec![AntreaCondition::of(&verdict, had(Some(&cluster)), now)],
                None => had(Some(&cluster)).to_vec(),
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
    let ready_here = AntreaCondition::of(&report.verdict, &have.conditions, now);
    // What was said stands while nothing is known of it.
    let stands = |types: &[&str]| match report.verdict.reason == LEFT {
        true => vec![],
        false => types.iter().filter_map(|type_| set.condition(type_).cloned()).collect(),
    };
    let of = |one: &verdict::Complete| AntreaCondition::of(&one.verdict, &have.conditions, now);
    let complete: Vec<_> = match &report.complete {
        Some(all) => all.iter().map(of).collect(),
        None => stands(&[IMPORTS_COMPLETE, EXPORTS_DECLARED]),
    };
    let one_of = |known: &Option<verdict::Complete>, type_| {
        known.as_ref().map_or_else(|| stands(&[type_]), |one| vec![of(one)])
    };
    let credential = one_of(&report.credential, CREDENTIAL_RENEWED);
    let writes = one_of(&report.writes, WRITES_ACCEPTED);
    let is_connected = report.verdict.status == Status::True;
    // A leader's cluster that takes no part itself has an entry, but exports and imports nothing.
    let is_member = |entry: &&ClusterStatus| {
        entry.cluster_id.as_ref().is_some_and(|cluster| report.members.contains_key(cluster))
    };
    let (total, ready) = match is_connected {
        true => {
            let ready = clusters.iter().filter(is_member).filter(ready).count();
            (i32::try_from(report.members.len() + 1).ok(), i32::try_from(ready + 1).ok())
        }
        false => (have.total_clusters.or(i32::try_from(clusters.len()).ok()), Some(0)),
    };
    ClusterSetStatus {
        total_clusters: total,
        ready_clusters: ready,
        conditions: [ready_here].into_iter().chain(complete).chain(credential).chain(writes).collect(),
        cluster_statuses: clusters,
        observed_generation: set.metadata.generation,
    }
}

/// What is known of other members: `None` where the condition stays as it is. While the leader does not answer, members that the
/// status names are unknown.
fn others(have: &ClusterSetStatus, report: &Report) -> BTreeMap<String, Option<Verdict>> {
    let had = have.cluster_statuses.iter().filter_map(|entry| entry.cluster_id.clone());
    if report.verdict.status != Status::True {
        let message = "unknown: this member does not hear from the leader at the moment";
        let unknown = Verdict::new(READY, Status::Unknown, "LeaderNotHeard", message);
        return had.map(|cluster| (cluster, Some(unknown.clone()))).collect();
    }
    let had: Vec<_> = had.collect();
    let new = || {
        let message = "this member has not renewed its Lease since this daemon started to watch it";
        Verdict::new(READY, Status::Unknown, "Unheard", message)
    };
    let verdict = |(cluster, standing): (&String, &Standing)| {
        let verdict = standing.verdict().or_else(|| (!had.contains(cluster)).then(new));
        (cluster.clone(), verdict)
    };
    report.members.iter().map(verdict).collect()
}

/// Whether the status stays as it is, because the daemon has only just started to connect to the leader.
pub(super) fn stays(set: &Set, report: &Report) -> bool {
    let is_written = set.status.0.as_ref().is_ok_and(|status| {
        !status.conditions.is_empty() && status.observed_generation == set.metadata.generation
    });
    is_written && verdict::is_connecting(&report.verdict)
}

#[cfg(test)]
mod tests {
    use api::membership::Wire;
    use kit::failure::Failure;

    use super::*;
    use crate::{
        feature::{About, Shortfall},
        membership::fixture::{state, target},
        session::{Health, Renewal},
    };

    const CONNECTED: Health = Health::Connected {
        wire: Wire::Freeport,
        skew: None,
        leader_is_silent: false,
        lacking: vec![],
        rival: None,
        foreign: BTreeMap::new(),
    };

    fn now() -> Time {
        Time("2026-11-02T00:00:00Z".parse().unwrap())
    }

    fn imports(set: &Set) -> Option<&str> {
        set.condition(IMPORTS_COMPLETE)?.reason.as_deref()
    }

    #[test]
    fn what_was_said_of_imports_stands_while_nothing_is_known_of_them() {
        let state = state(|_| {});
        let mut set = state.chosen().unwrap().clone();
        let few = Shortfall {
            about: About::Imports,
            reason: "TooManyImports",
            message: "few".into(),
            is_problem: true,
        };
        let mut connected = report(&CONNECTED, &[]);
        connected.complete = Some(verdict::complete(&[few]));
        set.status.0 = Ok(desired(&set, &connected, &now()));
        assert_eq!((set.reason(), imports(&set)), (Some("Connected"), Some("TooManyImports")));
        let lost = report(&Health::Lost { failure: Failure::Unreachable("refused") }, &[]);
        set.status.0 = Ok(desired(&set, &lost, &now()));
        assert_eq!((set.reason(), imports(&set)), (Some("LeaderUnreachable"), Some("TooManyImports")));
        set.status.0 = Ok(desired(&set, &report(&CONNECTED, &[]), &now()));
        assert_eq!(imports(&set), Some("Complete"));
        set.status.0 = Ok(desired(&set, &verdict::left().into(), &now()));
        assert_eq!((set.reason(), imports(&set)), (Some(LEFT), None));
    }

    #[test]
    fn what_was_said_of_the_token_stands_until_something_else_is_known_of_it() {
        let state = state(|_| {});
        let mut set = state.chosen().unwrap().clone();
        let until = "2026-11-03T00:00:00Z".parse().unwrap();
        let mut connected = report(&CONNECTED, &[]);
        connected.credential = verdict::credential(&Renewal::Renewed { until }, Wire::Freeport);
        set.status.0 = Ok(desired(&set, &connected, &now()));
        let said = |set: &Set| set.condition(CREDENTIAL_RENEWED)?.reason.clone();
        assert_eq!(said(&set).as_deref(), Some("Renewed"));
        let lost = report(&Health::Lost { failure: Failure::Unauthorized }, &[]);
        set.status.0 = Ok(desired(&set, &lost, &now()));
        assert_eq!(said(&set).as_deref(), Some("Renewed"));
        set.status.0 = Ok(desired(&set, &verdict::left().into(), &now()));
        assert_eq!(said(&set), None);
    }

    fn report(health: &Health, members: &[(&str, Standing)]) -> Report {
        let members = members.iter().map(|(id, standing)| ((*id).to_owned(), standing.clone())).collect();
        let complete = matches!(health, Health::Connected { .. }).then(|| verdict::complete(&[]));
        Report { verdict: verdict::of(health, &target()), complete, credential: None, writes: None, members }
    }

    #[test]
    fn it_says_how_it_stands_and_saying_it_again_changes_nothing() {
        let state = state(|_| {});
        let mut set = state.chosen().unwrap().clone();
        let connected = report(&CONNECTED, &[("leader", Standing::Present), ("west", Standing::Present)]);
        let first = desired(&set, &connected, &now());
        let counts = |status: &ClusterSetStatus| (status.total_clusters, status.ready_clusters);
        assert_eq!(counts(&first), (Some(3), Some(3)), "the leader, west, and this cluster");
        let dedicated = report(&CONNECTED, &[("west", Standing::Present)]);
        assert_eq!(
            counts(&desired(&set, &dedicated, &now())),
            (Some(2), Some(2)),
            "a leader that is no member"
        );
        let had = set.status.0.clone().unwrap();
        assert_eq!(first.conditions[0].last_transition_time, had.conditions[0].last_transition_time);
        set.status.0 = Ok(first.clone());
        let later = Time("2026-11-03T00:00:00Z".parse().unwrap());
        assert_eq!(desired(&set, &connected, &later), first);
        let restarted = report(&CONNECTED, &[("leader", Standing::Unheard), ("west", Standing::Unheard)]);
        assert_eq!(desired(&set, &restarted, &later), first, "what was known stands");

        let gone = report(&CONNECTED, &[("west", Standing::Silent { since: None })]);
        assert_eq!(desired(&set, &gone, &now()).ready_clusters, Some(1), "this cluster");
        let lost = report(&Health::Lost { failure: Failure::Unreachable("refused") }, &[]);
        let lost = desired(&set, &lost, &now());
        assert_eq!(counts(&lost), (Some(3), Some(0)));
        assert_eq!(lost.conditions[0].reason.as_deref(), Some("LeaderUnreachable"));
        assert!(stays(&set, &report(&Health::Connecting, &[])));
    }
}
