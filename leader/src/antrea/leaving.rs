//! Members that run Antrea's controllers and leave: such a member deletes its announce, and trusts the leader to remove its
//! records. Watches announces; puts a finalizer on those of marked members, so that the deletion is not missed while we are down;
//! deletes the records of one that leaves, and takes the finalizer off when they are gone. Safe to run twice: the announce says how
//! far it is.
//!
//! A Common Area that is deleted before its members have left is kept by these finalizers and by those of their records: the
//! leader's Role goes first, so nobody can take them off but an administrator.

use std::time::Duration;

use api::{
    antrea::{Members, announce_finalizer},
    label,
    resource_export::ResourceExport,
    view::Named,
};
use kit::{
    drive::drive,
    index::Shared,
    list::Pages,
    objects::{Change, Objects},
    queue::{Outcome, Queue},
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, api::ListParams};
use presence::heartbeat::Announce;
use tokio_util::sync::CancellationToken;

use crate::feature::Access;

/// How soon the leader checks again whether the records of a member that leaves are gone.
const CHECK_AGAIN: Duration = Duration::from_secs(1);

/// What to do with an announce.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Keep it until we have heard that it is deleted.
    Hold,
    /// The member leaves: its records go, then the announce.
    RemoveMember,
    /// It need not wait for us.
    Release,
}

fn desired(announce: &Announce, antrea: &Members) -> Step {
    let Some(cluster) = announce.cluster() else { return Step::Nothing };
    let is_deleted = announce.meta().deletion_timestamp.is_some();
    let is_held = announce.finalizers().contains(&announce_finalizer(cluster));
    match (antrea.contains(cluster), is_deleted, is_held) {
        (true, false, false) => Step::Hold,
        (true, true, true) => Step::RemoveMember,
        // A member that is not marked withdraws its records itself.
        (false, _, true) => Step::Release,
        _ => Step::Nothing,
    }
}

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Leaving {
    access: Access,
    announces: Shared<Objects<Announce>>,
    queue: Queue<String>,
    writer: Writer,
}

impl Leaving {
    pub(crate) fn new(access: Access) -> Self {
        Self {
            announces: Shared::default(),
            queue: Queue::new(Duration::ZERO),
            writer: access.writer(),
            access,
        }
    }

    /// Takes in what the watch of announces told.
    pub(crate) fn change(&self, change: Change<Announce>) {
        let told = match &change {
            Change::Apply(announce) => std::slice::from_ref(announce),
            Change::Remove(_) => &[],
            Change::Reset(all) => all.as_slice(),
        };
        let names: Vec<_> = told.iter().map(ResourceExt::name_any).collect();
        self.announces.with(|announces| announces.change(change));
        self.queue.enqueue(names);
    }

    /// Runs the controller until `stop`.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let metrics = self.access.env.metrics.clone();
        drive("antrea", self.queue.clone(), metrics, stop.clone(), |name| self.clone().reconcile(name)).await;
    }

    async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(announce) = self.announces.with(|announces| announces.get(&name).cloned()) else {
            return Ok(Outcome::Done);
        };
        let cluster = announce.cluster().unwrap_or_default();
        let finalizer = announce_finalizer(cluster);
        match desired(&announce, &self.access.antrea) {
            Step::Nothing => {}
            Step::Hold => drop(self.writer.hold(&announce, &finalizer).await?),
            Step::Release => self.writer.release(&announce, &[&finalizer]).await?,
            Step::RemoveMember => {
                if !self.delete_records(cluster).await? {
                    return Ok(Outcome::Requeue(CHECK_AGAIN));
                }
                tracing::info!(cluster, "the member has left, and its records are deleted");
                self.writer.release(&announce, &[&finalizer]).await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Deletes the records of a member; whether none is left. As with one that the member deletes, imports are written before it
    /// goes.
    async fn delete_records(&self, cluster: &str) -> Result<bool, Error> {
        let of_member = ListParams::default().labels(&format!("{}={cluster}", label::SOURCE_CLUSTER_ID));
        let mut pages = Pages::of(self.access.api::<Named<ResourceExport>>(), of_member);
        let mut is_empty = true;
        while let Some(records) = pages.next().await? {
            for record in &records {
                is_empty = false;
                if record.metadata.deletion_timestamp.is_none() {
                    self.writer.delete(record, false).await?;
                }
            }
        }
        Ok(is_empty)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(marked: bool, is_deleted: bool, is_held: bool) -> Step {
        let golden = include_str!("../../../api/tests/golden/announce-antrea.json");
        let mut announce: serde_json::Value = serde_json::from_str(golden).unwrap();
        if is_deleted {
            announce["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
        }
        if is_held {
            let finalizer = "memberclusterannounce.finalizer.antrea.io/north-1";
            announce["metadata"]["finalizers"] = json!([finalizer]);
        }
        let members = if marked { Members::named("north-1") } else { Members::default() };
        desired(&serde_json::from_value(announce).unwrap(), &members)
    }

    #[test]
    fn an_announce_is_held_until_its_member_has_left() {
        assert_eq!(step(true, false, false), Step::Hold);
        assert_eq!(step(true, false, true), Step::Nothing);
        assert_eq!(step(true, true, true), Step::RemoveMember);
        assert_eq!(step(true, true, false), Step::Nothing, "too late, or another holds it");
        assert_eq!(step(false, false, false), Step::Nothing);
        assert_eq!(step(false, true, true), Step::Release);
        assert_eq!(step(false, false, true), Step::Release, "not marked any more");
    }
}
