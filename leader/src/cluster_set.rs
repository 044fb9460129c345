//! Which members are there: watches ClusterSets and Leases of the Common Area; writes the `status` of the ClusterSets, an Event
//! when a member goes or comes back, and a gauge; deletes nothing. Safe to run twice: the status is written only when it says
//! something else, and what is not known yet after a restart stands as it was.
//!
//! Silence is noticed when something else is heard, our own Lease at the least: see [`presence::roster`].

use std::collections::BTreeMap;

use api::{
    cluster_set::{ClusterSet, ClusterSetStatus, ClusterStatus, READY},
    condition::{AntreaCondition, Status, Verdict},
    view::{Lenient, lean},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    boot::Env,
    drive::Queue,
    index::Shared,
    objects::Objects,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, api::ObjectMeta};
use presence::{leases::Leases, standing::Standing};
use serde::Deserialize;

/// Reason of the condition while the CRDs drop fields.
const SCHEMA_PRUNED: &str = "SchemaPruned";

/// A ClusterSet of a Common Area.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterSet)]
pub struct Set {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Lenient<ClusterSetStatus>,
}

/// The status that says how it stands with the members.
fn desired(
    set: &Set,
    members: &BTreeMap<String, Standing>,
    pruned: Option<&str>,
    now: &Time,
) -> ClusterSetStatus {
    let have = set.status.0.clone().unwrap_or_default();
    let entry = |(cluster, standing): (&String, &Standing)| {
        let said = conditions(&have, cluster);
        let conditions = match standing.verdict() {
            // Just come, or so it seems: it has its time to renew.
            None if said.is_empty() => {
                Standing::Present.verdict().map(|verdict| AntreaCondition::of(&verdict, said, now))
            }
            None => said.first().cloned(),
            Some(verdict) => Some(AntreaCondition::of(&verdict, said, now)),
        };
        ClusterStatus { cluster_id: Some(cluster.clone()), conditions: conditions.into_iter().collect() }
    };
    let clusters: Vec<_> = members.iter().map(entry).collect();
    let missing: Vec<_> = clusters
        .iter()
        .filter(|cluster| !is_ready(&cluster.conditions))
        .filter_map(|cluster| cluster.cluster_id.as_deref())
        .collect();
    let count = |number: usize| i32::try_from(number).ok();
    ClusterSetStatus {
        total_clusters: count(clusters.len()),
        ready_clusters: count(clusters.len() - missing.len()),
        conditions: vec![AntreaCondition::of(
            &overall(clusters.len(), &missing, pruned),
            &have.conditions,
            now,
        )],
        cluster_statuses: clusters,
        observed_generation: set.metadata.generation,
    }
}

fn overall(total: usize, missing: &[&str], pruned: Option<&str>) -> Verdict {
    if let Some(pruned) = pruned {
        let message = format!(
            "{pruned}: what vanishes that way is kept in the members, but nothing new gets through. Install Freeport's CRDs \
             here again (freeport init, or kubectl apply -f manifests/crds-leader.yaml)"
        );
        return Verdict::new(READY, Status::False, SCHEMA_PRUNED, message);
    }
    match missing {
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

/// Members that are there in one status and not in the other, and were known to both.
fn turned<'a>(had: &'a ClusterSetStatus, has: &'a ClusterSetStatus) -> impl Iterator<Item = (&'a str, bool)> {
    has.cluster_statuses.iter().filter_map(|entry| {
        let cluster = entry.cluster_id.as_deref()?;
        let (before, after) = (conditions(had, cluster), is_ready(&entry.conditions));
        (!before.is_empty() && is_ready(before) != after).then_some((cluster, after))
    })
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Reporting {
    /// The ClusterSets.
    pub sets: Shared<Objects<Set>>,
    /// The Leases of the members.
    pub leases: Shared<Leases>,
    /// Names of ClusterSets to look at.
    pub queue: Queue<String>,
    /// Writes to the Common Area.
    pub writer: Writer,
    /// Where to leave Events, and metrics.
    pub env: Env,
    /// Name of the Common Area.
    pub common_area: String,
}

impl Reporting {
    /// Brings the status of one ClusterSet up to date.
    pub async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let now = Time(Timestamp::now());
        let Some(set) = self.sets.with(|sets| sets.get(&name).cloned()) else {
            return Ok(Outcome::Done);
        };
        let pruned = self.writer.pruned().map(|error| error.to_string());
        let want = desired(&set, &self.leases.with(|leases| leases.members()), pruned.as_deref(), &now);
        self.measure(&want);
        if set.status.0.as_ref() == Ok(&want) {
            return Ok(Outcome::Done);
        }
        match self.writer.put_status(&set, &want).await {
            // Deleted meanwhile: nobody is left to be told.
            Err(Error::Gone) => return Ok(Outcome::Done),
            Err(error) => return Err(error),
            Ok(answer) => self.sets.with(|sets| sets.answered(answer)),
        }
        let had = set.status.0.clone().unwrap_or_default();
        for (cluster, is_there) in turned(&had, &want) {
            self.tell(&name, cluster, is_there);
        }
        let pruned = |status: &ClusterSetStatus| {
            status.conditions.iter().find(|c| c.reason.as_deref() == Some(SCHEMA_PRUNED)).cloned()
        };
        if let (None, Some(AntreaCondition { message: Some(message), .. })) = (pruned(&had), pruned(&want)) {
            self.env.events.warn(set.object_ref(&()), "Report", SCHEMA_PRUNED, &message);
        }
        Ok(Outcome::Done)
    }

    fn measure(&self, status: &ClusterSetStatus) {
        let (ready, total) = (status.ready_clusters.unwrap_or(0), status.total_clusters.unwrap_or(0));
        self.env.metrics.members(&self.common_area, "connected").set(ready.into());
        self.env.metrics.members(&self.common_area, "disconnected").set((total - ready).into());
    }

    fn tell(&self, set: &str, cluster: &str, is_there: bool) {
        let Some(of) = self.sets.with(|sets| sets.get(set).map(|set| set.object_ref(&()))) else {
            return;
        };
        if is_there {
            tracing::info!(set, cluster, "the member is there again");
            self.env.events.tell(
                of,
                "Report",
                "MemberConnected",
                &format!("member {cluster} is there again"),
            );
        } else {
            tracing::warn!(set, cluster, "the member does not renew its Lease");
            let message =
                format!("member {cluster} does not renew its Lease: what it exported stays as it is");
            self.env.events.warn(of, "Report", "MemberDisconnected", &message);
        }
    }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    fn set() -> Set {
        serde_json::from_value(json!({"metadata": {"name": "demo", "generation": 2}})).unwrap()
    }

    fn members(of: &[(&str, Standing)]) -> BTreeMap<String, Standing> {
        of.iter().map(|(cluster, standing)| ((*cluster).to_owned(), standing.clone())).collect()
    }

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn says(status: &ClusterSetStatus) -> (i32, i32, &str) {
        let reason = status.conditions[0].reason.as_deref().unwrap();
        (status.ready_clusters.unwrap(), status.total_clusters.unwrap(), reason)
    }

    const GONE: Standing = Standing::Silent { since: None };

    fn version(version: u64) -> Set {
        let mut set = set();
        (set.metadata.uid, set.metadata.resource_version) = (Some("u".into()), Some(version.to_string()));
        set
    }

    #[test]
    fn a_deleted_cluster_set_does_not_come_back_with_a_late_answer() {
        let mut sets = Objects::default();
        sets.change(Change::Reset(vec![version(1)]));
        // The status write was answered with version 2; its reconcile gets to read that after the watch told of the deletion.
        sets.change(Change::Remove(version(3)));
        sets.answered(version(2));
        assert!(sets.get("demo").is_none());
        sets.change(Change::Apply(version(4)));
        sets.answered(version(5));
        assert_eq!(sets.get("demo").and_then(ResourceExt::resource_version).as_deref(), Some("5"));
    }

    #[test]
    fn it_counts_who_renews() {
        let status = |of: &[(&str, Standing)]| desired(&set(), &members(of), None, &at(1));
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
        let pruned = desired(&set(), &members(&[]), Some("the CRD does not know spec.x"), &at(1));
        assert_eq!(says(&pruned), (0, 0, "SchemaPruned"));
    }

    #[test]
    fn after_a_restart_it_says_what_was_said() {
        let before = desired(&set(), &members(&[("east", Standing::Present), ("west", GONE)]), None, &at(1));
        let mut set = set();
        set.status.0 = Ok(before.clone());
        let unheard = members(&[("east", Standing::Unheard), ("west", Standing::Unheard)]);
        assert_eq!(desired(&set, &unheard, None, &at(2)), before);
    }

    #[test]
    fn who_goes_and_who_comes_back_is_told() {
        let status = |east, west| desired(&set(), &members(&[("east", east), ("west", west)]), None, &at(1));
        let (before, after) = (status(Standing::Present, GONE), status(GONE, Standing::Present));
        assert_eq!(turned(&before, &after).collect::<Vec<_>>(), [("east", false), ("west", true)]);
        assert_eq!(turned(&after, &after).count(), 0);
        assert_eq!(turned(&ClusterSetStatus::default(), &after).count(), 0, "met for the first time");
    }
}
