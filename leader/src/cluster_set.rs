//! What the ClusterSets of a Common Area say: watches ClusterSets; writes their `status`, an Event when a member goes or comes back,
//! and a gauge; deletes nothing. Safe to run twice: the status is written only when it says something else, and what is not known
//! yet after a restart stands as it was.
//!
//! No timer: whatever changes is noticed when a Lease is renewed, our own at the least (see [`presence::leases`]).

mod status;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    cluster_set::{ClusterSet, ClusterSetStatus},
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
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::status::{FEATURE_UNAVAILABLE, SCHEMA_PRUNED, State, desired, message_of, turned};
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
    status: Lenient<ClusterSetStatus>,
}

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(crate) struct ClusterSets {
    access: Access,
    features: Arc<Features>,
    /// By themselves: a ClusterSet that cannot be watched does not stop a feature.
    watches: Watches,
    sets: Shared<Objects<Set>>,
    queue: Queue<String>,
    writer: Writer,
}

impl ClusterSets {
    pub(crate) fn new(access: Access, features: Arc<Features>) -> Self {
        Self {
            features,
            watches: Watches::default(),
            sets: Shared::default(),
            queue: Queue::new(PACE),
            writer: access.writer(),
            access,
        }
    }

    /// Begins the watch.
    pub(crate) fn watch(&self, tasks: &mut JoinSet<()>) {
        let this = self.clone();
        self.access.watch(&self.watches, "ClusterSet", tasks, move |change| {
            this.sets.with(|sets| sets.change(change));
            this.enqueue_all();
        });
    }

    /// Something changed that all ClusterSets speak of.
    pub(crate) fn enqueue_all(&self) {
        let names: Vec<_> = self.sets.with(|sets| sets.iter().map(ResourceExt::name_any).collect());
        self.queue.enqueue(names);
    }

    /// Runs the controller until `stop`.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let metrics = self.access.env.metrics.clone();
        drive("cluster_set", self.queue.clone(), metrics, stop.clone(), |name| self.clone().reconcile(name))
            .await;
    }

    /// Brings the status of one ClusterSet up to date.
    async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(set) = self.sets.with(|sets| sets.get(&name).cloned()) else {
            return Ok(Outcome::Done);
        };
        let state = State {
            members: self.access.leases.with(|leases| leases.members()),
            unavailable: self.features.unavailable(Instant::now()),
            pruned: self.features.pruned(),
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
            Ok(answer) => self.sets.with(|sets| sets.answered(answer)),
        }
        for (cluster, is_there) in turned(&had, &want) {
            self.report_member(&set, cluster, is_there);
        }
        for reason in [FEATURE_UNAVAILABLE, SCHEMA_PRUNED] {
            if let (None, Some(message)) = (message_of(&had, reason), message_of(&want, reason)) {
                self.access.env.events.warn(set.object_ref(&()), "Report", reason, message);
            }
        }
        Ok(Outcome::Done)
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
    use serde_json::json;

    use super::*;

    fn version(version: u64) -> Set {
        let metadata = json!({"name": "demo", "uid": "u", "resourceVersion": version.to_string()});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
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
}
