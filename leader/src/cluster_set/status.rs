//! What a ClusterSet says: pure.

use std::{collections::BTreeMap, time::Duration};

use api::{
    cluster_set::{ClusterSetStatus, ClusterStatus, READY},
    condition::{AntreaCondition, Status, Verdict},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use presence::{standing::Standing, wire};

use crate::silences::Stage;

/// Reason of the condition while the CRDs drop fields.
pub(super) const SCHEMA_PRUNED: &str = "SchemaPruned";
/// Reason of the condition while a feature cannot watch what it needs.
pub(super) const FEATURE_UNAVAILABLE: &str = "FeatureUnavailable";
/// Reason of the condition while a member speaks another version of the wire contract.
pub(super) const WIRE_VERSION_DIFFERS: &str = "WireVersionDiffers";

/// Reason of the condition of a member whose exports are withdrawn soon.
pub(super) const EVICTION_NEAR: &str = "EvictionNear";
/// Reason of the condition of a member whose exports are withdrawn.
pub(super) const EVICTED: &str = "Evicted";

/// Reason of the condition while the ClusterSet or a ClusterClaim says what cannot be.
pub(super) const INVALID_SPEC: &str = "InvalidSpec";
/// Reason of condition `WritesAccepted` while API servers refuse something.
pub(super) const REFUSED: &str = "Refused";

/// How it stands with a Common Area.
#[derive(Default)]
pub(super) struct State {
    /// The members, by cluster ID.
    pub(super) members: BTreeMap<String, Standing>,
    /// Which features cannot watch what they need, and why.
    pub(super) unavailable: Option<String>,
    /// What the CRDs drop.
    pub(super) pruned: Option<String>,
    /// Who speaks another version of the wire contract, by the names of their Leases.
    pub(super) foreign: BTreeMap<String, String>,
    /// What is wrong with the ClusterSet.
    pub(super) invalid: Option<String>,
    /// What becomes of the exports of silent members.
    pub(super) eviction: Eviction,
    /// Whether API servers accept what the leader writes for this Common Area.
    pub(super) writes: Option<Verdict>,
}

/// What becomes of the exports of members that do not renew their Leases.
#[derive(Default)]
pub(super) struct Eviction {
    /// By cluster ID, where it is soon or was.
    pub(super) stages: BTreeMap<String, Stage>,
    /// How long before it is said.
    pub(super) notice: Duration,
    /// After how long it is.
    pub(super) limit: Duration,
}

impl Eviction {
    /// What is said of a member, with what becomes of its exports.
    fn with(&self, cluster: &str, said: Verdict) -> Verdict {
        let (reason, more) = match self.stages.get(cluster).filter(|_| said.status == Status::False) {
            Some(Stage::Near) => (
                EVICTION_NEAR,
                format!(
                    "; what it exports is withdrawn within {} s, unless it renews it",
                    self.notice.as_secs()
                ),
            ),
            Some(Stage::Evicted) => (
                EVICTED,
                format!(
                    "; what it exported is withdrawn, since it was silent for {} s. It comes back with the member",
                    self.limit.as_secs()
                ),
            ),
            Some(Stage::Answering) => (
                said.reason.as_str(),
                "; its endpoints answer other members, so what it exports stays".to_owned(),
            ),
            Some(Stage::Waiting) | None => return said,
        };
        Verdict { reason: reason.to_owned(), message: said.message + &more, ..said }
    }
}

/// The status of a ClusterSet of this generation that has status `have`.
pub(super) fn desired(
    have: &ClusterSetStatus,
    generation: Option<i64>,
    state: &State,
    now: &Time,
) -> ClusterSetStatus {
    let entry = |(cluster, standing): (&String, &Standing)| {
        let said = conditions(have, cluster);
        let conditions = match standing.verdict().map(|said| state.eviction.with(cluster, said)) {
            // It seems to have joined just now, and has time to renew its Lease.
            None if said.is_empty() => {
                Standing::Present.verdict().map(|verdict| AntreaCondition::of(&verdict, said, now))
            }
            None => said.first().cloned(),
            Some(verdict) => Some(AntreaCondition::of(&verdict, said, now)),
        };
        ClusterStatus { cluster_id: Some(cluster.clone()), conditions: conditions.into_iter().collect() }
    };
    let clusters: Vec<_> = state.members.iter().map(entry).collect();
    let missing: Vec<_> = clusters
        .iter()
        .filter(|cluster| !is_ready(&cluster.conditions))
        .filter_map(|cluster| cluster.cluster_id.as_deref())
        .collect();
    let count = |number: usize| i32::try_from(number).ok();
    ClusterSetStatus {
        total_clusters: count(clusters.len()),
        ready_clusters: count(clusters.len() - missing.len()),
        conditions: [&overall(clusters.len(), &missing, state)]
            .into_iter()
            .chain(&state.writes)
            .map(|verdict| AntreaCondition::of(verdict, &have.conditions, now))
            .collect(),
        cluster_statuses: clusters,
        observed_generation: generation,
    }
}

fn overall(total: usize, missing: &[&str], state: &State) -> Verdict {
    if let Some(unavailable) = &state.unavailable {
        let message = format!(
            "{unavailable}. Members keep what they imported, but new exports and changes do not get through. Install Freeport in \
             this cluster again (freeport init), which brings its CRDs and rights back"
        );
        return Verdict::new(READY, Status::False, FEATURE_UNAVAILABLE, message);
    }
    if let Some(pruned) = &state.pruned {
        let message = format!(
            "{pruned}. Members keep what they imported, but new exports and changes do not get through. Install Freeport's CRDs \
             in this cluster again (freeport init, or kubectl apply -f manifests/crds-leader.yaml)"
        );
        return Verdict::new(READY, Status::False, SCHEMA_PRUNED, message);
    }
    if let Some(invalid) = &state.invalid {
        let message = format!("{invalid}. Exports and imports go on");
        return Verdict::new(READY, Status::False, INVALID_SPEC, message);
    }
    match missing {
        [] if !state.foreign.is_empty() => {
            Verdict::new(READY, Status::True, WIRE_VERSION_DIFFERS, wire::differs(&state.foreign))
        }
        [] => Verdict::new(READY, Status::True, "Ready", "all members renew their Leases"),
        _ if missing.len() == total => {
            Verdict::new(READY, Status::False, "NoReadyCluster", "no member renews its Lease")
        }
        _ => {
            let message = format!("not connected: {}", missing.join(", "));
            Verdict::new(READY, Status::False, "SomeNotReady", message)
        }
    }
}

fn conditions<'a>(status: &'a ClusterSetStatus, cluster: &str) -> &'a [AntreaCondition] {
    let entry = status.cluster_statuses.iter().find(|entry| entry.cluster_id.as_deref() == Some(cluster));
    entry.map(|entry| entry.conditions.as_slice()).unwrap_or_default()
}

fn is_ready(conditions: &[AntreaCondition]) -> bool {
    let ready = |c: &AntreaCondition| {
        c.type_.as_deref() == Some(READY) && c.status.as_deref() == Some(Status::True.as_str())
    };
    conditions.iter().any(ready)
}

/// Members that are ready in one status and not in the other, and were known to both; whether they are now.
pub(super) fn turned<'a>(
    had: &'a ClusterSetStatus,
    has: &'a ClusterSetStatus,
) -> impl Iterator<Item = (&'a str, bool)> {
    has.cluster_statuses.iter().filter_map(|entry| {
        let cluster = entry.cluster_id.as_deref()?;
        let (before, after) = (conditions(had, cluster), is_ready(&entry.conditions));
        (!before.is_empty() && is_ready(before) != after).then_some((cluster, after))
    })
}

/// The message of each member's condition that has this reason now and had not before, and the member.
pub(super) fn come_to<'a>(
    had: &'a ClusterSetStatus,
    has: &'a ClusterSetStatus,
    reason: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let of = move |conditions: &'a [AntreaCondition]| {
        conditions.iter().find(|c| c.reason.as_deref() == Some(reason)).and_then(|c| c.message.as_deref())
    };
    has.cluster_statuses.iter().filter_map(move |entry| {
        let cluster = entry.cluster_id.as_deref()?;
        let message = of(&entry.conditions)?;
        of(conditions(had, cluster)).is_none().then_some((cluster, message))
    })
}

/// The message of the condition with this reason, if there is one.
fn message_of<'a>(status: &'a ClusterSetStatus, reason: &str) -> Option<&'a str> {
    let with_reason = status.conditions.iter().find(|c| c.reason.as_deref() == Some(reason));
    with_reason?.message.as_deref()
}

/// The message of the condition with this reason, if there is an Event in it: the reason is new, or other writes are refused.
pub(super) fn news<'a>(had: &ClusterSetStatus, has: &'a ClusterSetStatus, reason: &str) -> Option<&'a str> {
    let (before, now) = (message_of(had, reason), message_of(has, reason)?);
    let is_news = before.is_none_or(|before| reason == REFUSED && before != now);
    is_news.then_some(now)
}

#[cfg(test)]
mod tests {
    use api::cluster_set::WRITES_ACCEPTED;
    use jiff::Timestamp;

    use super::*;

    fn state(members: &[(&str, Standing)]) -> State {
        let members = members.iter().map(|(cluster, standing)| ((*cluster).to_owned(), standing.clone()));
        State { members: members.collect(), ..State::default() }
    }

    fn status(state: &State) -> ClusterSetStatus {
        desired(&ClusterSetStatus::default(), Some(2), state, &at(1))
    }

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn says(status: &ClusterSetStatus) -> (i32, i32, &str) {
        let reason = status.conditions[0].reason.as_deref().unwrap();
        (status.ready_clusters.unwrap(), status.total_clusters.unwrap(), reason)
    }

    const GONE: Standing = Standing::Silent { since: None };

    #[test]
    fn it_counts_who_renews() {
        let status = |of: &[(&str, Standing)]| status(&state(of));
        assert_eq!(says(&status(&[])), (0, 0, "Ready"));
        assert_eq!(
            says(&status(&[("east", Standing::Present), ("west", Standing::Unheard)])),
            (2, 2, "Ready")
        );
        let some = status(&[("east", Standing::Present), ("west", GONE)]);
        assert_eq!(says(&some), (1, 2, "SomeNotReady"));
        assert!(some.conditions[0].message.as_deref().unwrap().contains("west"));
        assert_eq!(says(&status(&[("east", GONE), ("west", GONE)])), (0, 2, "NoReadyCluster"));
        assert_eq!(some.observed_generation, Some(2));
    }

    #[test]
    fn it_says_what_keeps_features_from_working_before_anything_else() {
        let pruned = State { pruned: Some("the CRD has no field spec.x".into()), ..state(&[("east", GONE)]) };
        assert_eq!(says(&status(&pruned)), (0, 1, "SchemaPruned"));
        let invalid = State { invalid: Some("no leader".into()), ..state(&[("east", GONE)]) };
        assert_eq!(says(&status(&invalid)), (0, 1, "InvalidSpec"));
        let unavailable = State { unavailable: Some("Services: cannot watch".into()), ..pruned };
        let status = status(&unavailable);
        assert_eq!(says(&status), (0, 1, "FeatureUnavailable"));
        assert!(message_of(&status, FEATURE_UNAVAILABLE).unwrap().starts_with("Services: cannot watch. "));
        assert_eq!(message_of(&status, SCHEMA_PRUNED), None);
    }

    #[test]
    fn a9_a_member_of_another_wire_version_is_named_and_nothing_stops() {
        let foreign = [("freeport-member-east".to_owned(), "2".to_owned())].into();
        let state = State { foreign, ..state(&[("east", Standing::Present)]) };
        let status = status(&state);
        assert_eq!(says(&status), (1, 1, "WireVersionDiffers"));
        assert_eq!(status.conditions[0].status.as_deref(), Some("True"));
        assert!(message_of(&status, WIRE_VERSION_DIFFERS).unwrap().contains("freeport-member-east: 2"));
    }

    #[test]
    fn after_a_restart_it_says_what_was_said() {
        let before = status(&state(&[("east", Standing::Present), ("west", GONE)]));
        let unheard = state(&[("east", Standing::Unheard), ("west", Standing::Unheard)]);
        assert_eq!(desired(&before, Some(2), &unheard, &at(2)), before);
    }

    #[test]
    fn that_exports_go_is_said_before_and_when_they_are_gone() {
        let status = |stage| {
            let stages = [("west".to_owned(), stage)].into();
            let (notice, limit) = (Duration::from_secs(3600), Duration::from_secs(86_400));
            let eviction = Eviction { stages, notice, limit };
            status(&State { eviction, ..state(&[("east", Standing::Present), ("west", GONE)]) })
        };
        let (waiting, near, evicted) = (status(Stage::Waiting), status(Stage::Near), status(Stage::Evicted));
        let told =
            |had, has, reason| come_to(had, has, reason).map(|(of, _)| of.to_owned()).collect::<Vec<_>>();
        assert_eq!(told(&waiting, &near, EVICTION_NEAR), ["west"]);
        assert_eq!(told(&near, &near, EVICTION_NEAR), Vec::<String>::new());
        assert_eq!(told(&near, &evicted, EVICTED), ["west"]);
        let (_, message) = come_to(&waiting, &near, EVICTION_NEAR).next().unwrap();
        assert!(message.contains("within 3600 s"), "{message}");
        let answering = status(Stage::Answering).cluster_statuses[1].conditions[0].clone();
        assert_eq!(answering.reason.as_deref(), Some("Disconnected"));
        assert!(answering.message.is_some_and(|said| said.contains("endpoints answer other members")));
        assert_eq!(says(&evicted), (1, 2, "SomeNotReady"));
    }

    #[test]
    fn other_writes_that_are_refused_are_news() {
        let status = |reason: &str, message: &str| {
            let said = Verdict::new(WRITES_ACCEPTED, Status::False, reason, message);
            let conditions = vec![AntreaCondition::of(&said, &[], &at(1))];
            ClusterSetStatus { conditions, ..ClusterSetStatus::default() }
        };
        let news_of = |reason: &str, before: &str| {
            news(&status(reason, before), &status(reason, "b"), reason).map(str::to_owned)
        };
        assert_eq!(news_of(REFUSED, "a").as_deref(), Some("b"));
        assert_eq!(news_of(REFUSED, "b"), None);
        assert_eq!(news_of(SCHEMA_PRUNED, "a"), None);
        let first = status(REFUSED, "b");
        assert_eq!(news(&ClusterSetStatus::default(), &first, REFUSED), Some("b"));
    }

    #[test]
    fn who_goes_and_who_comes_back_is_told() {
        let status = |east, west| status(&state(&[("east", east), ("west", west)]));
        let (before, after) = (status(Standing::Present, GONE), status(GONE, Standing::Present));
        assert_eq!(turned(&before, &after).collect::<Vec<_>>(), [("east", false), ("west", true)]);
        assert_eq!(turned(&after, &after).count(), 0);
        assert_eq!(turned(&ClusterSetStatus::default(), &after).count(), 0, "met for the first time");
    }
}
