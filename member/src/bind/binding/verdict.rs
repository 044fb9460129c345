//! What is said about a binding: pure.

use std::collections::BTreeMap;

use api::bind::{
    binding::APIServiceBinding,
    condition::{Answer, Severity, Verdict},
    export::Phase,
};

use kube::ResourceExt;

use super::{Found, Link};
use crate::bind::{contract::Contract, sync::Unsynced};

/// Objects that are named in a condition.
const NAMED: usize = 3;

/// Objects that are not in step do not make a binding unready: the others are.
pub(super) const ASIDE: &[&str] = &["Synced"];

fn error(reason: &'static str, message: impl Into<String>) -> Answer {
    Answer::No(Severity::Error, reason, message.into())
}

/// Not `Unknown`, beside which the summary of kube-bind is `True`.
pub(super) fn not_yet(reason: &'static str, message: impl Into<String>) -> Answer {
    Answer::No(Severity::Info, reason, message.into())
}

/// Without a provider. `was_said` is whether the binding has conditions already.
pub(super) fn unconnected(link: &Link, was_said: bool) -> Vec<Verdict> {
    let (secret, informers) = match link {
        Link::Unusable(unusable) => (error(unusable.reason(), unusable.to_string()), None),
        Link::Failing(failure) => (Answer::Yes, Some(error("InformerSyncTimeout", failure.to_string()))),
        // What was said before a restart may still be so.
        Link::Connecting | Link::Up(..) if was_said => return Vec::new(),
        Link::Connecting | Link::Up(..) => {
            (Answer::Yes, Some(not_yet("Connecting", "the provider has not answered yet")))
        }
    };
    let informers = informers.map(|answer| Verdict::new("InformersSynced", answer));
    [Verdict::new("SecretValid", secret)].into_iter().chain(informers).collect()
}

/// With one.
pub(super) fn connected(
    found: &Found,
    beating: &Option<bool>,
    unsynced: &Unsynced,
    binding: &APIServiceBinding,
) -> Vec<Verdict> {
    let was_said = said(binding, "Heartbeating");
    let heartbeat = match beating {
        Some(true) => Some(Answer::Yes),
        Some(false) => {
            let message = "the provider does not take the heartbeat";
            Some(Answer::No(Severity::Warning, "ClusterBindingUpdateFailed", message.into()))
        }
        // What was said before a restart may still be so.
        None if was_said => None,
        None => Some(not_yet("Pending", "no heartbeat was sent yet")),
    };
    let mut all = vec![
        Verdict::new("SecretValid", Answer::Yes),
        Verdict::new("InformersSynced", Answer::Yes),
        Verdict::new("Connected", found.connected.clone()),
        Verdict::new("SchemaInSync", found.in_sync.clone()),
        Verdict::new("Synced", synced(unsynced, &binding.name_any())),
    ];
    all.extend(heartbeat.map(|answer| Verdict::new("Heartbeating", answer)));
    all
}

/// Whether the binding has a condition of this type.
pub(super) fn said(binding: &APIServiceBinding, type_: &str) -> bool {
    let conditions = binding.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| condition.type_ == type_)
}

/// How many objects of the binding are not in step, why, and the first of them.
fn synced(unsynced: &Unsynced, binding: &str) -> Answer {
    let of_it = unsynced.of(binding);
    let Some((_, (reason, message))) = of_it.first_key_value() else { return Answer::Yes };
    let names: Vec<_> = of_it.keys().take(NAMED).map(ToString::to_string).collect();
    let more = if of_it.len() > NAMED { ", ..." } else { "" };
    let message = format!("{} not in step: {}{more}; {message}", of_it.len(), names.join(", "));
    Answer::No(Severity::Warning, reason, message)
}

/// Where the provider has no export of that name.
pub(super) fn without_export(contract: &Contract, name: &str) -> Found {
    let failed = contract.known.with(|known| {
        let status = known.requests.get(name)?.status.clone()?;
        (status.phase == Phase::Failed).then(|| status.terminal_message.unwrap_or_default())
    });
    let connected = match failed {
        Some(message) => error("APIServiceExportFailed", message),
        None => error("APIServiceExportNotFound", format!("the provider has no APIServiceExport {name}")),
    };
    Found { in_sync: connected.clone(), connected, bound: BTreeMap::new() }
}
