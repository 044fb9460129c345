//! What to do next about one object: pure. A pass does one step after the other until there is nothing more to do.

use api::bind::{
    label::{FINALIZER, PROVIDER_NAMESPACE, PROVIDER_UID},
    mapping::{Mapping, NoPlace, Place, Strategy},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kit::{
    custom::Unkept,
    failure::Failure,
    write::{holds, taken_over},
};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::{
    copy::{Whose, copy, is_left, is_offered, whose},
    entry::{Here, Pair, There},
};

use crate::bind::{
    absence::Gaps,
    contract::{ClusterNamespace, MANAGER},
};

/// Go's konnector creates copies with an update, under the name of its program (C1).
const FORMER_MANAGERS: &[&str] = &["konnector", MANAGER];

/// What holds for all objects of one API of one contract.
pub(crate) struct Rules<'a> {
    pub(crate) strategy: Strategy,
    pub(crate) cluster_namespace: &'a ClusterNamespace,
    pub(crate) binding_uid: &'a str,
    /// Nothing new goes up: the provider takes the API back.
    pub(crate) is_ending: bool,
    /// Copies stay when their objects go.
    pub(crate) orphan: bool,
    /// The provider has not served the API for some time.
    pub(crate) is_unserved: bool,
    /// Times of which the absence of an object tells nothing.
    pub(crate) gaps: Gaps,
    /// Why the provider gives no Namespace for that of the object, in its words.
    pub(crate) not_assigned: Option<&'a str>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Nothing, as long as nothing changes.
    Rest,
    /// An APIServiceNamespace for this Namespace.
    Assign(String),
    /// The finalizer onto the object.
    Hold,
    /// These managedFields onto the copy: what Go's konnector wrote is ours.
    TakeOver(Vec<ManagedFieldsEntry>),
    /// The copy, at this place.
    Apply(Place, Value),
    /// The status onto the object, or off it.
    Status(Option<Value>),
    /// These annotations onto the object.
    Annotate(Map<String, Value>),
    /// The copy goes.
    Delete,
    /// The finalizer off the object.
    Release,
    /// The same, though nobody can say what became of the copy.
    LetGo,
    /// It cannot be done.
    Fail(Problem),
}

/// Why an object is not in step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("its name would have {0} characters at the provider, where 253 are allowed")]
    NameTooLong(usize),
    #[error("the object at its place at the provider belongs to consumer {0}")]
    OwnedByAnother(String),
    #[error(
        "there is an object at its place at the provider that no consumer made; annotation multicluster.freeport.dev/adopt=true there \
         would let it be taken over"
    )]
    NotOurs,
    #[error("the provider gives no Namespace for that of the object: {0}")]
    NotAssigned(String),
    #[error(
        "this cluster was restored from a backup that may lack the object: its copy stays at the provider until the object is made again, \
         or somebody there deletes the copy"
    )]
    LostByRestore,
    #[error(transparent)]
    Unkept(#[from] Unkept),
    #[error("the copy cannot be seen at the provider: {0}")]
    Unwatched(Failure),
    #[error("it cannot be served for some time: {0}")]
    Unavailable(Failure),
    #[error("{0}")]
    Refused(String),
}

impl Problem {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NameTooLong(_) => "NameTooLong",
            Self::OwnedByAnother(_) => "OwnedByAnother",
            Self::NotOurs => "NotOurs",
            Self::NotAssigned(_) => "NotAssigned",
            Self::LostByRestore => "LostByRestore",
            Self::Unkept(Unkept::Undecodable(_)) => "Undecodable",
            Self::Unkept(Unkept::TooLarge(_)) => "TooLarge",
            Self::Unwatched(Failure::KindMissing) => "NotServed",
            Self::Unwatched(_) => "NotWatched",
            Self::Unavailable(_) => "ProviderUnavailable",
            Self::Refused(_) => "Refused",
        }
    }
}

/// The next step for the object at `place`. `assigned` is the provider's Namespace for that of the object.
pub(crate) fn next(place: &Place, pair: &Pair, rules: &Rules<'_>, assigned: Option<&str>) -> Step {
    let cns = rules.cluster_namespace.name.as_str();
    let there = pair.there.as_deref();
    let there = there.filter(|_| !rules.orphan || !pair.is_going());
    let Some(here) = pair.here.as_deref() else {
        return if rules.orphan { Step::Rest } else { orphan(pair, there, rules) };
    };
    let is_held = here.finalizers().iter().any(|held| held == FINALIZER);
    let is_going = pair.is_going();
    if is_going && !is_held {
        return there.filter(|copy| is_copy_of(copy, here, cns)).map_or(Step::Rest, delete);
    }
    if is_going && rules.is_unserved {
        return Step::LetGo;
    }
    let mapping = Mapping { strategy: rules.strategy, cluster_namespace: cns };
    let target = match mapping.there(place, |_| assigned) {
        Ok(target) => target,
        // Nothing goes up any more, and where there is no Namespace for it there is no copy.
        Err(NoPlace::Pending) if rules.is_ending => {
            return if is_going { Step::Release } else { Step::Rest };
        }
        Err(NoPlace::Pending) => {
            return match rules.not_assigned {
                Some(_) if is_going => Step::Release,
                Some(words) => Step::Fail(Problem::NotAssigned(words.to_owned())),
                None => Step::Assign(place.namespace.clone().unwrap_or_default()),
            };
        }
        Err(NoPlace::NameTooLong(_)) if is_going => return Step::Release,
        Err(NoPlace::NameTooLong(length)) => return Step::Fail(Problem::NameTooLong(length)),
        Err(NoPlace::WrongScope) => return Step::Rest,
    };
    let theirs = there.map(|there| whose(there, Some(here), cns));
    let is_ours = theirs == Some(Whose::Ours);
    if is_going {
        let is_left = |there: &There| is_left(there, Some(here), rules.binding_uid);
        let ours = there.filter(|there| is_ours && !is_offered(there) && !is_left(there));
        return ours.map_or(Step::Release, |there| match delete(there) {
            // Its operator may take some time, and says in the status what it waits for.
            Step::Rest if here.error.is_none() && there.error.is_none() => down(pair, there),
            step => step,
        });
    }
    match theirs {
        Some(Whose::Anothers(name)) => return Step::Fail(Problem::OwnedByAnother(name)),
        Some(Whose::Nobodys) => return Step::Fail(Problem::NotOurs),
        Some(Whose::Ours | Whose::Offered) | None => {}
    }
    if let Some(error) = here.error.as_ref().or(there.and_then(|there| there.error.as_ref())) {
        return Step::Fail(Problem::Unkept(error.clone()));
    }
    // What is only offered is nobody's copy as long as nothing goes up.
    if !is_ours && rules.is_ending {
        return Step::Rest;
    }
    if !is_held {
        return Step::Hold;
    }
    if let Some(there) = there.filter(|there| there.metadata.deletion_timestamp.is_some()) {
        return if is_ours { down(pair, there) } else { Step::Rest };
    }
    let updated = there.filter(|_| is_ours && !rules.is_ending);
    if let Some(fields) = updated.and_then(|there| taken_over(there, MANAGER, FORMER_MANAGERS)) {
        return Step::TakeOver(fields);
    }
    let want = copy(here, there, rules.strategy, (rules.cluster_namespace, rules.binding_uid));
    match there {
        None => Step::Apply(target, want),
        Some(there) if !rules.is_ending && !is_applied(pair, there, &want) => Step::Apply(target, want),
        Some(there) => down(pair, there),
    }
}

/// A copy without its object, of which nobody saw that it went.
fn orphan(pair: &Pair, there: Option<&There>, rules: &Rules<'_>) -> Step {
    let is_ours = |there: &&There| whose(there, None, &rules.cluster_namespace.name) == Whose::Ours;
    let is_to_go = |there: &&There| {
        is_of_somebody(there) && !is_offered(there) && !is_left(there, None, rules.binding_uid)
    };
    let ours = there.filter(is_ours).filter(is_to_go);
    match ours.map(|there| (delete(there), there)) {
        Some((Step::Delete, there)) if !pair.was_here && !rules.gaps.are_over(&there.metadata) => {
            Step::Fail(Problem::LostByRestore)
        }
        Some((step, _)) => step,
        None => Step::Rest,
    }
}

fn is_of_somebody(there: &There) -> bool {
    there.annotations().get(api::bind::label::CONSUMER_UID).is_some_and(|uid| !uid.is_empty())
}

/// Whether it was made for this object of ours.
pub(super) fn is_copy_of(there: &There, here: &Here, cns: &str) -> bool {
    let says = there.annotations().get(api::bind::label::CONSUMER_UID);
    let is_ours = whose(there, None, cns) == Whose::Ours && !is_offered(there);
    is_ours && says.is_some() && says == here.uid().as_ref()
}

/// One that is going already is waited for.
fn delete(there: &There) -> Step {
    if there.metadata.deletion_timestamp.is_some() { Step::Rest } else { Step::Delete }
}

fn is_applied(pair: &Pair, there: &There, want: &Value) -> bool {
    let as_it_became =
        pair.applied.as_ref().is_some_and(|(sent, became)| sent == want && *became == Pair::essence(there));
    as_it_became || holds(there, &there.content, want, MANAGER)
}

/// What comes back from the provider.
fn down(pair: &Pair, there: &There) -> Step {
    let Some(here) = &pair.here else { return Step::Rest };
    let (want, have) = (there.content.get("status"), here.content.get("status"));
    let is_said =
        pair.said.as_ref().is_some_and(|(sent, became)| sent.as_ref() == want && became.as_ref() == have);
    if want != have && !is_said {
        return Step::Status(want.cloned());
    }
    let says = [
        (PROVIDER_NAMESPACE, there.namespace().unwrap_or_default()),
        (PROVIDER_UID, there.uid().unwrap_or_default()),
    ];
    let differs = |(key, value): &(&str, String)| here.annotations().get(*key) != Some(value);
    let missing: Map<_, _> =
        says.into_iter().filter(differs).map(|(key, value)| (key.to_owned(), json!(value))).collect();
    if missing.is_empty() { Step::Rest } else { Step::Annotate(missing) }
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
