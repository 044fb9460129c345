//! What the member's side says: its ClusterSet, and the note of a membership that outlives it while the cluster leaves.

use api::{cluster_set::READY, membership};

use super::{TRUE, Verdict, line, said};
use crate::{
    objects::SYSTEM,
    status::{
        found::{Noted, Set},
        report::{Belonging, Said},
    },
};

impl Verdict<'_> {
    /// The sets the cluster belongs to, the one it has not left yet among them. What is `stale` was said by a daemon that is
    /// away.
    pub(super) fn belongings(&mut self, sets: &[Set], noted: Option<&Noted>, stale: bool) -> Vec<Belonging> {
        let mut all: Vec<Belonging> = sets.iter().map(|set| self.belonging(set, noted, stale)).collect();
        if let Some(noted) = noted {
            let has_set = sets.iter().any(|set| set.name == noted.cluster_set);
            self.departure(noted, has_set);
            if !has_set {
                all.push(Belonging {
                    cluster_set: noted.cluster_set.clone(),
                    cluster_id: noted.cluster_id.clone(),
                    leader: noted.server.clone(),
                    leaving: noted.leaving,
                    ready: None,
                    stale,
                });
            }
        }
        all
    }

    fn belonging(&mut self, set: &Set, noted: Option<&Noted>, stale: bool) -> Belonging {
        let place = format!("ClusterSet {SYSTEM}/{}", set.name);
        let ready = set.conditions.iter().find(|c| c.type_.as_deref() == Some(READY)).map(said);
        match &ready {
            None => self.problem(
                &place,
                "has no Ready condition: freeport-member has not looked at it yet",
                "start freeport-member in this cluster, or read its log",
            ),
            Some(ready) if ready.status != TRUE => self.problem(&place, line(ready), mend(set, ready)),
            Some(_) if !set.is_of_now => self.problem(
                &place,
                "was changed, and freeport-member has not looked at it since",
                "wait a moment; else start freeport-member in this cluster, or read its log",
            ),
            Some(_) => {}
        }
        Belonging {
            cluster_set: set.name.clone(),
            cluster_id: set.cluster_id.clone(),
            leader: set.server.clone(),
            leaving: noted.is_some_and(|noted| noted.leaving && noted.cluster_set == set.name),
            ready,
            stale,
        }
    }

    /// A membership that has not ended although somebody wants it to, or took its ClusterSet away.
    fn departure(&mut self, noted: &Noted, has_set: bool) {
        let set = &noted.cluster_set;
        let place = format!("ConfigMap {SYSTEM}/{}", membership::NAME);
        if noted.leaving {
            self.problem(
                place,
                format!("this cluster is leaving ClusterSet {set}, and freeport-member has not finished"),
                "wait for freeport-member or read its log; `freeport leave` goes on waiting, `freeport leave --force` does \
                 without the leader",
            );
        } else if !has_set {
            self.problem(
                place,
                format!("ClusterSet {SYSTEM}/{set} is gone, and this cluster has not left that set"),
                "to leave, `freeport leave`; to stay, `freeport join` under the same ID",
            );
        }
    }
}

/// What to do about a set that is not Ready.
fn mend(set: &Set, ready: &Said) -> String {
    match ready.reason.as_str() {
        "AnotherClusterSet" => format!(
            "a cluster belongs to one set: kubectl -n {SYSTEM} delete clusterset {name}; or leave all, with `freeport leave`, \
             and join the right one",
            name = set.name
        ),
        "Left" => "`freeport leave`, which deletes this ClusterSet as well; to join again, `freeport join` after that".to_owned(),
        "DuplicateClusterID" => {
            "leave with `freeport leave`, and join again under another --cluster-id".to_owned()
        }
        _ => format!(
            "read freeport-member's log; does {} answer this cluster?",
            set.server.as_deref().unwrap_or("the leader's API server")
        ),
    }
}
