//! What was said of APIServiceNamespaces whose CRD keeps no conditions, as that of kube-bind does not: pure. Otherwise each pass would say
//! it again.

use std::collections::BTreeMap;

use api::bind::condition::{Answer, Condition};

use super::ASSIGNED;
use crate::bind::key::Key;

/// By APIServiceNamespace: its uid, and what was said.
#[derive(Default)]
pub(super) struct Pruned(BTreeMap<Key, (Option<String>, Answer)>);

impl Pruned {
    /// Whether this was said and thrown away.
    pub(super) fn has(&self, key: &Key, uid: Option<&str>, answer: &Answer) -> bool {
        self.0.get(key).is_some_and(|(of, said)| of.as_deref() == uid && said == answer)
    }

    /// This was said; `kept` is what the API server has of it.
    pub(super) fn said(&mut self, key: &Key, uid: Option<String>, answer: Answer, kept: &[Condition]) {
        match kept.iter().any(|condition| condition.type_ == ASSIGNED) {
            true => self.forget(key),
            false => drop(self.0.insert(key.clone(), (uid, answer))),
        }
    }

    /// It is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use api::bind::condition::{Severity, Verdict, conditions};
    use jiff::Timestamp;

    use super::{super::assigned::tests::key, *};

    #[test]
    fn what_an_api_server_throws_away_is_said_once() {
        let no = || Answer::No(Severity::Error, "NotOurs", "Namespace team1 is there already".into());
        let (mut pruned, uid) = (Pruned::default(), || Some("u".to_owned()));
        assert!(!pruned.has(&key(), Some("u"), &no()));
        pruned.said(&key(), uid(), no(), &[]);
        assert!(pruned.has(&key(), Some("u"), &no()));
        assert!(!pruned.has(&key(), Some("u"), &Answer::Yes), "something else");
        assert!(!pruned.has(&key(), Some("v"), &no()), "another one of that name");
        let kept = conditions(&[], &[Verdict::new(ASSIGNED, no())], &[], Timestamp::UNIX_EPOCH);
        pruned.said(&key(), uid(), no(), &kept);
        assert!(!pruned.has(&key(), Some("u"), &no()), "its status has it");
    }
}
