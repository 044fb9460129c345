//! What is said of an import, and what the API server would not take of it: pure.

use api::{
    condition::{Condition, Status, Verdict},
    family,
    mcs::READY,
    name,
};
use kit::write::Error;

use super::plan::Realise;

/// What of an import an API server refused: a quota, an admission policy, a field it does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Its Service: nobody reaches it, or it is not as it should be.
    Service,
    /// The ServiceImport itself.
    ServiceImport,
    /// Some of its EndpointSlices: their endpoints get no traffic.
    EndpointSlice,
}

/// All that was refused in one look at an import.
#[derive(Debug, Default)]
pub struct Refusals(Vec<(Refusal, String)>);

impl Refusals {
    /// What a write came to: a refusal is kept to be told, and what else can be done is done.
    pub fn note<T>(&mut self, what: Refusal, written: Result<T, Error>) -> Result<Option<T>, Error> {
        match written {
            Ok(written) => Ok(Some(written)),
            Err(Error::Refused(why)) => {
                self.0.push((what, why));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The reason of the worst one, and a sentence on it.
    pub fn said(&self, import: &str) -> Option<(&'static str, String)> {
        let (worst, why) = self.0.iter().min_by_key(|(refusal, _)| refusal)?;
        let service = name::imported_service(import);
        Some(match worst {
            Refusal::Service => (
                "ServiceRefused",
                format!("the API server does not take Service {service} as it should be: {why}"),
            ),
            Refusal::ServiceImport => (
                "ServiceImportRefused",
                format!("the API server does not take ServiceImport {import} as it should be: {why}"),
            ),
            Refusal::EndpointSlice => {
                let count = self.0.iter().filter(|(refusal, _)| refusal == worst).count();
                let message = format!(
                    "the API server does not take {count} EndpointSlices of Service {service}, whose endpoints get no traffic: {why}"
                );
                ("EndpointSliceRefused", message)
            }
        })
    }

    /// What there is to try again.
    pub fn into_error(self) -> Option<Error> {
        self.0.into_iter().min_by_key(|(refusal, _)| *refusal).map(|(_, why)| Error::Refused(why))
    }
}

/// Whether the import works here.
pub fn ready(import: &str, realise: &Realise, refusals: &Refusals) -> Verdict {
    if realise.taken {
        let service = name::imported_service(import);
        let message = format!("a Service {service} is there that Freeport did not make; it is left alone");
        return Verdict::new(READY, Status::False, "ServiceNameTaken", message);
    }
    if realise.families.is_empty() {
        let exported = family::said(&realise.merged.ip_families).join(" and ");
        let message = format!(
            "the families that this Service has in the whole set are {exported}, which this cluster does not have; exporters whose \
             others do not count say so in condition Conflict of their ServiceExports"
        );
        return Verdict::new(READY, Status::False, "IPFamilyNotSupported", message);
    }
    if let Some((reason, message)) = refusals.said(import) {
        return Verdict::new(READY, Status::False, reason, message);
    }
    let mut message = "the imported Service is in place".to_owned();
    if !realise.is_headless() && realise.merged.internal_traffic_policy.as_deref() == Some("Local") {
        message += "; its internalTrafficPolicy is Local, so that a client reaches only endpoints on its own node and \
                    none of other clusters";
    }
    if !realise.kept.is_empty() {
        let kept = realise.kept.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        message += &format!(
            "; the records of {kept} vanished from the leader without a word, and its part is kept until {kept} is heard of"
        );
    }
    Verdict::new(READY, Status::True, "Ready", message)
}

/// How a condition changes, if there is an Event in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Something does not work, or for another reason.
    Worse,
    /// It works again. That it works from the beginning is no news.
    Better,
}

/// What `verdict` changes in what was said before.
pub fn transition(have: &[Condition], verdict: &Verdict) -> Option<Transition> {
    let before = have.iter().find(|condition| condition.type_ == verdict.type_);
    let is_bad = verdict.status == Status::False;
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
    fn the_worst_refusal_is_told_and_the_rest_goes_on() {
        let mut refusals = Refusals::default();
        let refused = |why: &str| Err::<(), _>(Error::Refused(why.into()));
        assert!(matches!(refusals.note(Refusal::EndpointSlice, refused("quota")), Ok(None)));
        assert!(matches!(refusals.note(Refusal::EndpointSlice, Ok(())), Ok(Some(()))));
        assert!(matches!(refusals.note(Refusal::Service, Err::<(), _>(Error::Gone)), Err(Error::Gone)));
        assert_eq!(refusals.said("web").unwrap().0, "EndpointSliceRefused");
        assert!(matches!(refusals.note(Refusal::Service, refused("exceeded quota")), Ok(None)));
        let (reason, message) = refusals.said("web").unwrap();
        assert_eq!(reason, "ServiceRefused");
        assert!(
            message.contains("Service antrea-mc-web") && message.ends_with(": exceeded quota"),
            "{message}"
        );
        assert!(matches!(refusals.into_error(), Some(Error::Refused(why)) if why == "exceeded quota"));
    }

    #[test]
    fn an_event_tells_of_what_changes() {
        let verdict = |status, reason: &str| Verdict::new(READY, status, reason, "");
        let said = |verdict: &Verdict| {
            conditions(std::slice::from_ref(verdict), &[], None, &Time(Timestamp::UNIX_EPOCH))
        };
        let (good, taken) = (verdict(Status::True, "Ready"), verdict(Status::False, "ServiceNameTaken"));
        let refused = verdict(Status::False, "ServiceRefused");
        assert_eq!(transition(&[], &good), None);
        assert_eq!(transition(&said(&good), &good), None);
        assert_eq!(transition(&[], &taken), Some(Transition::Worse));
        assert_eq!(transition(&said(&good), &taken), Some(Transition::Worse));
        assert_eq!(transition(&said(&taken), &taken), None);
        assert_eq!(transition(&said(&taken), &refused), Some(Transition::Worse));
        assert_eq!(transition(&said(&taken), &good), Some(Transition::Better));
    }
}
