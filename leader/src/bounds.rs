//! Which addresses the endpoints of members may have: as it is noted on their ServiceAccounts in the Common Area, which no member may
//! write.

use std::sync::Arc;

use api::{
    label,
    ranges::{Bounds, Ranges},
};
use kit::objects::Objects;
use kube::ResourceExt;
use tokio::sync::watch;

use crate::account::Account;

/// What is noted, once that is known. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted(watch::Sender<Option<Note>>);

/// What the accounts say.
#[derive(Clone, Debug, Default, PartialEq)]
struct Note {
    bounds: Arc<Bounds>,
    /// What is wrong with it.
    problem: Option<String>,
}

impl Noted {
    /// Takes in what the accounts say; whether members have other ranges than before.
    pub(crate) fn take_in(&self, accounts: &Objects<Account>) -> bool {
        let now = note(accounts);
        let before = self.0.send_replace(Some(now.clone())).unwrap_or_default();
        if let Some(problem) = now.problem.as_ref().filter(|_| now.problem != before.problem) {
            tracing::warn!(problem, "ranges of addresses that are noted do not count");
        }
        before.bounds != now.bounds
    }

    /// Waits until it is known.
    pub(crate) async fn known(&self) {
        drop(self.0.subscribe().wait_for(Option::is_some).await);
    }

    /// The ranges of members.
    pub(crate) fn bounds(&self) -> Arc<Bounds> {
        self.0.borrow().as_ref().map(|note| note.bounds.clone()).unwrap_or_default()
    }

    /// What is wrong with what is noted.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.borrow().as_ref().and_then(|note| note.problem.clone())
    }

    /// What our Lease says of it, once it is known.
    pub(crate) fn annotation(&self) -> Option<String> {
        self.0.borrow().as_ref().map(|note| note.bounds.annotation().0)
    }
}

fn note(accounts: &Objects<Account>) -> Note {
    let mut problems = Vec::new();
    let mut ranges = |account: &Account| {
        let said = account.annotations().get(label::ADDRESS_RANGES)?;
        let cluster = account.annotations().get(label::CLUSTER_ID)?.clone();
        let read = said.parse::<Ranges>().map_err(|error| {
            let (name, key) = (account.name_any(), label::ADDRESS_RANGES);
            problems.push(format!(
                "ServiceAccount {name}: annotation {key} is not valid, and so limits nothing: {error}"
            ));
        });
        Some((cluster, read.ok()?))
    };
    let bounds: Bounds = accounts.iter().filter_map(&mut ranges).collect();
    let (_, unsaid) = bounds.annotation();
    if !unsaid.is_empty() {
        let unsaid = unsaid.join(", ");
        problems.push(format!("there is no room in the Lease of the leader for the ranges of {unsaid}: importers do not know them"));
    }
    let problem = (!problems.is_empty()).then(|| problems.join("; "));
    Note { bounds: Arc::new(bounds), problem }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::*;

    fn account(cluster: &str, ranges: &str) -> Account {
        let annotations = json!({label::CLUSTER_ID: cluster, label::ADDRESS_RANGES: ranges});
        serde_json::from_value(
            json!({"metadata": {"name": format!("freeport-member-{cluster}"), "annotations": annotations}}),
        )
        .unwrap()
    }

    #[test]
    fn what_accounts_note_is_taken_in_and_what_cannot_be_read_is_said() {
        let (noted, mut accounts) = (Noted::default(), Objects::default());
        assert_eq!(noted.annotation(), None, "not known yet");
        accounts.change(Change::Reset(vec![account("east", "10.1.0.0/16"), account("west", "10.2/16")]));
        assert!(noted.take_in(&accounts) && !noted.take_in(&accounts));
        assert_eq!(noted.annotation().as_deref(), Some("east=10.1.0.0/16"));
        let problem = noted.problem().unwrap();
        assert!(
            problem.contains("ServiceAccount freeport-member-west") && problem.contains("10.2/16"),
            "{problem}"
        );
        accounts.change(Change::Apply(account("west", "")));
        assert!(!noted.take_in(&accounts));
        assert_eq!(noted.problem(), None);
        accounts.change(Change::Remove(account("east", "")));
        assert!(noted.take_in(&accounts));
        assert_eq!(noted.annotation().as_deref(), Some(""));
    }
}
