//! The daemons' Deployments: whether anybody is there to act on what the rest of the report is about.

use api::label;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};

use super::Verdict;
use crate::{
    objects::{SYSTEM, area},
    status::{
        age,
        found::{Found, Gap, Part, Why},
    },
};

/// What a daemon's Deployment tells of the daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Away,
    /// There is a Pod of it, or its Deployment was not read.
    NotKnownToBeAway,
    /// It has no Deployment, so it runs elsewhere, if at all.
    Elsewhere,
}

impl Verdict<'_> {
    /// Says what is wrong with the daemons' Deployments. Whether freeport-member is known to be away: then what it wrote last
    /// is what once was.
    pub(super) fn is_member_away(&mut self, found: &Found) -> bool {
        // Whether it lives elsewhere, its Lease says.
        self.presence(found.leader.as_ref(), label::LEADER);
        let member = self.presence(found.member.as_ref(), label::MEMBER);
        if member == Presence::Elsewhere && !has_its_lease(found) {
            self.notes.push(format!(
                "there is no Deployment {SYSTEM}/{}: a daemon that runs outside of this cluster was not looked at",
                label::MEMBER
            ));
        }
        member == Presence::Away
    }

    fn presence(&mut self, part: Option<&Part<Option<Deployment>>>, daemon: &str) -> Presence {
        let deployment = match part {
            None => return Presence::NotKnownToBeAway,
            Some(Err(Gap { part, why: Why::Forbidden(message) })) => {
                self.notes.push(format!("{part} was not looked at: {message}"));
                return Presence::NotKnownToBeAway;
            }
            Some(part) => match self.part(part, "init") {
                None => return Presence::NotKnownToBeAway,
                Some(None) => return Presence::Elsewhere,
                Some(Some(deployment)) => deployment,
            },
        };
        let status = deployment.status.as_ref();
        if status.and_then(|status| status.available_replicas).unwrap_or_default() > 0 {
            return Presence::NotKnownToBeAway;
        }
        let place = format!("Deployment {SYSTEM}/{daemon}");
        if deployment.spec.replicas == Some(0) {
            let next = format!("kubectl -n {SYSTEM} scale deployment {daemon} --replicas=1");
            self.problem(place, "is scaled to 0: the daemon does not run", next);
            return Presence::Away;
        }
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let unavailable = conditions.into_iter().flatten().find(|condition| is_unavailable(condition));
        let since = unavailable
            .and_then(|condition| condition.last_transition_time.as_ref())
            .map_or_else(String::new, |at| format!(" for {}", age::text(self.now.duration_since(at.0))));
        self.problem(
            place,
            format!("has no available replica{since}: the daemon does not run"),
            format!(
                "kubectl -n {SYSTEM} describe pods -l app.kubernetes.io/name={daemon}; its log: kubectl -n {SYSTEM} logs \
                 deploy/{daemon}"
            ),
        );
        Presence::Away
    }
}

fn is_unavailable(condition: &DeploymentCondition) -> bool {
    condition.type_.as_deref() == Some("Available") && condition.status.as_deref() == Some("False")
}

/// Whether this cluster leads the set it belongs to: then its member's Lease is here, and has been looked at.
fn has_its_lease(found: &Found) -> bool {
    let areas = found.areas.as_ref().map(Vec::as_slice).unwrap_or_default();
    let sets = found.sets.as_ref().map(Vec::as_slice).unwrap_or_default();
    sets.iter().any(|set| areas.iter().any(|held| held.namespace == area::name(&set.name)))
}
