//! Leaving: reads our records, our Lease and our announce in the Common Area, and here everything imported; withdraws the
//! records as an export that ended is withdrawn, deletes Lease and announce, deletes what was imported, and at last the note.
//! Safe to run twice: each step looks at what is left, and while the note is there leaving goes on, whatever ends us meanwhile.
//!
//! Nothing is deleted that we did not make: records, Lease and announce only while our Lease says that the ID is ours, imports
//! only by our label, all by uid.

mod withdraw;

use api::{condition::Verdict, label, mcs::ServiceImport, membership::Membership};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kit::{
    backoff,
    boot::Env,
    failure::{Failure, classify},
    write::{Error, Writer},
};
use kube::{
    Api, Client, Resource,
    api::{ListParams, PartialObjectMeta},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::JoinSet;

use self::withdraw::withdraw;
use super::{
    note::{Note, Order},
    target::{self, Target},
};
use crate::service::view::Export;

/// Requests at the same time.
const CONCURRENCY: usize = 16;

/// What is to be left.
#[derive(Clone, PartialEq)]
pub(super) struct Work {
    pub noted: Option<Membership>,
    pub order: Order,
    /// Where the leader is, as long as there is a credential for it.
    pub target: Option<Target>,
}

/// Leaves; ends when nothing but the note is left of the membership.
pub(super) async fn leave(env: Env, note: Note, work: Work) {
    let leaving = Leaving { here: writer(&env, env.client.clone(), "local"), env, note };
    leaving.tell(true, "Leaving", "withdrawing exports, then removing imports");
    match (&work.target, work.order) {
        (Some(target), Order::Withdraw) => leaving.withdraw_until_done(target).await,
        (None, _) | (_, Order::Force) => {
            let (set, cluster) =
                work.noted.as_ref().map_or(("NAME", "ID"), |noted| (&noted.cluster_set, &noted.cluster_id));
            let message = format!(
                "the leader is not asked{}: what it holds of this cluster remains there until the leader's administrator \
                 runs: freeport leave --force --clusterset {set} --cluster-id {cluster} --leader-context LEADER",
                if work.order == Order::Force { "" } else { ", for there is no credential for it any more" }
            );
            leaving.tell(false, "LeaveIncomplete", &message);
        }
    }
    let mut failures = 0;
    while let Err(error) = leaving.remove_traces().await {
        failures += 1;
        tracing::warn!(%error, "not all imports could be removed, trying again");
        tokio::time::sleep(backoff::LEADER.wait(failures)).await;
    }
    leaving.tell(true, "Left", "this cluster has left the set; nothing imported remains");
}

struct Leaving {
    env: Env,
    note: Note,
    here: Writer,
}

impl Leaving {
    /// Withdraws, however long that takes. When it cannot be done at once the imports are removed meanwhile.
    async fn withdraw_until_done(&self, target: &Target) {
        let (mut failures, mut removed) = (0, false);
        loop {
            let done = match target::client(target) {
                Ok(client) => {
                    withdraw(&self.env, target, &client).await.map_err(|failure| failure.to_string())
                }
                Err(Verdict { message, .. }) => Err(message),
            };
            let Err(error) = done else { return };
            failures += 1;
            let message = format!(
                "the exports of this cluster cannot be withdrawn at {}, trying again: {error}. If the leader is gone for good: \
                 freeport leave --force",
                target.server
            );
            if failures == 1 {
                self.tell(false, "LeaveIncomplete", &message);
            } else {
                tracing::warn!("{message}");
            }
            if !removed {
                let done = self.remove_imports().await;
                removed = done.is_ok();
                if let Err(error) = done {
                    tracing::warn!(%error, "not all imports could be removed, trying again later");
                }
            }
            tokio::time::sleep(backoff::LEADER.wait(failures)).await;
        }
    }

    /// Removes everything imported, and what we said about exports that are none any more.
    async fn remove_traces(&self) -> Result<(), Error> {
        self.remove_imports().await?;
        let exports = Api::<Export>::all(self.env.client.clone()).list(&ListParams::default()).await;
        let exports = match exports {
            Ok(list) => list.items,
            Err(error) if classify(&error) == Failure::KindMissing => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let told =
            |export: &Export| export.status.0.as_ref().is_ok_and(|status| !status.conditions.is_empty());
        let take_back = |export: Export| {
            let writer = self.here.clone();
            async move {
                // An empty list, and not nothing: the API server would take that for a status of null.
                match writer.put_status(&export, &json!({"conditions": []})).await {
                    Ok(_) | Err(Error::Gone) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        };
        all(exports.into_iter().filter(told).map(take_back)).await
    }

    /// Removes everything imported: our label is on it, and no user puts that there.
    async fn remove_imports(&self) -> Result<(), Error> {
        let ours = format!("{}={}", label::MANAGED_BY, label::FREEPORT);
        // The installer's objects have that label too.
        let imported = format!("{ours},{}", label::MCS_SERVICE_NAME);
        self.remove::<ServiceImport>(&ours).await?;
        self.remove::<EndpointSlice>(&imported).await?;
        self.remove::<Service>(&imported).await
    }

    async fn remove<K>(&self, selector: &str) -> Result<(), Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let listed = Api::<PartialObjectMeta<K>>::all(self.env.client.clone())
            .list(&ListParams::default().labels(selector))
            .await;
        let objects = match listed {
            Ok(list) => list.items,
            // With its CRD all objects of the kind are gone.
            Err(error) if classify(&error) == Failure::KindMissing => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let delete = |object: PartialObjectMeta<K>| {
            let writer = self.here.clone();
            async move { writer.delete(&object, false).await }
        };
        all(objects.into_iter().map(delete)).await
    }

    /// Tells the log, and whoever looks at the note.
    fn tell(&self, well: bool, reason: &str, message: &str) {
        let note = self.note.object_ref(&());
        if well {
            tracing::info!(reason, "{message}");
            self.env.events.tell(note, "Leave", reason, message);
        } else {
            tracing::warn!(reason, "{message}");
            self.env.events.warn(note, "Leave", reason, message);
        }
    }
}

fn writer(env: &Env, client: Client, cluster: &'static str) -> Writer {
    Writer::new(client, label::MEMBER, cluster, env.metrics.clone())
}

/// Carries all out, some at a time. The first error is told, but does not keep the others from being tried.
async fn all<F>(requests: impl Iterator<Item = F>) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let (mut running, mut result) = (JoinSet::new(), Ok(()));
    let mut note = |ended| match ended {
        Ok(Err(error)) if result.is_ok() => result = Err(error),
        Ok(_) => {}
        Err(error) => kit::drive::resume(error),
    };
    for request in requests {
        if running.len() == CONCURRENCY
            && let Some(ended) = running.join_next().await
        {
            note(ended);
        }
        running.spawn(request);
    }
    while let Some(ended) = running.join_next().await {
        note(ended);
    }
    result
}
