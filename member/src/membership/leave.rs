//! Leaves a ClusterSet: has every feature withdraw what it wrote at the leader, deletes announce and Lease there, then has every
//! feature remove what it imported and clear the status that it wrote in this cluster, and deletes our ClusterProperties. Notes for
//! `freeport leave` what API servers refuse meanwhile. Safe to run twice: each step looks at what is left, and as long as the note exists
//! leaving goes on after a restart.
//!
//! Announce and Lease are deleted, and records withdrawn, only while our Lease shows that the cluster ID is ours.

mod about;
mod withdraw;

use std::time::{Duration, Instant};

use api::{
    label,
    membership::{Membership, Wire},
    name,
};
use kit::{
    backoff,
    boot::Env,
    metrics::Request,
    write::{Error, Writer},
};
use kube::Resource;
use serde_json::json;

use self::withdraw::withdraw;
use super::{
    note::{Note, Order},
    verdict,
};
use crate::{bind, feature::Features, home::Home, identity::Target};

/// Time between two looks at what API servers refuse.
const NOTED: Duration = Duration::from_secs(2);

/// What is to be left.
#[derive(Clone, PartialEq)]
pub(super) struct Work {
    pub(super) noted: Option<Membership>,
    pub(super) order: Order,
    /// The leader, as long as there is a credential for it.
    pub(super) target: Option<Target>,
}

/// Leaves; ends when nothing but the note is left of the membership.
pub(super) async fn leave(env: Env, features: Features, home: Home, note: Note, work: Work) {
    let id = work.noted.as_ref().map(|noted| noted.cluster_id.clone());
    let leaving = Leaving { env, features, home, note, id };
    // What was refused before was for something else.
    leaving.env.metrics.refusals().forget_those(&leaving.env.metrics.area(), is_of_set);
    leaving.tell("Leaving", "withdrawing exports, then removing imports");
    tokio::select! {
        () = leaving.carry_out(&work) => {}
        () = leaving.note_refused() => {}
    }
    leaving.tell("Left", "this cluster has left the ClusterSet; all imports are removed");
}

/// Why records of this cluster stay at the leader, and how to delete them.
fn incomplete(work: &Work) -> String {
    let why = match work.order {
        Order::Force => "as ordered, this member does not contact the leader",
        Order::Withdraw => {
            "this member has no credential for the leader any more, so it cannot withdraw its exports"
        }
    };
    let noted = work.noted.as_ref();
    let remedy = match noted {
        Some(noted) => remedy(noted.wire, &noted.cluster_set, &noted.cluster_id, &noted.common_area),
        None => remedy(Wire::Freeport, "NAME", "ID", ""),
    };
    format!(
        "{why}. The leader keeps the records of this cluster until the leader's administrator runs: {remedy}"
    )
}

/// Why the records under our cluster ID stay at the leader: cluster `holder` uses it, and how to delete them.
fn anothers(holder: &str, target: &Target) -> String {
    let (id, area) = (&target.us.cluster, &target.us.common_area);
    let remedy = remedy(target.wire.unwrap_or_default(), &target.cluster_set, id, area);
    format!(
        "the records of cluster ID {id} in Namespace {area} of the leader's cluster stay: another running cluster uses that ID \
         ({holder} begins with the uid of its Namespace kube-system). Once that cluster is gone, the leader's administrator deletes them with: {remedy}"
    )
}

/// Returns the command by which the leader's administrator removes a member.
fn remedy(wire: Wire, set: &str, id: &str, area: &str) -> String {
    match wire {
        Wire::Freeport => {
            format!("freeport leave --force --clusterset {set} --cluster-id {id} --leader-context LEADER")
        }
        // Antrea's leader deletes the records of a member whose announce goes.
        Wire::Antrea => {
            let announce = name::announce(id);
            format!("kubectl delete memberclusterannounce {announce} --namespace {area} --context LEADER")
        }
    }
}

/// Whether the request may be one of leaving. API binding goes on, whatever becomes of the ClusterSet.
fn is_of_set(request: &Request) -> bool {
    request.part != bind::PART
}

struct Leaving {
    env: Env,
    features: Features,
    home: Home,
    note: Note,
    /// Our ID, if it is noted.
    id: Option<String>,
}

impl Leaving {
    async fn carry_out(&self, work: &Work) {
        match (&work.target, work.order) {
            (Some(target), Order::Withdraw) => self.withdraw_until_done(target).await,
            (None, _) | (_, Order::Force) => self.warn("LeaveIncomplete", &incomplete(work)),
        }
        let mut failures = 0;
        while let Err(error) = self.clean_up().await {
            failures += 1;
            tracing::warn!(%error, "cannot remove all imports, trying again");
            tokio::time::sleep(backoff::LEADER.wait(failures)).await;
        }
    }

    /// Withdraws, however long that takes. If it fails at first, imports are removed meanwhile.
    async fn withdraw_until_done(&self, target: &Target) {
        let (mut failures, mut removed) = (0, false);
        loop {
            let done = match target.client(&self.env.dial) {
                Ok(client) => {
                    let client = self.env.hold.guard(client);
                    let withdrawn = withdraw(&self.env, &self.features, &self.home, target, client).await;
                    withdrawn.map_err(|failure| failure.to_string())
                }
                Err(error) => Err(verdict::no_client(&error, target).message),
            };
            let error = match done {
                Ok(None) => return,
                Ok(Some(holder)) => return self.warn("LeaveIncomplete", &anothers(&holder, target)),
                Err(error) => error,
            };
            failures += 1;
            let message = format!(
                "cannot withdraw the exports of this cluster from {}: {error}. This member tries again. If the leader will not \
                 return, run freeport leave --force",
                target.server
            );
            if failures == 1 {
                self.warn("LeaveIncomplete", &message);
            } else {
                tracing::warn!("{message}");
            }
            if !removed {
                let done = self.remove_imports().await;
                removed = done.is_ok();
                if let Err(error) = done {
                    tracing::warn!(%error, "cannot remove all imports, trying again later");
                }
            }
            tokio::time::sleep(backoff::LEADER.wait(failures)).await;
        }
    }

    /// Removes all imports, then the status of exports, and last what says that this cluster is a member.
    async fn clean_up(&self) -> Result<(), Error> {
        self.remove_imports().await?;
        for feature in self.features.iter() {
            feature.clear_status(&self.env).await?;
        }
        about::remove(&self.env).await
    }

    async fn remove_imports(&self) -> Result<(), Error> {
        let mut removed = Ok(());
        // A feature that fails does not stop the others.
        for feature in self.features.iter() {
            removed = removed.and(feature.remove_imports(&self.env, self.id.as_deref()).await);
        }
        removed
    }

    /// Notes what API servers refuse, and when they refuse nothing any more; never ends.
    async fn note_refused(&self) {
        let (refusals, area) = (self.env.metrics.refusals(), self.env.metrics.area());
        let writer = Writer::new(self.env.client.clone(), label::MEMBER, "local", self.env.metrics.clone());
        // One that was noted before a restart is not known.
        let mut noted = None;
        loop {
            tokio::time::sleep(NOTED).await;
            refusals.prune(Instant::now());
            let message = refusals.message_of(|request| request.area == area && is_of_set(request));
            if noted.as_ref() == Some(&message) {
                continue;
            }
            let patch = json!({"metadata": {"annotations": {label::REFUSED: message}}});
            match writer.merge(&self.note, None, patch).await {
                Ok(_) => noted = Some(message),
                Err(error) => tracing::debug!(%error, "what is refused could not be noted"),
            }
        }
    }

    fn tell(&self, reason: &str, message: &str) {
        tracing::info!(reason, "{message}");
        self.env.events.tell(self.note.object_ref(&()), "Leave", reason, message);
    }

    fn warn(&self, reason: &str, message: &str) {
        tracing::warn!(reason, "{message}");
        self.env.events.warn(self.note.object_ref(&()), "Leave", reason, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        feature::fixture::{access, features},
        membership::fixture::noted,
    };

    fn leaving(features: Features) -> Leaving {
        let access = access();
        let note = Note::of("freeport-system", &noted());
        Leaving { env: access.env, features, home: access.home, note, id: None }
    }

    #[tokio::test]
    async fn leaving_waits_until_every_feature_has_removed_its_imports() {
        let nothing = leaving([].into());
        assert!(nothing.remove_imports().await.is_ok());
        let error = leaving(features()).clean_up().await.unwrap_err();
        assert!(matches!(error, Error::Unreachable(_)), "the API server does not answer: {error}");
    }

    #[test]
    fn what_stays_at_the_leader_can_be_deleted_there() {
        let work = |order| Work { noted: Some(noted()), order, target: None };
        for order in [Order::Force, Order::Withdraw] {
            let message = incomplete(&work(order));
            assert!(message.contains("--clusterset demo --cluster-id east"), "{message}");
        }
        assert!(incomplete(&work(Order::Force)).starts_with("as ordered"));
        let theirs = Membership { wire: Wire::Antrea, ..noted() };
        let work = Work { noted: Some(theirs), order: Order::Force, target: None };
        let message = incomplete(&work);
        assert!(
            message.contains("kubectl delete memberclusterannounce member-announce-from-east"),
            "{message}"
        );
    }
}
