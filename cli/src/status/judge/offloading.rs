//! Whether offloading works: its policy, the webhook, consents and Namespaces.

use api::offload::{namespace::PLACEMENT_ENFORCED, peer::READY};

use super::{
    Verdict,
    objects::{tally, unless_true},
};
use crate::{
    objects::{Object, offload},
    status::{
        found::{Entry, Gap, OFFLOADED, Offloading, Part, Why},
        report::Tally,
    },
};

/// What sets it up again.
const COMMAND: &str = "join --offload";

impl Verdict<'_> {
    /// OffloadPeers and NamespaceOffloadings, counted.
    pub(super) fn offloading(&mut self, found: &Offloading) -> (Option<Tally>, Option<Tally>) {
        let means =
            "what runs as freeport-member can delete every Namespace and change every Node of this cluster";
        self.policy(Some(&found.policy), &offload::policy(), means, COMMAND);
        for (check, wanted) in found.checks.iter().zip(offload::checks()) {
            self.check(check.as_ref(), &wanted, COMMAND);
        }
        self.webhook(&found.webhook);
        let peers = self.entries("OffloadPeer", &found.peers, &[READY]);
        let namespaces =
            self.entries("NamespaceOffloading", &found.namespaces, &[OFFLOADED, PLACEMENT_ENFORCED]);
        (peers, namespaces)
    }

    fn entries(&mut self, kind: &str, part: &Part<Vec<Entry>>, wanted: &[&str]) -> Option<Tally> {
        let entries = self.part(part, COMMAND)?;
        let tally = tally(entries, |conditions| unless_true(conditions, wanted, &[]));
        self.troubles(kind, &tally);
        Some(tally)
    }

    /// Whether its absence stops Pods is up to the administrator; that it does not is worth knowing.
    fn webhook(&mut self, part: &Part<Option<Object>>) {
        match part {
            Err(Gap { part, why: Why::Forbidden(message) }) => {
                self.notes.push(format!("{part} was not checked: {message}"));
            }
            part => {
                let there = self.part(part, COMMAND).and_then(Option::as_ref);
                let policy = there.and_then(|there| there.body.pointer("/webhooks/0/failurePolicy"));
                if policy.is_some_and(|policy| policy == "Ignore") {
                    self.notes.push(
                        "MutatingWebhookConfiguration freeport-webhook has failurePolicy Ignore: Pods that are created while \
                         freeport-webhook does not answer are not placed, and stay where they are"
                            .into(),
                    );
                }
            }
        }
    }
}
