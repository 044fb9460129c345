//! Members that run Antrea's controllers and leave: such a member deletes its announce, and trusts the leader to remove its
//! records. Watches announces; puts a finalizer on those of marked members, lest the word is missed while we are down; deletes
//! the records of one that leaves, and takes the finalizer off when they are gone. Safe to run twice: the announce says how far
//! it is.
//!
//! A Common Area that is deleted before its members have left is kept by these finalizers and by those of their records: the
//! leader's Role goes first, so nobody can take them off but an administrator.

use std::time::Duration;

use api::{
    antrea::{Members, announce_finalizer},
    label,
    resource_export::ResourceExport,
};
use kit::{
    index::Shared,
    objects::{Change, Objects},
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PartialObjectMeta},
};
use presence::heartbeat::Announce;

/// How soon is looked again whether the records of a member that leaves are gone.
const LOOK: Duration = Duration::from_secs(1);

/// Names of the announces that a watch told of.
pub fn heard(change: &Change<Announce>) -> Vec<String> {
    let heard = match change {
        Change::Apply(announce) => std::slice::from_ref(announce),
        Change::Remove(_) => &[],
        Change::Reset(all) => all.as_slice(),
    };
    heard.iter().map(ResourceExt::name_any).collect()
}

/// What a look at one announce comes to.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Keep it until we have heard that it is deleted.
    Hold,
    /// The member leaves: its records go, then the announce.
    TakeLeave,
    /// It need not wait for us.
    LetGo,
}

fn desired(announce: &Announce, antrea: &Members) -> Step {
    let Some(cluster) = announce.cluster() else { return Step::Nothing };
    let is_going = announce.meta().deletion_timestamp.is_some();
    let is_held = announce.finalizers().contains(&announce_finalizer(cluster));
    match (antrea.contains(cluster), is_going, is_held) {
        (true, false, false) => Step::Hold,
        (true, true, true) => Step::TakeLeave,
        // Records of a member that is not marked are withdrawn by itself.
        (false, _, true) => Step::LetGo,
        _ => Step::Nothing,
    }
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Leaving {
    /// The announces.
    pub announces: Shared<Objects<Announce>>,
    /// Writes to the Common Area.
    pub writer: Writer,
    /// Reads from it.
    pub client: Client,
    /// Its name.
    pub common_area: String,
    /// The members that write as Antrea does.
    pub antrea: Members,
}

impl Leaving {
    /// Looks at one announce.
    pub async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(announce) = self.announces.with(|announces| announces.get(&name).cloned()) else {
            return Ok(Outcome::Done);
        };
        let cluster = announce.cluster().unwrap_or_default();
        let finalizer = announce_finalizer(cluster);
        match desired(&announce, &self.antrea) {
            Step::Nothing => {}
            Step::Hold => self.writer.hold(&announce, &finalizer).await?,
            Step::LetGo => self.writer.release(&announce, &[&finalizer]).await?,
            Step::TakeLeave => {
                if !self.delete_records(cluster).await? {
                    return Ok(Outcome::Requeue(LOOK));
                }
                tracing::info!(cluster, "it has left, and its records are gone");
                self.writer.release(&announce, &[&finalizer]).await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Deletes the records of a member; whether none is left. As of one that the member deletes, imports are written before it
    /// goes.
    async fn delete_records(&self, cluster: &str) -> Result<bool, Error> {
        let records =
            Api::<PartialObjectMeta<ResourceExport>>::namespaced(self.client.clone(), &self.common_area);
        let its = ListParams::default().labels(&format!("{}={cluster}", label::SOURCE_CLUSTER_ID));
        let there = records.list(&its).await?.items;
        for record in there.iter().filter(|record| record.metadata.deletion_timestamp.is_none()) {
            self.writer.delete(record, false).await?;
        }
        Ok(there.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(marked: bool, is_going: bool, is_held: bool) -> Step {
        let golden = include_str!("../../../../api/tests/golden/announce-antrea.json");
        let mut announce: serde_json::Value = serde_json::from_str(golden).unwrap();
        if is_going {
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
        assert_eq!(step(true, true, true), Step::TakeLeave);
        assert_eq!(step(true, true, false), Step::Nothing, "too late, or another holds it");
        assert_eq!(step(false, false, false), Step::Nothing);
        assert_eq!(step(false, true, true), Step::LetGo);
        assert_eq!(step(false, false, true), Step::LetGo, "marked no more");
    }
}
