//! What an answer to a heartbeat, or the lack of one, means: pure.

use kit::{failure::Failure, write::Error};

/// What is known of a contract by its heartbeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// How the last one went, if there was one.
    pub(crate) beat: Option<Beat>,
    /// Why our own API server does not take the credential that the provider has renewed.
    pub(crate) refused: Option<String>,
}

impl Health {
    /// What was refused is so until it is taken.
    pub(super) fn mirrored(&mut self, mirrored: &Result<(), Error>) {
        match mirrored {
            Ok(()) => self.refused = None,
            Err(error) => self.refused = error.refusal().or(self.refused.take()),
        }
    }
}

/// How the last heartbeat went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// The provider has it.
    Arrived,
    /// It did not arrive, and why.
    Failed(String),
    /// The provider does not answer.
    Unanswered,
    /// The provider has ended the contract (B15).
    Evicted,
}

/// Whether such an answer of the provider's says that it has ended the contract. An API server that starts refuses for a moment what it allows
/// afterwards, and one that is not there says nothing of contracts, like a proxy in its place.
pub(crate) fn ends_contract(failure: &Failure, was_refused: bool) -> bool {
    match failure {
        Failure::NamespaceMissing => true,
        Failure::Unauthorized | Failure::Forbidden(_) => was_refused,
        _ => false,
    }
}

/// What a heartbeat that did not arrive means.
pub(super) fn after(before: Option<&Beat>, has_ended: Result<bool, Failure>, why: &str) -> Beat {
    let is_told_again = matches!(before, Some(Beat::Failed(_) | Beat::Evicted));
    match has_ended {
        Ok(true) => Beat::Evicted,
        Err(failure) if ends_contract(&failure, is_told_again) => Beat::Evicted,
        Err(Failure::Unreachable(_)) => Beat::Unanswered,
        Ok(false) => Beat::Failed(why.to_owned()),
        Err(failure) => Beat::Failed(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_credential_that_is_refused_here_is_said_until_it_is_taken() {
        let mut health = Health::default();
        let mut after = |mirrored| {
            health.mirrored(&mirrored);
            health.refused.clone()
        };
        let refused = || Some("denied by policy".to_owned());
        assert_eq!(after(Err(Error::Stale)), None);
        assert_eq!(after(Err(Error::Refused("denied by policy".into()))), refused());
        assert_eq!(after(Err(Error::Stale)), refused());
        assert_eq!(after(Ok(())), None);
    }

    #[test]
    fn b15_a_contract_has_ended_when_its_namespace_goes_or_its_credential_is_refused_twice() {
        let failed = |before: Option<Beat>, has_ended| after(before.as_ref(), has_ended, "denied");
        let refused = || Beat::Failed("the token is refused (401)".to_owned());
        assert_eq!(failed(Some(Beat::Arrived), Ok(true)), Beat::Evicted);
        assert_eq!(failed(None, Err(Failure::NamespaceMissing)), Beat::Evicted);
        assert_eq!(failed(Some(Beat::Arrived), Err(Failure::Unauthorized)), refused());
        assert_eq!(failed(Some(refused()), Err(Failure::Unauthorized)), Beat::Evicted);
        assert_eq!(failed(Some(refused()), Err(Failure::Unreachable("away"))), Beat::Unanswered);
        assert_eq!(failed(Some(Beat::Unanswered), Err(Failure::Unauthorized)), refused());
        assert_eq!(failed(Some(Beat::Evicted), Ok(false)), Beat::Failed("denied".to_owned()));
        let missing = failed(Some(refused()), Err(Failure::KindMissing));
        assert!(matches!(missing, Beat::Failed(_)), "nobody's word");
    }
}
