//! Whether the daemons run.

use api::{
    label,
    lease::{LeaseView, replica_of},
    name,
};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};
use kube::ResourceExt;
use picture::age;

use super::{Verdict, belonging::accepts_writes};
use crate::{
    objects::SYSTEM,
    status::{
        found::{Found, Gap, Part, Why},
        report::ActiveReplica,
    },
    view::{ClusterSetView, Sign, live_holder, sign},
};

/// What a daemon's Deployment shows of the daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Away,
    /// There is a Pod of it, or its Deployment was not read.
    NotKnownToBeAway,
    /// It has no Deployment, so it runs elsewhere, if at all.
    Elsewhere,
}

impl Verdict<'_> {
    /// Reports what is wrong with the daemons. Returns whether freeport-member is known not to run: then its conditions are stale.
    pub(super) fn is_member_away(&mut self, found: &Found) -> bool {
        self.presence(found.leader.as_ref(), label::LEADER, self.leader_lives(found));
        let life = self.seen(found.life.as_ref());
        let alive = life.flatten().is_some_and(|lease| self.is_alive(lease));
        let presence = self.presence(found.member.as_ref(), label::MEMBER, alive);
        let place = format!("Lease {SYSTEM}/{}", label::MEMBER);
        match life {
            _ if presence == Presence::Away => return true,
            Some(None) if presence == Presence::Elsewhere => {
                self.problem(
                    place,
                    "freeport-member has never run for this cluster",
                    "start freeport-member for this cluster",
                );
            }
            Some(Some(lease)) => match sign(lease, self.now) {
                Sign::Alive => {
                    self.refused_to(&place, lease, label::MEMBER, found.sets.as_deref().unwrap_or_default())
                }
                Sign::Ahead(by) => self.ahead(&place, by),
                Sign::Silent => {
                    let what = format!("freeport-member does not renew its Lease: {}", self.silence(lease));
                    let next = "start freeport-member for this cluster; if it runs, its log says what keeps it from renewing the Lease";
                    self.problem(place, what, next);
                    return true;
                }
            },
            _ => {}
        }
        false
    }

    /// Reports what the Lease of a daemon says is refused, unless one of the ClusterSets reports it: the status of a ClusterSet may be what
    /// is refused.
    pub(super) fn refused_to(
        &mut self,
        place: &str,
        lease: &LeaseView,
        daemon: &str,
        sets: &[ClusterSetView],
    ) {
        let refused = lease.annotations().get(label::REFUSED).filter(|refused| !refused.is_empty());
        if let Some(refused) = refused.filter(|_| sets.iter().all(accepts_writes)) {
            let next = format!(
                "change the policy, webhook, quota or right that refuses it: {daemon} retries by itself within a minute"
            );
            self.problem(place, format!("{daemon} reports: {refused}"), next);
        }
    }

    /// The active replica of each daemon that has several. Where there is but one, nobody renews such a Lease.
    pub(super) fn active_replicas(&mut self, found: &Found) -> Vec<ActiveReplica> {
        let mut active = Vec::new();
        for (daemon, part) in &found.active {
            let lease = self.seen(part.as_ref()).flatten();
            let holder = lease.and_then(|lease| live_holder(lease, self.now));
            active.extend(holder.map(|holder| ActiveReplica {
                daemon: (*daemon).to_owned(),
                replica: replica_of(holder).to_owned(),
            }));
        }
        active
    }

    fn is_alive(&self, lease: &LeaseView) -> bool {
        matches!(sign(lease, self.now), Sign::Alive)
    }

    fn leader_lives(&self, found: &Found) -> bool {
        let areas = found.areas.as_ref().map(Vec::as_slice).unwrap_or_default();
        let leases = areas.iter().filter_map(|area| area.leases.as_ref().ok());
        leases.filter_map(|leases| leases.get(name::LEADER_LEASE)).any(|lease| self.is_alive(lease))
    }

    fn presence(
        &mut self,
        part: Option<&Part<Option<Deployment>>>,
        daemon: &str,
        is_alive: bool,
    ) -> Presence {
        let deployment = match self.seen(part) {
            None => return Presence::NotKnownToBeAway,
            Some(None) => return Presence::Elsewhere,
            Some(Some(deployment)) => deployment,
        };
        let status = deployment.status.as_ref();
        if status.and_then(|status| status.available_replicas).unwrap_or_default() > 0 {
            return Presence::NotKnownToBeAway;
        }
        let place = format!("Deployment {SYSTEM}/{daemon}");
        if is_alive {
            let what = format!(
                "has no available replica, though {daemon} lives: it has just ended, or runs outside of this cluster"
            );
            let next = format!(
                "kubectl -n {SYSTEM} scale deployment {daemon} --replicas 1; if it is to run outside: kubectl -n {SYSTEM} delete deployment \
                 {daemon}"
            );
            self.problem(place, what, next);
            return Presence::NotKnownToBeAway;
        }
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

    /// What was read, if it was asked for. If it may not be read, that is a note and no problem.
    pub(super) fn seen<'a, T>(&mut self, part: Option<&'a Part<Option<T>>>) -> Option<Option<&'a T>> {
        match part? {
            Err(Gap { part, why: Why::Forbidden(message) }) => {
                self.notes.push(format!("{part} was not checked: {message}"));
                None
            }
            part => self.part(part, "join").map(Option::as_ref),
        }
    }
}

fn is_unavailable(condition: &DeploymentCondition) -> bool {
    condition.type_.as_deref() == Some("Available") && condition.status.as_deref() == Some("False")
}
