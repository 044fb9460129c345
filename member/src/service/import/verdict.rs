//! The condition of an import, and what the API server refused of it: pure.

use api::{
    condition::{Condition, Status, Verdict},
    mcs::{NO_READY_ENDPOINTS, READY},
    name,
    words::first_names,
};
use kit::write::Error;
use rules::import::{in_place, unusable};

use super::plan::DesiredImport;

/// What of an import an API server refused: a quota, an admission policy, a field it does not take.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// Its Service: nobody reaches it, or it is not as it should be.
    Service,
    /// The ServiceImport itself.
    ServiceImport,
    /// Its new EndpointSlice of this name: those endpoints get no traffic.
    EndpointSlice(String),
    /// A change of its EndpointSlice of this name, or its deletion: it stays as it was.
    OldEndpointSlice(String),
    /// Its core Endpoints: data planes that read nothing else have no endpoints.
    Endpoints,
}

impl Refusal {
    fn new_slice(&self) -> Option<&str> {
        match self {
            Self::EndpointSlice(name) => Some(name),
            _ => None,
        }
    }

    fn old_slice(&self) -> Option<&str> {
        match self {
            Self::OldEndpointSlice(name) => Some(name),
            _ => None,
        }
    }
}

/// What did not work in one reconcile of an import. One step that fails does not keep the later ones from being done.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    refused: Vec<(Refusal, Error)>,
    /// What failed first for another reason, which may be over at the next attempt.
    failed: Option<Error>,
}

impl Refusals {
    /// What a write came to: a refusal is kept for the status.
    pub(super) fn note<T>(&mut self, what: Refusal, written: Result<T, Error>) -> Option<T> {
        match written {
            Ok(written) => return Some(written),
            Err(error) if error.refusal().is_some() || matches!(error, Error::NotOurs { .. }) => {
                self.refused.push((what, error));
            }
            Err(error) => drop(self.failed.get_or_insert(error)),
        }
        None
    }

    /// Together with what did not work at the same time.
    pub(super) fn extend(&mut self, other: Self) {
        self.refused.extend(other.refused);
        self.failed = self.failed.take().or(other.failed);
    }

    /// Whether all is known that there is to say of the import now.
    pub(super) fn are_all(&self) -> bool {
        self.failed.is_none()
    }

    fn min(&self) -> Option<&(Refusal, Error)> {
        self.refused.iter().min_by_key(|(refusal, _)| refusal)
    }

    /// The reason of the worst one, and a sentence on it.
    pub(super) fn worst(&self, import: &str) -> Option<(&'static str, String)> {
        let (worst, error) = self.min()?;
        let service = name::imported_service(import);
        let Some(why) = error.refusal() else {
            return Some(("NotOurs", format!("not all of import {import} is here: {error}")));
        };
        Some(match worst {
            Refusal::Service => {
                ("ServiceRefused", format!("the API server refuses Service {service}: {why}"))
            }
            Refusal::ServiceImport => {
                ("ServiceImportRefused", format!("the API server refuses ServiceImport {import}: {why}"))
            }
            Refusal::EndpointSlice(_) => {
                let names: Vec<_> =
                    self.refused.iter().filter_map(|(refusal, _)| refusal.new_slice()).collect();
                let message = format!(
                    "the API server refuses {} of Service {service}; endpoints in {} get no traffic: {why}",
                    slices(&names),
                    if names.len() == 1 { "it" } else { "them" }
                );
                ("EndpointSliceRefused", message)
            }
            Refusal::OldEndpointSlice(_) => {
                let names: Vec<_> =
                    self.refused.iter().filter_map(|(refusal, _)| refusal.old_slice()).collect();
                let message = format!(
                    "the API server refuses to change or delete {} of Service {service}; traffic goes to the endpoints that {} until then: \
                     {why}",
                    slices(&names),
                    if names.len() == 1 { "it has" } else { "they have" }
                );
                ("EndpointSliceRefused", message)
            }
            Refusal::Endpoints => {
                let message = format!(
                    "the API server refuses Endpoints {service}, so data planes that do not read EndpointSlices have no endpoints of \
                     it: {why}"
                );
                ("EndpointsRefused", message)
            }
        })
    }

    /// What there is to try again.
    pub(super) fn into_error(self) -> Option<Error> {
        let refused = self.refused.into_iter().min_by(|(one, _), (other, _)| one.cmp(other));
        self.failed.or(refused.map(|(_, error)| error))
    }
}

/// Names EndpointSlices: all of up to three.
fn slices(names: &[&str]) -> String {
    match names {
        [one] => format!("EndpointSlice {one}"),
        several => format!("EndpointSlices {}", first_names(several)),
    }
}

/// Whether the import works here.
pub(super) fn ready(import: &str, desired: &DesiredImport, refusals: &Refusals) -> Verdict {
    let unusable = unusable(import, desired.taken, &desired.families, &desired.merged);
    let refused = || {
        let (reason, message) = refusals.worst(import)?;
        Some(Verdict::new(READY, Status::False, reason, message))
    };
    unusable.or_else(refused).unwrap_or_else(|| in_place(&desired.merged, &desired.kept))
}

/// How a condition changes, if there is an Event in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// Something does not work, or for another reason.
    Worse,
    /// It works again. That it works from the beginning is no news.
    Better,
}

/// What `verdict` changes in the conditions of before.
pub(super) fn transition(have: &[Condition], verdict: &Verdict) -> Option<Transition> {
    let before = have.iter().find(|condition| condition.type_ == verdict.type_);
    let bad = if verdict.type_ == NO_READY_ENDPOINTS { Status::True } else { Status::False };
    let is_bad = verdict.status == bad;
    let same_status = before.is_some_and(|before| before.status == verdict.status.as_str());
    match before {
        Some(before) if same_status && (!is_bad || before.reason == verdict.reason) => None,
        None if !is_bad => None,
        _ => Some(if is_bad { Transition::Worse } else { Transition::Better }),
    }
}

#[cfg(test)]
mod tests {
    use api::condition::conditions;
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn the_worst_refusal_is_reported_and_the_rest_goes_on() {
        let mut refusals = Refusals::default();
        let refused = |why: &str| Err::<(), _>(Error::Refused(why.into()));
        let foreign = Error::NotOurs { kind: "EndpointSlice".into(), name: "a".into() };
        assert_eq!(refusals.note(Refusal::EndpointSlice("web-1".into()), Err::<(), _>(foreign)), None);
        assert_eq!(refusals.worst("web").unwrap().0, "NotOurs");
        refusals = Refusals::default();
        assert_eq!(refusals.note(Refusal::EndpointSlice("web-1".into()), refused("quota")), None);
        assert_eq!(refusals.note(Refusal::EndpointSlice("web-1".into()), Ok(())), Some(()));
        assert_eq!(refusals.worst("web").unwrap().0, "EndpointSliceRefused");
        assert_eq!(refusals.note(Refusal::OldEndpointSlice("web-2".into()), refused("policy")), None);
        let (_, message) = refusals.worst("web").unwrap();
        assert!(message.contains("web-1 of Service") && message.ends_with("no traffic: quota"), "{message}");
        assert_eq!(refusals.note(Refusal::Service, refused("exceeded quota")), None);
        let (reason, message) = refusals.worst("web").unwrap();
        assert_eq!(reason, "ServiceRefused");
        assert!(
            message.contains("Service antrea-mc-web") && message.ends_with(": exceeded quota"),
            "{message}"
        );
        assert!(refusals.are_all());
        assert!(matches!(refusals.into_error(), Some(Error::Refused(why)) if why == "exceeded quota"));
        let mut changed = Refusals::default();
        assert_eq!(changed.note(Refusal::OldEndpointSlice("web-2".into()), refused("policy")), None);
        let (reason, message) = changed.worst("web").unwrap();
        assert_eq!(reason, "EndpointSliceRefused");
        assert!(message.contains("the endpoints that it has until then: policy"), "it stays: {message}");
        let mut failed = Refusals::default();
        assert_eq!(failed.note(Refusal::EndpointSlice("web-1".into()), Err::<(), _>(Error::Stale)), None);
        assert_eq!(failed.note(Refusal::EndpointSlice("web-1".into()), refused("quota")), None);
        assert!(!failed.are_all() && matches!(failed.into_error(), Some(Error::Stale)), "to try again soon");
    }

    #[test]
    fn an_event_reports_what_changes() {
        let verdict = |status, reason: &str| Verdict::new(READY, status, reason, "");
        let conditions_of = |verdict: &Verdict| {
            conditions(std::slice::from_ref(verdict), &[], None, &Time(Timestamp::UNIX_EPOCH))
        };
        let (good, taken) = (verdict(Status::True, "Ready"), verdict(Status::False, "ServiceNameTaken"));
        let refused = verdict(Status::False, "ServiceRefused");
        assert_eq!(transition(&[], &good), None);
        assert_eq!(transition(&conditions_of(&good), &good), None);
        assert_eq!(transition(&[], &taken), Some(Transition::Worse));
        assert_eq!(transition(&conditions_of(&good), &taken), Some(Transition::Worse));
        assert_eq!(transition(&conditions_of(&taken), &taken), None);
        assert_eq!(transition(&conditions_of(&taken), &refused), Some(Transition::Worse));
        assert_eq!(transition(&conditions_of(&taken), &good), Some(Transition::Better));
    }
}
