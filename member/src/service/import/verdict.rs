//! The condition of an import, and what the API server refused of it: pure.

use api::{
    condition::{Condition, Status, Verdict},
    family,
    mcs::READY,
    name,
};
use kit::write::Error;

use super::plan::DesiredImport;

/// What of an import an API server refused: a quota, an admission policy, a field it does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// Its Service: nobody reaches it, or it is not as it should be.
    Service,
    /// The ServiceImport itself.
    ServiceImport,
    /// Some of its EndpointSlices: their endpoints get no traffic.
    EndpointSlice,
}

/// All that was refused in one reconcile of an import.
#[derive(Debug, Default)]
pub(super) struct Refusals(Vec<(Refusal, String)>);

impl Refusals {
    /// What a write came to: a refusal is kept for the status, and what else can be done is done.
    pub(super) fn note<T>(&mut self, what: Refusal, written: Result<T, Error>) -> Result<Option<T>, Error> {
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
    pub(super) fn worst(&self, import: &str) -> Option<(&'static str, String)> {
        let (worst, why) = self.0.iter().min_by_key(|(refusal, _)| refusal)?;
        let service = name::imported_service(import);
        Some(match worst {
            Refusal::Service => {
                ("ServiceRefused", format!("the API server refuses Service {service}: {why}"))
            }
            Refusal::ServiceImport => {
                ("ServiceImportRefused", format!("the API server refuses ServiceImport {import}: {why}"))
            }
            Refusal::EndpointSlice => {
                let count = self.0.iter().filter(|(refusal, _)| refusal == worst).count();
                let message = format!(
                    "the API server refuses {count} EndpointSlices of Service {service}, so their endpoints get no traffic: {why}"
                );
                ("EndpointSliceRefused", message)
            }
        })
    }

    /// What there is to try again.
    pub(super) fn into_error(self) -> Option<Error> {
        self.0.into_iter().min_by_key(|(refusal, _)| *refusal).map(|(_, why)| Error::Refused(why))
    }
}

/// Whether the import works here.
pub(super) fn ready(import: &str, desired: &DesiredImport, refusals: &Refusals) -> Verdict {
    if desired.taken {
        let service = name::imported_service(import);
        let message =
            format!("Service {service} exists and was not created by Freeport; Freeport does not change it");
        return Verdict::new(READY, Status::False, "ServiceNameTaken", message);
    }
    if desired.families.is_empty() {
        let exported = family::said(&desired.merged.ip_families).join(" and ");
        let message = format!(
            "this Service has {exported} in the whole set, and this cluster does not have that. If an exporter has another family \
             that is not used, condition Conflict of its ServiceExport says so"
        );
        return Verdict::new(READY, Status::False, "IPFamilyNotSupported", message);
    }
    if let Some((reason, message)) = refusals.worst(import) {
        return Verdict::new(READY, Status::False, reason, message);
    }
    let mut message = "the imported Service is in place".to_owned();
    if !desired.is_headless() && desired.merged.internal_traffic_policy.as_deref() == Some("Local") {
        message += "; its internalTrafficPolicy is Local: a client reaches only endpoints on its own node, so none of other \
                    clusters";
    }
    if !desired.kept.is_empty() {
        let kept = desired.kept.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        message += &format!(
            "; the records of {kept} vanished from the Common Area although {kept} did not withdraw them. Their endpoints and \
             ports are kept until {kept} confirms that the records are gone or writes them again"
        );
    }
    Verdict::new(READY, Status::True, "Ready", message)
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
    fn the_worst_refusal_is_reported_and_the_rest_goes_on() {
        let mut refusals = Refusals::default();
        let refused = |why: &str| Err::<(), _>(Error::Refused(why.into()));
        assert!(matches!(refusals.note(Refusal::EndpointSlice, refused("quota")), Ok(None)));
        assert!(matches!(refusals.note(Refusal::EndpointSlice, Ok(())), Ok(Some(()))));
        assert!(matches!(refusals.note(Refusal::Service, Err::<(), _>(Error::Gone)), Err(Error::Gone)));
        assert_eq!(refusals.worst("web").unwrap().0, "EndpointSliceRefused");
        assert!(matches!(refusals.note(Refusal::Service, refused("exceeded quota")), Ok(None)));
        let (reason, message) = refusals.worst("web").unwrap();
        assert_eq!(reason, "ServiceRefused");
        assert!(
            message.contains("Service antrea-mc-web") && message.ends_with(": exceeded quota"),
            "{message}"
        );
        assert!(matches!(refusals.into_error(), Some(Error::Refused(why)) if why == "exceeded quota"));
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
