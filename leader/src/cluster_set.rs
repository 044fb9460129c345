//! What the ClusterSets of a Common Area say: watches ClusterSets and ClusterClaims; writes their `status`, an Event when a member goes or comes back,
//! and a gauge; deletes nothing. Safe to run twice: the status is written only when it says something else, and what is not known
//! yet after a restart stands as it was. A ClusterSet that is not valid keeps nobody from exporting and importing.
//!
//! No timer: whatever changes is noticed when a Lease is renewed, our own at the least (see [`presence::leases`]), or when an API server
//! refuses a write ([`kit::metrics::Refusals`]).

mod spec;
mod status;

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    cluster_claim::{self, ClusterClaim},
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus},
    name,
    view::{Lenient, lean},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    drive::drive,
    index::Shared,
    objects::Objects,
    queue::{Outcome, Queue},
    watch::Watches,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use presence::standing::Standing;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::{
    spec::Claims,
    status::{
        EVICTED, EVICTION_NEAR, Eviction, FEATURE_UNAVAILABLE, INVALID_SPEC, REFUSED, SCHEMA_PRUNED, State,
        WIRE_VERSION_DIFFERS, come_to, desired, news, turned,
    },
};
use crate::feature::{Access, Features};

/// When many members come at once the status is not written for each.
const PACE: Duration = Duration::from_secs(1);

/// A ClusterSet of a Common Area.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterSet)]
struct Set {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<Option<ClusterSetSpec>>,
    #[serde(default)]
    status: Lenient<ClusterSetStatus>,
}

/// A ClusterClaim of a Common Area, which says something about the cluster that leads.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterClaim)]
struct Claim {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    value: Lenient<String>,
}

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(crate) struct ClusterSets {
    access: Access,
    features: Arc<Features>,
    /// By themselves: a ClusterSet that cannot be watched does not stop a feature.
    watches: Watches,
    sets: Shared<Objects<Set>>,
    claims: Shared<Objects<Claim>>,
    queue: Queue<String>,
    writer: Writer,
}

impl ClusterSets {
    pub(crate) fn new(access: Access, features: Arc<Features>) -> Self {
        Self {
            features,
            watches: Watches::default(),
            sets: Shared::default(),
            claims: Shared::default(),
            queue: Queue::new(PACE),
            writer: access.writer(),
            access,
        }
    }

    /// Begins the watches.
    pub(crate) fn watch(&self, tasks: &mut JoinSet<()>) {
        let this = self.clone();
        self.access.watch(&self.watches, "ClusterClaim", tasks, move |change| {
            this.claims.with(|claims| claims.change(change));
            this.enqueue_all();
        });
        let this = self.clone();
        self.access.watch(&self.watches, "ClusterSet", tasks, move |change| {
            this.sets.with(|sets| sets.change(change));
            this.enqueue_all();
        });
    }

    /// A CRD changed: what an older one did not keep is read and written again.
    pub(crate) fn write_again(&self) {
        self.watches.list_again();
        self.writer.forget_undeclared();
        self.enqueue_all();
    }

    /// Something changed that all ClusterSets speak of.
    pub(crate) fn enqueue_all(&self) {
        let names: Vec<_> = self.sets.with(|sets| sets.iter().map(ResourceExt::name_any).collect());
        self.queue.enqueue(names);
    }

    /// Runs the controller until `stop`.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let metrics = self.access.env.metrics.clone();
        let (refusals, area) = (metrics.refusals().clone(), metrics.area());
        let refused = async {
            loop {
                refusals.changed(&area).await;
                self.enqueue_all();
            }
        };
        let drive = drive("cluster_set", self.queue.clone(), metrics, stop.clone(), |name| {
            self.clone().reconcile(name)
        });
        tokio::select! {
            () = drive => {}
            () = refused => {}
        }
    }

    /// Brings the status of one ClusterSet up to date.
    async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let (set, lists) = self.sets.with(|sets| (sets.get(&name).cloned(), sets.lists()));
        let Some(set) = set else { return Ok(Outcome::Done) };
        let (members, foreign) = self.access.leases.with(|leases| (leases.members(), leases.foreign()));
        let metrics = &self.access.env.metrics;
        let state = State {
            eviction: self.eviction(&members),
            members,
            foreign,
            unavailable: self.features.unavailable(Instant::now()),
            pruned: self.features.pruned(),
            invalid: self.invalid(&set),
            writes: Some(metrics.refusals().verdict(&metrics.area())),
        };
        let had = set.status.0.clone().unwrap_or_default();
        let want = desired(&had, set.metadata.generation, &state, &Time(Timestamp::now()));
        self.measure(&want);
        if set.status.0.as_ref() == Ok(&want) {
            return Ok(Outcome::Done);
        }
        match self.writer.put_status(&set, &want).await {
            // Deleted meanwhile: it needs no status.
            Err(Error::Gone) => return Ok(Outcome::Done),
            Err(error) => return Err(error),
            Ok(answer) => self.sets.with(|sets| sets.answered(answer, lists)),
        }
        for (cluster, is_there) in turned(&had, &want) {
            self.report_member(&set, cluster, is_there);
        }
        for reason in [EVICTION_NEAR, EVICTED] {
            for (cluster, message) in come_to(&had, &want, reason) {
                let message = format!("member {cluster}: {message}");
                tracing::warn!(set = set.name_any(), reason, message);
                self.access.env.events.warn(set.object_ref(&()), "Report", reason, &message);
            }
        }
        for reason in [FEATURE_UNAVAILABLE, SCHEMA_PRUNED, INVALID_SPEC, WIRE_VERSION_DIFFERS, REFUSED] {
            if let Some(message) = news(&had, &want, reason) {
                self.access.env.events.warn(set.object_ref(&()), "Report", reason, message);
            }
        }
        Ok(Outcome::Done)
    }

    /// What becomes of the exports of those who are silent.
    fn eviction(&self, members: &BTreeMap<String, Standing>) -> Eviction {
        self.access.silences.with(|silences| Eviction {
            stages: members.keys().map(|cluster| (cluster.clone(), silences.stage(cluster))).collect(),
            notice: silences.notice(),
            limit: silences.limit(),
        })
    }

    /// What is wrong with the ClusterSet, by itself and beside what else is known.
    fn invalid(&self, set: &Set) -> Option<String> {
        let claim = |name: &str| {
            self.claims.with(|claims| claims.get(name).and_then(|claim| claim.value.0.clone().ok()))
        };
        let age = |set: &Set| (set.metadata.creation_timestamp.clone().map(|time| time.0), set.name_any());
        let oldest = self.sets.with(|sets| sets.iter().map(age).min());
        let is_of_other = |id: &str| {
            let member = name::member_lease(id);
            let holder = self.access.leases.with(|leases| leases.cluster_uid(&member).map(str::to_owned));
            holder.is_some_and(|uid| uid != self.access.env.holder.cluster_uid)
        };
        let claims = Claims { id: claim(cluster_claim::ID), cluster_set: claim(cluster_claim::CLUSTER_SET) };
        let older = oldest.filter(|oldest| *oldest < age(set)).map(|(_, name)| name);
        let objection = spec::objection(&set.name_any(), &set.spec.0, older, &claims, is_of_other);
        objection.or_else(|| self.access.noted.problem())
    }

    fn measure(&self, status: &ClusterSetStatus) {
        let Access { env, common_area, .. } = &self.access;
        let (ready, total) = (status.ready_clusters.unwrap_or(0), status.total_clusters.unwrap_or(0));
        env.metrics.members(common_area, "connected").set(ready.into());
        env.metrics.members(common_area, "disconnected").set((total - ready).into());
    }

    fn report_member(&self, set: &Set, cluster: &str, is_there: bool) {
        let (name, of, events) = (set.name_any(), set.object_ref(&()), &self.access.env.events);
        if is_there {
            tracing::info!(set = name, cluster, "the member renews its Lease again");
            let message = format!("member {cluster} renews its Lease again");
            events.tell(of, "Report", "MemberConnected", &message);
        } else {
            tracing::warn!(set = name, cluster, "the member does not renew its Lease");
            let message = format!("member {cluster} does not renew its Lease; its exports stay as they are");
            events.warn(of, "Report", "MemberDisconnected", &message);
        }
    }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn version(version: u64) -> Set {
        let metadata = json!({"name": "demo", "uid": "u", "resourceVersion": version.to_string()});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    proptest! {
        #[test]
        fn a1_no_object_stops_a_list(
            odd in odd::anything(&["clusterID", "leaders", "conditions", "lastTransitionTime", "clusterStatuses"]),
        ) {
            odd::everywhere::<Set>(&odd).unwrap();
            odd::everywhere::<Claim>(&odd).unwrap();
        }
    }

    #[test]
    fn a_deleted_cluster_set_does_not_come_back_with_a_late_answer() {
        let mut sets = Objects::default();
        sets.change(Change::Reset(vec![version(1)]));
        // The status write was answered with version 2; its reconcile gets to read that after the watch told of the deletion.
        sets.change(Change::Remove(version(3)));
        sets.answered(version(2), sets.lists());
        assert!(sets.get("demo").is_none());
        let lists = sets.lists();
        sets.change(Change::Reset(vec![]));
        sets.answered(version(4), lists);
        assert!(sets.get("demo").is_none(), "the watch began again, and its list is empty");
        sets.change(Change::Apply(version(4)));
        sets.answered(version(5), sets.lists());
        assert_eq!(sets.get("demo").and_then(ResourceExt::resource_version).as_deref(), Some("5"));
    }
}
