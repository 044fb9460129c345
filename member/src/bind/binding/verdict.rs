//! What is said about a binding: pure.

use std::collections::BTreeMap;

use api::bind::{
    condition::{Answer, Severity, Verdict},
    export::Phase,
};

use super::{Found, Link};
use crate::bind::{contract::Contract, sync::Unsynced};

/// Objects that are named in a condition.
const NAMED: usize = 3;

/// Objects that are not in step do not make a binding unready: the others are.
pub(super) const ASIDE: &[&str] = &["Synced"];

fn error(reason: &'static str, message: impl Into<String>) -> Answer {
    Answer::No(Severity::Error, reason, message.into())
}

/// Without a provider.
pub(super) fn unconnected(link: &Link) -> Vec<Verdict> {
    let (secret, informers) = match link {
        Link::Unusable(unusable) => (error(unusable.reason(), unusable.to_string()), None),
        Link::Failing(failure) => (Answer::Yes, Some(error("InformerSyncTimeout", failure.to_string()))),
        Link::Connecting | Link::Up(..) => {
            (Answer::Yes, Some(Answer::Unknown("Connecting", "the provider has not answered yet".into())))
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
    binding: &str,
) -> Vec<Verdict> {
    let heartbeat = match beating {
        Some(true) => Answer::Yes,
        Some(false) => {
            let message = "the provider does not take the heartbeat";
            Answer::No(Severity::Warning, "ClusterBindingUpdateFailed", message.into())
        }
        None => Answer::Unknown("Pending", "no heartbeat was sent yet".into()),
    };
    vec![
        Verdict::new("SecretValid", Answer::Yes),
        Verdict::new("InformersSynced", Answer::Yes),
        Verdict::new("Heartbeating", heartbeat),
        Verdict::new("Connected", found.connected.clone()),
        Verdict::new("SchemaInSync", found.in_sync.clone()),
        Verdict::new("Synced", synced(unsynced, binding)),
    ]
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
