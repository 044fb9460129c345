//! What the daemon's Namespace says about belonging, and what there is to say about it: pure.

use std::collections::BTreeMap;

use api::view::{Lenient, lean};
use api::{
    cluster_claim::{self, ClusterClaim},
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus},
    condition::Verdict,
    membership::{self, Membership},
    name,
};
use kit::objects::Change;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use super::{
    absence::Absence,
    note::{Note, Order},
    status,
    target::{Credential, Target},
    verdict::no,
};

/// A ClusterSet of the daemon's Namespace.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterSet)]
pub(super) struct Set {
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    #[serde(default = "nothing")]
    pub spec: Lenient<ClusterSetSpec>,
    #[serde(default)]
    pub status: Lenient<ClusterSetStatus>,
}

fn nothing() -> Lenient<ClusterSetSpec> {
    Lenient(Err("it has no spec".into()))
}

/// A ClusterClaim of the daemon's Namespace.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterClaim)]
pub(super) struct Claim {
    #[serde(deserialize_with = "lean")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    value: String,
}

/// What the daemon's Namespace says about belonging.
#[derive(Default)]
pub(super) struct Desk {
    pub sets: BTreeMap<String, Set>,
    pub secrets: BTreeMap<String, Credential>,
    pub claims: BTreeMap<String, Claim>,
    /// What we noted, by the name of the ConfigMap: one, or none.
    pub notes: BTreeMap<String, Note>,
    /// The latest versions that watches told of, be it those of deletions.
    sets_told: u64,
    notes_told: u64,
    /// What is to be noted: we are present at a leader, and the note is perhaps not written yet.
    pub begun: Option<Membership>,
    /// What was found out about the absence of the noted ClusterSet.
    pub absence: Option<Absence>,
}

/// Takes in what a watch told. What it tells late, of before the answer to a write of ours, is no news.
pub(super) fn fold<P: Resource>(map: &mut BTreeMap<String, P>, change: Change<P>) {
    let is_old =
        |object: &P| map.get(&object.name_any()).is_some_and(|known| version(known) > version(object));
    match change {
        Change::Apply(object) | Change::Remove(object) if is_old(&object) => {}
        Change::Apply(object) => drop(map.insert(object.name_any(), object)),
        Change::Remove(object) => drop(map.remove(&object.name_any())),
        Change::Reset(objects) => {
            *map = objects.into_iter().map(|object| (object.name_any(), object)).collect()
        }
    }
}

fn newest<P: Resource>(change: &Change<P>) -> u64 {
    match change {
        Change::Apply(object) | Change::Remove(object) => version(object),
        Change::Reset(objects) => objects.iter().map(version).max().unwrap_or(0),
    }
}

fn version<P: Resource>(object: &P) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// What has to be done about belonging.
#[derive(Clone, PartialEq)]
pub(super) enum Course {
    /// There is no ClusterSet, and nothing to leave: what was imported stays.
    Nothing,
    /// Something is wrong with this ClusterSet: what was imported stays.
    Stuck { set: String, verdict: Verdict },
    /// Exchange Services with this leader.
    Link { target: Target, note: Membership },
    /// The noted ClusterSet is gone: it is to be found out whether somebody decided that.
    Missing(Membership),
    /// Leave what was noted, as far as that can be read.
    Leave { noted: Option<Membership>, order: Order },
}

impl Desk {
    /// Takes in what a watch told of ClusterSets.
    pub fn told_of_sets(&mut self, change: Change<Set>) {
        self.sets_told = self.sets_told.max(newest(&change));
        fold(&mut self.sets, change);
    }

    /// Takes in what the watch told of the note.
    pub fn told_of_note(&mut self, change: Change<Note>) {
        self.notes_told = self.notes_told.max(newest(&change));
        fold(&mut self.notes, change);
    }

    /// Takes in the API server's answer to a write of ours, unless the watch has told of what came after that already: it tells
    /// nothing twice, so an old answer, to what may be deleted since, would stay for ever.
    pub fn answered_set(&mut self, set: Set) {
        if version(&set) > self.sets_told {
            fold(&mut self.sets, Change::Apply(set));
        }
    }

    /// As [`answered_set`](Self::answered_set), of the note.
    pub fn answered_note(&mut self, note: Note) {
        if version(&note) > self.notes_told {
            fold(&mut self.notes, Change::Apply(note));
        }
    }

    /// Before the note nothing has begun: if the ClusterSet goes first, there is nothing to leave.
    pub fn forget_unnoted(&mut self) {
        if self.note().is_none() && self.chosen().is_none() {
            self.begun = None;
        }
    }

    /// What we noted.
    pub fn note(&self) -> Option<&Note> {
        self.notes.get(membership::NAME)
    }

    /// The membership that has begun, whether it has been noted yet or not.
    pub fn noted(&self) -> Option<Membership> {
        self.note().and_then(Note::membership).or_else(|| self.begun.clone())
    }

    /// What has to be done.
    pub fn course(&self) -> Course {
        let noted = self.noted();
        if let Some(order) = self.note().and_then(Note::order) {
            return Course::Leave { noted, order };
        }
        match (self.chosen(), noted) {
            (Some(set), noted) => match self.joining(set, noted.as_ref()) {
                Ok((target, note)) => Course::Link { target, note },
                Err(verdict) => Course::Stuck { set: set.name_any(), verdict },
            },
            (None, None) => Course::Nothing,
            (None, Some(noted)) => match (&self.absence, self.noted_target(&noted)) {
                (Some(Absence::Vanished(_)), Some(target)) => Course::Link { target, note: noted },
                (Some(Absence::Vanished(_)), None) => Course::Nothing,
                (Some(Absence::Decided), _) => Course::Leave { noted: Some(noted), order: Order::Withdraw },
                (None, _) => Course::Missing(noted),
            },
        }
    }

    /// The ClusterSet we belong to: the noted one, and else the oldest that we have not left, since a member belongs to one.
    pub fn chosen(&self) -> Option<&Set> {
        let live = |set: &&Set| set.metadata.deletion_timestamp.is_none();
        match self.noted() {
            Some(noted) => self.sets.get(&noted.cluster_set).filter(live),
            None => {
                let age =
                    |set: &&Set| (set.metadata.creation_timestamp.as_ref().map(|t| t.0), set.name_any());
                self.sets.values().filter(|set| live(set) && !status::has_left(set)).min_by_key(age)
            }
        }
    }

    /// Where `set` leads, and what is to be noted of it; or what keeps it from leading anywhere.
    fn joining(&self, set: &Set, noted: Option<&Membership>) -> Result<(Target, Membership), Verdict> {
        let invalid = |message: String| no("InvalidSpec", message);
        let spec = set.spec.0.as_ref().map_err(|error| invalid(format!("spec does not decode: {error}")))?;
        let leader = spec.leaders.first().ok_or_else(|| invalid("spec.leaders is empty".into()))?;
        let missing = |field: &str| invalid(format!("spec.{field} is missing"));
        let note = Membership {
            cluster_set: set.name_any(),
            created: created(set),
            cluster_id: self.cluster_id(set, &spec.cluster_id, noted)?,
            common_area: spec.namespace.clone().ok_or_else(|| missing("namespace"))?,
            server: leader.server.clone().ok_or_else(|| missing("leaders[0].server"))?,
            secret: leader.secret.clone().ok_or_else(|| missing("leaders[0].secret"))?,
            wire: noted.map(|noted| noted.wire).unwrap_or_default(),
        };
        if let Some(noted) = noted.filter(|noted| !is_same(noted, &note)) {
            return Err(identity_changed(noted));
        }
        let credential =
            self.credential(&note).ok_or_else(|| no("SecretMissing", missing_secret(&note.secret)))?;
        let mut target = Target::noted(&note, credential);
        target.leader.clone_from(&leader.cluster_id);
        target.wire = noted.map(|noted| noted.wire);
        Ok((target, note))
    }

    /// Our ID: the ClusterSet says it, and where it does not, a ClusterClaim.
    fn cluster_id(&self, set: &Set, said: &str, noted: Option<&Membership>) -> Result<String, Verdict> {
        let invalid = |message: String| no("InvalidSpec", message);
        let checked = |id: &str, place: &str| match name::check_cluster_id(id) {
            Ok(()) => Ok(id.to_owned()),
            Err(error) => Err(invalid(format!("{place}: {error}"))),
        };
        if !said.is_empty() {
            return checked(said, "spec.clusterID");
        }
        // A claim that vanished takes nobody's word back: who we are cannot change anyway.
        if let (None, Some(noted)) = (self.claims.get(cluster_claim::ID), noted) {
            return Ok(noted.cluster_id.clone());
        }
        let claim = self.claims.get(cluster_claim::ID).ok_or_else(|| {
            let id = cluster_claim::ID;
            invalid(format!("this cluster has no ID: neither spec.clusterID nor ClusterClaim {id} of this Namespace says one"))
        })?;
        if let Some(of) = self.claims.get(cluster_claim::CLUSTER_SET).filter(|of| of.value != set.name_any())
        {
            let message = format!(
                "spec.clusterID is empty, and ClusterClaim {} says that this cluster belongs to ClusterSet {:?}",
                cluster_claim::CLUSTER_SET,
                of.value
            );
            return Err(invalid(message));
        }
        checked(&claim.value, &format!("spec.clusterID is empty, and ClusterClaim {}", cluster_claim::ID))
    }

    /// Where a noted membership leads, as long as its Secret is there.
    pub fn noted_target(&self, noted: &Membership) -> Option<Target> {
        self.credential(noted).map(|credential| Target::noted(noted, credential))
    }

    /// The very ClusterSet that was noted, if it is still there.
    pub fn set_of(&self, noted: &Membership) -> Option<&Set> {
        let set = self.sets.get(&noted.cluster_set)?;
        (set.metadata.deletion_timestamp.is_none() && created(set) == noted.created).then_some(set)
    }

    fn credential(&self, note: &Membership) -> Option<&Credential> {
        self.secrets.get(&note.secret)
    }
}

/// When the ClusterSet was created, as the API server writes it.
fn created(set: &Set) -> String {
    set.metadata.creation_timestamp.as_ref().map(|at| at.0.to_string()).unwrap_or_default()
}

/// Whether the ClusterSet leaves it to a ClusterClaim to say who we are.
pub(super) fn needs_claim(set: &Set) -> bool {
    set.spec.0.as_ref().is_ok_and(|spec| spec.cluster_id.is_empty())
}

/// Whether two notes are of one membership: the way to the leader may change, who we are in which set may not.
fn is_same(one: &Membership, other: &Membership) -> bool {
    let identity =
        |note: &Membership| (note.cluster_set.clone(), note.cluster_id.clone(), note.common_area.clone());
    identity(one) == identity(other)
}

fn identity_changed(noted: &Membership) -> Verdict {
    let Membership { cluster_set, cluster_id, common_area, .. } = noted;
    let message = format!(
        "this cluster takes part in ClusterSet {cluster_set} as {cluster_id}, with Common Area {common_area}. That cannot be \
         changed in place: leave with `freeport leave`, then join again. Imports stay as they are"
    );
    no("IdentityChanged", message)
}

fn missing_secret(secret: &str) -> String {
    format!(
        "there is no Secret {secret} in this Namespace: create it with keys ca.crt and token, or join again (freeport join)"
    )
}

#[cfg(test)]
pub(super) mod tests;
